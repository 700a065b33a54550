//! Record batches to rows.
//!
//! ```text
//! prepare  resolve columns; the length of every row
//! encode   for each tile of 128 rows:              (a tile of output stays in the first-level cache)
//!            for each slot, payload column, tail:  for each row of the tile: write at its cursor
//! ```
//!
//! A fixed-width field does not move the cursors, it only adds to the distance from them; they move
//! once per field of varying length.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};

use super::column::Column;
use super::length;
use super::payload::put_payload;
use super::sequence;
use super::slots::put_slot;
use super::text;
use crate::error::{Error, Result};
use crate::order::code::OrderedCode;
use crate::order::{Layout, Sequence, Slot, Tail};

/// Rows written column by column before going on to the next ones.
const TILE: usize = 128;
/// Rows are addressed with 32 bits inside a chunk.
const LONGEST_ROW: usize = 1 << 31;

/// Encodes record batches of one layout.
#[derive(Debug)]
pub(crate) struct Encoder {
    layout: Layout,
}

/// A record batch ready to be written.
pub(crate) struct Prepared {
    slots: Vec<Column>,
    payload: Vec<Column>,
    time: Option<Column>,
    tail: TailColumn,
    sequence: u64,
    lengths: Vec<u32>,
}

enum TailColumn {
    None,
    Tombstone(arrow_buffer::BooleanBuffer),
    Diff(Vec<i64>),
}

impl Prepared {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Bytes of row `index`.
    pub(crate) fn row_len(&self, index: usize) -> usize {
        self.lengths[index] as usize
    }
}

impl Encoder {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self { layout: layout.clone() }
    }

    /// Resolves the columns of `batch`, whose first row is number `sequence` of the input.
    pub(crate) fn prepare(&self, batch: &RecordBatch, sequence: u64) -> Result<Prepared> {
        let layout = &self.layout;
        layout.check_schema(batch.schema_ref())?;
        let required = |column: usize, nullable: bool| {
            let array = batch.column(column);
            if !nullable && array.logical_null_count() > 0 {
                return Err(Error::Value {
                    column: layout.schema().field(column).name().clone(),
                    message: "a null in a column that must not have one".into(),
                });
            }
            Ok(array)
        };
        let slots = layout
            .slots()
            .iter()
            .map(|slot| Column::ordered(required(slot.column, slot.nullable)?))
            .collect::<Result<Vec<_>>>()?;
        let payload = layout
            .payload()
            .iter()
            .map(|&(column, code)| {
                let nullable = layout.schema().field(column).is_nullable();
                Column::payload(required(column, nullable)?, code)
            })
            .collect::<Result<Vec<_>>>()?;
        let time =
            layout.time().map(|column| Column::ordered(required(column, false)?)).transpose()?;
        let tail = match layout.tail() {
            Tail::None => TailColumn::None,
            Tail::Tombstone(column) => {
                TailColumn::Tombstone(required(column, false)?.as_boolean().values().clone())
            }
            Tail::Diff(column) => TailColumn::Diff(diffs(required(column, false)?.as_ref())),
        };
        let lengths = self.lengths(&slots, &payload, sequence, batch.num_rows())?;
        Ok(Prepared { slots, payload, time, tail, sequence, lengths })
    }

    fn lengths(
        &self,
        slots: &[Column],
        payload: &[Column],
        sequence: u64,
        rows: usize,
    ) -> Result<Vec<u32>> {
        let shape = self.layout.shape();
        let mut lengths = vec![shape.fixed as u64; rows];
        if shape.sequence == Sequence::Short {
            add_sequences(&mut lengths, sequence);
        }
        for (slot, column) in self.layout.slots().iter().zip(slots) {
            if slot.code.varies() {
                for (row, length) in lengths.iter_mut().enumerate() {
                    let null = column.nulls().is_some_and(|nulls| nulls.is_null(row));
                    if !null {
                        *length += text::encoded_len(slot.code, column.bytes(row)) as u64;
                    }
                }
            }
        }
        for (&(_, code), column) in self.layout.payload().iter().zip(payload) {
            if code.varies() {
                for (row, length) in lengths.iter_mut().enumerate() {
                    let bytes = column.bytes(row).len();
                    *length += (length::len_of(bytes) + bytes) as u64;
                }
            }
        }
        let too_long = |&(_, &length): &(usize, &u64)| length >= LONGEST_ROW as u64;
        if let Some((row, length)) = lengths.iter().enumerate().find(too_long) {
            return Err(Error::Value {
                column: "(row)".into(),
                message: format!("row {row} of a record batch takes {length} bytes, over 2 GiB"),
            });
        }
        Ok(lengths.into_iter().map(|length| length as u32).collect())
    }

    /// Writes `rows` of `prepared` to `out`, whose length is the sum of theirs.
    pub(crate) fn encode(&self, prepared: &Prepared, rows: Range<usize>, out: &mut [u8]) {
        let mut starts = [0usize; TILE];
        let mut next = 0;
        let mut first = rows.start;
        while first < rows.end {
            let tile = first..(first + TILE).min(rows.end);
            for (start, &length) in starts.iter_mut().zip(&prepared.lengths[tile.clone()]) {
                *start = next;
                next += length as usize;
            }
            first = tile.end;
            self.encode_tile(prepared, tile, starts, out);
        }
    }

    fn encode_tile(
        &self,
        prepared: &Prepared,
        tile: Range<usize>,
        mut cursors: [usize; TILE],
        out: &mut [u8],
    ) {
        let layout = &self.layout;
        let cursors = &mut cursors[..tile.len()];
        let mut distance = 0;
        for (slot, column) in layout.slots().iter().zip(&prepared.slots) {
            put_slot(slot, column, tile.clone(), cursors, &mut distance, out);
        }
        let first = prepared.sequence.wrapping_add(tile.start as u64);
        let flip = if layout.sequence_descends() { 0xff } else { 0 };
        match layout.sequence() {
            Sequence::None => {}
            Sequence::Wide => {
                let flip = u64::from_ne_bytes([flip; 8]);
                for (cursor, row) in cursors.iter().zip(0..) {
                    let code = first.wrapping_add(row) ^ flip;
                    out[cursor + distance..][..8].copy_from_slice(&code.to_be_bytes());
                }
                distance += 8;
            }
            Sequence::Short => {
                distance = sequence::put_short(first, flip, cursors, distance, out);
            }
        }
        put_payload(layout, &prepared.payload, tile.clone(), cursors, distance, out);
        distance = 0;
        if let (Some(column), Some(index)) = (&prepared.time, layout.time()) {
            let slot = time_slot(layout, index);
            put_slot(&slot, column, tile.clone(), cursors, &mut distance, out);
        }
        match &prepared.tail {
            TailColumn::None => {}
            TailColumn::Tombstone(deleted) => {
                for (cursor, row) in cursors.iter().zip(tile) {
                    out[cursor + distance] = u8::from(deleted.value(row));
                }
            }
            TailColumn::Diff(diffs) => {
                for (cursor, diff) in cursors.iter().zip(&diffs[tile]) {
                    out[cursor + distance..][..8].copy_from_slice(&diff.to_le_bytes());
                }
            }
        }
    }
}

