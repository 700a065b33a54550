//! What columns of fixed width are to the kernels, and what makes codes of their numbers.

use arrow_buffer::NullBuffer;

use crate::kernel::rows::{Bits, Code};
use crate::order::Slot;
use crate::order::code::{Kind, OrderedCode};

/// What columns are to the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Numbers of 4, 8 or 16 bytes.
    Numbers(usize),
    Booleans,
    /// A column that they have no path for.
    Other,
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

/// The bits of a validity, if there is one.
pub(super) fn validity(nulls: &Option<NullBuffer>) -> Option<Bits<'_>> {
    nulls.as_ref().map(bits)
}

/// The bits of a validity.
pub(super) fn bits(nulls: &NullBuffer) -> Bits<'_> {
    Bits { bytes: nulls.validity(), first: nulls.offset() }
}
