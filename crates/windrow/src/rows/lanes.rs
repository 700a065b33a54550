//! Adjacent fixed-width columns, to be written or read in one go by the kernels.

use std::ops::Range;

use arrow_buffer::NullBuffer;

use super::column::Column;
use crate::kernel::rows::{BitLane, Bits, Code, Lane, Lanes, Places, Strided, put, put_bits};
use crate::order::code::{Kind, OrderedCode, PayloadCode};
use crate::order::{Layout, Slot};

/// Slots, or payload columns, next to each other.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Their positions among the slots, or in the payload.
    pub(super) columns: Range<usize>,
    pub(super) form: Form,
}

/// What the columns of a run are to the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Numbers of 4, 8 or 16 bytes.
    Numbers(usize),
    Booleans,
    /// A column that they have no path for.
    Other,
}

/// Cuts the columns into runs of one form that stand next to each other. `gaps` says in front of
/// which columns another byte stands.
fn runs(forms: impl Iterator<Item = (Form, bool)>) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for (at, (form, gap)) in forms.enumerate() {
        match out.last_mut() {
            Some(run) if form != Form::Other && run.form == form && !gap => run.columns.end += 1,
            _ => out.push(Run { columns: at..at + 1, form }),
        }
    }
    out
}

/// The slots of `layout`.
pub(super) fn slot_runs(layout: &Layout) -> Vec<Run> {
    runs(layout.slots().iter().map(|slot| (slot_form(slot), slot.has_marker())))
}

/// The payload of `layout`; columns that have nothing in the head do not come between others.
pub(super) fn payload_runs(layout: &Layout) -> Vec<Run> {
    runs(layout.payload().iter().map(|&(_, code)| match code {
        PayloadCode::Fixed(width @ (4 | 8 | 16)) => (Form::Numbers(width), false),
        PayloadCode::Bool => (Form::Booleans, false),
        _ => (Form::Other, false),
    }))
}

pub(super) fn slot_form(slot: &Slot) -> Form {
    match slot.code {
        OrderedCode::Fixed(width @ (4 | 8), Kind::Unsigned | Kind::Signed | Kind::Float) => {
            Form::Numbers(width)
        }
        OrderedCode::Fixed(16, Kind::Unsigned | Kind::Signed) if !slot.escapes => Form::Numbers(16),
        OrderedCode::Bool => Form::Booleans,
        _ => Form::Other,
    }
}

/// The constants of a slot of numbers; of 16 bytes, those of the upper half.
pub(super) fn slot_code(slot: &Slot) -> Code {
    let (width, kind) = match slot.code {
        OrderedCode::Fixed(width, kind) => (width.min(8), kind),
        _ => (8, Kind::Unsigned),
    };
    let ones = u64::MAX >> (64 - 8 * width);
    let top = 1 << (8 * width - 1);
    let flip = if kind == Kind::Unsigned { 0 } else { top };
    let (delta, null) = match (slot.escapes, slot.nulls_first) {
        (false, _) => (0, 0),
        (true, true) => (1, 0),
        (true, false) => (ones, ones),
    };
    Code {
        flip: if slot.descending { flip ^ ones } else { flip },
        float: if kind == Kind::Float { ones ^ top } else { 0 },
        delta,
        null,
        big: true,
        escapes: slot.escapes,
    }
}

/// The constants of a payload column: the value as it is, a null as zeros.
pub(super) const RAW: Code =
    Code { flip: 0, float: 0, delta: 0, null: 0, big: false, escapes: false };

/// The columns of a run as the kernels take them.
#[derive(Debug)]
pub(super) enum Line<'a> {
    Numbers(Lanes<'a>),
    Booleans(Vec<BitLane<'a>>),
}

impl Line<'_> {
    /// Bytes that they take in a row.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Numbers(lanes) => lanes.bytes(),
            Self::Booleans(lanes) => lanes.len(),
        }
    }

    /// True if all columns are written at once.
    fn is_one_block(&self) -> bool {
        matches!(self, Self::Numbers(lanes) if lanes.is_one_block())
    }

    /// Writes them for `rows`, as [`put`].
    pub(super) fn put<P: Places>(&self, rows: Range<usize>, places: P, out: &mut [u8]) -> bool {
        match self {
            Self::Numbers(lanes) => put(lanes, rows, places, out),
            Self::Booleans(lanes) => {
                put_bits(lanes, rows, places, out);
                false
            }
        }
    }
}

