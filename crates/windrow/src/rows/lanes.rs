//! Adjacent fixed-width columns, to be written or read in one go by the kernels.

use std::ops::Range;

use super::column::Column;
use crate::kernel::rows::{Bits, Code, Lane, Lanes};
use crate::order::code::{Kind, OrderedCode, PayloadCode};
use crate::order::{Layout, Slot};

/// Slots, or payload columns, next to each other.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Their positions among the slots, or in the payload.
    pub(super) columns: Range<usize>,
    /// Bytes of each, if the kernels can take them: 4 or 8.
    pub(super) width: Option<usize>,
}

/// Cuts the columns into runs of one width that stand next to each other. `gaps` says in front of
/// which columns another byte stands.
fn runs(widths: impl Iterator<Item = (Option<usize>, bool)>) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for (at, (width, gap)) in widths.enumerate() {
        match out.last_mut() {
            Some(run) if width.is_some() && run.width == width && !gap => run.columns.end += 1,
            _ => out.push(Run { columns: at..at + 1, width }),
        }
    }
    out
}

/// The slots of `layout`.
pub(super) fn slot_runs(layout: &Layout) -> Vec<Run> {
    runs(layout.slots().iter().map(|slot| (slot_width(slot), slot.has_marker())))
}

/// The payload of `layout`; columns that have nothing in the head do not come between others.
pub(super) fn payload_runs(layout: &Layout) -> Vec<Run> {
    runs(layout.payload().iter().map(|&(_, code)| match code {
        PayloadCode::Fixed(width @ (4 | 8)) => (Some(width), false),
        _ => (None, false),
    }))
}

/// Bytes of a slot that the kernels can take.
fn slot_width(slot: &Slot) -> Option<usize> {
    match slot.code {
        OrderedCode::Fixed(width @ (4 | 8), Kind::Unsigned | Kind::Signed | Kind::Float) => {
            Some(width)
        }
        _ => None,
    }
}

/// The constants of a slot that [`slot_width`] has a width for.
pub(super) fn slot_code(slot: &Slot) -> Code {
    let (width, kind) = match slot.code {
        OrderedCode::Fixed(width, kind) => (width, kind),
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

/// The lanes of a run, if it has a width and all its columns are values of that width.
pub(super) fn lanes<'a>(
    run: &Run,
    columns: &'a [Column],
    rows: usize,
    code: impl Fn(usize) -> Code,
) -> Option<Lanes<'a>> {
    let width = run.width?;
    let lane = |at: usize| match &columns[at] {
        Column::Fixed { values, nulls } => {
            let valid =
                nulls.as_ref().map(|nulls| Bits { bytes: nulls.validity(), first: nulls.offset() });
            Some(Lane { values, valid, code: code(at) })
        }
        _ => None,
    };
    let lanes = run.columns.clone().map(lane).collect::<Option<Vec<_>>>()?;
    Some(Lanes::new(lanes, width, rows))
}
