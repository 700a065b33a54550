//! Skipping of slots without decoding.

use super::{escape, nested, text};
use crate::order::Slot;

/// Returns the end of any varying slot, like [`end_of`](text::end_of).
#[inline]
fn end_of_slot(slot: &Slot, row: &[u8], at: usize) -> usize {
    match &slot.node {
        None => text::end_of(slot.code, slot.descending, row, at),
        Some(node) => nested::end_of(slot, node, row, at),
    }
}

/// Returns the end of `slot`, which starts at `at`; at most the end of the row.
#[inline]
pub(crate) fn skip(slot: &Slot, row: &[u8], mut at: usize) -> usize {
    if slot.escapes {
        return escape::skip(slot, row, at).min(row.len());
    }
    if slot.has_marker() {
        let null = row.get(at) == Some(&text::markers(slot).0);
        at += 1;
        if null && slot.code.varies() {
            return at.min(row.len());
        }
    }
    let end = if slot.code.varies() { end_of_slot(slot, row, at) } else { at + slot.code.width() };
    end.min(row.len())
}
