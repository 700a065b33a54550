//! Ordered codes of single byte strings, and the markers of slots.
//!
//! Text adds 2 to every byte; binary escapes 00-02; both end in 01. Descending order complements
//! all bytes.

use crate::order::Slot;
use crate::order::code::OrderedCode;
use windrow_kernel::copy::add_short;
use windrow_kernel::rows::exact as kernel;
use windrow_kernel::rows::take_text::find_end;
use windrow_kernel::rows::text::{ESCAPE, Form};

/// Byte after a string.
pub(super) const END: u8 = 1;
/// Number added to each byte of text.
pub(super) const SHIFT: u8 = 2;
/// Bytes after a text that the reader may overwrite.
pub(super) const SLACK: usize = 96;

/// Returns the code of text, complemented by `flip`.
pub(super) fn form(flip: u8) -> Form {
    Form { shift: SHIFT, end: END, flip }
}

/// Returns the code of binary strings without escaped bytes, complemented by `flip`.
pub(super) fn binary_form(flip: u8) -> Form {
    Form { shift: 0, end: END, flip }
}

/// Returns the marker bytes of a nullable slot: null, value.
pub(crate) fn markers(slot: &Slot) -> (u8, u8) {
    if slot.nulls_first { (0, 1) } else { (2, 1) }
}

/// Returns the encoded length of `value` in bytes, end included.
#[inline]
pub(crate) fn encoded_len(code: OrderedCode, value: &[u8]) -> usize {
    let escapes = match code {
        OrderedCode::Binary => kernel::escaped(value, ESCAPE),
        _ => 0,
    };
    value.len() + escapes + 1
}

/// Writes `value` to the start of `out`; returns the bytes written.
#[inline]
pub(crate) fn encode(code: OrderedCode, descending: bool, value: &[u8], out: &mut [u8]) -> usize {
    let flip = if descending { 0xff } else { 0 };
    if code == OrderedCode::Text {
        add_short(&mut out[..value.len()], value, SHIFT, flip);
        out[value.len()] = END ^ flip;
        return value.len() + 1;
    }
    kernel::put_escaped(value, binary_form(flip), ESCAPE, out)
}

/// Returns the end of the code that starts at `at`, one past its last byte; the end of the row if
/// the code does not end.
#[inline]
pub(crate) fn end_of(code: OrderedCode, descending: bool, row: &[u8], at: usize) -> usize {
    let flip = if descending { 0xff } else { 0 };
    let bytes = row.get(at..).unwrap_or(&[]);
    if code == OrderedCode::Text {
        return find_end(bytes, flip).map_or(row.len(), |length| at + length + 1);
    }
    let mut length = 0;
    while let Some(&byte) = bytes.get(length) {
        match byte ^ flip {
            0..=END => return at + length + 1,
            ESCAPE => length += 2,
            _ => length += 1,
        }
    }
    row.len()
}
