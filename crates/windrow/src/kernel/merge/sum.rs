//! Equal neighbours become one row with the sum of their diffs.

use super::shape::Shape;

/// Bytes of a diff, at the end of a row.
const DIFF: usize = 8;

/// Adds up equal neighbours in place and closes the gaps; returns the rows that are left. A row whose
/// diffs add up to zero goes, if it had an equal. A sum that does not fit wraps; `wrapped` hears of it:
/// the row's compared bytes, and 1 or -1 for the 2^64 that are missing.
///
/// # Safety
/// `start` points to `rows` whole rows that nothing else refers to, of at least `body + 8` bytes.
#[inline(always)]
pub(super) unsafe fn add_up<const S: usize, const W: usize>(
    shape: Shape<S, W>,
    start: *mut u8,
    rows: usize,
    wrapped: &mut dyn FnMut(&[u8], i64),
) -> usize {
    let stride = shape.stride();
    let diff_at = stride - DIFF;
    let mut to = start;
    let mut carry = 0i64;
    for row in 0..rows {
        // SAFETY: `row < rows`; `to` is at or before the row, which is read whole before it is
        // written over, or is the same row.
        unsafe {
            let from = start.add(row * stride);
            let diff = i64::from_le_bytes(from.add(diff_at).cast::<[u8; 8]>().read());
            let (sum, overflow) = diff.overflowing_add(carry);
            if overflow {
                wrapped(shape.body(from), if carry > 0 { 1 } else { -1 });
            }
            let goes_on = row + 1 < rows && shape.equal(from, from.add(stride));
            if to.cast_const() != from {
                shape.copy(from, to);
            }
            to.add(diff_at).cast::<[u8; 8]>().write(sum.to_le_bytes());
            carry = if goes_on { sum } else { 0 };
            to = to.add(usize::from(!goes_on && sum != 0) * stride);
        }
    }
    (to as usize - start as usize) / stride
}
