//! Searches for the first of ascending items that is not below another.

use std::ops::Range;

/// Returns the first index of `range` that is not `below`, or the end.
#[inline]
pub(crate) fn bisect(range: Range<usize>, below: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = range;
    while low < high {
        let middle = low.midpoint(high);
        match below(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// Does the same as [`bisect`]; the number of comparisons is logarithmic in the distance from the
/// start.
#[inline]
pub(crate) fn gallop(range: Range<usize>, below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (range.start, 1);
    while low + step <= range.end && below(low + step - 1) {
        low += step;
        step *= 2;
    }
    bisect(low..(low + step - 1).min(range.end), below)
}
