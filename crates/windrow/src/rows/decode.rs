//! Rows back to columns.
//!
//! ```text
//! rows one behind the other     a tile after the other, where they are
//! rows anywhere                 | row | row | row |    copied together, unless they are long: kernels read
//!                                                      places of one slice
//! ```
//!
//! Bytes that no encoder wrote give [`Error::Corrupt`], never a panic.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};

use super::read::{self, Reader, Tile};
use crate::error::{Error, Result};
use crate::kernel::copy::copy_rows;
use crate::order::Layout;

/// Rows of different lengths that are read by all columns in turn: their places stay in the first-level cache.
const TILE: usize = 1024;
/// Bytes of rows that are read by all columns in turn: a quarter of a second-level cache, so that each column
/// is written for long enough to be worth fetching ahead. 20 % faster than 16 KiB for 50 columns.
const TILE_BYTES: usize = 256 << 10;
/// Bytes of rows that are copied together, at the most; a row of more is read where it is.
const COPIED: usize = 64 << 10;
/// Bytes behind rows that were copied: texts at the end are read by the same steps as those in front.
const BEHIND: usize = 128;

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

    /// The schema of what is decoded.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns of `rows`.
    pub(crate) fn decode(&self, rows: &[&[u8]]) -> Result<RecordBatch> {
        let bytes = rows.iter().map(|row| row.len()).sum();
        let mut reader = self.reader(rows.len(), bytes)?;
        let mut copied = Vec::new();
        let mut tile = Tile::new(TILE.min(rows.len()));
        let mut left = rows;
        while let Some(&first) = left.first() {
            if first.len() > COPIED {
                tile = tile.set_ended(first, 0, std::iter::once(first.len()));
                reader.read(&mut tile)?;
                left = &left[1..];
                continue;
            }
            let mut bytes = 0;
            let fits = |row: &&&[u8]| {
                bytes += row.len();
                bytes <= COPIED
            };
            let count = left.iter().take(TILE).take_while(fits).count();
            let (these, behind) = left.split_at(count);
            left = behind;
            let mut end = 0;
            let ends = these.iter().map(|row| {
                end += row.len();
                end
            });
            let ends: Vec<usize> = ends.collect();
            copied.resize(copied.len().max(end + BEHIND), 0);
            copy_rows(&mut copied, these);
            let stride =
                self.layout.stride().filter(|&stride| these.iter().all(|row| row.len() == stride));
            let mut own = match stride {
                Some(stride) => tile.set_strided(&copied, stride, these.len()),
                None => tile.set_ended(&copied, 0, ends.into_iter()),
            };
            reader.read(&mut own)?;
            tile = own.set_ended(&[], 0, std::iter::empty());
        }
        self.assemble(reader.finish()?, rows.len())
    }

    /// The columns of `count` rows of `stride` bytes each, one behind the other.
    pub(crate) fn decode_strided(
        &self,
        bytes: &[u8],
        stride: usize,
        count: usize,
    ) -> Result<RecordBatch> {
        if self.layout.shape().common != Some(stride) {
            return Err(corrupt("a row does not end where its columns do"));
        }
        let mut reader = self.reader(count, 0)?;
        let most = (TILE_BYTES / stride.max(1)).next_multiple_of(64).max(64);
        let mut tile = Tile::new(0);
        for first in (0..count).step_by(most) {
            let count = most.min(count - first);
            tile = tile.set_strided(&bytes[first * stride..], stride, count);
            reader.read(&mut tile)?;
        }
        self.assemble(reader.finish()?, count)
    }

    /// The columns of rows that lie one behind the other from `start` of `bytes` on, and end at `ends`.
    pub(crate) fn decode_ended(
        &self,
        bytes: &[u8],
        start: usize,
        ends: &[u32],
    ) -> Result<RecordBatch> {
        let wanted = &self.wanted;
        if let Some(ready) = read::take_longer(&self.layout, wanted, bytes, start, ends)? {
            return self.assemble(ready, ends.len());
        }
        let all = ends.last().map_or(0, |&end| end as usize - start);
        let mut reader = self.reader(ends.len(), all)?;
        let mut tile = Tile::new(TILE.min(ends.len()));
        let mut start = start;
        for ends in ends.chunks(TILE) {
            tile = tile.set_ended(bytes, start, ends.iter().map(|&end| end as usize));
            reader.read(&mut tile)?;
            start = ends.last().map_or(start, |&end| end as usize);
        }
        self.assemble(reader.finish()?, ends.len())
    }

    /// A reader of `count` rows of `bytes` in all.
    fn reader(&self, count: usize, bytes: usize) -> Result<Reader<'_>> {
        let layout = &self.layout;
        let slots = layout.slots().iter().filter(|slot| slot.code.varies()).count();
        let payload = layout.payload().iter().filter(|(_, code)| code.varies()).count();
        let varying = bytes.saturating_sub(count * layout.shape().fixed) / (slots + payload).max(1);
        Reader::new(layout, &self.wanted, count, varying)
    }

    /// The record batch of the columns that are `ready`.
    fn assemble(&self, ready: Vec<Option<ArrayRef>>, rows: usize) -> Result<RecordBatch> {
        let columns = self.projection.iter().map(|&column| match &ready[column] {
            Some(array) => Arc::clone(array),
            None => unreachable!("a part for each column that is wanted"),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, columns.collect(), &options)?)
    }
}

/// The diff at the end of a row of the sum rule.
pub(crate) fn diff_of(row: &[u8]) -> i64 {
    let bytes = row.last_chunk::<8>().copied().unwrap_or_default();
    i64::from_le_bytes(bytes)
}

pub(super) fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "row".into(), message: message.into() }
}
