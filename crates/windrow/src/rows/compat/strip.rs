//! Columns of fixed width, to be written into rows of one length.
//!
//! ```text
//! | 01 code | 01 code | 01 code | 01 code |     columns of 4 or 8 bytes next to each other: one strip,
//!                                             four of them at a time by the kernels
//! ```

use std::ops::Range;

use super::part::Part;
use super::{VALUE, flip, null_byte};
use crate::kernel::rows::{Bits, Cells, Lane, Strided, put_cells};
use crate::order::Slot;
use crate::order::code::{Kind, OrderedCode};
use crate::rows::column::Column;
use crate::rows::fixed::{Word, with_word};
use crate::rows::lanes::slot_code;

/// Adjacent columns.
pub(super) enum Strip<'a> {
    Cells(Cells<'a>),
    One(&'a Part, OrderedCode, &'a Column),
}

/// The strips of columns that all have a fixed width; nothing if one has not.
pub(super) fn strips(columns: &[Part], rows: usize) -> Option<Vec<Strip<'_>>> {
    let mut out: Vec<Strip<'_>> = Vec::new();
    let (mut lanes, mut nulls, mut last) = (Vec::new(), Vec::new(), 0);
    for part in columns {
        let (code, column) = part.plain()?;
        part.same_len()?;
        let lane = lane(part, code, column);
        let width = lane.map_or(0, |_| code.width());
        if width != last && !lanes.is_empty() {
            let cells = Cells::new(std::mem::take(&mut lanes), std::mem::take(&mut nulls), last);
            out.push(Strip::Cells(cells));
        }
        last = width;
        match lane {
            Some(lane) => {
                debug_assert!(lane.values.len() / width >= rows);
                lanes.push(lane);
                nulls.push(null_byte(part.options()));
            }
            None => out.push(Strip::One(part, code, column)),
        }
    }
    if !lanes.is_empty() {
        out.push(Strip::Cells(Cells::new(lanes, nulls, last)));
    }
    Some(out)
}

/// A column that the kernels can write.
fn lane<'a>(part: &Part, code: OrderedCode, column: &'a Column) -> Option<Lane<'a>> {
    let (
        OrderedCode::Fixed(4 | 8, Kind::Signed | Kind::Unsigned | Kind::Float),
        Column::Fixed { values, nulls },
    ) = (code, column)
    else {
        return None;
    };
    let slot = Slot { descending: part.options().descending, ..Slot::of_number(0, code) };
    let valid = nulls.as_ref().map(|nulls| Bits { bytes: nulls.validity(), first: nulls.offset() });
    Some(Lane { values, valid, code: slot_code(&slot) })
}

impl Strip<'_> {
    /// Bytes that it takes in a row.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Cells(cells) => cells.bytes(),
            Self::One(_, code, _) => 1 + code.width(),
        }
    }

    /// Writes the values of `rows`, that of the first one at `places.first`.
    pub(super) fn put(&self, rows: Range<usize>, places: Strided, out: &mut [u8]) {
        let (part, code, column) = match self {
            Self::Cells(cells) => return put_cells(cells, rows, places, out),
            Self::One(part, code, column) => (part, *code, *column),
        };
        let (null, flip) = (null_byte(part.options()), flip(part.options()));
        let nulls = column.nulls();
        let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
        if let Column::Bool { values, nulls } = column {
            let values = Bits { bytes: values.values(), first: values.offset() };
            let nulls = nulls.as_ref();
            let valid = nulls.map(|n| Bits { bytes: n.validity(), first: n.offset() });
            return put_bits(values, valid, [null, flip], rows, places, out);
        }
        let width = 1 + code.width();
        let end = places.first + (rows.len().max(1) - 1) * places.stride + width;
        let cells = out[places.first..end].chunks_mut(places.stride.max(1));
        let cells = cells.zip(rows).map(|(cell, row)| {
            let cell = &mut cell[..width];
            cell[0] = if valid(row) { VALUE } else { null };
            (cell, row)
        });
        match (code, column) {
            (OrderedCode::Fixed(width, kind), Column::Fixed { values, .. }) => {
                with_word!(width, W => {
                    let (values, _) = values.as_chunks::<{ W::BYTES }>();
                    for (cell, row) in cells {
                        let value = W::read_native(&values[row]);
                        let code = value.code(kind, part.options().descending);
                        let code = if valid(row) { code } else { W::filled(false) };
                        code.write_big(&mut cell[1..1 + W::BYTES]);
                    }
                });
            }
            (OrderedCode::FixedBinary(width), Column::Fixed { values, .. }) => {
                for (cell, row) in cells {
                    let value = &values[row * width..(row + 1) * width];
                    let is_valid = valid(row);
                    for (cell, byte) in cell[1..].iter_mut().zip(value) {
                        *cell = if is_valid { byte ^ flip } else { 0 };
                    }
                }
            }
            _ => cells.for_each(drop),
        }
    }
}

/// Writes Booleans, each behind its marker, 64 rows at a time.
fn put_bits(
    values: Bits<'_>,
    valid: Option<Bits<'_>>,
    [null, flip]: [u8; 2],
    rows: Range<usize>,
    places: Strided,
    out: &mut [u8],
) {
    let mut at = places.first;
    for first in rows.clone().step_by(64) {
        let (word, valid) = (values.word(first), valid.map_or(u64::MAX, |valid| valid.word(first)));
        for bit in 0..(rows.end - first).min(64) {
            let is_valid = (valid >> bit & 1) as u8;
            let value = ((word >> bit & 1) as u8 ^ flip) & 0u8.wrapping_sub(is_valid);
            let marker = if is_valid == 1 { VALUE } else { null };
            out[at..at + 2].copy_from_slice(&[marker, value]);
            at += places.stride;
        }
    }
}
