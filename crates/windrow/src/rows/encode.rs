//! Record batches to rows.
//!
//! ```text
//! prepare  resolve columns; the length of every row, where they differ
//! encode   for each tile of rows:                  (a tile of output stays in the first-level cache)
//!            for each run of slots, payload run, tail:  for each row of the tile: write at its cursor
//! ```
//!
//! A fixed-width field does not move the cursors, it only adds to the distance from them; they move
//! once per field of varying length. Adjacent numbers of one width are written by the kernels, four
//! columns at a time.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};

use super::column::Column;
use super::lanes::{self, Run};
use super::payload::{Payload, put_payload};
use super::sequence;
use super::slots::{put_marker, put_slot};
use super::text;
use super::{escape, length};
use crate::error::{Error, Result};
use crate::kernel::rows::{Lanes, Scattered, Strided, put};
use crate::order::code::OrderedCode;
use crate::order::{Layout, Sequence, Slot, Tail};

/// Rows written column by column before going on to the next ones.
const TILE: usize = 128;
/// Bytes of output that one tile of nothing but numbers takes: half of a first-level cache.
const TILE_BYTES: usize = 16 << 10;
/// Rows are addressed with 32 bits inside a chunk.
const LONGEST_ROW: usize = 1 << 31;

/// Encodes record batches of one layout.
#[derive(Debug)]
pub(crate) struct Encoder {
    layout: Layout,
    slots: Vec<Run>,
    payload: Vec<Run>,
}

/// A record batch ready to be written.
pub(crate) struct Prepared {
    slots: Vec<Column>,
    payload: Vec<Column>,
    time: Option<Column>,
    tail: TailColumn,
    sequence: u64,
    rows: usize,
    lengths: Lengths,
    /// Slots in which a value takes a byte more than most.
    longer: Vec<bool>,
}

enum Lengths {
    Same(u32),
    Each(Vec<u32>),
}

enum TailColumn {
    None,
    Tombstone(arrow_buffer::BooleanBuffer),
    Diff(Vec<i64>),
}

impl Prepared {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Bytes of row `index`.
    pub(crate) fn row_len(&self, index: usize) -> usize {
        match &self.lengths {
            Lengths::Same(length) => *length as usize,
            Lengths::Each(lengths) => lengths[index] as usize,
        }
    }

    /// Bytes of every row, if they are all the same.
    pub(crate) fn stride(&self) -> Option<usize> {
        match &self.lengths {
            Lengths::Same(length) => Some(*length as usize),
            Lengths::Each(_) => None,
        }
    }
}

