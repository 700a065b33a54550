//! The loops of the two-way merge; they differ in what they are fast at. All go from the front, and stop when
//! they have written so many rows, or when one input is used up.
//!
//! ```text
//! led       words in registers, no branch depends on a comparison    random interleaving
//! summed    sums made at once, no such branch                        many equal rows
//! streamed  one branch a row                                         what one can predict
//! runs      one comparison for several rows                          runs; in a file of its own
//! ```
//!
//! Led: a merge without branches is a chain of compare - select - load. Here a load has a step more than the
//! others, since what is compared was loaded when its row was still the second:
//!
//! ```text
//! a     | head | next | ...        lead: the first bytes that may differ, 8 or 16
//! b     | head | next | ...        a step moves one lead from next to head, and loads the one behind it
//! ```

use std::hint::{black_box, select_unpredictable};

use super::super::prefetch::{LINE, prefetch};
use super::Wrapped;
use super::bytes::{AHEAD, diff_at};
use super::shape::{LONG, Lead, Shape};
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

/// The heads of both inputs, and where the next row goes.
type Heads = (*const u8, *const u8, *mut u8);

/// Merges from the front, without a branch on a comparison but where leads agree, until there are `rows` or one
/// input is used up; with `wrapped` two rows that are equal become one with the sum of their diffs, or none.
///
/// The leads of both heads and of the rows behind them are in registers: no comparison waits for memory.
///
/// Benefit of one lead that is loaded in a step, and selected, instead of those of both inputs: random rows of 96 bytes,
/// 512 KiB a side, 3.25 instead of 3.4 ns a row on the Xeon, of 32 bytes 2.65 instead of 2.75; of leads of one word, where
/// they decide: 2.9 instead of 3.6, and 1.95 instead of 2.8.
///
/// # Safety
/// As [`streamed`]'s; with `wrapped` the last eight bytes of rows are a diff, and not compared.
#[inline(always)]
pub(super) unsafe fn led<const S: usize, const W: usize, L: Lead>(
    shape: Shape<S, W>,
    work: Work,
    rows: usize,
    wrapped: &mut Wrapped<'_>,
) -> Merged {
    let stride = shape.stride();
    // Selected or not: as a constant it would be multiplied by the comparison, which takes as long again.
    let step = black_box(stride);
    // SAFETY: as this function's; only of whole rows.
    let lead = |row: *const u8| unsafe { L::of(shape, row) };
    // SAFETY: a step takes one row of each input at the most, so all `steps` leave two of both, and a step that
    // takes a row has two behind it. `out` is stepped at most once for each of `rows`.
    unsafe {
        let Work { mut a, mut b, mut out, .. } = work;
        let (a_end, b_end) = work.ends(stride);
        let mut left = rows;
        loop {
            let least = (a_end.addr() - a.addr()).min(b_end.addr() - b.addr()) / stride;
            let steps = least.saturating_sub(2).min(left);
            if steps == 0 {
                break;
            }
            left -= steps;
            let leads = |row: *const u8| (lead(row), lead(row.add(stride)));
            let ((mut a_lead, mut a_next), (mut b_lead, mut b_next)) = (leads(a), leads(b));
            for _ in 0..steps {
                if a_lead == b_lead {
                    (a, b, out) = one_step(shape, (a, b, out), wrapped);
                    ((a_lead, a_next), (b_lead, b_next)) = (leads(a), leads(b));
                    continue;
                }
                let take_b = b_lead < a_lead;
                let row = select_unpredictable(take_b, b, a);
                ask_for(row, out, stride);
                shape.copy(row, out);
                out = out.add(stride);
                a_lead = select_unpredictable(take_b, a_lead, a_next);
                b_lead = select_unpredictable(take_b, b_next, b_lead);
                let behind = lead(row.add(2 * stride));
                a_next = select_unpredictable(take_b, a_next, behind);
                b_next = select_unpredictable(take_b, behind, b_next);
                let b_step = select_unpredictable(take_b, step, 0);
                b = b.add(b_step);
                a = a.add(stride).sub(b_step);
            }
        }
        while a < a_end && b < b_end && left > 0 {
            (a, b, out) = one_step(shape, (a, b, out), wrapped);
            left -= 1;
        }
        work.done(shape, (a, b, out), false).0
    }
}

