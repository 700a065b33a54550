//! Rows back to columns.
//!
//! Bytes that no encoder wrote give [`Error::Corrupt`], never a panic.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};

use super::encoded::Stretch;
use super::read::{self, Reader};
pub(super) use super::row_ref::corrupt;
pub(crate) use super::row_ref::diff_of;
use crate::error::Result;
use crate::order::Layout;

/// Ordered columns that vary, of which each may keep room for what a tile has.
const SPACIOUS: usize = 32;

/// Decodes rows of one layout to some of its columns.
pub(crate) struct Decoder {
    layout: Layout,
    schema: SchemaRef,
    /// The wanted columns, in the order asked for.
    projection: Vec<usize>,
    /// For each column of the layout's schema.
    wanted: Vec<bool>,
}

impl Decoder {
    /// A decoder to the columns at `projection`, in that order.
    pub(crate) fn new(layout: &Layout, projection: &[usize]) -> Result<Self> {
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

    /// A decoder to all columns.
    pub(crate) fn of_all(layout: &Layout) -> Result<Self> {
        let all: Vec<usize> = (0..layout.schema().fields().len()).collect();
        Self::new(layout, &all)
    }

    /// The schema of what is decoded.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns of `rows`.
    pub(crate) fn decode(&self, rows: &[&[u8]]) -> Result<RecordBatch> {
        let bytes = rows.iter().map(|row| row.len()).sum();
        let mut reader = self.reader(rows.len(), bytes)?;
        reader.read_anywhere(rows, self.layout.stride())?;
        self.assemble(reader)
    }

    /// The columns of rows that lie one behind the other.
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

    /// A reader of `count` rows of `bytes` in all.
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

    /// The record batch of all that was read.
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
