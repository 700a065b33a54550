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
use arrow_buffer::NullBuffer;

use super::column::Column;
use super::fixed::{Word, with_word};
use super::text;
use crate::error::{Error, Result};
use crate::kernel::copy::copy_short;
use crate::order::code::{OrderedCode, PayloadCode};
use crate::order::{Layout, Slot, Tail};

/// Rows written column by column before going on to the next ones.
const TILE: usize = 128;
/// Rows are addressed with 32 bits inside a chunk.
const LONGEST_ROW: usize = 1 << 31;

/// Encodes record batches of one layout.
#[derive(Debug)]
pub(crate) struct Encoder {
    layout: Layout,
    /// Payload columns with a null bit, by position in the payload.
    null_bits: Vec<usize>,
    /// Bytes of the null bits, then of all fixed-width payload.
    payload_head: usize,
    /// Bytes of a row without what varies.
    fixed_len: usize,
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

/// Payload columns that may be null and tell so by a bit, by position in the payload.
pub(super) fn null_bits(layout: &Layout) -> Vec<usize> {
    let nullable = |&(column, code): &(usize, PayloadCode)| {
        code.has_null_bit() && layout.schema().field(column).is_nullable()
    };
    (0..layout.payload().len()).filter(|&at| nullable(&layout.payload()[at])).collect()
}

impl Encoder {
    pub(crate) fn new(layout: &Layout) -> Self {
        let null_bits = null_bits(layout);
        let widths: usize = layout.payload().iter().map(|(_, code)| code.width()).sum();
        let payload_head = null_bits.len().div_ceil(8) + widths;
        let slots: usize = layout
            .slots()
            .iter()
            .map(|slot| {
                usize::from(slot.nullable && slot.code != OrderedCode::Null) + slot.code.width()
            })
            .sum();
        let sequence = if layout.is_sequenced() { 8 } else { 0 };
        let time = layout.time().map_or(0, |column| time_code(layout, column).width());
        let fixed_len = slots + sequence + payload_head + time + layout.tail().len();
        Self { layout: layout.clone(), null_bits, payload_head, fixed_len }
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
        let lengths = self.lengths(&slots, &payload, batch.num_rows())?;
        Ok(Prepared { slots, payload, time, tail, sequence, lengths })
    }

