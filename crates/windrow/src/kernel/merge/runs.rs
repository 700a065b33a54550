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

/// Rows that are copied for one comparison.
const STEP: usize = 8;

/// Merges rows, of which many come from one input at a time. Returns whether any were equal.
///
/// # Safety
/// As [`super::steps::woven`]'s.
#[inline(always)]
pub(super) unsafe fn runs<const S: usize, const W: usize>(shape: Shape<S, W>, work: Work) -> bool {
    let stride = shape.stride();
    let mut ties = false;
    // SAFETY: `a` and `b` are stepped by rows that are left of them, `out` with them.
    unsafe {
        let (mut a, mut b, mut out) = (work.a, work.b, work.out);
        let (a_end, b_end) = (a.add(work.a_rows * stride), b.add(work.b_rows * stride));
        while a < a_end && b < b_end {
            let left = (a_end as usize - a as usize) / stride;
            let rows = run(shape, (a, left), out, |row| !shape.less(b, row));
            a = a.add(rows * stride);
            out = out.add(rows * stride);
            // Of equal rows `a`'s comes just before.
            ties |= out > work.out && shape.equal(out.sub(stride), b);
            if a == a_end {
                break;
            }
            let left = (b_end as usize - b as usize) / stride;
            let rows = run(shape, (b, left), out, |row| shape.less(row, a));
            b = b.add(rows * stride);
            out = out.add(rows * stride);
        }
        let left = a_end as usize - a as usize;
        std::ptr::copy_nonoverlapping(a, out, left);
        std::ptr::copy_nonoverlapping(b, out.add(left), b_end as usize - b as usize);
    }
    ties
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
