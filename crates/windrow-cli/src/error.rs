//! What the command line reports, and with which exit code.

use std::path::Path;

use arrow::error::ArrowError;

/// The result of everything that the command line does.
pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

/// An error by the kind of remedy it needs; the kind is the exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// `check` found a row out of place. Exit code 1.
    #[error("{0}")]
    CheckFailed(String),
    /// The command line asks for what cannot be. Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// An input of a merge is not sorted; `input` is its ordinal. Exit code 3.
    #[error("input {input}: row {row} sorts before the row in front of it; sort the file first")]
    Unsorted { input: usize, row: u64 },
    /// The rows of all inputs do not fit a column together. Exit code 3.
    #[error("{0}")]
    Unfit(String),
    /// An input cannot be read, or holds what it must not. Exit code 3.
    #[error("{0}")]
    Data(String),
    /// The memory limit is below the floor of this job. Exit code 4.
    #[error("{0}")]
    MemoryFloor(String),
    /// The output or temporary files cannot be written: no space, no permission. Exit code 5.
    #[error("{0}")]
    Space(String),
    /// Bytes read back are not those written. Exit code 6.
    #[error("{0}")]
    Corrupt(String),
    /// Nobody reads the standard output any more: nothing to say. Exit code 141, that of SIGPIPE.
    #[error("the reader of the output went away")]
    BrokenPipe,
    /// Ctrl-C or a termination signal. Exit code 130.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

impl CliError {
    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Self::CheckFailed(_) => 1,
            Self::Usage(_) => 2,
            Self::Data(_) | Self::Unsorted { .. } | Self::Unfit(_) => 3,
            Self::MemoryFloor(_) => 4,
            Self::Space(_) => 5,
            Self::Corrupt(_) => 6,
            Self::Interrupted => 130,
            Self::BrokenPipe => 141,
        }
    }

    /// Names the inputs that an error is about, `names` being those of all inputs.
    pub(crate) fn named<'a>(self, mut names: impl Iterator<Item = &'a str>) -> Self {
        match self {
            Self::Unsorted { input, row } => Self::Data(format!(
                "{}: row {row} sorts before the row in front of it; sort the file first",
                names.nth(input).unwrap_or("an input")
            )),
            Self::Unfit(message) => {
                let first = names.next().unwrap_or("the input");
                Self::Data(match names.count() {
                    0 => format!("{first}: {message}"),
                    more => format!("{first} and {more} more: {message}"),
                })
            }
            other => other,
        }
    }

    /// Names the input whose rows are at fault, where they are.
    pub(crate) fn in_input(self, name: &str) -> Self {
        match self {
            Self::Data(message) => Self::Data(format!("{name}: {message}")),
            other => other,
        }
    }

    /// No column has this name; those that there are may be many.
    pub(crate) fn missing_column<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Self {
        // As many names as fit a screen.
        const SHOWN: usize = 50;
        const LONG: usize = 1000;
        let mut list = String::new();
        let mut left = 0;
        for (i, other) in all.enumerate() {
            if i < SHOWN && list.len() < LONG {
                let comma = if i > 0 { ", " } else { "" };
                list.extend([comma, other]);
            } else {
                left += 1;
            }
        }
        if left > 0 {
            list += &format!(" and {left} more");
        }
        Self::Usage(match list.as_str() {
            "" => format!("no column named {name:?}; there are no columns"),
            list => format!("no column named {name:?}; the columns are {list}"),
        })
    }

    /// An input file that the system or its format's reader refuses.
    pub(crate) fn input(file: &Path, cause: impl std::fmt::Display) -> Self {
        Self::Data(format!("{}: {cause}", file.display()))
    }

    /// An output file that the system refuses; a pipe without a reader is a matter of nobody.
    pub(crate) fn output(file: &Path, cause: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        match cause.kind() {
            K::StorageFull | K::QuotaExceeded | K::FileTooLarge => {
                Self::Space(format!("{}: {cause}; free some space", file.display()))
            }
            K::BrokenPipe => Self::BrokenPipe,
            _ => Self::Space(format!("{}: {cause}", file.display())),
        }
    }

    /// A file of a temporary directory that the system refuses.
    pub(crate) fn within(file: &Path, cause: &std::io::Error) -> Self {
        match cause.kind() {
            std::io::ErrorKind::NotFound => Self::Space(format!(
                "{}: {cause}; its directory was removed or moved during the job: keep other programs \
                 away from it and run the job again",
                file.display()
            )),
            _ => Self::output(file, cause),
        }
    }
}

impl From<windrow::Error> for CliError {
    fn from(error: windrow::Error) -> Self {
        use windrow::Error as E;
        match error {
            E::Arrow(ArrowError::ExternalError(inner)) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Data(other.to_string()),
            },
            E::MissingColumn { column, available } => {
                Self::missing_column(&column, available.split(", "))
            }
            E::UnsupportedColumn { .. } | E::InvalidOrder(_) => Self::Usage(error.to_string()),
            E::OutOfOrder { input, row } => Self::Unsorted { input, row },
            E::MemoryFloor { .. } => Self::MemoryFloor(error.to_string()),
            E::TempSpace { .. } | E::Io { .. } => Self::Space(error.to_string()),
            E::Corrupt { .. } => Self::Corrupt(error.to_string()),
            E::Interrupted => Self::Interrupted,
            other => Self::Data(other.to_string()),
        }
    }
}

/// A reader's error on its way through the engine; the conversion back finds it again.
impl From<CliError> for windrow::Error {
    fn from(error: CliError) -> Self {
        Self::Arrow(ArrowError::ExternalError(Box::new(error)))
    }
}
