//! Parameters of the kernels for columns of fixed width, and for the codes of numbers.

use arrow_buffer::NullBuffer;

use crate::order::Slot;
use crate::order::code::{Kind, OrderedCode};
use windrow_kernel::rows::{Bits, Code};

/// Returns the bytes of a slot's numbers, if kernels encode such columns: 4, 8 or 16.
pub(crate) fn number_width(code: OrderedCode) -> Option<usize> {
    match code {
        OrderedCode::Fixed(width @ (4 | 8), Kind::Unsigned | Kind::Signed | Kind::Float)
        | OrderedCode::Fixed(width @ 16, Kind::Unsigned | Kind::Signed) => Some(width),
        _ => None,
    }
}

/// Returns the constants of a slot of numbers; for 16 bytes, of the upper half.
pub(crate) fn slot_code(slot: &Slot) -> Code {
    let (width, kind) = match slot.code {
        OrderedCode::Fixed(width, kind) => (width.min(8), kind),
        _ => (8, Kind::Unsigned),
    };
    let ones = u64::MAX >> (64 - 8 * width);
    let top = 1 << (8 * width - 1);
    let flip = if kind == Kind::Unsigned { 0 } else { top };
    let code = Code {
        flip: if slot.descending { flip ^ ones } else { flip },
        float: if kind == Kind::Float { ones ^ top } else { 0 },
        ..RAW
    };
    if !slot.escapes {
        return Code { big: true, ..code };
    }
    // The constants of `escape`, for codes that are already complemented.
    let complement = if slot.descending { ones } else { 0 };
    let (delta, null, longer, edge) = match (slot.low_nulls(), slot.descending) {
        (true, false) => (1, 0, ones, ones),
        (true, true) => (ones, 0, ones, ones),
        (false, false) => (0, ones, ones - 1, ones - 1),
        (false, true) => (0, ones, ones - 1, 0),
    };
    let (null, longer) = (null ^ complement, longer ^ complement);
    Code { delta, null, longer, edge, big: true, escapes: true, ..code }
}

/// Constants of a payload column: values unchanged, nulls as zeros.
pub(crate) const RAW: Code = Code::RAW;

/// Returns the bits of an optional null buffer.
pub(crate) fn validity(nulls: &Option<NullBuffer>) -> Option<Bits<'_>> {
    nulls.as_ref().map(bits)
}

/// Returns the bits of a null buffer.
pub(crate) fn bits(nulls: &NullBuffer) -> Bits<'_> {
    Bits { bytes: nulls.validity(), first: nulls.offset() }
}
