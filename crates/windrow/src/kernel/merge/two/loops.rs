//! The loops of the merge of two. All go from the front, write as many rows as they are told at the most, and stop
//! when one input is used up; equal rows are added up as they meet.
//!
//! ```text
//! loop { (a, b) = heads; out <- the lesser one, or the sum of equal ones; its input goes on by a row }
//!
//! led       leads in registers, no branch depends on a comparison    random interleaving
//! summed    the same, and last words, sums without a branch          many equal rows
//! whole     rows compared whole, without a branch                    many leads that agree
//! streamed  one branch a row                                         turns
//! runs      one comparison for eight rows                            runs
//! ```
//!
//! A merge without branches is a chain of compare - select - load. 1. In `led` a load has a step more than the others:
//! the lead of the row behind the head is there already, and what is loaded is the one behind that. 2. A step from
//! cursor to cursor is hidden from the compiler: as a constant it would be multiplied by the comparison, which takes
//! longer than a selection. 3. Whatever leads do not decide is left to [`step`], which is not inlined.

use std::hint::{black_box, select_unpredictable};

use super::super::Wrapped;
use super::super::bytes::{copy_ahead, diff_at, word_at};
use super::super::level::Level;
use super::super::rows::Rows;
use super::pair::{Heads, Lead, Pair, step};

/// Without a branch on a comparison but where leads agree.
///
/// # Safety
/// `heads` are cursors of the pair, with room for `left` rows, that overlaps no input; with `wrapped` the last eight
/// bytes of rows are a diff.
#[inline(always)]
pub(super) unsafe fn led<R: Rows, K: Lead>(
    pair: Pair<R>,
    heads: Heads,
    mut left: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let (rows, one) = (pair.rows, black_box(pair.rows.step()));
    let [a_bytes, b_bytes] = pair.bytes;
    // SAFETY: as this function's; only of rows.
    let lead = |at: *const u8, bytes: *const u8| unsafe { K::of(&pair, rows.row(at, bytes)) };
    let Heads { mut a, mut b, mut to, mut end } = heads;
    // SAFETY: a step takes one row of each input at the most, so all `steps` leave two of both, and a step that takes
    // a row has two behind it. It writes one row at the most, and there are `left` steps in all.
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

/// The lead of a row and the last word that is compared, which decide unless rows differ between.
type Ends<K> = (K, u64);

/// Without a branch on a comparison, sums too: for rows that differ, if their leads agree, in the last eight bytes that
/// are compared, mostly: their time. With `BETWEEN` bodies have other bytes.
///
/// # Safety
/// As [`led`]'s, with `wrapped`; with `BETWEEN` bodies have 40 bytes or more, and else those of their lead and
/// the last eight. The CPU has the level's instructions.
#[inline(always)]
pub(super) unsafe fn summed<L: Level, R: Rows, K: Lead, const BETWEEN: bool>(
    pair: Pair<R>,
    heads: Heads,
    mut left: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let (rows, one) = (pair.rows, black_box(pair.rows.step()));
    let [a_bytes, b_bytes] = pair.bytes;
    let ends = |at: *const u8, bytes: *const u8| -> Ends<K> {
        // SAFETY: as this function's; only of rows.
        unsafe {
            let (row, len) = (rows.row(at, bytes), rows.len(at));
            (K::of(&pair, row), word_at(row, rows.body(len, pair.tail) - 8))
        }
    };
    let Heads { mut a, mut b, mut to, mut end } = heads;
    // SAFETY: as in `led`, with one row left of both.
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
                    // The lead is behind its first bytes, or these are the same in all rows.
                    let start =
                        if !R::VARY && body >= LONG + size_of::<K>() { size_of::<K>() } else { 0 };
                    let apart = L::differ(p.add(start), q.add(start), body - 8 - start);
                    let apart = apart | (R::VARY && p_len != q_len);
                    // As one condition: to jump on either of the two could not be predicted.
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

/// Without a branch on a comparison, of rows that are compared whole.
///
/// # Safety
/// As [`led`]'s.
#[inline(always)]
pub(super) unsafe fn whole<R: Rows>(
    pair: Pair<R>,
    heads: Heads,
    mut left: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let (rows, one) = (pair.rows, black_box(pair.rows.step()));
    let Heads { mut a, mut b, mut to, mut end } = heads;
    // SAFETY: both heads are rows in every step, which writes one row at the most.
    unsafe {
        while left > 0 && pair.steps(Heads { a, b, to, end }, 0) > 0 {
            left -= 1;
            let ((p, p_len), (q, q_len)) = (pair.row::<0>(a), pair.row::<1>(b));
            let (take_b, equal) = pair.compare((q, q_len), (p, p_len));
            let row = select_unpredictable(take_b, q, p);
            let len = select_unpredictable(take_b, q_len, p_len);
            pair.ask(row, to);
            rows.copy(row, to, len);
            let (mut both, mut stays) = (take_b, true);
            if let Some(wrapped) = wrapped {
                let other = select_unpredictable(equal, diff_at(q, q_len), 0);
                let (sum, overflow) = diff_at(row, len).overflowing_add(other);
                if overflow {
                    let body = std::slice::from_raw_parts(row, len - pair.tail);
                    wrapped(body, if other > 0 { 1 } else { -1 });
                }
                to.add(len - 8).cast::<[u8; 8]>().write(sum.to_le_bytes());
                (both, stays) = (take_b | equal, !(equal & (sum == 0)));
            }
            if R::VARY {
                end.write(pair.offset(to.add(len)));
                end = end.add(usize::from(stays));
            }
            to = to.add(select_unpredictable(stays, len, 0));
            a = a.add(select_unpredictable(take_b, 0, one));
            b = b.add(select_unpredictable(both, one, 0));
        }
    }
    Heads { a, b, to, end }
}

/// With a branch on every comparison. The leads of both heads stay in registers: a step loads that of one row.
///
/// # Safety
/// As [`led`]'s.
#[inline(always)]
pub(super) unsafe fn streamed<R: Rows, K: Lead>(
    pair: Pair<R>,
    mut heads: Heads,
    mut left: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let (rows, one) = (pair.rows, pair.rows.step());
    // SAFETY: leads are loaded of rows that are left; a step writes one row at the most.
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

/// Bytes of a body, at the least, of which all but the last eight are compared as wide as registers are.
pub(super) const LONG: usize = 40;
/// Rows of a run that are copied for one comparison.
const STEP: usize = 8;

/// With one comparison for eight rows. Every row that is looked at is copied soon, and was prefetched: beyond the
/// caches a search in steps that double waits for memory as often as it halves. A run costs one misprediction, at its
/// end.
///
/// # Safety
/// As [`led`]'s.
#[inline(always)]
pub(super) unsafe fn runs<R: Rows, K: Lead>(
    pair: Pair<R>,
    mut heads: Heads,
    mut left: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let one = pair.rows.step();
    // SAFETY: cursors go on by rows that are left, of which no more than `left` are written.
    unsafe {
        while left > 0 && pair.steps(heads, 0) > 0 {
            let [a_left, b_left] = pair.left(heads);
            // Of equal rows `a`'s comes first, the last one of its run.
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

/// Copies the first rows of one input that sort before the head of the other, `most` at the most, with `EQUAL` one
/// that is equal, too; returns their number.
///
/// # Safety
/// `most` rows are left of the input, and have room; the other one has a head.
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
    // SAFETY: `done + STEP <= most` where as many rows are looked at and copied.
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
                // By halves, without a branch: nobody can guess where a run ends.
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