impl Encoder {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            layout: layout.clone(),
            slots: lanes::slot_runs(layout),
            payload: lanes::payload_runs(layout),
        }
    }

    /// Resolves the columns of `batch`, whose first row is number `sequence` of the input.
    pub(crate) fn prepare(&self, batch: &RecordBatch, sequence: u64) -> Result<Prepared> {
        self.prepare_with(batch, sequence, false)
    }

    /// As [`Encoder::prepare`], in the hope that no value takes a byte more than most where the
    /// lengths would otherwise be the same: [`Encoder::encode`] tells if it was in vain.
    pub(crate) fn prepare_hopefully(&self, batch: &RecordBatch) -> Result<Prepared> {
        self.prepare_with(batch, 0, true)
    }

    fn prepare_with(&self, batch: &RecordBatch, sequence: u64, hope: bool) -> Result<Prepared> {
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
        let rows = batch.num_rows();
        let mut longer = vec![false; slots.len()];
        let shape = layout.shape();
        let lengths = match shape.common.and_then(|length| u32::try_from(length).ok()) {
            Some(length) if hope || shape.stride.is_some() => Lengths::Same(length),
            _ => self.lengths(&slots, &payload, sequence, rows, &mut longer)?,
        };
        Ok(Prepared { slots, payload, time, tail, sequence, rows, lengths, longer })
    }

    fn lengths(
        &self,
        slots: &[Column],
        payload: &[Column],
        sequence: u64,
        rows: usize,
        longer: &mut [bool],
    ) -> Result<Lengths> {
        let shape = self.layout.shape();
        // Wrapping is found by the total below: no column's bytes pass 2^63.
        let mut total = shape.fixed as u64 * rows as u64;
        let mut lengths = vec![shape.fixed as u32; rows];
        if shape.sequence == Sequence::Short {
            total += rows as u64 * sequence::LONGEST as u64;
            add_sequences(&mut lengths, sequence);
        }
        for ((slot, column), longer) in self.layout.slots().iter().zip(slots).zip(longer) {
            if slot.escapes {
                escape::for_each_longer(slot, column, |row| {
                    lengths[row] = lengths[row].wrapping_add(1);
                    *longer = true;
                });
            } else if slot.code.varies() {
                total += text::add_lengths(slot.code, column, &mut lengths);
            }
        }
        for (&(_, code), column) in self.layout.payload().iter().zip(payload) {
            if code.varies() {
                column.for_each_bytes(0..rows, |row, bytes| {
                    let bytes = bytes.map_or(0, <[u8]>::len);
                    let length = length::len_of(bytes) + bytes;
                    total += length as u64;
                    lengths[row] = lengths[row].wrapping_add(length as u32);
                });
            }
        }
        // Only a batch of 2 GiB or more can hold a row of that size.
        if total >= LONGEST_ROW as u64 {
            self.check_lengths(slots, payload, rows)?;
        }
        Ok(Lengths::Each(lengths))
    }

    /// Fails if a row is too long; for the rare record batches that are large enough for that.
    fn check_lengths(&self, slots: &[Column], payload: &[Column], rows: usize) -> Result<()> {
        let fixed = self.layout.shape().fixed + sequence::LONGEST + slots.len();
        let mut lengths = vec![fixed as u64; rows];
        for (slot, column) in self.layout.slots().iter().zip(slots) {
            column.for_each_bytes(0..rows, |row, bytes| {
                lengths[row] += bytes.map_or(0, |b| text::encoded_len(slot.code, b)) as u64;
            });
        }
        for column in payload {
            column.for_each_bytes(0..rows, |row, bytes| {
                lengths[row] += bytes.map_or(0, |bytes| bytes.len() + 5) as u64;
            });
        }
        match lengths.iter().enumerate().find(|&(_, &length)| length >= LONGEST_ROW as u64) {
            None => Ok(()),
            Some((row, length)) => Err(Error::Value {
                column: "(row)".into(),
                message: format!("row {row} of a record batch takes {length} bytes, over 2 GiB"),
            }),
        }
    }

    /// Writes `rows` of `prepared` to `out`, whose length is the sum of theirs. True if a value turned
    /// out to be longer than hoped for: the rows are then wrong.
    pub(crate) fn encode(&self, prepared: &Prepared, rows: Range<usize>, out: &mut [u8]) -> bool {
        let all = self.lines(prepared);
        let mut escaped = false;
        let mut first = rows.start;
        if let (Some(stride), true) = (prepared.stride(), self.is_only_lanes(&all)) {
            let tile = (TILE_BYTES / stride.max(1)).next_multiple_of(64).max(64);
            while first < rows.end {
                let tile = first..(first + tile).min(rows.end);
                let at = (tile.start - rows.start) * stride;
                let mut places = Strided { first: at, stride };
                for lanes in all.slots.iter().chain(&all.payload).flatten() {
                    escaped |= put(lanes, tile.clone(), places, out);
                    places.first += lanes.bytes();
                }
                first = tile.end;
            }
            return escaped;
        }
        let mut cursors = [0usize; TILE];
        let mut next = 0;
        while first < rows.end {
            let tile = first..(first + TILE).min(rows.end);
            match &prepared.lengths {
                Lengths::Same(length) => {
                    for cursor in &mut cursors[..tile.len()] {
                        *cursor = next;
                        next += *length as usize;
                    }
                }
                Lengths::Each(lengths) => {
                    for (cursor, &length) in cursors.iter_mut().zip(&lengths[tile.clone()]) {
                        *cursor = next;
                        next += length as usize;
                    }
                }
            }
            first = tile.end;
            let cursors = &mut cursors[..tile.len()];
            escaped |= self.encode_tile(prepared, &all, tile, cursors, out);
        }
        escaped
    }

    /// What of `prepared` the kernels can write.
    fn lines<'a>(&self, prepared: &'a Prepared) -> Lines<'a> {
        let slot = |run: &Run| {
            let longer = prepared.longer[run.columns.clone()].contains(&true);
            let code = |at: usize| lanes::slot_code(&self.layout.slots()[at]);
            if longer { None } else { lanes::lanes(run, &prepared.slots, prepared.rows, code) }
        };
        let payload =
            |run: &Run| lanes::lanes(run, &prepared.payload, prepared.rows, |_| lanes::RAW);
        Lines {
            slots: self.slots.iter().map(slot).collect(),
            payload: self.payload.iter().map(payload).collect(),
        }
    }

    /// True if rows are nothing but lanes, one behind the other.
    fn is_only_lanes(&self, lines: &Lines<'_>) -> bool {
        let lanes = lines.slots.iter().chain(&lines.payload).flatten();
        self.layout.shape().common == Some(lanes.map(Lanes::bytes).sum())
    }

    fn encode_tile(
        &self,
        prepared: &Prepared,
        lines: &Lines<'_>,
        tile: Range<usize>,
        cursors: &mut [usize],
        out: &mut [u8],
    ) -> bool {
        let layout = &self.layout;
        let mut distance = 0;
        let mut escaped = false;
        for (run, lanes) in self.slots.iter().zip(&lines.slots) {
            let slots = &layout.slots()[run.columns.clone()];
            let columns = &prepared.slots[run.columns.clone()];
            if let Some(lanes) = lanes {
                // A column with a marker begins a run.
                put_marker(&slots[0], &columns[0], tile.clone(), cursors, &mut distance, out);
                let places = Scattered { cursors, distance };
                escaped |= put(lanes, tile.clone(), places, out);
                distance += lanes.bytes();
                continue;
            }
            for (slot, column) in slots.iter().zip(columns) {
                escaped |= put_slot(slot, column, tile.clone(), cursors, &mut distance, out);
            }
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
        let payload = Payload {
            layout,
            columns: &prepared.payload,
            runs: &self.payload,
            lanes: &lines.payload,
        };
        put_payload(&payload, tile.clone(), cursors, distance, out);
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
        escaped
    }
}

/// The columns that the kernels write, one entry for each run of the encoder.
struct Lines<'a> {
    slots: Vec<Option<Lanes<'a>>>,
    payload: Vec<Option<Lanes<'a>>>,
}

/// Adds the bytes of the short codes of `sequence`, `sequence + 1`, ...
fn add_sequences(mut lengths: &mut [u32], mut sequence: u64) {
    while !lengths.is_empty() {
        let same = sequence::same_len_until(sequence) - sequence;
        let same = usize::try_from(same).map_or(lengths.len(), |s| lengths.len().min(s + 1));
        let (run, rest) = lengths.split_at_mut(same);
        let bytes = sequence::short_len(sequence) as u32;
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
        escapes: false,
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