/// A step of [`led`], whatever the rows.
///
/// # Safety
/// As [`led`]'s; both heads are rows, and one more has room.
#[inline(never)]
unsafe fn one_step<const S: usize, const W: usize>(
    shape: Shape<S, W>,
    (a, b, out): Heads,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let stride = shape.stride();
    // SAFETY: as the function's.
    unsafe {
        let (take_b, equal) = shape.compare(b, a);
        shape.copy(if take_b { b } else { a }, out);
        if equal && let Some(wrapped) = wrapped {
            let diff = diff_at(b, stride);
            let (sum, overflow) = diff_at(a, stride).overflowing_add(diff);
            if overflow {
                wrapped(shape.body(a), if diff > 0 { 1 } else { -1 });
            }
            out.add(stride - 8).cast::<[u8; 8]>().write(sum.to_le_bytes());
            return (a.add(stride), b.add(stride), out.add(if sum == 0 { 0 } else { stride }));
        }
        let (a_step, b_step) = if take_b { (0, stride) } else { (stride, 0) };
        (a.add(a_step), b.add(b_step), out.add(stride))
    }
}

/// Merges row by row, with a branch on every comparison, until there are `rows` or one input is
/// used up. Returns what it did, and whether any were equal.
///
/// The words of both heads stay in registers, `LEAD` of them at the most: a step loads those of one row. Where they agree
/// the rows are compared as they lie.
///
/// # Safety
/// `a` and `b` point to as many whole rows, in order, as `work` says, at least one; `out` to room
/// for `rows + 1` rows, of which there is one at least, that overlaps neither.
#[inline(always)]
pub(super) unsafe fn streamed<const S: usize, const W: usize, const LEAD: usize>(
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
        let (mut a_head, mut b_head) = (shape.head::<LEAD>(a), shape.head::<LEAD>(b));
        loop {
            let (take_b, equal) = shape.compare_heads::<LEAD>((b, b_head), (a, a_head));
            ties |= equal;
            if take_b {
                ask_for(b, out, stride);
                shape.copy(b, out);
                b = b.add(stride);
                out = out.add(stride);
                if b == b_end || out == out_end {
                    break;
                }
                b_head = shape.head::<LEAD>(b);
            } else {
                ask_for(a, out, stride);
                shape.copy(a, out);
                a = a.add(stride);
                out = out.add(stride);
                if a == a_end || out == out_end {
                    break;
                }
                a_head = shape.head::<LEAD>(a);
            }
        }
        work.done(shape, (a, b, out), ties)
    }
}

