//! The loops of the merge of two. Each loop starts at the heads, writes at most a given number of
//! rows, and stops when an input is consumed. With sums, equal rows are added up on the way.
//!
//! ```text
//! loop { (a, b) = heads; out <- the lesser row, or the sum of equal rows; advance its input }
//!
//! led       leads in registers, no branch depends on a comparison    random interleaving
//! summed    as `led`, plus last words; sums without a branch         many equal rows
//! streamed  one branch per row                                       alternating stretches
//! runs      one comparison for eight rows                            runs
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
use super::super::bytes::{copy_ahead, diff_at, differ, word_at};
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

/// The lead and the last compared word of a row, which decide unless rows differ between the two.
type Ends<K> = (K, u64);

/// Merges without a branch on a comparison or for sums. For rows with equal leads that mostly
/// differ, if at all, in the last eight compared bytes: their time. With `BETWEEN`, bodies have
/// bytes between lead and time.
///
/// # Safety
/// The conditions of [`led`] hold, with `wrapped`. With `BETWEEN`, bodies have at least 40 bytes;
/// otherwise the lead and the last eight bytes cover each body.
#[inline(always)]
pub(super) unsafe fn summed<R: Rows, K: Lead, const BETWEEN: bool>(
    pair: Pair<R>,
    heads: Heads,
    mut left: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let (rows, one) = (pair.rows, black_box(pair.rows.step()));
    let [a_bytes, b_bytes] = pair.bytes;
    let ends = |at: *const u8, bytes: *const u8| -> Ends<K> {
        // SAFETY: called only with cursors of rows.
        unsafe {
            let (row, len) = (rows.row(at, bytes), rows.len(at));
            (K::of(&pair, row), word_at(row, rows.body(len, pair.tail) - 8))
        }
    };
    let Heads { mut a, mut b, mut to, mut end } = heads;
    // SAFETY: a step takes at most one row of each input, so both inputs keep one row after their
    // heads. Each step writes at most one row, and all steps together are at most `left`. Rows end
    // in a diff. `BETWEEN` bodies have at least 40 bytes, and `differ` compares at least 32 of
    // them.
    unsafe {
        loop {
            let steps = pair.steps(Heads { a, b, to, end }, 1).min(left);
            if steps == 0 {
                break;
            }
            left -= steps;
            let (mut a_ends, mut b_ends) = (ends(a, a_bytes), ends(b, b_bytes));
            for _ in 0..steps {
                let ((p, p_len), (q, q_len)) = (pair.row::<0>(a), pair.row::<1>(b));
                let agree = a_ends.0 == b_ends.0;
                if BETWEEN {
                    let body = rows.body(p_len.min(q_len), pair.tail);
                    // If leads agree, the first bytes agree, too: they precede `at` or belong to
                    // the lead.
                    let start =
                        if !R::VARY && body >= LONG + size_of::<K>() { size_of::<K>() } else { 0 };
                    let apart = differ(p.add(start), q.add(start), body - 8 - start);
                    let apart = apart | (R::VARY && p_len != q_len);
                    // One condition: two separate jumps would be unpredictable.
                    if black_box(agree & apart) {
                        Heads { a, b, to, end } = step(pair, Heads { a, b, to, end }, wrapped);
                        (a_ends, b_ends) = (ends(a, a_bytes), ends(b, b_bytes));
                        continue;
                    }
                }
                let (a_next, b_next) = (ends(a.add(one), a_bytes), ends(b.add(one), b_bytes));
                let equal = agree & (a_ends.1 == b_ends.1);
                let take_b = K::is_less(b_ends, a_ends);
                let row = select_unpredictable(take_b, q, p);
                let len = select_unpredictable(take_b, q_len, p_len);
                let other = select_unpredictable(equal, diff_at(q, q_len), 0);
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
                let both = take_b | equal;
                a_ends.0 = select_unpredictable(take_b, a_ends.0, a_next.0);
                a_ends.1 = select_unpredictable(take_b, a_ends.1, a_next.1);
                b_ends.0 = select_unpredictable(both, b_next.0, b_ends.0);
                b_ends.1 = select_unpredictable(both, b_next.1, b_ends.1);
                a = a.add(select_unpredictable(take_b, 0, one));
                b = b.add(select_unpredictable(both, one, 0));
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

/// Shortest body, in bytes, whose bytes before the last eight are compared as wide as registers
/// are.
pub(super) const LONG: usize = 40;
/// Rows of a run that are copied for one comparison.
const STEP: usize = 8;

/// Makes one comparison for eight rows. Every row that is compared is copied soon, and was
/// prefetched: beyond the caches, a galloping search waits for memory at each probe. A run costs
/// one misprediction, at its end.
///
/// # Safety
/// The conditions of [`led`] hold.
#[inline(always)]
pub(super) unsafe fn runs<R: Rows, K: Lead>(
    pair: Pair<R>,
    mut heads: Heads,
    mut left: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let one = pair.rows.step();
    // SAFETY: cursors advance over remaining rows, and at most `left` rows are written. With
    // `wrapped`, rows end in a diff.
    unsafe {
        while left > 0 && pair.steps(heads, 0) > 0 {
            let [a_left, b_left] = pair.left(heads);
            // A row of `a` precedes its equal in `b`, so the equal row of `a` is the last of its
            // run.
            let count = run::<R, K, 0, true>(pair, &mut heads, a_left.min(left));
            left -= count;
            if count > 0
                && let Some(wrapped) = wrapped
            {
                let (last, other) = (pair.row::<0>(heads.a.sub(one)), pair.row::<1>(heads.b));
                if K::of(&pair, last.0) == K::of(&pair, other.0) && pair.compare(last, other).1 {
                    heads.add(&pair, other.0, other.1, *wrapped);
                    heads.b = heads.b.add(one);
                    continue;
                }
            }
            if heads.a != pair.ends[0] {
                left -= run::<R, K, 1, false>(pair, &mut heads, b_left.min(left));
            }
        }
    }
    heads
}

/// Copies the first rows of one input that sort before the head of the other, at most `most`; with
/// `EQUAL` also a row equal to the head. Returns the number of copied rows.
///
/// # Safety
/// The input has `most` rows left, and they fit with their ends. The other input has a head.
#[inline(always)]
unsafe fn run<R: Rows, K: Lead, const INPUT: usize, const EQUAL: bool>(
    pair: Pair<R>,
    heads: &mut Heads,
    most: usize,
) -> usize {
    let (rows, one, bytes) = (pair.rows, pair.rows.step(), pair.bytes[INPUT]);
    let (start, pivot) = match INPUT {
        0 => (heads.a, heads.b),
        _ => (heads.b, heads.a),
    };
    let Heads { mut to, mut end, .. } = *heads;
    let mut done = 0;
    // SAFETY: `done + STEP <= most` where eight rows are read and copied, and `done < most` where
    // one row is.
    unsafe {
        let pivot = (rows.row(pivot, pair.bytes[1 - INPUT]), rows.len(pivot));
        let pivot_lead = K::of(&pair, pivot.0);
        let comes = |at: *const u8| {
            let row = (rows.row(at, bytes), rows.len(at));
            let lead = K::of(&pair, row.0);
            if lead != pivot_lead {
                return lead < pivot_lead;
            }
            let (less, equal) = pair.compare(row, pivot);
            less | (EQUAL & equal)
        };
        while done < most {
            let at = start.add(done * one);
            let row = |index: usize| at.add(index * one);
            if done + STEP > most {
                if !comes(at) {
                    break;
                }
                let mut here = Heads { to, end, ..*heads };
                here.put(&pair, rows.row(at, bytes), rows.len(at));
                (to, end, done) = (here.to, here.end, done + 1);
                continue;
            }
            let all = comes(row(STEP - 1));
            let from = rows.row(at, bytes);
            copy_ahead(from, to, rows.row(row(STEP), bytes).addr() - from.addr());
            if R::VARY {
                for index in 0..STEP {
                    let next = rows.row(row(index + 1), bytes).addr() - from.addr();
                    end.add(index).write(pair.offset(to.add(next)));
                }
            }
            let mut count = STEP;
            if !all {
                // Bisects without a branch: the end of a run is unpredictable.
                let first = |index: usize| comes(row(index));
                count = select_unpredictable(first(STEP / 2 - 1), STEP / 2, 0);
                count += select_unpredictable(first(count + STEP / 4 - 1), STEP / 4, 0);
                count += select_unpredictable(first(count), 1, 0);
            }
            to = to.add(rows.row(row(count), bytes).addr() - from.addr());
            end = if R::VARY { end.add(count) } else { end };
            done += count;
            if !all {
                break;
            }
        }
        let here = start.add(done * one);
        *heads = match INPUT {
            0 => Heads { a: here, b: heads.b, to, end },
            _ => Heads { a: heads.a, b: here, to, end },
        };
    }
    done
}
