//! Skipping of slots without decoding.

use super::{escape, nested, text};
use crate::order::Slot;

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
    let end = match &slot.node {
        _ if !slot.code.varies() => at + slot.code.width(),
        None => text::end_of(slot.code, slot.descending, row, at),
        Some(node) => nested::end_of(slot, node, row, at),
    };
    end.min(row.len())
}
