//! Encoding of prepared record batches into rows.
//!
//! ```text
//! for each tile of rows:                        (a tile of output stays in the first-level cache)
//!   for each run of slots, payload run, tail:   for each row of the tile: write at its cursor
//! ```
//!
//! A field of fixed width adds to the distance from the cursors. A field of varying length moves
//! the cursors once. Kernels write adjacent numbers of one width, several columns at a time, and
//! also markers, Booleans and small numbers.

use std::ops::Range;

use arrow_array::RecordBatch;

use super::lines::{self, Group, Line};
use super::payload::{put_bytes, put_null_bits};
use super::prepare::{Lengths, Prepared, TailColumn, prepare};
use super::sequence;
use super::slots::{put_slot, put_varying};
use super::tile::{TILE, Tile};
use crate::error::Result;
use crate::order::code::OrderedCode;
use crate::order::{Layout, Sequence, Slot};
use windrow_kernel::rows::{Places, set_lengths};

/// Encodes record batches of one layout.
#[derive(Debug)]
pub struct Encoder {
    layout: Layout,
    slots: Vec<Group>,
    payload: Vec<Group>,
}

impl Encoder {
    /// Returns an encoder of rows of `layout`.
    pub fn new(layout: &Layout) -> Self {
        Self {
            layout: layout.clone(),
            slots: lines::slot_groups(layout),
            payload: lines::payload_groups(layout),
        }
    }

    /// Returns the layout of the rows.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Resolves the columns of `batch`. `sequence` is the number of the first row in the input.
    pub fn prepare(&self, batch: &RecordBatch, sequence: u64) -> Result<Prepared> {
        prepare(&self.layout, batch, sequence, false)
    }

    /// Prepares `batch` like [`Encoder::prepare`], but assumes that no value takes an extra byte if
    /// all rows then have one length. [`Encoder::encode`] reports a wrong assumption.
    pub(crate) fn prepare_assuming_fixed(&self, batch: &RecordBatch) -> Result<Prepared> {
        prepare(&self.layout, batch, 0, true)
    }

    /// Writes `rows` of `prepared` to `out`, whose length is the sum of the rows' lengths. Returns
    /// true if a value is longer than assumed: the rows are then wrong.
    pub fn encode(&self, prepared: &Prepared, rows: Range<usize>, out: &mut [u8]) -> bool {
        let all = self.lines(prepared);
        if let (Some(stride), true) = (prepared.stride(), self.is_only_lines(&all)) {
            let lines = all.slots.iter().chain(&all.payload).flatten();
            return lines::put_tiled(lines, stride, rows, out);
        }
        let mut escaped = false;
        let (mut first, mut next) = (rows.start, 0);
        let mut cursors = Vec::with_capacity(TILE);
        while first < rows.end {
            let rows = first..(first + TILE).min(rows.end);
            next = match &prepared.lengths {
                Lengths::Same(length) => {
                    set_lengths(&mut cursors, next, std::iter::repeat_n(*length, rows.len()))
                }
                Lengths::Each(lengths) => {
                    set_lengths(&mut cursors, next, lengths[rows.clone()].iter().copied())
                }
            };
            first = rows.end;
            let mut tile = Tile { rows, cursors: &mut cursors, distance: 0, out };
            escaped |= self.put_slots(prepared, &all, &mut tile);
            self.put_sequence(prepared, &mut tile);
            self.put_payload(prepared, &all, &mut tile);
            self.put_tail(prepared, &mut tile);
        }
        escaped
    }

    /// Returns the fields of `prepared` that the kernels can write.
    fn lines<'a>(&self, prepared: &'a Prepared) -> Lines<'a> {
        let Prepared { slots, payload, rows, longer, .. } = prepared;
        let layout = &self.layout;
        let slot = |group: &Group| Line::of_slots(group, layout.slots(), slots, longer, *rows);
        let payload = |group: &Group| Line::of_payload(group, layout.payload(), payload, *rows);
        Lines {
            slots: self.slots.iter().map(slot).collect(),
            payload: self.payload.iter().map(payload).collect(),
        }
    }

    /// Returns true if the kernels write all bytes of a row.
    fn is_only_lines(&self, lines: &Lines<'_>) -> bool {
        let lines = lines.slots.iter().chain(&lines.payload).flatten();
        self.layout.shape().common == Some(lines.map(Line::bytes).sum())
    }

    fn put_slots(&self, prepared: &Prepared, lines: &Lines<'_>, tile: &mut Tile<'_>) -> bool {
        let mut escaped = false;
        for (group, line) in self.slots.iter().zip(&lines.slots) {
            if let Some(line) = line {
                escaped |= tile.put_line(line);
                continue;
            }
            for at in group.fields.iter().map(|field| field.at) {
                let (slot, column) = (&self.layout.slots()[at], &prepared.slots[at]);
                if slot.code.varies() || prepared.longer[at] {
                    put_varying(slot, column, tile);
                } else {
                    escaped |= put_slot(slot, column, tile);
                }
            }
        }
        escaped
    }

    fn put_sequence(&self, prepared: &Prepared, tile: &mut Tile<'_>) {
        let first = prepared.sequence.wrapping_add(tile.rows.start as u64);
        let flip = if self.layout.sequence_descends() { 0xff } else { 0 };
        match self.layout.sequence() {
            Sequence::None => {}
            Sequence::Wide => {
                let flip = u64::from_ne_bytes([flip; 8]);
                let (places, out) = tile.places();
                for (place, row) in places.each().zip(0..) {
                    let code = first.wrapping_add(row) ^ flip;
                    out[place..][..8].copy_from_slice(&code.to_be_bytes());
                }
                tile.distance += 8;
            }
            Sequence::Short => {
                // If all codes have one length, the cursors stay.
                let distance = tile.distance;
                tile.distance = sequence::put_short(first, flip, tile.cursors, distance, tile.out);
            }
        }
    }

    fn put_payload(&self, prepared: &Prepared, lines: &Lines<'_>, tile: &mut Tile<'_>) {
        put_null_bits(self.layout.shape(), &prepared.payload, tile);
        for line in lines.payload.iter().flatten() {
            tile.put_line(line);
        }
        for (&(_, code), column) in self.layout.payload().iter().zip(&prepared.payload) {
            if code.varies() {
                put_bytes(column, tile);
            }
        }
    }

    fn put_tail(&self, prepared: &Prepared, tile: &mut Tile<'_>) {
        if let (Some(column), Some(index)) = (&prepared.time, self.layout.time()) {
            put_slot(&time_slot(&self.layout, index), column, tile);
        }
        let rows = tile.rows.clone();
        let (places, out) = tile.places();
        match &prepared.tail {
            TailColumn::None => {}
            TailColumn::Tombstone(deleted) => {
                for (place, row) in places.each().zip(rows) {
                    out[place] = u8::from(deleted.value(row));
                }
            }
            TailColumn::Diffs(lanes) => {
                for (lane, diffs) in lanes.iter().enumerate() {
                    for (place, diff) in places.shifted(8 * lane).each().zip(&diffs[rows.clone()]) {
                        out[place..][..8].copy_from_slice(&diff.to_le_bytes());
                    }
                }
            }
        }
    }
}

/// Fields for the kernels, one entry for each group of the encoder.
struct Lines<'a> {
    slots: Vec<Option<Line<'a>>>,
    payload: Vec<Option<Line<'a>>>,
}

/// Returns a slot for the times in column `column`.
pub(super) fn time_slot(layout: &Layout, column: usize) -> Slot {
    let code = OrderedCode::of(layout.schema().field(column).data_type());
    Slot::of_number(column, code.expect("checked when the layout was bound"))
}
