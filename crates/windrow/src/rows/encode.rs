//! Prepared record batches to rows.
//!
//! ```text
//! for each tile of rows:                           (a tile of output stays in the first-level cache)
//!   for each run of slots, payload run, tail:      for each row of the tile: write at its cursor
//! ```
//!
//! A fixed-width field does not move the cursors, it only adds to the distance from them; they move
//! once per field of varying length. Those are written first, and their cursors kept, so that short
//! strings may be moved in blocks that reach beyond their end. Adjacent numbers of one width are written
//! by the kernels, several columns at a time, and so are markers, Booleans and small numbers.

use std::ops::Range;

use super::lines::{self, Group, Line};
use super::payload::{Payload, put_bytes, put_payload};
use super::prepare::{Lengths, Prepared, TailColumn};
use super::sequence;
use super::slots::{put_slot, put_varying};
use super::tile::{TILE, Tile};
use crate::kernel::rows::Cursors;
use crate::order::code::OrderedCode;
use crate::order::{Layout, Sequence, Slot};

/// Encodes record batches of one layout.
#[derive(Debug)]
pub(crate) struct Encoder {
    layout: Layout,
    slots: Vec<Group>,
    payload: Vec<Group>,
}

impl Encoder {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            layout: layout.clone(),
            slots: lines::slot_groups(layout),
            payload: lines::payload_groups(layout),
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Writes `rows` of `prepared` to `out`, whose length is the sum of theirs. True if a value turned
    /// out to be longer than hoped for: the rows are then wrong.
    pub(crate) fn encode(&self, prepared: &Prepared, rows: Range<usize>, out: &mut [u8]) -> bool {
        let all = self.lines(prepared);
        if let (Some(stride), true) = (prepared.stride(), self.is_only_lines(&all)) {
            let lines = all.slots.iter().chain(&all.payload).flatten();
            return lines::put_tiled(lines, stride, rows, out);
        }
        let mut escaped = false;
        let mut first = rows.start;
        let mut parts = vec![Cursors::with_capacity(TILE)];
        let mut next = 0;
        while first < rows.end {
            let tile = first..(first + TILE).min(rows.end);
            next = match &prepared.lengths {
                Lengths::Same(length) => {
                    parts[0].set_lengths(next, std::iter::repeat_n(*length, tile.len()))
                }
                Lengths::Each(lengths) => {
                    parts[0].set_lengths(next, lengths[tile.clone()].iter().copied())
                }
            };
            first = tile.end;
            let mut tile = Tile { rows: tile, parts: &mut parts, part: 0, distance: 0, out };
            escaped |= self.encode_tile(prepared, &all, &mut tile);
        }
        escaped
    }

    /// What of `prepared` the kernels can write.
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

    /// True if rows are nothing but what the kernels write.
    fn is_only_lines(&self, lines: &Lines<'_>) -> bool {
        let lines = lines.slots.iter().chain(&lines.payload).flatten();
        self.layout.shape().common == Some(lines.map(Line::bytes).sum())
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
                let (cursors, out) = tile.next_part();
                sequence::put_short(first, self.sequence_flip(), cursors, 0, out);
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
        for (group, line) in self.slots.iter().zip(&lines.slots) {
            if let Some(line) = line {
                let rows = tile.rows.clone();
                let (places, out) = tile.places();
                escaped |= line.put(rows, places, out);
                tile.distance += line.bytes();
                continue;
            }
            for at in group.fields.iter().map(|field| field.at) {
                let (slot, column) = (&layout.slots()[at], &prepared.slots[at]);
                if slot.code.varies() || prepared.longer[at] {
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
                for (place, row) in places.each().zip(0..) {
                    let code = first.wrapping_add(row) ^ flip;
                    out[place..][..8].copy_from_slice(&code.to_be_bytes());
                }
                tile.distance += 8;
            }
            (Sequence::Short, Some(len)) => {
                let (part, distance) = (tile.part, tile.distance);
                let cursors = tile.parts[part].all_mut();
                sequence::put_short(first, flip, cursors, distance, tile.out);
                tile.distance += len;
            }
            (Sequence::Short, None) => (tile.part, tile.distance) = (tile.part + 1, 0),
        }
        let payload = Payload { layout, columns: &prepared.payload, lines: &lines.payload };
        put_payload(&payload, tile);
        let varying = layout.payload().iter().filter(|(_, code)| code.varies()).count();
        if varying > 0 {
            (tile.part, tile.distance) = (tile.part + varying, 0);
        }
        if let (Some(column), Some(index)) = (&prepared.time, layout.time()) {
            put_slot(&time_slot(layout, index), column, tile);
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
            TailColumn::Diff(diffs) => {
                for (place, diff) in places.each().zip(&diffs[rows]) {
                    out[place..][..8].copy_from_slice(&diff.to_le_bytes());
                }
            }
        }
        escaped
    }
}

/// What the kernels write, one entry for each group of the encoder.
struct Lines<'a> {
    slots: Vec<Option<Line<'a>>>,
    payload: Vec<Option<Line<'a>>>,
}

/// The code under which times stand in rows.
pub(super) fn time_code(layout: &Layout, column: usize) -> OrderedCode {
    let data_type = layout.schema().field(column).data_type();
    OrderedCode::of(data_type).expect("checked when the layout was bound")
}

pub(super) fn time_slot(layout: &Layout, column: usize) -> Slot {
    Slot::of_number(column, time_code(layout, column))
}
