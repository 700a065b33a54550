//! The loops of the two-way merge; they differ in what they are fast at. Woven merges all of two
//! inputs; those from the front stop when they have written so many rows, or when one input is used
//! up.
//!
//! ```text
//! woven     from both ends, no branch depends on a comparison     random interleaving
//! summed    from the front, no such branch, sums made at once    many equal rows
//! streamed  one branch a row                                      what one can predict
//! runs      one comparison for several rows                       runs; in a file of its own
//! ```
//!
//! Woven: the least row goes to the front and the greatest to the back in turn, so that two chains of
//! compare - select - load are in flight where a forward merge has one. Four (both halves of a merge
//! path) were 5 % faster in the first-level cache and 30 % slower beyond the second: too many streams.
//! What the next block reads is fetched meanwhile, which gains 15-20 % beyond the caches.
//!
//! Odeh, Green, Mwassi, Shmueli and Birk, "Merge path", IPDPSW 2012; the merge from both ends is that
//! of quadsort and glidesort.

use std::hint::select_unpredictable;

use super::super::prefetch::prefetch;
use super::bytes::{AHEAD, diff_at};
use super::shape::Shape;
use super::two::Merged;

/// Two inputs and the room for all their rows.
#[derive(Clone, Copy)]
pub(super) struct Work {
    pub(super) a: *const u8,
    pub(super) a_rows: usize,
    pub(super) b: *const u8,
    pub(super) b_rows: usize,
    pub(super) out: *mut u8,
}

impl Work {
    /// One past the last row of each input.
    ///
    /// # Safety
    /// The inputs have as many rows as it says.
    #[inline(always)]
    pub(super) unsafe fn ends(&self, stride: usize) -> (*const u8, *const u8) {
        // SAFETY: as the function's.
        unsafe { (self.a.add(self.a_rows * stride), self.b.add(self.b_rows * stride)) }
    }

    /// What a loop did that came from the front to `a`, `b` and `out`: of two rows that are equal
    /// `a`'s was first, and the other one follows now. Returns whether there were any, too.
    ///
    /// # Safety
    /// `a` and `b` lie within the inputs or one past their ends, and one row more has room at
    /// `out`.
    #[inline(always)]
    pub(super) unsafe fn done<const S: usize, const W: usize>(
        &self,
        shape: Shape<S, W>,
        (a, mut b, mut out): (*const u8, *const u8, *mut u8),
        mut ties: bool,
    ) -> (Merged, bool) {
        let stride = shape.stride();
        // SAFETY: as the function's; rows before `out` were written.
        unsafe {
            if b < self.ends(stride).1 && out > self.out && shape.equal(out.sub(stride), b) {
                shape.copy(b, out);
                (b, out) = (b.add(stride), out.add(stride));
                ties = true;
            }
        }
        let rows = |from: *const u8, to: *const u8| (to as usize - from as usize) / stride;
        let done = Merged { a: rows(self.a, a), b: rows(self.b, b), out: rows(self.out, out) };
        (done, ties)
    }
}

