//! The error type of the crate: its kind, its message, and its place.
//!
//! The kind selects the remedy. The [`Place`] holds data for programs: file, row, line, column,
//! floor and limit. The message is complete: it includes the place, and names settings in
//! backquotes (see [`Setting`]).

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::ArrowError;

use crate::settings::{self, Setting};

/// The result of the fallible functions in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, by remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller's request is impossible: change the request.
    Usage,
    /// An input does not exist.
    NotFound,
    /// An input is unreadable or holds invalid data: repair the data.
    Data,
    /// An input of a merge is not sorted: sort it first.
    Unsorted,
    /// The memory limit is below the need of the job, which is in [`Place::floor`].
    MemoryFloor,
    /// The output or temporary files cannot be written: no space, no permission.
    Space,
    /// Bytes read back from temporary files differ from the bytes written.
    Corrupt,
    /// The reader of the output is gone: nothing to do.
    BrokenPipe,
    /// The job was cancelled. Nothing was written.
    Interrupted,
}

/// The place of an error, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file, as named in messages.
    pub file: Option<Arc<str>>,
    /// The row in its file, from 0.
    pub row: Option<u64>,
    /// The line in its file, from 1.
    pub line: Option<u64>,
    /// The column.
    pub column: Option<String>,
    /// The smallest possible memory limit of the job, in bytes.
    pub floor: Option<u64>,
    /// The memory limit of the job, in bytes.
    pub limit: Option<u64>,
    /// What the operating system, or the network, said about the file.
    pub cause: Option<std::io::ErrorKind>,
}

/// Start of the message about a missing column.
const NO_COLUMN: &str = "no column named";

/// An error of a job.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    place: Place,
    whose: Whose,
}

