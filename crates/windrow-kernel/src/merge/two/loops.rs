//! The loops of the merge of two. Each loop starts at the heads, writes at most a given number of
//! rows, and stops when an input is consumed. With sums, equal rows are added up on the way.
//!
//! ```text
//! loop { (a, b) = heads; out <- the lesser row, or the sum of equal rows; advance its input }
//!
//! led       leads in registers, no branch depends on a comparison    random interleaving
//! summed    no branch for equal rows either                          many equal rows
//! streamed  one branch per row                                       turns, and runs
//! ```
//!
//! A merge without branches is a chain of compare - select - load.
//! 1. In `led` a load has one step more to complete: the lead of the row after the head is already
//!    loaded, and the step loads the lead of the row after that one.
//! 2. The step between cursors is hidden from the compiler: a constant step would be multiplied by
//!    the result of the comparison, which takes longer than a selection.
//! 3. Rows with equal leads go to [`step`], which is not inlined.

use std::hint::{black_box, select_unpredictable};

use super::super::Wrapped;
use super::super::bytes::{diff_at, differ, word_at};
use super::super::rows::Rows;
use super::pair::{Heads, Lead, Pair, step};

/// Runs a loop as a function of its own: inlined into another loop, its selections would become
/// branches, and its pointers would move to the stack.
#[inline(never)]
pub(super) fn own<T>(run: impl FnOnce() -> T) -> T {
    run()
}

/// Merges without a branch on a comparison, except where leads agree.
///
/// # Safety
/// `heads` are cursors of the pair. The output has space for `left` rows and overlaps no input.
/// With `wrapped`, the last eight bytes of rows are a diff.
#[inline(always)]
pub(super) unsafe fn led<R: Rows, K: Lead>(
    pair: Pair<R>,
    heads: Heads,
    mut left: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let (rows, one) = (pair.rows, black_box(pair.rows.step()));
    let [a_bytes, b_bytes] = pair.bytes;
    // SAFETY: called only with cursors of rows.
    let lead = |at: *const u8, bytes: *const u8| unsafe { K::of(&pair, rows.row(at, bytes)) };
    let Heads { mut a, mut b, mut to, mut end } = heads;
    // SAFETY: a step takes at most one row of each input, so during `steps` steps both inputs keep
    // two rows after their heads. Each step writes at most one row, and all steps together are at
    // most `left`.
    unsafe {
        loop {
            let mut steps = pair.steps(Heads { a, b, to, end }, 2).min(left);
            if steps == 0 {
                break;
            }
            left -= steps;
            let leads =
                |at: *const u8, bytes: *const u8| (lead(at, bytes), lead(at.add(one), bytes));
            let ((mut a_lead, mut a_next), (mut b_lead, mut b_next)) =
                (leads(a, a_bytes), leads(b, b_bytes));
            while steps > 0 {
                steps -= 1;
                if a_lead == b_lead {
                    Heads { a, b, to, end } = step(pair, Heads { a, b, to, end }, wrapped);
                    ((a_lead, a_next), (b_lead, b_next)) = (leads(a, a_bytes), leads(b, b_bytes));
                    continue;
                }
                let take_b = b_lead < a_lead;
                let at = select_unpredictable(take_b, b, a);
                let bytes = select_unpredictable(take_b, b_bytes, a_bytes);
                let (row, len) = (rows.row(at, bytes), rows.len(at));
                pair.ask(row, to);
                rows.copy(row, to, len);
                to = to.add(len);
                if R::VARY {
                    end.write(pair.offset(to));
                    end = end.add(1);
                }
                a_lead = select_unpredictable(take_b, a_lead, a_next);
                b_lead = select_unpredictable(take_b, b_next, b_lead);
                let behind = lead(at.add(2 * rows.step()), bytes);
                a_next = select_unpredictable(take_b, a_next, behind);
                b_next = select_unpredictable(take_b, behind, b_next);
                let b_step = select_unpredictable(take_b, one, 0);
                b = b.add(b_step);
                a = a.add(rows.step()).sub(b_step);
            }
        }
        let mut heads = Heads { a, b, to, end };
        while left > 0 && pair.steps(heads, 0) > 0 {
            heads = step(pair, heads, wrapped);
            left -= 1;
        }
        heads
    }
}

/// Shortest body, in bytes, whose ends decide in [`summed`].
pub(super) const LONG: usize = 40;

