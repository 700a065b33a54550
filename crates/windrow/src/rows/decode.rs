//! Rows back to columns.
//!
//! ```text
//! for each tile of 128 rows:
//!   for each slot, payload column, time, tail in row order:
//!     wanted: append the tile's values to the column        not wanted: move the cursors past it
//! ```
//!
//! The rows may lie anywhere: decoding needs no copy of them in order. Bytes that no encoder wrote
//! give [`Error::Corrupt`], never a panic: cursors are checked against the row's end wherever they
//! come from its contents.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};

use super::builder::Builder;
use super::encode::time_slot;
use super::row_ref::RowRef;
use super::{ended, length, sequence, strided, text};
use crate::error::{Error, Result};
use crate::order::code::{OrderedCode, PayloadCode};
use crate::order::{Layout, Sequence, Shape, Slot, Tail};

/// Rows that are read column by column before going on to the next ones.
const TILE: usize = 128;

/// Decodes rows of one layout to some of its columns.
pub(crate) struct Decoder {
    layout: Layout,
    schema: SchemaRef,
    /// Per column of the layout's schema: the builder, if the column is wanted.
    builders: Vec<Option<Builder>>,
    /// The wanted columns, in the order asked for.
    projection: Vec<usize>,
}

impl Decoder {
    /// A decoder to the columns at `projection`, in that order.
    pub(crate) fn new(layout: &Layout, projection: &[usize]) -> Result<Self> {
        let fields: Vec<_> = projection
            .iter()
            .map(|&column| Arc::clone(&layout.schema().fields()[column]))
            .collect();
        let schema = Schema::new_with_metadata(fields, layout.schema().metadata().clone());
        let mut builders: Vec<Option<Builder>> =
            layout.schema().fields().iter().map(|_| None).collect();
        for &column in projection {
            builders[column] = Some(Builder::new(layout.schema().field(column), layout, column)?);
        }
        Ok(Self {
            layout: layout.clone(),
            schema: Arc::new(schema),
            builders,
            projection: projection.to_vec(),
        })
    }

    /// The schema of what is decoded.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns of `rows`. After an error the decoder is as new.
    pub(crate) fn decode(&mut self, rows: &[&[u8]]) -> Result<RecordBatch> {
        let bytes = rows.iter().map(|row| row.len()).sum();
        let decoded = self.decode_refs(rows.len(), bytes, |index| RowRef::exact(rows[index]));
        if decoded.is_err() {
            // Columns were built up to different rows.
            *self = Self::new(&self.layout, &self.projection)?;
        }
        decoded
    }

