//! Parts of an output: encoded by any thread, appended in order.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::EncodedData;

use super::checksums::Chunk;
use super::rope::Rope;
use crate::error::{Error, Result};
use crate::input::RowGroups;

/// The rows of a part. Record batches may be of any size.
pub(crate) type Incoming<'a> = &'a mut dyn Iterator<Item = Result<RecordBatch>>;

/// Encodes parts; shared by all workers.
pub(crate) trait Encoder: Send + Sync {
    /// Encodes the rows of one part.
    fn encode(&self, batches: Incoming<'_>) -> Result<Part>;
}

/// Writes finished parts in the order of the output.
pub(crate) trait Appender: Send {
    /// Writes a part made by the encoder that was opened with this appender.
    fn append(&mut self, part: Part) -> Result<()>;

    /// Encodes the rows of a part with the encoder and writes them; returns the number of rows. To
    /// be called in the part's turn: a format may write while it encodes.
    fn encode(&mut self, encoder: &dyn Encoder, batches: Incoming<'_>) -> Result<u64> {
        let part = encoder.encode(batches)?;
        let rows = part.rows;
        self.append(part)?;
        Ok(rows)
    }

    /// Completes the output and publishes it. Dropping an appender instead leaves no file.
    fn finish(self: Box<Self>) -> Result<Written>;
}

/// Encoded rows of the output.
pub(crate) struct Part {
    pub(crate) rows: u64,
    pub(super) payload: Payload,
}

impl Part {
    /// Returns a part that is a row group of another Parquet file with the same columns.
    pub(crate) fn of_row_group(groups: &Arc<RowGroups>, index: usize) -> Self {
        let rows = groups.group(index).num_rows().unsigned_abs();
        Self { rows, payload: Payload::RowGroup(Arc::clone(groups), index) }
    }

    /// Returns the bytes added to a file by the part; for an Arrow file with dictionaries, the
    /// bytes of the part's arrays.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes: usize = match &self.payload {
            Payload::Columns(chunks) => chunks.iter().map(Chunk::bytes).sum(),
            Payload::RowGroup(groups, index) => {
                usize::try_from(groups.group(*index).compressed_size()).unwrap_or(0)
            }
            Payload::Messages(messages) => messages.iter().map(message_bytes).sum(),
            Payload::Batches(batches) => batches.iter().map(array_bytes).sum(),
            Payload::Text(text) => text.bytes(),
        };
        bytes as u64
    }
}

/// The encoded form of a part in each format.
pub(super) enum Payload {
    /// Parquet: a closed chunk of each leaf column.
    Columns(Vec<Chunk>),
    /// Parquet: a row group of another file, copied.
    RowGroup(Arc<RowGroups>, usize),
    /// Arrow: encoded messages.
    Messages(Vec<EncodedData>),
    /// Arrow files with dictionaries: rows whose dictionary keys the appender renumbers.
    Batches(Vec<RecordBatch>),
    /// CSV and NDJSON: whole lines.
    Text(Rope),
}

/// The maximum size of a part.
#[derive(Clone, Copy)]
pub(crate) struct PartRows {
    pub(crate) rows: usize,
    /// Bytes as Arrow arrays.
    pub(crate) bytes: usize,
    /// Size of the longest row, if known.
    pub(crate) longest: Option<usize>,
}

/// The size of a finished output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// Returns the bytes of a record batch's values; the buffers may hold further values.
pub(super) fn array_bytes(batch: &RecordBatch) -> usize {
    let bytes = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(0);
    batch.columns().iter().map(bytes).sum()
}

/// Returns the error of a part made by the encoder of another format.
pub(super) fn foreign_part() -> Error {
    Error::data("internal error: a part of another output format was appended")
}

/// Alignment of messages in bytes, and so of the buffers in a mapped file.
pub(super) const ALIGNMENT: usize = 64;

/// Returns the bytes of a message in a file, with its entry in the footer.
pub(super) fn message_bytes(message: &EncodedData) -> usize {
    const PLACE: usize = 24;
    message.ipc_message.len() + message.arrow_data.len() + 2 * ALIGNMENT + PLACE
}