/// Merges without a branch on a comparison or for sums. Compares whole bodies, or with `ENDS` leads
/// and last words, as rows with equal leads mostly have equal bytes between the two.
///
/// # Safety
/// The conditions of [`led`] hold, and the last eight bytes of rows are a diff. With `ENDS`, bodies
/// have at least `LONG` bytes.
#[inline(always)]
pub(super) unsafe fn summed<R: Rows, K: Lead, const ENDS: bool>(
    pair: Pair<R>,
    mut heads: Heads,
    mut left: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let (rows, one) = (pair.rows, black_box(pair.rows.step()));
    loop {
        let steps = pair.steps(heads, 0).min(left);
        if steps == 0 {
            return heads;
        }
        left -= steps;
        let Heads { mut a, mut b, mut to, mut end } = heads;
        for _ in 0..steps {
            // SAFETY: a step takes at most one row of each input, so both heads are rows. Each step
            // writes at most one row, and all steps together are at most `left`. Rows end in a
            // diff. With `ENDS`, bodies have at least 40 bytes, 32 of them before the last word.
            unsafe {
                let (p, q) = (pair.row::<0>(a), pair.row::<1>(b));
                let (take_b, equal) = if ENDS {
                    let last = |(row, len)| word_at(row, rows.body(len, pair.tail) - 8);
                    let (lead, other) = (K::of(&pair, p.0), K::of(&pair, q.0));
                    let between = rows.body(p.1.min(q.1), pair.tail) - 8;
                    let apart = differ(p.0, q.0, between) | (p.1 != q.1);
                    // One condition: two separate jumps would be unpredictable.
                    if black_box((lead == other) & apart) {
                        Heads { a, b, to, end } = step(pair, Heads { a, b, to, end }, wrapped);
                        continue;
                    }
                    let (agree, last, other_last) = (lead == other, last(p), last(q));
                    ((other < lead) | (agree & (other_last < last)), agree & (last == other_last))
                } else {
                    pair.compare(q, p)
                };
                let row = select_unpredictable(take_b, q.0, p.0);
                let len = select_unpredictable(take_b, q.1, p.1);
                let other = select_unpredictable(equal, diff_at(q.0, q.1), 0);
                let (sum, overflow) = diff_at(row, len).overflowing_add(other);
                if overflow && let Some(wrapped) = wrapped {
                    let body = std::slice::from_raw_parts(row, len - pair.tail);
                    wrapped(body, if other > 0 { 1 } else { -1 });
                }
                pair.ask(row, to);
                rows.copy(row, to, len);
                to.add(len - 8).cast::<[u8; 8]>().write(sum.to_le_bytes());
                let stays = !(equal & (sum == 0));
                if R::VARY {
                    end.write(pair.offset(to.add(len)));
                    end = end.add(usize::from(stays));
                }
                to = to.add(select_unpredictable(stays, len, 0));
                a = a.add(select_unpredictable(take_b, 0, one));
                b = b.add(select_unpredictable(take_b | equal, one, 0));
            }
        }
        heads = Heads { a, b, to, end };
    }
}

/// Branches on every comparison. The leads of both heads stay in registers: a step loads the lead
/// of one row.
///
/// # Safety
/// The conditions of [`led`] hold.
#[inline(always)]
pub(super) unsafe fn streamed<R: Rows, K: Lead>(
    pair: Pair<R>,
    mut heads: Heads,
    mut left: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let (rows, one) = (pair.rows, pair.rows.step());
    // SAFETY: leads are loaded only of remaining rows. A step writes at most one row, and there are
    // at most `left` steps.
    unsafe {
        'begin: while left > 0 && pair.steps(heads, 0) > 0 {
            let lead = |at: *const u8, input: usize| K::of(&pair, rows.row(at, pair.bytes[input]));
            let (mut a_lead, mut b_lead) = (lead(heads.a, 0), lead(heads.b, 1));
            while left > 0 {
                left -= 1;
                if a_lead == b_lead {
                    heads = step(pair, heads, wrapped);
                    continue 'begin;
                }
                if b_lead < a_lead {
                    let (row, len) = pair.row::<1>(heads.b);
                    pair.ask(row, heads.to);
                    heads.put(&pair, row, len);
                    heads.b = heads.b.add(one);
                    if heads.b == pair.ends[1] {
                        break;
                    }
                    b_lead = lead(heads.b, 1);
                } else {
                    let (row, len) = pair.row::<0>(heads.a);
                    pair.ask(row, heads.to);
                    heads.put(&pair, row, len);
                    heads.a = heads.a.add(one);
                    if heads.a == pair.ends[0] {
                        break;
                    }
                    a_lead = lead(heads.a, 0);
                }
            }
        }
    }
    heads
}