    /// The columns of `count` rows of `bytes` in all.
    fn decode_refs<'a>(
        &mut self,
        count: usize,
        bytes: usize,
        row: impl Fn(usize) -> RowRef<'a>,
    ) -> Result<RecordBatch> {
        let bytes = self.bytes_of_varying(count, bytes);
        for builder in self.builders.iter_mut().flatten() {
            builder.reserve(count, bytes);
        }
        let mut tile = [RowRef::exact(&[]); TILE];
        for first in (0..count).step_by(TILE) {
            let tile = &mut tile[..TILE.min(count - first)];
            for (at, target) in tile.iter_mut().enumerate() {
                *target = row(first + at);
            }
            self.decode_tile(tile)?;
        }
        let ready = vec![None; self.builders.len()];
        self.assemble(ready, count)
    }

    /// The columns of `count` rows of `stride` bytes each, one behind the other.
    pub(crate) fn decode_strided(
        &mut self,
        bytes: &[u8],
        stride: usize,
        count: usize,
    ) -> Result<RecordBatch> {
        let layout = self.layout.clone();
        if layout.shape().common != Some(stride) {
            return Err(corrupt("a row does not end where its columns do"));
        }
        let mut ready = vec![None; self.builders.len()];
        let all = strided::Rows { bytes, stride, count };
        let rest = strided::take_slots(&layout, &self.builders, all, &mut ready)?;
        if rest {
            for (builder, ready) in self.builders.iter_mut().zip(&ready) {
                if let (Some(builder), None) = (builder, ready) {
                    builder.reserve(count, 0);
                }
            }
            let mut rows = [RowRef::exact(&[]); TILE];
            let mut left = bytes;
            for first in (0..count).step_by(TILE) {
                let tile = &mut rows[..TILE.min(count - first)];
                for row in &mut *tile {
                    *row = RowRef::within(left, stride);
                    left = &left[stride..];
                }
                self.decode_tile_without(tile, &ready)?;
            }
        }
        self.assemble(ready, count)
    }

    /// The columns of rows that lie one behind the other from `start` of `bytes` on, and end at `ends`.
    pub(crate) fn decode_ended(
        &mut self,
        bytes: &[u8],
        start: usize,
        ends: &[u32],
    ) -> Result<RecordBatch> {
        let layout = self.layout.clone();
        if let Some(ready) = strided::take_longer(&layout, &self.builders, bytes, start, ends)? {
            return self.assemble(ready, ends.len());
        }
        let mut ready = vec![None; self.builders.len()];
        if ended::take_rows(&layout, &mut self.builders, bytes, start, ends, &mut ready)? {
            return self.assemble(ready, ends.len());
        }
        let all = ends.last().map_or(0, |&end| end as usize - start);
        self.decode_refs(ends.len(), all, |index| {
            let start = if index == 0 { start } else { ends[index - 1] as usize };
            RowRef::within(&bytes[start..], ends[index] as usize - start)
        })
    }

    /// About what the values of each column that varies take, in `count` rows of `bytes` in all.
    fn bytes_of_varying(&self, count: usize, bytes: usize) -> usize {
        let layout = &self.layout;
        let slots = layout.slots().iter().filter(|slot| slot.code.varies()).count();
        let payload = layout.payload().iter().filter(|(_, code)| code.varies()).count();
        bytes.saturating_sub(count * layout.shape().fixed) / (slots + payload).max(1)
    }

    /// The record batch of the columns that are `ready` and of those that were built.
    fn assemble(&mut self, mut ready: Vec<Option<ArrayRef>>, rows: usize) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.projection.len());
        for (at, column) in self.projection.iter().enumerate() {
            let array = match self.projection[..at].iter().position(|before| before == column) {
                Some(before) => Arc::clone(&columns[before]),
                None => match (ready[*column].take(), &mut self.builders[*column]) {
                    (Some(array), _) => array,
                    (None, Some(builder)) => builder.finish()?,
                    (None, None) => unreachable!("a projected column has a builder"),
                },
            };
            columns.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// As [`Decoder::decode_tile`], without the columns that are `ready`.
    fn decode_tile_without(
        &mut self,
        rows: &[RowRef<'_>],
        ready: &[Option<ArrayRef>],
    ) -> Result<()> {
        let aside = |builder: &mut Option<Builder>, ready: &Option<ArrayRef>| {
            ready.as_ref().and_then(|_| builder.take())
        };
        let taken: Vec<Option<Builder>> =
            self.builders.iter_mut().zip(ready).map(|(b, r)| aside(b, r)).collect();
        let decoded = self.decode_tile(rows);
        for (builder, taken) in self.builders.iter_mut().zip(taken) {
            if taken.is_some() {
                *builder = taken;
            }
        }
        decoded
    }

    fn decode_tile(&mut self, rows: &[RowRef<'_>]) -> Result<()> {
        let layout = self.layout.clone();
        let mut cursors = [0usize; TILE];
        let cursors = &mut cursors[..rows.len()];
        for slot in layout.slots() {
            read_slot(slot, self.builders[slot.column].as_mut(), rows, cursors)?;
        }
        match layout.sequence() {
            Sequence::None => {}
            Sequence::Wide => cursors.iter_mut().for_each(|cursor| *cursor += 8),
            Sequence::Short => {
                let flip = if layout.sequence_descends() { 0xff } else { 0 };
                for (row, cursor) in rows.iter().zip(&mut *cursors) {
                    *cursor = sequence::skip_short(row, *cursor, flip);
                }
            }
        }
        self.read_payload(&layout, rows, cursors)?;
        if let Some(column) = layout.time() {
            read_slot(&time_slot(&layout, column), self.builders[column].as_mut(), rows, cursors)?;
        }
        let tail = layout.tail();
        if rows.iter().zip(&*cursors).any(|(row, &cursor)| cursor + tail.len() != row.len()) {
            return Err(corrupt("a row does not end where its columns do"));
        }
        match tail {
            Tail::None => {}
            Tail::Tombstone(column) => {
                if let Some(builder) = &mut self.builders[column] {
                    builder.extend_bool(rows.iter().map(|row| Some(row[row.len() - 1] != 0)));
                }
            }
            Tail::Diff(column) => {
                if let Some(builder) = &mut self.builders[column] {
                    for row in rows {
                        builder.push_diff(diff_of(row))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn read_payload(
        &mut self,
        layout: &Layout,
        rows: &[RowRef<'_>],
        cursors: &mut [usize],
    ) -> Result<()> {
        let Shape { null_bits, head, .. } = layout.shape();
        if rows.iter().zip(&*cursors).any(|(row, &cursor)| cursor + *head > row.len()) {
            return Err(corrupt("a row ends inside its payload"));
        }
        let mut distance = null_bits.len().div_ceil(8);
        let mut bodies = [0usize; TILE];
        for (body, &cursor) in bodies.iter_mut().zip(&*cursors) {
            *body = cursor + head;
        }
        let mut null_bit = 0;
        for (at, &(column, code)) in layout.payload().iter().enumerate() {
            let bit = (null_bits.get(null_bit) == Some(&at)).then_some(null_bit);
            null_bit += usize::from(bit.is_some());
            let valid = |row: &[u8], cursor: usize| {
                bit.is_none_or(|bit| row[cursor + bit / 8] >> (bit % 8) & 1 == 1)
            };
            let pairs = || rows.iter().map(|row| row.row()).zip(cursors.iter().copied());
            let builder = self.builders[column].as_mut();
            match code {
                PayloadCode::Null => {
                    if let Some(builder) = builder {
                        builder.push_nulls(rows.len());
                    }
                }
                PayloadCode::Bool => {
                    if let Some(builder) = builder {
                        builder.extend_bool(pairs().map(|(row, cursor)| {
                            valid(row, cursor).then(|| row[cursor + distance] != 0)
                        }));
                    }
                }
                PayloadCode::Fixed(width) => {
                    if let Some(builder) = builder {
                        let values =
                            pairs().map(|(row, cursor)| &row[cursor + distance..][..width]);
                        builder.extend_raw(width, values);
                        if bit.is_some() {
                            builder.extend_valid(pairs().map(|(row, cursor)| valid(row, cursor)));
                        }
                    }
                }
                PayloadCode::Bytes | PayloadCode::Value => {
                    let mut builder = builder;
                    for (row, body) in rows.iter().zip(&mut bodies) {
                        let rest = row.get(*body..).unwrap_or(&[]);
                        let (length, behind) = length::take(rest)
                            .ok_or_else(|| corrupt("the length of a value is wrong"))?;
                        let bytes = rest
                            .get(behind..behind + length)
                            .ok_or_else(|| corrupt("a value is longer than its row"))?;
                        *body += behind + length;
                        if let Some(builder) = &mut builder {
                            builder.push_bytes(bytes)?;
                        }
                    }
                    if let (Some(builder), Some(_)) = (builder, bit) {
                        builder.extend_valid(pairs().map(|(row, cursor)| valid(row, cursor)));
                    }
                }
            }
            distance += code.width();
        }
        cursors.copy_from_slice(&bodies[..cursors.len()]);
        Ok(())
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

/// Reads one slot of a tile into `builder`, if there is one, and moves the cursors past it.
fn read_slot(
    slot: &Slot,
    builder: Option<&mut Builder>,
    rows: &[RowRef<'_>],
    cursors: &mut [usize],
) -> Result<()> {
    let Some(builder) = builder else {
        for (row, cursor) in rows.iter().zip(cursors) {
            *cursor = text::skip(slot, row, *cursor);
        }
        return Ok(());
    };
    if slot.code == OrderedCode::Null {
        builder.push_nulls(rows.len());
        return Ok(());
    }
    if builder.is_read_by_value() {
        return builder.extend_values(slot, rows, cursors);
    }
    if let (true, OrderedCode::Fixed(width, kind)) = (slot.escapes, slot.code) {
        return builder.extend_escaping(slot, width, kind, rows, cursors);
    }
    let width = slot.fixed_len();
    if rows.iter().zip(&*cursors).any(|(row, &cursor)| cursor + width > row.len()) {
        return Err(corrupt("a row ends inside its key"));
    }
    let null = text::markers(slot).0;
    if slot.has_marker() {
        let marked = rows.iter().zip(&*cursors).map(|(row, &cursor)| row[cursor] != null);
        if slot.code != OrderedCode::Bool {
            builder.extend_valid(marked);
        }
        cursors.iter_mut().for_each(|cursor| *cursor += 1);
    }
    let pairs = rows.iter().map(|row| row.row()).zip(cursors.iter().copied());
    match slot.code {
        OrderedCode::Bool if !slot.has_marker() => {
            builder.extend_bits(pairs.map(|(row, cursor)| (row[cursor] != 0) != slot.descending));
        }
        OrderedCode::Bool => builder.extend_bool(pairs.map(|(row, cursor)| {
            let valid = !slot.has_marker() || row[cursor - 1] != null;
            valid.then(|| (row[cursor] != 0) != slot.descending)
        })),
        OrderedCode::Fixed(width, kind) => {
            let values = pairs.map(|(row, cursor)| &row[cursor..][..width]);
            builder.extend_code(width, kind, slot.descending, values);
        }
        OrderedCode::FixedBinary(width) => {
            let flip = if slot.descending { 0xff } else { 0 };
            let values = pairs.map(|(row, cursor)| &row[cursor..][..width]);
            builder.extend_flipped(flip, values);
        }
        OrderedCode::Null | OrderedCode::Nested | OrderedCode::Text | OrderedCode::Binary => {
            let null = slot.has_marker().then_some(null);
            builder.extend_text(slot.code, slot.descending, null, rows, cursors)?;
            return Ok(());
        }
    }
    cursors.iter_mut().for_each(|cursor| *cursor += slot.code.width());
    Ok(())
}
