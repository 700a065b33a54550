//! Decoding of rows into columns.
//!
//! Bytes that no encoder wrote cause [`Error::Corrupt`], never a panic.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};

use super::read::{self, Reader};
pub(super) use super::row_ref::corrupt;
pub use super::row_ref::diff_of;
use super::stretch::Stretch;
use crate::error::Result;
use crate::order::Layout;

/// Maximum number of varying ordered columns for which each column may reserve the bytes of a tile.
const SPACIOUS: usize = 32;

/// Decodes rows of one layout to some of its columns.
pub struct Decoder {
    layout: Layout,
    schema: SchemaRef,
    /// The wanted columns, in the requested order.
    projection: Vec<usize>,
    /// One flag for each column of the layout's schema.
    wanted: Vec<bool>,
}

impl Decoder {
    /// Creates a decoder of the columns at `projection`, in this order.
    pub fn new(layout: &Layout, projection: &[usize]) -> Result<Self> {
        let fields: Vec<_> = projection
            .iter()
            .map(|&column| Arc::clone(&layout.schema().fields()[column]))
            .collect();
        let schema = Schema::new_with_metadata(fields, layout.schema().metadata().clone());
        let mut wanted = vec![false; layout.schema().fields().len()];
        projection.iter().for_each(|&column| wanted[column] = true);
        Ok(Self {
            layout: layout.clone(),
            schema: Arc::new(schema),
            projection: projection.to_vec(),
            wanted,
        })
    }

    /// Creates a decoder of all columns.
    pub fn of_all(layout: &Layout) -> Result<Self> {
        let all: Vec<usize> = (0..layout.schema().fields().len()).collect();
        Self::new(layout, &all)
    }

    /// Returns the schema of decoded record batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Decodes `rows`, which may lie anywhere.
    pub fn decode(&self, rows: &[&[u8]]) -> Result<RecordBatch> {
        let bytes = rows.iter().map(|row| row.len()).sum();
        let mut reader = self.reader(rows.len(), bytes)?;
        reader.read_anywhere(rows, self.layout.stride())?;
        self.assemble(reader)
    }

    /// Decodes consecutive rows.
    pub(super) fn decode_stretch(&self, rows: &Stretch<'_>) -> Result<RecordBatch> {
        if let Stretch::Strided { stride, .. } = rows
            && self.layout.shape().common != Some(*stride)
        {
            return Err(corrupt("a row does not end where its columns do"));
        }
        let (count, bytes) = rows.size();
        let mut reader = self.reader(count, bytes)?;
        reader.read_stretch(rows)?;
        self.assemble(reader)
    }

    /// Creates a reader of `count` rows of `bytes` in all.
    fn reader(&self, count: usize, bytes: usize) -> Result<Reader<'_>> {
        let layout = &self.layout;
        let slots = layout.slots().iter().filter(|slot| slot.code.varies()).count();
        let payload = layout.payload().iter().filter(|(_, code)| code.varies()).count();
        let values = bytes.saturating_sub(count * layout.shape().fixed) / (slots + payload).max(1);
        let tile = bytes / count.max(1) * count.min(read::TILE);
        let tile = (slots <= SPACIOUS).then_some(tile);
        let parts = read::plan(layout, &self.wanted, count, read::Room { values, tile })?;
        Ok(Reader::new(parts, layout.schema().fields().clone()))
    }

    /// Builds the record batch of all rows read.
    fn assemble(&self, reader: Reader<'_>) -> Result<RecordBatch> {
        let rows = reader.rows();
        let ready = reader.finish()?;
        let columns = self.projection.iter().map(|&column| match &ready[column] {
            Some(array) => Arc::clone(array),
            None => unreachable!("a part for each column that is wanted"),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, columns.collect(), &options)?)
    }
}