/// Asks for the row AHEAD bytes behind `row`; if it takes more than a line, for its room behind `out`, too.
///
/// Benefit of the latter: rows of 96 bytes that take turns, 32 KiB a side, 2.2 ns a row instead of 2.5, 512 KiB
/// 2.9 instead of 3.3. Rows of 32 bytes gain nothing.
#[inline(always)]
pub(super) fn ask_for(row: *const u8, out: *const u8, stride: usize) {
    for line in (0..stride).step_by(LINE) {
        prefetch(row.wrapping_add(AHEAD + line));
        if stride > LINE {
            prefetch(out.wrapping_add(AHEAD + line));
        }
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
/// As in [`led`] what is compared is in registers, where two words and the last one tell all rows apart but
/// those few that differ between.
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
    if !Shape::<S, W>::SHORT {
        // SAFETY: the same.
        return unsafe { summed_whole(shape, work, rows, wrapped) };
    }
    let stride = shape.stride();
    let step = black_box(stride);
    // SAFETY: a step takes one row of each input at the most, so all `steps` leave one of both: heads and, in a
    // step, the rows behind them are there. `out` is stepped at most once for each of `rows`.
    unsafe {
        let Work { mut a, mut b, mut out, .. } = work;
        let (a_end, b_end) = work.ends(stride);
        let mut left = rows;
        loop {
            let least = (a_end.addr() - a.addr()).min(b_end.addr() - b.addr()) / stride;
            let steps = least.saturating_sub(1).min(left);
            if steps == 0 {
                break;
            }
            left -= steps;
            let (mut a_head, mut b_head) = (shape.short(a), shape.short(b));
            for _ in 0..steps {
                let agree = a_head.0 == b_head.0;
                if W == LONG && black_box(agree & shape.differ_between(a, b)) {
                    (a, b, out) = one_step(shape, (a, b, out), &mut Some(&mut *wrapped));
                    (a_head, b_head) = (shape.short(a), shape.short(b));
                    continue;
                }
                let (a_next, b_next) = (shape.short(a.add(stride)), shape.short(b.add(stride)));
                let take_b = Shape::<S, W>::is_less(b_head, a_head);
                let equal = agree & (a_head.1 == b_head.1);
                let row = select_unpredictable(take_b, b, a);
                let other = select_unpredictable(equal, diff_at(b, stride), 0);
                let (sum, overflow) = diff_at(row, stride).overflowing_add(other);
                if overflow {
                    wrapped(shape.body(row), if other > 0 { 1 } else { -1 });
                }
                ask_for(row, out, stride);
                shape.copy(row, out);
                out.add(stride - 8).cast::<[u8; 8]>().write(sum.to_le_bytes());
                out = out.add(select_unpredictable(equal & (sum == 0), 0, step));
                let both = take_b | equal;
                a_head.0 = select_unpredictable(take_b, a_head.0, a_next.0);
                a_head.1 = select_unpredictable(take_b, a_head.1, a_next.1);
                b_head.0 = select_unpredictable(both, b_next.0, b_head.0);
                b_head.1 = select_unpredictable(both, b_next.1, b_head.1);
                a = a.add(select_unpredictable(take_b, 0, step));
                b = b.add(select_unpredictable(both, step, 0));
            }
        }
        while a < a_end && b < b_end && left > 0 {
            (a, b, out) = one_step(shape, (a, b, out), &mut Some(&mut *wrapped));
            left -= 1;
        }
        let rows = |from: *const u8, to: *const u8| (to as usize - from as usize) / stride;
        Merged { a: rows(work.a, a), b: rows(work.b, b), out: rows(work.out, out) }
    }
}

/// As [`summed`], of rows that are compared whole.
///
/// # Safety
/// As [`summed`]'s.
#[inline(always)]
unsafe fn summed_whole<const S: usize, const W: usize>(
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
            ask_for(row, out, stride);
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

/// What the first rows of a merge look like.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// How often the next row comes from the other input.
    pub(super) switches: usize,
    /// How often two heads are equal.
    pub(super) ties: usize,
    /// How often their first words are.
    pub(super) alike: usize,
}

/// Looks at the first rows of the merge.
///
/// # Safety
/// `a` and `b` point to as many whole rows, in order, as `work` says; `out` is not used.
#[inline(always)]
pub(super) unsafe fn sample<const S: usize, const W: usize>(
    shape: Shape<S, W>,
    work: Work,
    rows: usize,
) -> Sample {
    let stride = shape.stride();
    let (mut a, mut b) = (0, 0);
    let mut before = false;
    let mut seen = Sample::default();
    for row in 0..rows {
        if a == work.a_rows || b == work.b_rows {
            break;
        }
        // SAFETY: both indexes are below the numbers of rows.
        let ((take_b, equal), alike) = unsafe {
            let (p, q) = (work.b.add(b * stride), work.a.add(a * stride));
            (shape.compare(p, q), u64::of(shape, p) == u64::of(shape, q))
        };
        seen.ties += usize::from(equal);
        seen.alike += usize::from(alike);
        seen.switches += usize::from(row > 0 && take_b != before);
        before = take_b;
        b += usize::from(take_b);
        a += usize::from(!take_b);
    }
    seen
}
