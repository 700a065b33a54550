//! Encoder of row groups: all columns at once, or one by one to save memory.
//!
//! ```text
//!            together: [a b c][a b c][a b c]...       rows as they come, a writer open for every leaf
//! rows  -->
//!            in turn:  [a a a ...][b b b ...][c ...]  rows are held, one column has its writers open
//! ```
//!
//! A writer takes megabytes even for few values (see [`super::parquet_memory`]), so the writers of
//! a wide table take more memory than the rows of a part. Invariant: both ways make the same
//! chunks, since a column is written in the same [calls](ROWS_A_CALL).

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::checksums::{Chunk, ChunkWriter};
use super::part::{Encoder, Incoming, Part, Payload};
use super::rebatch::{Runs, pieces, pieces_at};
use super::storable::stored;
use crate::error::{Error, Result, failed};
use crate::watch::Watch;

/// Rows of a call to a column writer. The writer compares its page to the page limit after every so
/// many values of one call, and starts counting again in each call. Equal bytes therefore need
/// equal calls.
pub(super) const ROWS_A_CALL: usize = 1024;

/// Bytes of a call, for wide rows: the size of a page is not checked within a call.
pub(super) const BYTES_A_CALL: usize = 512 << 10;

/// Encodes the row groups of one file.
pub(super) struct RowGroupEncoder {
    /// Arrow schema of the file.
    pub(super) schema: SchemaRef,
    /// Parquet schema of the file.
    pub(super) root: TypePtr,
    pub(super) properties: Arc<WriterProperties>,
    pub(super) rows_a_call: usize,
    pub(super) in_turn: bool,
    /// Whether pages have checksums.
    pub(super) checked: bool,
    pub(super) watch: Watch,
}

impl RowGroupEncoder {
    /// Checks that every column has a writer.
    pub(super) fn check(&self) -> parquet::errors::Result<()> {
        (0..self.schema.fields().len()).try_for_each(|place| self.writers(place).map(drop))
    }

    /// Makes writers for the leaves of one column. Writers do not depend on other columns: a file
    /// of this column alone has the same writers.
    fn writers(&self, place: usize) -> parquet::errors::Result<Vec<ChunkWriter>> {
        let (Some(field), Some(parquet)) =
            (self.schema.fields().get(place), self.root.get_fields().get(place))
        else {
            return Err(ParquetError::General(format!("there is no column {place}")));
        };
        let root = Type::group_type_builder(self.root.name())
            .with_fields(vec![Arc::clone(parquet)])
            .build()?;
        let properties = Arc::clone(&self.properties);
        let file = SerializedFileWriter::new(std::io::sink(), Arc::new(root), properties)?;
        let schema = Arc::new(Schema::new(vec![Arc::clone(field)]));
        // Only encrypted pages contain the ordinal of a row group.
        ChunkWriter::of_row_group(ArrowRowGroupWriterFactory::new(&file, schema), 0, self.checked)
    }

    /// Returns the cuts between calls.
    fn runs(&self) -> Runs {
        Runs::of(self.rows_a_call, BYTES_A_CALL)
    }

    fn together(&self, batches: Incoming<'_>) -> Result<Part> {
        let writers = (0..self.schema.fields().len()).map(|place| self.writers(place));
        let mut writers: Vec<_> = writers.collect::<Result<_, _>>().map_err(encoding)?;
        let rows = pieces(batches, self.runs(), |pieces| {
            for (place, writers) in writers.iter_mut().enumerate() {
                let pieces = pieces.iter().map(|piece| Arc::clone(piece.column(place)));
                write(writers, self.schema.field(place), pieces.collect())?;
            }
            Ok(())
        })?;
        let mut chunks = Vec::new();
        writers.into_iter().try_for_each(|writers| close(writers, &mut chunks))?;
        Ok(Part { rows, payload: Payload::Columns(chunks) })
    }

    fn in_turn(&self, batches: Incoming<'_>) -> Result<Part> {
        let fields = self.schema.fields();
        let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); fields.len()];
        let (mut runs, mut ends, mut rows) = (self.runs(), Vec::new(), 0);
        for batch in batches {
            let batch = batch?;
            rows += batch.num_rows() as u64;
            ends.push(runs.ends(&batch));
            for (column, array) in columns.iter_mut().zip(batch.columns()) {
                column.push(Arc::clone(array));
            }
        }
        let mut chunks = Vec::new();
        for (place, (field, arrays)) in fields.iter().zip(columns).enumerate() {
            self.watch.pause()?;
            let mut writers = self.writers(place).map_err(encoding)?;
            let mut pieces = arrays.into_iter().zip(&ends).map(|(array, ends)| {
                let batch = RecordBatch::try_from_iter([("", array)]).map_err(failed)?;
                Ok((batch, ends.clone()))
            });
            pieces_at(&mut pieces, |pieces| {
                let pieces = pieces.iter().map(|piece| Arc::clone(piece.column(0)));
                write(&mut writers, field, pieces.collect())
            })?;
            close(writers, &mut chunks)?;
        }
        Ok(Part { rows, payload: Payload::Columns(chunks) })
    }
}

impl Encoder for RowGroupEncoder {
    fn encode(&self, batches: Incoming<'_>) -> Result<Part> {
        if self.in_turn { self.in_turn(batches) } else { self.together(batches) }
    }
}

/// Returns the rows of a call, by the sample, independent of the memory limit.
pub(super) fn rows_a_call(sample: &RecordBatch) -> usize {
    let row = super::part::array_bytes(sample) / sample.num_rows().max(1);
    ROWS_A_CALL.min(BYTES_A_CALL / row.max(1)).max(1)
}

/// Writes one call, given as pieces of one column.
fn write(writers: &mut [ChunkWriter], field: &Field, pieces: Vec<ArrayRef>) -> Result<()> {
    let mut call = |column: &ArrayRef| -> Result<()> {
        let column = &stored(field, column)?;
        let leaves = compute_leaves(field, column).map_err(encoding)?;
        let mut leaves = leaves.iter().zip(writers.iter_mut());
        leaves.try_for_each(|(leaf, writer)| writer.write(leaf)).map_err(encoding)
    };
    if let [whole] = pieces.as_slice() {
        return call(whole);
    }
    let all: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
    match concat(&all) {
        Ok(whole) => call(&whole),
        // Dictionaries with narrow keys, and too many values together.
        Err(ArrowError::DictionaryKeyOverflowError) => pieces.iter().try_for_each(call),
        Err(error) => Err(failed(error)),
    }
}

fn close(writers: Vec<ChunkWriter>, chunks: &mut Vec<Chunk>) -> Result<()> {
    for writer in writers {
        chunks.push(writer.close().map_err(encoding)?);
    }
    Ok(())
}

fn encoding(error: ParquetError) -> Error {
    Error::data(format!("Parquet: {error}"))
}