/// Bytes of a tile of nothing but numbers that fits the first-level cache, so that what one block
/// of columns has written is there for the next one: 8 % faster for 10 columns.
const NEAR_TILE: usize = 16 << 10;
/// Rows of such a tile at the least, else it is one of [`FAR_ROWS`].
const NEAR_ROWS: usize = 128;
/// Rows of a tile that stays in the second-level cache: columns are then read in stretches that are
/// worth fetching ahead. 10 to 30 % faster for 50 columns than what fits the first-level cache, and 4 % than
/// tiles of 1,024, unless memory is slow.
const FAR_ROWS: usize = 256;

/// Rows of `stride` bytes that are written column by column before going on to the next ones.
pub(super) fn tile_rows(stride: usize) -> usize {
    let near = NEAR_TILE / stride.max(1) / 64 * 64;
    if near >= NEAR_ROWS { near } else { FAR_ROWS }
}

/// Writes rows of `stride` bytes, which are `lines` one behind the other and nothing else, as
/// [`put`].
pub(super) fn put_tiled<'a>(
    lines: impl Iterator<Item = &'a Line<'a>> + Clone,
    stride: usize,
    rows: Range<usize>,
    out: &mut [u8],
) -> bool {
    // Of one block there is nothing in tiles but to learn early that the rows are wrong.
    let is_one_block = lines.clone().count() == 1 && lines.clone().all(Line::is_one_block);
    let (mut tile_rows, mut escaped, mut at) = (tile_rows(stride), false, 0);
    while at < rows.len() && !escaped {
        let tile = rows.start + at..(rows.start + at + tile_rows).min(rows.end);
        if is_one_block {
            tile_rows = rows.len();
        }
        let mut places = Strided { first: at * stride, stride };
        at += tile.len();
        for line in lines.clone() {
            escaped |= line.put(tile.clone(), places, out);
            places.first += line.bytes();
        }
    }
    escaped
}

/// The lanes of a run, if all its columns are values of its form. `code` gives the constants of a column of
/// numbers, `descends` whether one of Booleans does.
pub(super) fn line<'a>(
    run: &Run,
    columns: &'a [Column],
    rows: usize,
    code: impl Fn(usize) -> Code,
    descends: impl Fn(usize) -> bool,
) -> Option<Line<'a>> {
    let number = |at: usize| match &columns[at] {
        Column::Fixed { values, nulls } => {
            Some(Lane { values, valid: validity(nulls), code: code(at) })
        }
        _ => None,
    };
    let boolean = |at: usize| match &columns[at] {
        Column::Bool { values, nulls } => {
            let one = u8::from(!descends(at));
            Some(BitLane {
                bits: Bits { bytes: values.values(), first: values.offset() },
                valid: validity(nulls),
                bytes: [1 - one, one],
                null: 0,
            })
        }
        _ => None,
    };
    let columns = run.columns.clone();
    match run.form {
        Form::Numbers(width) => {
            let lanes = columns.map(number).collect::<Option<Vec<_>>>()?;
            Some(Line::Numbers(Lanes::new(lanes, width, rows)))
        }
        Form::Booleans => Some(Line::Booleans(columns.map(boolean).collect::<Option<_>>()?)),
        Form::Other => None,
    }
}

/// The bits of a validity, if there is one.
pub(super) fn validity(nulls: &Option<NullBuffer>) -> Option<Bits<'_>> {
    nulls.as_ref().map(bits)
}

/// The bits of a validity.
pub(super) fn bits(nulls: &NullBuffer) -> Bits<'_> {
    Bits { bytes: nulls.validity(), first: nulls.offset() }
}
