//! Record batches to rows.
//!
//! ```text
//! prepare  resolve columns; the length of every row, where they differ
//! encode   for each tile of rows:                  (a tile of output stays in the first-level cache)
//!            for each run of slots, payload run, tail:  for each row of the tile: write at its cursor
//! ```
//!
//! A fixed-width field does not move the cursors, it only adds to the distance from them; they move
//! once per field of varying length. Those are written first, and their cursors kept, so that short
//! strings may be moved in blocks that reach beyond their end. Adjacent numbers of one width are written by the kernels, four
//! columns at a time.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};

use super::column::Column;
use super::lanes::{self, Run};
use super::payload::{Payload, put_bytes, put_payload};
use super::sequence;
use super::slots::{put_marker, put_slot, put_varying};
use super::text;
use super::tile::{TILE, Tile};
use super::{escape, length};
use crate::error::{Error, Result};
use crate::kernel::rows::{Lanes, Scattered, Strided, put, put_growing};
use crate::order::code::OrderedCode;
use crate::order::{Layout, Sequence, Slot, Tail};

/// Bytes of output that one tile of nothing but numbers takes: columns are read in long enough stretches,
/// and the output stays in the second-level cache.
const TILE_BYTES: usize = 128 << 10;
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

    /// Appends where each row ends, the first one starting at `start`; returns the last end. The ends
    /// are of no use if that is more than 32 bits hold.
    pub(crate) fn add_ends(&self, start: usize, ends: &mut Vec<u32>) -> usize {
        let mut end = start;
        let mut add = |length: u32| {
            end += length as usize;
            end as u32
        };
        match &self.lengths {
            Lengths::Same(length) => ends.extend((0..self.rows).map(|_| add(*length))),
            Lengths::Each(lengths) => ends.extend(lengths.iter().map(|&length| add(length))),
        }
        end
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
            .map(|slot| Column::ordered(required(slot.column, slot.nullable)?, slot))
            .collect::<Result<Vec<_>>>()?;
        let payload = layout
            .payload()
            .iter()
            .map(|&(column, code)| {
                let nullable = layout.schema().field(column).is_nullable();
                Column::payload(required(column, nullable)?, code)
            })
            .collect::<Result<Vec<_>>>()?;
        let time = layout
            .time()
            .map(|column| Column::plain_values(required(column, false)?))
            .transpose()?;
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
        let mut parts = vec![[0usize; TILE]; 1];
        let mut next = 0;
        while first < rows.end {
            let tile = first..(first + TILE).min(rows.end);
            let cursors = &mut parts[0];
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
            let mut tile = Tile { rows: tile, parts: &mut parts, part: 0, distance: 0, out };
            escaped |= self.encode_tile(prepared, &all, &mut tile);
        }
        escaped
    }

    /// Appends rows of numbers only, some of which are longer than most, to `out` from `at` on, and
    /// their ends to `ends`. Returns where the last one ends; nothing if this is not all that rows
    /// are made of. `out` has room for [`Encoder::most_bytes`].
    pub(crate) fn encode_growing(
        &self,
        prepared: &Prepared,
        at: usize,
        out: &mut [u8],
        ends: &mut Vec<u32>,
    ) -> Option<usize> {
        let lines = self.lines(prepared);
        if !self.is_only_lanes(&lines) {
            return None;
        }
        let runs: Vec<Lanes<'_>> = lines.slots.into_iter().chain(lines.payload).flatten().collect();
        put_growing(&runs, prepared.rows, at, out, ends)
    }

    /// Bytes that `rows` rows of numbers take at the most, and one that may be overwritten.
    pub(crate) fn most_bytes(&self, rows: usize) -> usize {
        rows * (self.layout.shape().fixed + self.layout.slots().len()) + 1
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

    fn encode_tile(&self, prepared: &Prepared, lines: &Lines<'_>, tile: &mut Tile<'_>) -> bool {
        // What varies first: it may overwrite what stands behind it, which is written after it.
        self.put_varying(prepared, tile);
        (tile.part, tile.distance) = (0, 0);
        self.put_fixed(prepared, lines, tile)
    }

    fn put_varying(&self, prepared: &Prepared, tile: &mut Tile<'_>) {
        let layout = &self.layout;
        let slots = layout.slots().iter().zip(&prepared.slots).zip(&prepared.longer);
        for ((slot, column), &longer) in slots {
            if slot.code.varies() || longer {
                tile.distance += usize::from(slot.has_marker());
                put_varying(slot, column, tile);
            } else {
                tile.distance += slot.fixed_len();
            }
        }
        let first = prepared.sequence.wrapping_add(tile.rows.start as u64);
        match (layout.sequence(), self.sequence_len(prepared, tile)) {
            (_, Some(len)) => tile.distance += len,
            (_, None) => {
                let (distance, cursors, out) = tile.next_part();
                sequence::put_short(first, self.sequence_flip(), cursors, distance, out);
            }
        }
        tile.distance += layout.shape().head;
        for (&(_, code), column) in layout.payload().iter().zip(&prepared.payload) {
            if code.varies() {
                put_bytes(column, tile);
            }
        }
    }

    /// Bytes of the sequence, if they are the same in all rows of the tile.
    fn sequence_len(&self, prepared: &Prepared, tile: &Tile<'_>) -> Option<usize> {
        let first = prepared.sequence.wrapping_add(tile.rows.start as u64);
        match self.layout.sequence() {
            Sequence::None => Some(0),
            Sequence::Wide => Some(8),
            Sequence::Short => sequence::same_len(first, tile.rows.len()),
        }
    }

    fn sequence_flip(&self) -> u8 {
        if self.layout.sequence_descends() { 0xff } else { 0 }
    }

    fn put_fixed(&self, prepared: &Prepared, lines: &Lines<'_>, tile: &mut Tile<'_>) -> bool {
        let layout = &self.layout;
        let mut escaped = false;
        for (run, lanes) in self.slots.iter().zip(&lines.slots) {
            let slots = &layout.slots()[run.columns.clone()];
            let columns = &prepared.slots[run.columns.clone()];
            if let Some(lanes) = lanes {
                // A column with a marker begins a run.
                put_marker(&slots[0], &columns[0], tile);
                let rows = tile.rows.clone();
                let (places, out) = tile.places();
                escaped |= put(lanes, rows, places, out);
                tile.distance += lanes.bytes();
                continue;
            }
            let longer = &prepared.longer[run.columns.clone()];
            for ((slot, column), &longer) in slots.iter().zip(columns).zip(longer) {
                put_marker(slot, column, tile);
                if slot.code.varies() || longer {
                    (tile.part, tile.distance) = (tile.part + 1, 0);
                } else {
                    escaped |= put_slot(slot, column, tile);
                }
            }
        }
        let first = prepared.sequence.wrapping_add(tile.rows.start as u64);
        let flip = self.sequence_flip();
        match (layout.sequence(), self.sequence_len(prepared, tile)) {
            (Sequence::None, _) => {}
            (Sequence::Wide, _) => {
                let flip = u64::from_ne_bytes([flip; 8]);
                let (places, out) = tile.places();
                for (cursor, row) in places.cursors.iter().zip(0..) {
                    let code = first.wrapping_add(row) ^ flip;
                    out[cursor + places.distance..][..8].copy_from_slice(&code.to_be_bytes());
                }
                tile.distance += 8;
            }
            (Sequence::Short, Some(len)) => {
                let (part, distance) = (tile.part, tile.distance);
                let cursors = &mut tile.parts[part][..tile.rows.len()];
                sequence::put_short(first, flip, cursors, distance, tile.out);
                tile.distance += len;
            }
            (Sequence::Short, None) => (tile.part, tile.distance) = (tile.part + 1, 0),
        }
        let payload = Payload {
            layout,
            columns: &prepared.payload,
            runs: &self.payload,
            lanes: &lines.payload,
        };
        put_payload(&payload, tile);
        let varying = layout.payload().iter().filter(|(_, code)| code.varies()).count();
        if varying > 0 {
            (tile.part, tile.distance) = (tile.part + varying, 0);
        }
        if let (Some(column), Some(index)) = (&prepared.time, layout.time()) {
            put_slot(&time_slot(layout, index), column, tile);
        }
        let rows = tile.rows.clone();
        let (Scattered { cursors, distance }, out) = tile.places();
        match &prepared.tail {
            TailColumn::None => {}
            TailColumn::Tombstone(deleted) => {
                for (cursor, row) in cursors.iter().zip(rows) {
                    out[cursor + distance] = u8::from(deleted.value(row));
                }
            }
            TailColumn::Diff(diffs) => {
                for (cursor, diff) in cursors.iter().zip(&diffs[rows]) {
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
    Slot::of_number(column, time_code(layout, column))
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
