//! Columns that are written together: those of fixed width next to each other.
//!
//! ```text
//! | 01 code | 01 code | 01 code | 01 code |     columns of 4 or 8 bytes next to each other: one strip,
//!                                             four of them at a time by the kernels
//! ```

use std::hint::select_unpredictable;
use std::ops::Range;

use super::framing::ArrowRow;
use super::{VALUE, flip, null_byte};
use crate::kernel::rows::blocks::put_blocks;
use crate::kernel::rows::exact::Text;
use crate::kernel::rows::lengths::Form;
use crate::kernel::rows::{
    ByteLane, Cells, Lane, Raw, Scattered, Strided, put_bytes, put_cells, put_raw,
};
use crate::order::Slot;
use crate::order::code::{Kind, OrderedCode};
use crate::rows::column::{Column, Visit};
use crate::rows::fixed::{Word, with_word};
use crate::rows::lanes::{slot_code, validity};
use crate::rows::lines::{add_bytes, marker_lane};
use crate::rows::nested::Tree;

type Part = Tree<ArrowRow>;

/// Rows of a word of validity.
const WORD: usize = 64;

/// Adjacent columns.
pub(super) enum Strip<'a> {
    Cells(Cells<'a>),
    /// Booleans and numbers of one or two bytes, and their markers.
    Bytes(Vec<ByteLane<'a>>),
    /// A column whose bytes are moved as they are, and its markers.
    Raw([ByteLane<'a>; 1], Raw<'a>),
    /// A column of fixed width.
    One(&'a Part, OrderedCode, &'a Column),
    /// Strings, what stands for a null, and what complements their bytes.
    Strings {
        column: &'a Column,
        null: u8,
        flip: u8,
    },
    /// A column that varies otherwise: it is written by its part.
    Varying(&'a Part),
}

/// The strips of columns of `rows` rows.
pub(super) fn strips(columns: &[Part], rows: usize) -> Vec<Strip<'_>> {
    let mut out: Vec<Strip<'_>> = Vec::new();
    let (mut lanes, mut nulls, mut last) = (Vec::new(), Vec::new(), 0);
    for part in columns {
        if let Some(cell) = bytes(part) {
            if !lanes.is_empty() {
                let cells =
                    Cells::new(std::mem::take(&mut lanes), std::mem::take(&mut nulls), last);
                out.push(Strip::Cells(cells));
            }
            match out.last_mut() {
                Some(Strip::Bytes(cells)) => cells.extend(cell),
                _ => out.push(Strip::Bytes(cell)),
            }
            continue;
        }
        let plain = part.plain().filter(|_| part.same_len().is_some());
        let lane = plain.and_then(|(code, column)| Some((lane(part, code, column)?, code.width())));
        let width = lane.map_or(0, |(_, width)| width);
        if width != last && !lanes.is_empty() {
            let cells = Cells::new(std::mem::take(&mut lanes), std::mem::take(&mut nulls), last);
            out.push(Strip::Cells(cells));
        }
        last = width;
        match (lane, plain) {
            (Some((lane, width)), _) => {
                debug_assert!(lane.values.len() / width >= rows);
                lanes.push(lane);
                nulls.push(null_byte(part.framing().0));
            }
            (
                None,
                Some((OrderedCode::FixedBinary(width), column @ Column::Fixed { values, nulls })),
            ) => {
                let marker = marker_lane(column, (null_byte(part.framing().0), VALUE));
                let raw =
                    Raw { values, width, valid: validity(nulls), flip: flip(part.framing().0) };
                out.push(Strip::Raw([marker], raw));
            }
            (None, Some((code, column))) => out.push(Strip::One(part, code, column)),
            (None, None) => out.push(match part.plain() {
                Some((_, column @ Column::Bytes { .. })) => {
                    let (null, flip) = (null_byte(part.framing().0), flip(part.framing().0));
                    Strip::Strings { column, null, flip }
                }
                _ => Strip::Varying(part),
            }),
        }
    }
    if !lanes.is_empty() {
        out.push(Strip::Cells(Cells::new(lanes, nulls, last)));
    }
    out
}

/// The marker and the value of a column of Booleans, or of numbers of one or two bytes.
fn bytes(part: &Part) -> Option<Vec<ByteLane<'_>>> {
    let (code, column) = part.plain()?;
    let is_short = matches!(
        code,
        OrderedCode::Bool | OrderedCode::Fixed(1 | 2, Kind::Signed | Kind::Unsigned | Kind::Float)
    );
    if !is_short {
        return None;
    }
    let mut lanes = vec![marker_lane(column, (null_byte(part.framing().0), VALUE))];
    let flip = flip(part.framing().0);
    add_bytes(column, code, part.framing().0.descending, [flip, 1 ^ flip], &mut lanes)?;
    Some(lanes)
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
    let slot = Slot { descending: part.framing().0.descending, ..Slot::of_number(0, code) };
    Some(Lane { values, valid: validity(nulls), code: slot_code(&slot) })
}

impl Strip<'_> {
    /// Bytes that it takes in a row, if they are the same in all of them.
    pub(super) fn width(&self) -> Option<usize> {
        match self {
            Self::Cells(cells) => Some(cells.bytes()),
            Self::Bytes(lanes) => Some(lanes.len()),
            Self::Raw(marker, raw) => Some(marker.len() + raw.width),
            Self::One(_, code, _) => Some(1 + code.width()),
            Self::Strings { .. } | Self::Varying(_) => None,
        }
    }

    /// Adds the bytes that it takes in each row to `lengths`, which wrap around; returns their sum. `picks` are the
    /// rows, one by one.
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
            _ => 0,
        }
    }

    /// Writes the values of `rows` at the cursors, and moves those behind them. `picks` are the rows, one by
    /// one.
    pub(super) fn put_at(
        &self,
        rows: Range<usize>,
        picks: &[usize],
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        match self {
            Self::Cells(cells) => {
                put_cells(cells, rows, Scattered { cursors, distance: 0 }, out);
                cursors.iter_mut().for_each(|cursor| *cursor += cells.bytes());
            }
            Self::Bytes(lanes) => {
                put_bytes(lanes, rows, Scattered { cursors, distance: 0 }, out);
                cursors.iter_mut().for_each(|cursor| *cursor += lanes.len());
            }
            Self::Raw(marker, raw) => {
                put_bytes(marker, rows.clone(), Scattered { cursors, distance: 0 }, out);
                put_raw(raw, rows, Scattered { cursors, distance: marker.len() }, out);
                cursors.iter_mut().for_each(|cursor| *cursor += marker.len() + raw.width);
            }
            Self::Strings { column, null, flip } => {
                column.visit(rows, PutBlocks { null: *null, flip: *flip, cursors, out });
            }
            Self::One(part, ..) | Self::Varying(part) => part.put(picks, cursors, out),
        }
    }

    /// Writes the values of `rows`, of a fixed width, that of the first one at `places.first`.
    pub(super) fn put(&self, rows: Range<usize>, places: Strided, out: &mut [u8]) {
        let (part, code, column) = match self {
            Self::Cells(cells) => return put_cells(cells, rows, places, out),
            Self::Bytes(lanes) => return put_bytes(lanes, rows, places, out),
            Self::Raw(marker, raw) => {
                put_bytes(marker, rows.clone(), places, out);
                let first = places.first + marker.len();
                return put_raw(raw, rows, Strided { first, ..places }, out);
            }
            Self::One(part, code, column) => (part, *code, *column),
            Self::Strings { .. } | Self::Varying(_) => return,
        };
        let (OrderedCode::Fixed(width, kind), Column::Fixed { values, nulls }) = (code, column)
        else {
            return;
        };
        let (null, descending) = (null_byte(part.framing().0), part.framing().0.descending);
        let valid = validity(nulls);
        let end = places.first + (rows.len().max(1) - 1) * places.stride + 1 + width;
        let mut cells = out[places.first..end].chunks_mut(places.stride.max(1));
        with_word!(width, W => {
            let values = values.as_chunks::<{ W::BYTES }>().0[rows.clone()].chunks(WORD);
            for (values, first) in values.zip(rows.step_by(WORD)) {
                let mut valid = valid.map_or(u64::MAX, |valid| valid.word(first));
                for (value, cell) in values.iter().zip(cells.by_ref()) {
                    // Which values are null is not to be predicted.
                    let is_valid = valid & 1 == 1;
                    valid >>= 1;
                    let cell = &mut cell[..1 + W::BYTES];
                    cell[0] = select_unpredictable(is_valid, VALUE, null);
                    let code = W::read_native(value).code(kind, descending).and_if(is_valid);
                    code.write_big(&mut cell[1..]);
                }
            }
        });
    }
}

/// Writes strings in blocks.
struct PutBlocks<'a> {
    null: u8,
    flip: u8,
    cursors: &'a mut [usize],
    out: &'a mut [u8],
}

impl Visit for PutBlocks<'_> {
    #[inline]
    fn visit<'a>(self, strings: impl Iterator<Item = Text<'a>> + Clone) {
        put_blocks(strings, self.null, self.flip, self.cursors, self.out);
    }
}
