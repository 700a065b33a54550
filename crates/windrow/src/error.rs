//! What can go wrong, and what the caller should do about it.
//!
//! One enum for the whole engine. Each variant belongs to one kind of remedy: change the call
//! ([`Error::MissingColumn`], [`Error::InvalidOrder`], ...), mend the data ([`Error::OutOfOrder`],
//! [`Error::NegativeDiff`], ...), give more room ([`Error::TempSpace`]) or
//! replace a disk ([`Error::Corrupt`]). Nothing a user, a file or a disk can do makes the engine panic.

use arrow_schema::{ArrowError, DataType};

/// The result of every fallible call of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that the engine reports instead of an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A column that the order names is not in the schema: correct the name.
    #[error("no column named {column:?}; the columns are {available}")]
    MissingColumn {
        /// The name that was asked for.
        column: String,
        /// The names that exist, joined by commas.
        available: String,
    },

    /// A column cannot take the part it was given (key, time, diff, tombstone): cast it first.
    #[error("column {column:?} of type {data_type} cannot be {role}")]
    UnsupportedColumn {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// The part it was to play, as a phrase: "a sort key".
        role: &'static str,
    },

    /// The order contradicts itself: change the call.
    #[error("{0}")]
    InvalidOrder(String),

    /// A record batch does not have the schema that the layout was bound to.
    #[error("schema mismatch: expected {expected}, got {got}")]
    SchemaMismatch {
        /// The field or schema that the layout was bound to.
        expected: String,
        /// What came.
        got: String,
    },

    /// An input that was declared sorted is not.
    #[error("input {input} is not sorted: row {row} sorts before the row in front of it")]
    OutOfOrder {
        /// Ordinal of the input, from 0.
        input: usize,
        /// Ordinal of the row within that input, from 0.
        row: u64,
    },

    /// An input that was declared unique has two rows of one key.
    #[error("input {input} repeats a key: row {row} has the key of the row in front of it")]
    Repeated {
        /// Ordinal of the input, from 0.
        input: usize,
        /// Ordinal of the row within that input, from 0.
        row: u64,
    },

    /// The diffs of equal rows add up to more than 64 bits hold.
    #[error("the diffs of one row overflow 64 bits: {row}")]
    DiffOverflow {
        /// The row, as text.
        row: String,
    },

    /// A snapshot would hold a row less than zero times: the log is incomplete or wrong.
    #[error("{count} rows have a negative multiplicity; the first: {}", rows.join("; "))]
    NegativeDiff {
        /// How many rows.
        count: u64,
        /// The first few, as text.
        rows: Vec<String>,
    },

    /// The value cannot be represented: a null where none is allowed, an offset past its type.
    #[error("column {column:?}: {message}")]
    Value {
        /// The column.
        column: String,
        /// What is wrong with it.
        message: String,
    },

    /// A row was given to a partition that does not exist: mend the ids, or ask for more partitions.
    #[error("row {row} goes to partition {id}, but there are {partitions}, counted from 0")]
    PartitionOutOfRange {
        /// Ordinal of the row in its record batch, from 0.
        row: usize,
        /// The partition that it was to go to.
        id: u32,
        /// How many there are.
        partitions: usize,
    },

    /// Rows were pushed that would not be in the batch: flush every pusher before the end.
    #[error("{pushers} pushers hold rows that they did not hand over: flush them first")]
    Unflushed {
        /// How many pushers hold rows.
        pushers: usize,
    },

    /// An earlier call failed, or a pusher was dropped before it handed its rows over, as in a thread that panicked. Rows
    /// are lost since: what is left is not the answer. Mend the cause, and start the job again.
    #[error(
        "rows are lost since an earlier error, or with a pusher that was not flushed: start again"
    )]
    Lost,

    /// The temporary space is used up or its disk is full: free some, or name another directory.
    #[error("out of temporary space in {dir}: {message}")]
    TempSpace {
        /// The directory.
        dir: String,
        /// The limit that was reached, or what the system said.
        message: String,
    },

    /// Bytes that were read back are not those that were written: replace the disk, run again.
    #[error("corrupt data in {place}: {message}")]
    Corrupt {
        /// File and offset, or the structure that was read.
        place: String,
        /// What was expected and what came.
        message: String,
    },

    /// The operating system refused a read or a write of temporary data.
    #[error("{context}: {source}")]
    Io {
        /// What was being done, and to which file.
        context: String,
        /// What the system said.
        source: std::io::Error,
    },

    /// Arrow refused an array or a record batch.
    #[error(transparent)]
    Arrow(ArrowError),
}

/// One that came out of the engine as Arrow's, by a [`RecordBatches`](crate::RecordBatches), is itself again.
impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::ExternalError(source) => match source.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Arrow(ArrowError::ExternalError(other)),
            },
            error => Self::Arrow(error),
        }
    }
}

/// For readers of record batches and other code of Arrow's: an external error, unless it was Arrow's.
impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        match error {
            Error::Arrow(error) => error,
            error => Self::ExternalError(Box::new(error)),
        }
    }
}
