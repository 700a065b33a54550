//! What a job reports: one type, its kind, and the place it is about.
//!
//! The kind says what remedy it takes; the [`Place`] has what a program can act on: file, row, line,
//! column, floor and limit. The message is whole: places are in it, and settings by name in back quotes
//! (see [`Setting`]).

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::ArrowError;

use crate::setting::{self, Setting};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error by the remedy that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller asks for what cannot be: change what is asked.
    Usage,
    /// An input is not there.
    NotFound,
    /// An input cannot be read, or holds what it must not: mend the data.
    Data,
    /// An input of a merge is not sorted: sort it first.
    Unsorted,
    /// The memory limit is below what the job needs: [`Place::floor`] says how much that is.
    MemoryFloor,
    /// The output or temporary files cannot be written: no space, no permission.
    Space,
    /// Bytes read back from temporary files are not those written.
    Corrupt,
    /// Nobody reads the output any more: nothing to do.
    BrokenPipe,
    /// The job was cancelled. Nothing was written.
    Interrupted,
}

/// What an error is about, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file, as messages name it.
    pub file: Option<Arc<str>>,
    /// The row in its file, from 0.
    pub row: Option<u64>,
    /// The line in its file, from 1.
    pub line: Option<u64>,
    /// The column.
    pub column: Option<String>,
    /// The least memory limit that the job needs, in bytes.
    pub floor: Option<u64>,
    /// The limit that it has, in bytes.
    pub limit: Option<u64>,
}

/// How a message about a column that there is not begins.
const NO_COLUMN: &str = "no column named";

/// What went wrong.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    place: Place,
    whose: Whose,
}

/// Which inputs a message is yet to name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// None, or it has its name.
    Named,
    /// The one of this ordinal.
    One(usize),
    /// All of them together.
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

    /// The job was cancelled.
    pub fn interrupted() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted; nothing was written")
    }

    /// The memory limit is below the floor.
    pub(crate) fn memory_floor(message: impl Into<String>, floor: u64, limit: u64) -> Self {
        let mut error = Self::new(ErrorKind::MemoryFloor, message);
        error.0.place.floor = Some(floor);
        error.0.place.limit = Some(limit);
        error
    }

    /// The rows of all inputs do not fit a column together.
    pub(crate) fn unfit(column: &str, message: impl Into<String>) -> Self {
        let mut error = Self::data(message).in_column(column);
        error.0.whose = Whose::All;
        error
    }

    /// An input of a merge is not sorted; `input` is its ordinal.
    fn unsorted(input: usize, row: u64) -> Self {
        let message = format!("row {row} sorts before the row in front of it; sort the file first");
        let mut error = Self::new(ErrorKind::Unsorted, message).at_row(row);
        error.0.whose = Whose::One(input);
        error
    }

    /// The remedy that it needs.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What it is about.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// The message in a door's words: `word` says what it calls a setting.
    pub fn worded(&self, word: &dyn Fn(Setting) -> String) -> String {
        setting::worded(&self.0.message, word)
    }

    pub(crate) fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
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

    /// Names the inputs that an error is about, `names` being those of all inputs.
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

    /// Names the input whose rows are at fault, where they are.
    pub(crate) fn in_input(mut self, name: &str) -> Self {
        if self.0.kind != ErrorKind::Data || self.0.whose != Whose::Named {
            return self;
        }
        self.0.message = format!("{name}: {}", self.0.message);
        self.in_file(name)
    }

    /// Says from which row on those are not counted that a filter left out.
    pub(crate) fn of_kept_rows(mut self, first: u64) -> Self {
        if self.0.place.row.is_some() {
            let setting = Setting::Where;
            self.0.message += &format!(
                "; from row {first} on, rows are counted without those that {setting} leaves out"
            );
        }
        self
    }

    /// Says that floats were compared as in SQL, where a file may have them in another order.
    pub(crate) fn of_sql_floats(mut self) -> Self {
        self.0.message += &format!(
            "; floats are compared as in SQL here, all NaN behind the numbers: sort it with {} sql",
            Setting::FloatOrder
        );
        self
    }

    /// Says which setting asks for what cannot be.
    pub(crate) fn of(mut self, setting: Setting) -> Self {
        if self.0.kind == ErrorKind::Usage {
            self.0.message = format!("{setting}: {}", self.0.message);
        }
        self
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
        let message = match list.as_str() {
            "" => format!("{NO_COLUMN} {name:?}; there are no columns"),
            list => format!("{NO_COLUMN} {name:?}; the columns are {list}"),
        };
        Self::usage(message).in_column(name)
    }

    /// Says that names of columns seem to stand behind so many lines, where one was not found.
    pub(crate) fn behind_lines(mut self, lines: usize) -> Self {
        if self.0.message.contains(NO_COLUMN) {
            let line = lines + 1;
            self.0.message +=
                &format!("; line {line} may have their names: {} {lines}", Setting::CsvSkipLines);
        }
        self
    }

    /// An input file that the system or its format's reader refuses.
    pub(crate) fn input(file: &Path, cause: impl fmt::Display) -> Self {
        let file = file.display().to_string();
        Self::data(format!("{file}: {cause}")).in_file(file)
    }

    /// An output file that the system refuses; a pipe without a reader is a matter of nobody.
    pub fn output(file: &Path, cause: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        // What passed through a writer is found again.
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
        error.in_file(file)
    }

    /// A file of a temporary directory that the system refuses.
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

/// A reader's error on its way through the engine; the conversion back finds it again.
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