/// Adds the bytes of the short codes of `sequence`, `sequence + 1`, ...
fn add_sequences(mut lengths: &mut [u64], mut sequence: u64) {
    while !lengths.is_empty() {
        let same = sequence::same_len_until(sequence) - sequence;
        let same = usize::try_from(same).map_or(lengths.len(), |s| lengths.len().min(s + 1));
        let (run, rest) = lengths.split_at_mut(same);
        let bytes = sequence::short_len(sequence) as u64;
        run.iter_mut().for_each(|length| *length += bytes);
        sequence = sequence.wrapping_add(same as u64);
        lengths = rest;
    }
}

/// The code under which times stand in rows.
pub(super) fn time_code(layout: &Layout, column: usize) -> OrderedCode {
    let data_type = layout.schema().field(column).data_type();
    OrderedCode::of(data_type).expect("checked when the layout was bound")
}

pub(super) fn time_slot(layout: &Layout, column: usize) -> Slot {
    Slot {
        column,
        descending: false,
        nulls_first: false,
        nullable: false,
        code: time_code(layout, column),
    }
}

fn diffs(array: &dyn Array) -> Vec<i64> {
    use arrow_array::types as t;
    use arrow_schema::DataType as T;
    macro_rules! widen {
        ($type:ty) => {
            array.as_primitive::<$type>().values().iter().map(|&diff| i64::from(diff)).collect()
        };
    }
    match array.data_type() {
        T::Int8 => widen!(t::Int8Type),
        T::Int16 => widen!(t::Int16Type),
        T::Int32 => widen!(t::Int32Type),
        T::UInt8 => widen!(t::UInt8Type),
        T::UInt16 => widen!(t::UInt16Type),
        T::UInt32 => widen!(t::UInt32Type),
        _ => widen!(t::Int64Type),
    }
}
