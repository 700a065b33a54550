//! Strips: adjacent columns of fixed width that are written together.
//!
//! ```text
//! | 01 code | 01 code | 01 code | 01 code |     adjacent columns of 4, 8 or 16 bytes: one strip
//! ```

use std::ops::Range;

use super::field::{VALUE, flip, null_byte};
use super::framing::ArrowRow;
use crate::order::Slot;
use crate::order::code::{Kind, OrderedCode};
use crate::rows::column::{Column, Written};
use crate::rows::lanes::{number_width, slot_code, validity};
use crate::rows::lines::{Line, add_bytes, marker_lane};
use crate::rows::nested::Tree;
use windrow_kernel::rows::lengths::Form;
use windrow_kernel::rows::{ByteLane, Cells, Lane, Raw, Scattered, Strided};

type Part = Tree<ArrowRow>;

/// Adjacent columns.
pub(super) enum Strip<'a> {
    /// Numbers of 4, 8 or 16 bytes after their markers; Booleans, smaller numbers and markers; or
    /// bytes copied unchanged or complemented.
    Line(Line<'a>),
    /// Strings, with the marker of a null and the complement of the bytes.
    Strings { column: &'a Column, null: u8, flip: u8 },
    /// Another column, written by its part.
    Varying(&'a Part),
}

/// Groups columns of `rows` rows into strips.
pub(super) fn strips(columns: &[Part], rows: usize) -> Vec<Strip<'_>> {
    let mut out: Vec<Strip<'_>> = Vec::new();
    let joins = |a: &Part, b: &Part| cell_width(a).is_some() && cell_width(a) == cell_width(b);
    for parts in columns.chunk_by(joins) {
        let part = &parts[0];
        if let Some(width) = cell_width(part) {
            let (lanes, nulls): (Vec<Lane<'_>>, Vec<u8>) = parts.iter().filter_map(lane).unzip();
            debug_assert!(lanes.iter().all(|lane| lane.values.len() / width >= rows));
            out.push(Strip::Line(Line::Cells(Cells::new(lanes, nulls, width))));
            continue;
        }
        let Some((code, column)) = part.plain() else {
            out.push(Strip::Varying(part));
            continue;
        };
        let options = part.framing.0;
        let (null, flip, width) = (null_byte(options), flip(options), code.width());
        match (code, column) {
            (OrderedCode::Bool, Column::Bool { .. })
            | (
                OrderedCode::Fixed(1 | 2, Kind::Signed | Kind::Unsigned | Kind::Float),
                Column::Fixed { .. },
            ) => {
                let mut lanes = vec![marker_lane(column, (null, VALUE))];
                add_bytes(column, code, options.descending, [flip, 1 ^ flip], &mut lanes);
                push_bytes(lanes, &mut out);
            }
            (OrderedCode::FixedBinary(_), Column::Fixed { values, nulls }) => {
                push_bytes(vec![marker_lane(column, (null, VALUE))], &mut out);
                let raw = Raw { values, width, valid: validity(nulls), flip };
                out.push(Strip::Line(Line::Raw(raw)));
            }
            (_, Column::Bytes { .. }) => out.push(Strip::Strings { column, null, flip }),
            _ => out.push(Strip::Varying(part)),
        }
    }
    out
}

/// Returns the bytes of a number, if kernels write such numbers after their markers, together with
/// numbers of the same width.
fn cell_width(part: &Part) -> Option<usize> {
    number_width(part.plain()?.0)
}

/// Returns the lane of such a number column, and the marker of its nulls.
fn lane(part: &Part) -> Option<(Lane<'_>, u8)> {
    let (code, Column::Fixed { values, nulls }) = part.plain()? else { return None };
    let options = part.framing.0;
    let slot = Slot { descending: options.descending, ..Slot::of_number(0, code) };
    let lane = Lane { values, valid: validity(nulls), code: slot_code(&slot) };
    Some((lane, null_byte(options)))
}

/// Adds byte lanes, which join an adjacent strip of bytes.
fn push_bytes<'a>(lanes: Vec<ByteLane<'a>>, out: &mut Vec<Strip<'a>>) {
    match out.last_mut() {
        Some(Strip::Line(Line::Bytes(before))) => before.extend(lanes),
        _ => out.push(Strip::Line(Line::Bytes(lanes))),
    }
}

impl Strip<'_> {
    /// Returns the bytes of the strip in a row, if all rows have the same.
    pub(super) fn width(&self) -> Option<usize> {
        match self {
            Self::Line(line) => Some(line.bytes()),
            Self::Strings { .. } | Self::Varying(_) => None,
        }
    }

    /// Adds the bytes of the strip in each row to `lengths`, which wrap around; returns the sum.
    /// `picks` are the rows, one by one.
    pub(super) fn add_lengths(&self, picks: &[usize], lengths: &mut [u32]) -> u64 {
        match self {
            Self::Strings { column, .. } => column.add_lengths(Form::Blocks, lengths),
            Self::Varying(part) => {
                let mut own = vec![0; picks.len()];
                part.add_lengths(picks, &mut own);
                let pairs = lengths.iter_mut().zip(&own);
                pairs.for_each(|(length, &own)| *length = length.wrapping_add(own as u32));
                own.iter().map(|&own| own as u64).sum()
            }
            Self::Line(_) => 0,
        }
    }

    /// Writes the values of `rows` at the cursors, and moves the cursors past the values. `picks`
    /// are the rows, one by one.
    pub(super) fn put_at(
        &self,
        rows: Range<usize>,
        picks: &[usize],
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        match self {
            Self::Line(line) => {
                line.put(rows, Scattered { cursors, distance: 0 }, out);
                cursors.iter_mut().for_each(|cursor| *cursor += line.bytes());
            }
            Self::Strings { column, null, flip } => {
                column.put(rows, Written::Blocks { null: *null, flip: *flip }, cursors, out);
            }
            Self::Varying(part) => part.put(picks, cursors, out),
        }
    }

    /// Writes the values of `rows`, of a fixed width, with the first row at `places.first`.
    pub(super) fn put(&self, rows: Range<usize>, places: Strided, out: &mut [u8]) {
        if let Self::Line(line) = self {
            line.put(rows, places, out);
        }
    }
}