/// The inputs whose names are still to be added to a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// No input, or the name is there already.
    Named,
    /// The input with this index.
    One(usize),
    /// All inputs together.
    All,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (message, place) = (message.into(), Place::default());
        Self(Box::new(Inner { kind, message, place, whose: Whose::Named }))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Data, message)
    }

    pub(crate) fn space(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Space, message)
    }

    /// Returns the error of a cancelled job.
    pub fn interrupted() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted; nothing was written")
    }

    /// Returns the error of a memory limit below the floor.
    pub(crate) fn memory_floor(message: impl Into<String>, floor: u64, limit: u64) -> Self {
        let mut error = Self::new(ErrorKind::MemoryFloor, message);
        error.0.place.floor = Some(floor);
        error.0.place.limit = Some(limit);
        error
    }

    /// Returns the error of a column type too small for the rows of all inputs.
    pub(crate) fn unfit(column: &str, message: impl Into<String>) -> Self {
        let mut error = Self::data(message).in_column(column);
        error.0.whose = Whose::All;
        error
    }

    /// Returns the error of an unsorted input of a merge; `input` is its index.
    fn unsorted(input: usize, row: u64) -> Self {
        let message = format!("row {row} sorts before the row in front of it; sort the file first");
        let mut error = Self::new(ErrorKind::Unsorted, message).at_row(row);
        error.0.whose = Whose::One(input);
        error
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the place of the error.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Returns the message in the words of an interface; `word` returns the interface's name of a
    /// setting.
    pub fn worded(&self, word: &dyn Fn(Setting) -> String) -> String {
        settings::worded(&self.0.message, word)
    }

    pub(crate) fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Returns the error of a value in a row of an input; `what` follows the name of the column.
    pub(crate) fn of_value(row: u64, column: &str, what: impl fmt::Display) -> Self {
        Self::data(format!("row {row}: column {column:?} {what}")).at_row(row).in_column(column)
    }

    pub(crate) fn at_row(mut self, row: u64) -> Self {
        self.0.place.row = Some(row);
        self
    }

    pub(crate) fn at_line(mut self, line: u64) -> Self {
        self.0.place.line = Some(line);
        self
    }

    pub(crate) fn in_column(mut self, column: impl Into<String>) -> Self {
        self.0.place.column = Some(column.into());
        self
    }

    pub(crate) fn in_file(mut self, file: impl Into<Arc<str>>) -> Self {
        self.0.place.file = Some(file.into());
        self
    }

    pub(crate) fn caused(mut self, cause: std::io::ErrorKind) -> Self {
        self.0.place.cause = Some(cause);
        self
    }

    /// Adds the names of the inputs concerned; `names` are the names of all inputs.
    pub(crate) fn named<'a>(mut self, mut names: impl Iterator<Item = &'a str>) -> Self {
        match std::mem::replace(&mut self.0.whose, Whose::Named) {
            Whose::Named => self,
            Whose::One(input) => {
                let name = names.nth(input).unwrap_or("an input");
                self.0.message = format!("{name}: {}", self.0.message);
                self.in_file(name)
            }
            Whose::All => {
                let first = names.next().unwrap_or("the input");
                self.0.message = match names.count() {
                    0 => format!("{first}: {}", self.0.message),
                    more => format!("{first} and {more} more: {}", self.0.message),
                };
                self.in_file(first)
            }
        }
    }

    /// Adds the name of the input to an error about the input's rows.
    pub(crate) fn in_input(mut self, name: &str) -> Self {
        if self.0.kind != ErrorKind::Data || self.0.whose != Whose::Named {
            return self;
        }
        self.0.message = format!("{name}: {}", self.0.message);
        self.in_file(name)
    }

    /// Explains that from row `first` on the row number does not count rows removed by a filter.
    pub(crate) fn of_kept_rows(mut self, first: u64) -> Self {
        if self.0.place.row.is_some() {
            let setting = Setting::Where;
            self.0.message += &format!(
                "; from row {first} on, rows are counted without those that {setting} leaves out"
            );
        }
        self
    }

    /// Explains that floats are compared as in SQL; the file may have been sorted otherwise.
    pub(crate) fn of_sql_floats(mut self) -> Self {
        self.0.message += &format!(
            "; floats are compared as in SQL here, all NaN behind the numbers: sort it with {} sql",
            Setting::FloatOrder
        );
        self
    }

    /// Adds the setting at fault to a usage error.
    pub(crate) fn of(mut self, setting: Setting) -> Self {
        if self.0.kind == ErrorKind::Usage {
            self.0.message = format!("{setting}: {}", self.0.message);
        }
        self
    }

    /// Returns the error of a missing column. The message lists the existing columns, up to a
    /// limit.
    pub(crate) fn missing_column<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Self {
        // Enough names to fill a screen.
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
        let message = match list.as_str() {
            "" => format!("{NO_COLUMN} {name:?}; there are no columns"),
            list => format!("{NO_COLUMN} {name:?}; the columns are {list}"),
        };
        Self::usage(message).in_column(name)
    }

    /// Suggests, after a missing column, that the column names may follow after `lines` lines.
    pub(crate) fn behind_lines(mut self, lines: usize) -> Self {
        if self.0.message.contains(NO_COLUMN) {
            let line = lines + 1;
            self.0.message +=
                &format!("; line {line} may have their names: {} {lines}", Setting::CsvSkipLines);
        }
        self
    }

    /// Returns the error of an input file rejected by the system or the format's reader.
    pub(crate) fn input(file: &Path, cause: impl fmt::Display) -> Self {
        let file = file.display().to_string();
        Self::data(format!("{file}: {cause}")).in_file(file)
    }

    /// Returns the error of an output file rejected by the system. A pipe without a reader has a
    /// kind of its own.
    pub fn output(file: &Path, cause: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        // An error that passed through a writer is unwrapped.
        if let Some(own) = cause.get_ref().and_then(|cause| cause.downcast_ref::<Self>()) {
            return own.clone();
        }
        let file = file.display().to_string();
        let error = match cause.kind() {
            K::StorageFull | K::QuotaExceeded | K::FileTooLarge => {
                Self::space(format!("{file}: {cause}; free some space"))
            }
            K::BrokenPipe => Self::new(ErrorKind::BrokenPipe, "the reader of the output went away"),
            _ => Self::space(format!("{file}: {cause}")),
        };
        error.in_file(file).caused(cause.kind())
    }

    /// Returns the error of a temporary file rejected by the system.
    pub(crate) fn within(file: &Path, cause: &std::io::Error) -> Self {
        match cause.kind() {
            std::io::ErrorKind::NotFound => Self::space(format!(
                "{}: {cause}; its directory was removed or moved during the job: keep other programs \
                 away from it and run the job again",
                file.display()
            )),
            _ => Self::output(file, cause),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("place", &self.0.place)
            .finish()
    }
}

impl std::error::Error for Error {}

/// Returns the error of a kernel of Arrow.
pub(crate) fn failed(error: ArrowError) -> Error {
    Error::data(error.to_string())
}

impl From<windrow::Error> for Error {
    fn from(error: windrow::Error) -> Self {
        use windrow::Error as E;
        let kind = match error {
            E::Arrow(ArrowError::ExternalError(inner)) => {
                return match inner.downcast::<Self>() {
                    Ok(own) => *own,
                    Err(other) => Self::data(other.to_string()),
                };
            }
            E::MissingColumn { column, available } => {
                return Self::missing_column(&column, available.split(", "));
            }
            E::OutOfOrder { input, row } => return Self::unsorted(input, row),
            E::Value { ref column, .. } => {
                return Self::data(error.to_string()).in_column(column.clone());
            }
            E::UnsupportedColumn { .. } | E::InvalidOrder(_) => ErrorKind::Usage,
            E::TempSpace { .. } | E::Io { .. } => ErrorKind::Space,
            E::Corrupt { .. } => ErrorKind::Corrupt,
            _ => ErrorKind::Data,
        };
        Self::new(kind, error.to_string())
    }
}

/// Wraps a reader's error on its way through the engine; the conversion back unwraps it.
impl From<Error> for windrow::Error {
    fn from(error: Error) -> Self {
        Self::Arrow(error.into())
    }
}

impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        Self::ExternalError(Box::new(error))
    }
}
