//! The merge of rows that come in runs.
//!
//! ```text
//! 1. while the row STEP - 1 ahead still comes first, copy STEP rows
//! 2. count how many of the next ones do, without a branch; copy STEP, keep those
//! 3. the other input's row comes next: go on with that
//! ```
//!
//! Every row that is looked at is copied soon, and was asked for ahead of time: beyond the caches a
//! search in steps that double waits for memory as often as it halves. A run costs one wrong guess, at
//! its end.

use std::hint::select_unpredictable;

use super::bytes::copy_ahead;
use super::shape::Shape;
use super::steps::Work;
use super::two::Merged;

/// Rows that are copied for one comparison.
const STEP: usize = 8;

/// Merges rows, of which many come from one input at a time, until there are `rows` or one input is
/// used up. Returns what it did, and whether any were equal.
///
/// # Safety
/// As [`super::steps::streamed`]'s.
#[inline(always)]
pub(super) unsafe fn runs<const S: usize, const W: usize>(
    shape: Shape<S, W>,
    work: Work,
    rows: usize,
) -> (Merged, bool) {
    let stride = shape.stride();
    let mut ties = false;
    // SAFETY: `a` and `b` are stepped by rows that are left of them, `out` with them by `rows` in
    // all.
    unsafe {
        let Work { mut a, mut b, mut out, .. } = work;
        let (a_end, b_end) = work.ends(stride);
        let out_end = out.add(rows * stride);
        let least = |from: *const u8, end: *const u8, out: *mut u8| {
            (end as usize - from as usize).min(out_end as usize - out as usize) / stride
        };
        while a < a_end && b < b_end && out < out_end {
            let rows = run(shape, (a, least(a, a_end, out)), out, |row| !shape.less(b, row));
            a = a.add(rows * stride);
            out = out.add(rows * stride);
            // Of equal rows `a`'s comes just before.
            ties |= out > work.out && shape.equal(out.sub(stride), b);
            if a == a_end || out == out_end {
                break;
            }
            let rows = run(shape, (b, least(b, b_end, out)), out, |row| shape.less(row, a));
            b = b.add(rows * stride);
            out = out.add(rows * stride);
        }
        work.done(shape, (a, b, out), ties)
    }
}

/// Copies the rows at `from`, of which `left` are left, for which `first` holds, which are the first
/// ones; returns their number.
///
/// # Safety
/// `from` points to `left` whole rows, `out` to room for as many that does not overlap them.
#[inline(always)]
unsafe fn run<const S: usize, const W: usize>(
    shape: Shape<S, W>,
    (from, left): (*const u8, usize),
    out: *mut u8,
    first: impl Fn(*const u8) -> bool,
) -> usize {
    let stride = shape.stride();
    let mut done = 0;
    // SAFETY: `done + STEP <= left` where STEP rows are looked at and copied; `rows < STEP`.
    unsafe {
        while done + STEP <= left {
            let (from, out) = (from.add(done * stride), out.add(done * stride));
            let all = first(from.add((STEP - 1) * stride));
            copy_ahead(from, out, STEP * stride);
            if !all {
                let row = |index: usize| first(from.add(index * stride));
                let mut rows = select_unpredictable(row(STEP / 2 - 1), STEP / 2, 0);
                rows += select_unpredictable(row(rows + STEP / 4 - 1), STEP / 4, 0);
                rows += select_unpredictable(row(rows), 1, 0);
                return done + rows;
            }
            done += STEP;
        }
        while done < left && first(from.add(done * stride)) {
            shape.copy(from.add(done * stride), out.add(done * stride));
            done += 1;
        }
    }
    done
}
