//! Errors of the engine, each with a remedy for the caller.
//!
//! One enum serves the whole engine. Each variant belongs to one kind of remedy: change the call
//! ([`Error::MissingColumn`], [`Error::InvalidOrder`], ...), correct the data
//! ([`Error::OutOfOrder`], [`Error::NegativeDiff`], ...), provide more temporary space
//! ([`Error::TempSpace`]) or replace a disk ([`Error::Corrupt`]). Input of users, files and disks
//! never makes the engine panic.

use arrow_schema::{ArrowError, DataType};

/// Result of the engine's fallible calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The order names a column that the schema does not have: correct the name.
    #[error("no column named {column:?}; the columns are {available}")]
    MissingColumn {
        /// Name in the order.
        column: String,
        /// Names of the schema, joined by commas.
        available: String,
    },

    /// The type of a column does not fit its role (key, time, diff, tombstone): cast the column
    /// first.
    #[error("column {column:?} of type {data_type} cannot be {role}")]
    UnsupportedColumn {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// Role in the order, as a phrase: "a sort key".
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
        /// Field or schema of the record batch.
        got: String,
    },

    /// An input that was declared sorted is not sorted.
    #[error("input {input} is not sorted: row {row} sorts before the row in front of it")]
    OutOfOrder {
        /// Ordinal of the input, from 0.
        input: usize,
        /// Ordinal of the row within the input, from 0.
        row: u64,
    },

    /// An input that was declared unique has two rows with one key.
    #[error("input {input} repeats a key: row {row} has the key of the row in front of it")]
    Repeated {
        /// Ordinal of the input, from 0.
        input: usize,
        /// Ordinal of the row within the input, from 0.
        row: u64,
    },

    /// The diffs of equal rows add up to more than 64 bits hold.
    #[error("the diffs of one row overflow 64 bits: {row}")]
    DiffOverflow {
        /// The row, as text.
        row: String,
    },

    /// A snapshot would hold a row a negative number of times: the log is incomplete or wrong.
    #[error("{count} rows have a negative multiplicity; the first: {}", rows.join("; "))]
    NegativeDiff {
        /// Number of such rows.
        count: u64,
        /// First few of the rows, as text.
        rows: Vec<String>,
    },

    /// A value cannot be represented: a null in a column without nulls, an offset beyond its type.
    #[error("column {column:?}: {message}")]
    Value {
        /// The column.
        column: String,
        /// Description of the problem.
        message: String,
    },

    /// A row names a partition that does not exist: correct the ids, or create more partitions.
    #[error("row {row} goes to partition {id}, but there are {partitions}, counted from 0")]
    PartitionOutOfRange {
        /// Ordinal of the row in its record batch, from 0.
        row: usize,
        /// Partition of the row.
        id: u32,
        /// Number of partitions.
        partitions: usize,
    },

    /// Pushers hold rows that the batch would lack: flush every pusher before the end.
    #[error("{pushers} pushers hold rows that they did not hand over: flush them first")]
    Unflushed {
        /// Number of pushers that hold rows.
        pushers: usize,
    },

    /// Rows are lost, so the remaining rows are not the answer: an earlier call failed, or a pusher
    /// was dropped before it handed its rows over, as in a thread that panicked. Remove the cause,
    /// and start the job again.
    #[error(
        "rows are lost since an earlier error, or with a pusher that was not flushed: start again"
    )]
    Lost,

    /// The temporary space is used up or its disk is full: free some space, or name another
    /// directory.
    #[error("out of temporary space in {dir}: {message}")]
    TempSpace {
        /// The directory.
        dir: String,
        /// Limit that was reached, or message of the system.
        message: String,
    },

    /// Bytes that were read back differ from the bytes written: replace the disk, run again.
    #[error("corrupt data in {place}: {message}")]
    Corrupt {
        /// File and offset, or the structure that was read.
        place: String,
        /// Expected and actual content.
        message: String,
    },

    /// The operating system refused a read or a write of temporary data.
    #[error("{context}: {source}")]
    Io {
        /// Operation that failed, with its file.
        context: String,
        /// Error of the system.
        source: std::io::Error,
    },

    /// Arrow refused an array or a record batch.
    #[error(transparent)]
    Arrow(ArrowError),
}

/// Unwraps an engine error that a `RecordBatches` of the engine returned as Arrow's
/// external error. Any other error becomes [`Error::Arrow`].
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

/// Wraps the error as Arrow's external error, for readers of record batches and other code of
/// Arrow. [`Error::Arrow`] is unwrapped instead.
impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        match error {
            Error::Arrow(error) => error,
            error => Self::ExternalError(Box::new(error)),
        }
    }
}