    fn lengths(&self, slots: &[Column], payload: &[Column], rows: usize) -> Result<Vec<u32>> {
        let mut lengths = vec![self.fixed_len as u64; rows];
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
            if matches!(code, PayloadCode::Bytes | PayloadCode::Value) {
                for (row, length) in lengths.iter_mut().enumerate() {
                    *length += column.bytes(row).len() as u64;
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
        if layout.is_sequenced() {
            let flip = if layout.sequence_descends() { u64::MAX } else { 0 };
            for (cursor, row) in cursors.iter().zip(tile.start as u64..) {
                let sequence = prepared.sequence.wrapping_add(row) ^ flip;
                out[cursor + distance..][..8].copy_from_slice(&sequence.to_be_bytes());
            }
            distance += 8;
        }
        self.put_payload(prepared, tile.clone(), cursors, distance, out);
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

    /// Writes null bits, fixed-width values and lengths `distance` behind the cursors, then the
    /// bytes; leaves the cursors behind it all.
    fn put_payload(
        &self,
        prepared: &Prepared,
        tile: Range<usize>,
        cursors: &mut [usize],
        mut distance: usize,
        out: &mut [u8],
    ) {
        let end_of_head = distance + self.payload_head;
        for group in self.null_bits.chunks(8) {
            let mut bits = [0u8; TILE];
            for (bit, &at) in group.iter().enumerate() {
                match prepared.payload[at].nulls() {
                    None => bits.iter_mut().for_each(|bits| *bits |= 1 << bit),
                    Some(nulls) => {
                        for (bits, row) in bits.iter_mut().zip(tile.clone()) {
                            *bits |= u8::from(nulls.is_valid(row)) << bit;
                        }
                    }
                }
            }
            for (cursor, bits) in cursors.iter().zip(bits) {
                out[cursor + distance] = bits;
            }
            distance += 1;
        }
        for (&(_, code), column) in self.layout.payload().iter().zip(&prepared.payload) {
            match column {
                Column::Null => {}
                Column::Bool { values, nulls } => {
                    for (cursor, row) in cursors.iter().zip(tile.clone()) {
                        let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                        out[cursor + distance] = u8::from(valid && values.value(row));
                    }
                }
                Column::Fixed { values, nulls } => {
                    put_raw(
                        values,
                        nulls.as_ref(),
                        code.width(),
                        tile.clone(),
                        cursors,
                        distance,
                        out,
                    );
                }
                Column::Bytes { .. } | Column::Value { .. } => {
                    for (cursor, row) in cursors.iter().zip(tile.clone()) {
                        let length = column.bytes(row).len() as u32;
                        out[cursor + distance..][..4].copy_from_slice(&length.to_le_bytes());
                    }
                }
            }
            distance += code.width();
        }
        debug_assert_eq!(distance, end_of_head);
        cursors.iter_mut().for_each(|cursor| *cursor += end_of_head);
        for column in &prepared.payload {
            if matches!(column, Column::Bytes { .. } | Column::Value { .. }) {
                for (cursor, row) in cursors.iter_mut().zip(tile.clone()) {
                    let bytes = column.bytes(row);
                    copy_short(&mut out[*cursor..], bytes);
                    *cursor += bytes.len();
                }
            }
        }
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

/// Writes one ordered slot of a tile.
fn put_slot(
    slot: &Slot,
    column: &Column,
    tile: Range<usize>,
    cursors: &mut [usize],
    distance: &mut usize,
    out: &mut [u8],
) {
    if slot.code == OrderedCode::Null {
        return;
    }
    let nulls = column.nulls();
    let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    if slot.nullable {
        let (null, value) = text::markers(slot);
        for (cursor, row) in cursors.iter().zip(tile.clone()) {
            out[cursor + *distance] = if valid(row) { value } else { null };
        }
        *distance += 1;
    }
    let flip = if slot.descending { 0xff } else { 0 };
    match (slot.code, column) {
        (OrderedCode::Bool, Column::Bool { values, .. }) => {
            for (cursor, row) in cursors.iter().zip(tile) {
                let bit = values.value(row) != slot.descending;
                out[cursor + *distance] = u8::from(valid(row) && bit);
            }
        }
        (OrderedCode::FixedBinary(width), Column::Fixed { values, .. }) => {
            for (cursor, row) in cursors.iter().zip(tile) {
                let target = &mut out[cursor + *distance..][..width];
                if valid(row) {
                    let value = &values[row * width..(row + 1) * width];
                    target.iter_mut().zip(value).for_each(|(out, byte)| *out = byte ^ flip);
                } else {
                    target.fill(0);
                }
            }
        }
        (OrderedCode::Fixed(width, kind), Column::Fixed { values, .. }) => {
            with_word!(width, W => {
                let values = &values[tile.start * W::BYTES..tile.end * W::BYTES];
                let values = values.chunks_exact(W::BYTES).map(W::read_native);
                for ((cursor, row), value) in cursors.iter().zip(tile).zip(values) {
                    let target = &mut out[cursor + *distance..][..W::BYTES];
                    value.code(kind, slot.descending).write_big(target);
                    if nulls.is_some() && !valid(row) {
                        target.fill(0);
                    }
                }
            });
        }
        _ => {
            for (cursor, row) in cursors.iter_mut().zip(tile) {
                *cursor += *distance;
                if valid(row) {
                    let value = column.bytes(row);
                    *cursor += text::encode(slot.code, slot.descending, value, &mut out[*cursor..]);
                }
            }
            *distance = 0;
            return;
        }
    }
    *distance += slot.code.width();
}

/// Writes one fixed-width payload column of a tile; nulls as zeros.
fn put_raw(
    values: &[u8],
    nulls: Option<&NullBuffer>,
    width: usize,
    tile: Range<usize>,
    cursors: &[usize],
    distance: usize,
    out: &mut [u8],
) {
    match width {
        4 => put_raw_of::<4>(values, nulls, tile, cursors, distance, out),
        8 => put_raw_of::<8>(values, nulls, tile, cursors, distance, out),
        16 => put_raw_of::<16>(values, nulls, tile, cursors, distance, out),
        _ => {
            for (cursor, row) in cursors.iter().zip(tile) {
                let target = &mut out[cursor + distance..][..width];
                if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                    target.copy_from_slice(&values[row * width..(row + 1) * width]);
                } else {
                    target.fill(0);
                }
            }
        }
    }
}

fn put_raw_of<const W: usize>(
    values: &[u8],
    nulls: Option<&NullBuffer>,
    tile: Range<usize>,
    cursors: &[usize],
    distance: usize,
    out: &mut [u8],
) {
    let (values, _) = values[tile.start * W..tile.end * W].as_chunks::<W>();
    for (cursor, value) in cursors.iter().zip(values) {
        out[cursor + distance..][..W].copy_from_slice(value);
    }
    if let Some(nulls) = nulls {
        for (cursor, row) in cursors.iter().zip(tile) {
            if nulls.is_null(row) {
                out[cursor + distance..][..W].fill(0);
            }
        }
    }
}