/// How many rows of `a` and of `b` are the first `rows` of the merge; equal ones of `a` come first.
///
/// # Safety
/// `a` and `b` point to as many whole rows, in order, as `work` says; `rows` is at most their sum.
pub(super) unsafe fn split<const S: usize, const W: usize>(
    shape: Shape<S, W>,
    work: Work,
    rows: usize,
) -> (usize, usize) {
    let stride = shape.stride();
    let (mut low, mut high) = (rows.saturating_sub(work.b_rows), rows.min(work.a_rows));
    while low < high {
        let middle = low + (high - low) / 2;
        // SAFETY: `middle < a_rows`, and `rows - middle - 1 < b_rows` since `middle >= low`.
        let b_first = unsafe {
            shape.less(work.b.add((rows - middle - 1) * stride), work.a.add(middle * stride))
        };
        if b_first {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low, rows - low)
}

/// How many rows of `a` and of `b` are the next `rows` of the merge, or as many as there are before
/// one of them is used up; of two rows that are equal both or none.
///
/// # Safety
/// As [`split`]'s, and neither is empty.
pub(super) unsafe fn next<const S: usize, const W: usize>(
    shape: Shape<S, W>,
    work: Work,
    rows: usize,
) -> (usize, usize) {
    let stride = shape.stride();
    // SAFETY: as the function's; all indexes are below the numbers of rows.
    unsafe {
        let (a, b) = (|index| work.a.add(index * stride), |index| work.b.add(index * stride));
        let (mut a_rows, mut b_rows) = split(shape, work, rows);
        // Behind the last row of an input come rows that are not here yet. Ends of chunks that are
        // merged with each other mostly lie close together.
        if a_rows == work.a_rows {
            let last = a(a_rows - 1);
            b_rows -= gallop(b_rows, |back| shape.less(last, b(b_rows - 1 - back)));
        }
        if b_rows == work.b_rows {
            let last = b(b_rows - 1);
            a_rows -= gallop(a_rows, |back| shape.less(last, a(a_rows - 1 - back)));
        }
        let tie = a_rows > 0 && b_rows < work.b_rows && shape.equal(a(a_rows - 1), b(b_rows));
        (a_rows, b_rows + usize::from(tie))
    }
}

/// The ends of a woven merge.
struct Ends {
    a: *const u8,
    b: *const u8,
    out: *mut u8,
    /// One past the last row of each.
    a_end: *const u8,
    b_end: *const u8,
    out_end: *mut u8,
}

impl Ends {
    /// # Safety
    /// As [`woven`]'s.
    unsafe fn new(work: Work, stride: usize) -> Self {
        let out_rows = work.a_rows + work.b_rows;
        // SAFETY: one past the end of each.
        unsafe {
            Self {
                a: work.a,
                b: work.b,
                out: work.out,
                a_end: work.a.add(work.a_rows * stride),
                b_end: work.b.add(work.b_rows * stride),
                out_end: work.out.add(out_rows * stride),
            }
        }
    }

    /// Steps from both ends that cannot use up either input.
    fn safe_steps(&self, stride: usize) -> usize {
        let a = (self.a_end as usize - self.a as usize) / stride;
        let b = (self.b_end as usize - self.b as usize) / stride;
        a.min(b) / 2
    }

    /// The least row goes to the front.
    ///
    /// # Safety
    /// Neither input is used up.
    #[inline(always)]
    unsafe fn front<const S: usize, const W: usize>(&mut self, shape: Shape<S, W>) {
        let stride = shape.stride();
        // SAFETY: `a` and `b` point to rows that are left; as many have room from `out` on.
        unsafe {
            let take_b = shape.less(self.b, self.a);
            shape.copy(select_unpredictable(take_b, self.b, self.a), self.out);
            self.a = select_unpredictable(take_b, self.a, self.a.add(stride));
            self.b = select_unpredictable(take_b, self.b.add(stride), self.b);
            self.out = self.out.add(stride);
        }
    }

    /// The greatest row goes to the back.
    ///
    /// # Safety
    /// Neither input is used up.
    #[inline(always)]
    unsafe fn back<const S: usize, const W: usize>(&mut self, shape: Shape<S, W>) {
        let stride = shape.stride();
        // SAFETY: the rows before the ends are left; as many have room before `out_end`.
        unsafe {
            let (a, b) = (self.a_end.sub(stride), self.b_end.sub(stride));
            let take_a = shape.less(b, a);
            self.out_end = self.out_end.sub(stride);
            shape.copy(select_unpredictable(take_a, a, b), self.out_end);
            self.a_end = select_unpredictable(take_a, a, self.a_end);
            self.b_end = select_unpredictable(take_a, self.b_end, b);
        }
    }

    /// What is left, as work of its own.
    fn rest(&self, stride: usize) -> Work {
        Work {
            a: self.a,
            a_rows: (self.a_end as usize - self.a as usize) / stride,
            b: self.b,
            b_rows: (self.b_end as usize - self.b as usize) / stride,
            out: self.out,
        }
    }
}

/// Merges without a branch on a comparison.
///
/// # Safety
/// `a` and `b` point to as many whole rows, in order, as `work` says, `out` to room for all of them
/// that overlaps neither.
#[inline(always)]
pub(super) unsafe fn woven<const S: usize, const W: usize>(shape: Shape<S, W>, work: Work) {
    let stride = shape.stride();
    // SAFETY: a step takes two rows, and `safe_steps` keeps all of them within those that are left; the
    // rest is what is left, and its room.
    unsafe {
        let mut ends = Ends::new(work, stride);
        let mut ahead = (ends.a_end, ends.b_end);
        loop {
            let steps = ends.safe_steps(stride) / 2;
            if steps == 0 {
                break;
            }
            for _ in 0..steps {
                for line in (0..2 * stride).step_by(64) {
                    prefetch(ahead.0.wrapping_add(line));
                    prefetch(ahead.1.wrapping_add(line));
                }
                ahead = (ahead.0.wrapping_add(2 * stride), ahead.1.wrapping_add(2 * stride));
                ends.front(shape);
                ends.back(shape);
                ends.front(shape);
                ends.back(shape);
            }
        }
        settle(shape, ends.rest(stride));
    }
}

/// Merges the few rows that are left of one input and all that are left of the other.
///
/// Apart from the loop: in one function with it, the loop's selections become branches.
///
/// # Safety
/// As [`woven`]'s.
#[inline(never)]
unsafe fn settle<const S: usize, const W: usize>(shape: Shape<S, W>, work: Work) {
    let stride = shape.stride();
    // SAFETY: `a` and `b` are stepped while rows are left of them, `out` with them.
    unsafe {
        let Work { mut a, mut b, mut out, .. } = work;
        let (a_end, b_end) = work.ends(stride);
        while a < a_end && b < b_end {
            let from = if shape.less(b, a) { &mut b } else { &mut a };
            shape.copy(*from, out);
            *from = from.add(stride);
            out = out.add(stride);
        }
        let left = a_end as usize - a as usize;
        std::ptr::copy_nonoverlapping(a, out, left);
        std::ptr::copy_nonoverlapping(b, out.add(left), b_end as usize - b as usize);
    }
}

/// Merges row by row, with a branch on every comparison, until there are `rows` or one input is
/// used up. Returns what it did, and whether any were equal.
///
/// The words of both heads stay in registers: a step loads those of one row.
///
/// # Safety
/// `a` and `b` point to as many whole rows, in order, as `work` says, at least one; `out` to room
/// for `rows + 1` rows, of which there is one at least, that overlaps neither.
#[inline(always)]
pub(super) unsafe fn streamed<const S: usize, const W: usize>(
    shape: Shape<S, W>,
    work: Work,
    rows: usize,
) -> (Merged, bool) {
    let stride = shape.stride();
    let mut ties = false;
    // SAFETY: `a` and `b` are stepped while rows are left of them, `out` with them; heads are read of
    // rows that are left.
    unsafe {
        let Work { mut a, mut b, mut out, .. } = work;
        let (a_end, b_end) = work.ends(stride);
        let out_end = out.add(rows * stride);
        let (mut a_head, mut b_head) = (shape.head(a), shape.head(b));
        loop {
            let (take_b, equal) = shape.compare_heads((b, b_head), (a, a_head));
            ties |= equal;
            if take_b {
                ask_for(b, stride);
                shape.copy(b, out);
                b = b.add(stride);
                out = out.add(stride);
                if b == b_end || out == out_end {
                    break;
                }
                b_head = shape.head(b);
            } else {
                ask_for(a, stride);
                shape.copy(a, out);
                a = a.add(stride);
                out = out.add(stride);
                if a == a_end || out == out_end {
                    break;
                }
                a_head = shape.head(a);
            }
        }
        work.done(shape, (a, b, out), ties)
    }
}

/// Asks for the row AHEAD bytes behind `row`.
#[inline(always)]
pub(super) fn ask_for(row: *const u8, stride: usize) {
    for line in (0..stride).step_by(64) {
        prefetch(row.wrapping_add(AHEAD + line));
    }
}

/// The number of indexes below `len` for which `holds`, which are the first ones: found in steps that
/// double, then halve.
#[inline(always)]
pub(super) fn gallop(len: usize, mut holds: impl FnMut(usize) -> bool) -> usize {
    let mut high = 1;
    while high <= len && holds(high - 1) {
        high *= 2;
    }
    let low = high / 2;
    low + first(((high - 1).min(len)) - low, |index| holds(low + index))
}

/// The number of indexes below `len` for which `holds`, which are the first ones, found by halves: no
/// step is guessed.
#[inline(always)]
pub(super) fn first(mut len: usize, mut holds: impl FnMut(usize) -> bool) -> usize {
    let mut low = 0;
    while len > 0 {
        let half = len.div_ceil(2);
        low += select_unpredictable(holds(low + half - 1), half, 0);
        len -= half;
    }
    low
}

/// Merges from the front without a branch on a comparison, until `rows` were written at the most or
/// one input is used up; two rows that are equal become one with the sum of their diffs, or none.
///
/// # Safety
/// As [`streamed`]'s; the last eight bytes of rows are a diff, and not compared.
#[inline(always)]
pub(super) unsafe fn summed<const S: usize, const W: usize>(
    shape: Shape<S, W>,
    work: Work,
    rows: usize,
    wrapped: &mut dyn FnMut(&[u8], i64),
) -> Merged {
    let stride = shape.stride();
    // SAFETY: `a` and `b` are stepped while rows are left of them, `out` at most once for each of
    // `rows`.
    unsafe {
        let Work { mut a, mut b, mut out, .. } = work;
        let (a_end, b_end) = work.ends(stride);
        let mut left = rows;
        while a < a_end && b < b_end && left > 0 {
            let (take_b, equal) = shape.compare(b, a);
            let row = select_unpredictable(take_b, b, a);
            let other = diff_at(select_unpredictable(take_b, a, b), stride);
            let (sum, overflow) =
                diff_at(row, stride).overflowing_add(select_unpredictable(equal, other, 0));
            if overflow {
                wrapped(shape.body(row), if other > 0 { 1 } else { -1 });
            }
            ask_for(row, stride);
            shape.copy(row, out);
            out.add(stride - 8).cast::<[u8; 8]>().write(sum.to_le_bytes());
            out = out.add(select_unpredictable(equal && sum == 0, 0, stride));
            a = a.add(select_unpredictable(take_b, 0, stride));
            b = b.add(select_unpredictable(take_b || equal, stride, 0));
            left -= 1;
        }
        let rows = |from: *const u8, to: *const u8| (to as usize - from as usize) / stride;
        Merged { a: rows(work.a, a), b: rows(work.b, b), out: rows(work.out, out) }
    }
}

/// Among the first rows of the merge, how often the next one comes from the other input, and how often
/// two heads are equal.
///
/// # Safety
/// As [`woven`]'s; `out` is not used.
#[inline(always)]
pub(super) unsafe fn sample<const S: usize, const W: usize>(
    shape: Shape<S, W>,
    work: Work,
    rows: usize,
) -> (usize, usize) {
    let stride = shape.stride();
    let (mut a, mut b) = (0, 0);
    let mut before = false;
    let (mut switches, mut ties) = (0, 0);
    for row in 0..rows {
        if a == work.a_rows || b == work.b_rows {
            break;
        }
        // SAFETY: both indexes are below the numbers of rows.
        let (take_b, equal) =
            unsafe { shape.compare(work.b.add(b * stride), work.a.add(a * stride)) };
        ties += usize::from(equal);
        switches += usize::from(row > 0 && take_b != before);
        before = take_b;
        b += usize::from(take_b);
        a += usize::from(!take_b);
    }
    (switches, ties)
}
