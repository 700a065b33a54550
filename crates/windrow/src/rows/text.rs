//! Byte strings of any length as ordered codes, and walking over slots without decoding them.
//!
//! Text adds 2 to every byte, binary escapes 00-02, both end in 01; descending complements all of it.

use super::column::{Column, Visit};
use super::{escape, nested};
use crate::kernel::copy::add_short;
use crate::kernel::rows::binary::ESCAPE;
use crate::kernel::rows::exact::{self as kernel, Text};
use crate::kernel::rows::lengths;
use crate::kernel::rows::take_text::find_end;
use crate::kernel::rows::text::Form;
use crate::order::Slot;
use crate::order::code::OrderedCode;

/// What follows the last byte.
pub(super) const END: u8 = 1;
/// What is added to each byte of text.
pub(super) const SHIFT: u8 = 2;
/// Bytes behind a text that reading it may write.
pub(super) const SLACK: usize = 96;

/// The code of text, complemented by `flip`.
pub(super) fn form(flip: u8) -> Form {
    Form { shift: SHIFT, end: END, flip }
}

/// The code of binary strings in which nothing is escaped, complemented by `flip`.
pub(super) fn binary_form(flip: u8) -> Form {
    Form { shift: 0, end: END, flip }
}

/// Marker bytes of a nullable slot: null, value.
pub(crate) fn markers(slot: &Slot) -> (u8, u8) {
    if slot.nulls_first { (0, 1) } else { (2, 1) }
}

/// Bytes that `value` takes, the end included.
#[inline]
pub(crate) fn encoded_len(code: OrderedCode, value: &[u8]) -> usize {
    let escapes = match code {
        OrderedCode::Binary => kernel::escaped(value, ESCAPE),
        _ => 0,
    };
    value.len() + escapes + 1
}

/// Adds the bytes of each value of `column`, 0 for a null; returns the sum.
pub(super) fn add_lengths(code: OrderedCode, column: &Column, lengths: &mut [u32]) -> u64 {
    let mut total = 0;
    if let Column::Nested(nested) = column {
        for (length, &body) in lengths.iter_mut().zip(nested.lengths()) {
            total += body as u64;
            *length = length.wrapping_add(body as u32);
        }
        return total;
    }
    if code != OrderedCode::Binary || matches!(column, Column::Escaped { .. }) {
        return column.add_lengths(lengths::Form::Ended, lengths);
    }
    column.visit(0..lengths.len(), AddEscaped { lengths, total: &mut total });
    total
}

/// Adds the bytes that strings take, some of which are escaped.
struct AddEscaped<'a> {
    lengths: &'a mut [u32],
    total: &'a mut u64,
}

impl Visit for AddEscaped<'_> {
    #[inline]
    fn visit<'a>(self, strings: impl Iterator<Item = Text<'a>> + Clone) {
        *self.total += kernel::add_escaped(strings, ESCAPE, self.lengths);
    }
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

/// The end of the code that starts at `at`, one past its last byte; the row's end if it has none.
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

/// As [`end_of`], for any slot that varies.
#[inline]
pub(super) fn end_of_slot(slot: &Slot, row: &[u8], at: usize) -> usize {
    match &slot.node {
        None => end_of(slot.code, slot.descending, row, at),
        Some(node) => nested::end_of(slot, node, row, at),
    }
}

/// One past the bytes of `slot`, which start at `at`; never past the end of the row.
#[inline]
pub(crate) fn skip(slot: &Slot, row: &[u8], mut at: usize) -> usize {
    if slot.escapes {
        return escape::skip(slot, row, at).min(row.len());
    }
    if slot.has_marker() {
        let null = row.get(at) == Some(&markers(slot).0);
        at += 1;
        if null && slot.code.varies() {
            return at.min(row.len());
        }
    }
    let end = if slot.code.varies() { end_of_slot(slot, row, at) } else { at + slot.code.width() };
    end.min(row.len())
}
