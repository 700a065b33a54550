//! The main loop: copies rows as they win.
//!
//! ```text
//! 1. the winner's run moves on to its next row, whose word is known: it goes up the loser tree
//! 2. meanwhile the winner is copied, or added to the last row, if they are equal
//! 3. and the word of the run's row after next is computed; runs and output are prefetched
//! ```
//!
//! No branch depends on which word is less. The chain of loads and selections from one winner to
//! the next takes about as long as copying a row of 96 bytes, and the CPU does both at once.
//!
//! Rows with equal words are nearly always equal. The loop therefore takes such rows in the order
//! of their runs. When two of them differ, the round starts again with `EXACT`, which compares rows
//! wherever words do not decide.

use std::hint::select_unpredictable;

use super::super::bytes::{compare_from, diff_at, differ};
use super::super::level::Level;
use super::super::rows::Rows;
use super::game::Game;
use crate::prefetch::{LINE, prefetch_written};

/// Prefetch distance in each run, in bytes: `FAR` for few runs, `NEAR` for more. A short distance
/// in one of 64 runs is hundreds of rows of output away, and a core has a limited number of lines
/// in flight.
const FAR: usize = 1024;
const NEAR: usize = 320;
const FEW: usize = 4;
/// Bytes ahead of the output that are prefetched for writing: recycled memory has left the caches,
/// and a store waits for its line in program order.
const OUTPUT_AHEAD: usize = 2048;

/// The output position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The last row, or where the first one goes.
    pub(super) to: *mut u8,
    /// The end of the space for rows.
    pub(super) limit: *mut u8,
    /// Bytes reserved after the rows for each of them.
    pub(super) spare: usize,
    /// Where the end of the last row goes, and the last row's offset.
    pub(super) end: *mut u32,
    pub(super) offset: u32,
    /// The last row's length; 0 if there is none.
    pub(super) len: usize,
    /// The last row's diff so far, or 1 without sums. The next row overwrites a row whose diff is
    /// 0.
    pub(super) sum: i64,
    /// The last row's word, and its source.
    pub(super) word: u64,
    pub(super) from: *const u8,
}

/// A word that no row has.
pub(super) const NO_WORD: u64 = u64::MAX;

impl Place {
    /// No place.
    pub(super) const NONE: Self = Self {
        to: std::ptr::null_mut(),
        limit: std::ptr::null_mut(),
        spare: 0,
        end: std::ptr::null_mut(),
        offset: 0,
        len: 0,
        sum: 0,
        word: NO_WORD,
        from: std::ptr::null(),
    };

    /// Writes a row to `to`, over the last row if `over`; as the `same` row, with the sum of both
    /// diffs. Returns whether a sum overflowed.
    ///
    /// # Safety
    /// The row lives, and fits at `to`; with `R::VARY`, an end fits after the ends.
    #[inline(always)]
    unsafe fn put<R: Rows, const SUMS: bool, const EXACT: bool>(
        &mut self,
        rows: R,
        (row, len): (*const u8, usize),
        to: *mut u8,
        same: bool,
        over: bool,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) -> bool {
        let mut is_lost = false;
        for line in 0..rows.lines() {
            prefetch_written(to.wrapping_add(OUTPUT_AHEAD + LINE * line));
        }
        // SAFETY: the caller promises a live row, and memory for its bytes and its end.
        unsafe {
            rows.copy(row, to, len);
            if SUMS {
                let before = select_unpredictable(same, self.sum, 0);
                (self.sum, is_lost) = add::<EXACT>((row, len), before, wrapped);
                to.add(len - 8).cast::<[u8; 8]>().write(self.sum.to_le_bytes());
            } else {
                self.sum = 1;
            }
            if R::VARY {
                self.end = self.end.add(usize::from(!over));
                self.offset += (to as usize - self.to as usize) as u32;
                self.end.write(self.offset + len as u32);
            }
        }
        self.len = len;
        (self.to, self.from) = (to, row);
        is_lost
    }
}

/// The reason why a loop stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// All requested rows are merged.
    Done,
    /// The next row does not fit. This many rows are merged.
    Full(usize),
    /// Rows with equal words differ, or a sum overflows: the round does not count.
    Mixed,
}

/// Merges the next `count` rows of `game` to `place`. With `SUMS`, equal rows become one; with
/// `TIES`, without a branch on equality.
///
/// If a sum overflows, the loop calls `wrapped` with `EXACT`, and otherwise stops, as it does where
/// rows with equal words differ.
///
/// # Safety
/// - The game was started with the same `EXACT`, has at least `count` rows left, and its rows live.
/// - The output from `place` up to its limit is writable and overlaps no row. If lengths vary,
///   `count` ends have space.
/// - If lengths do not vary, `count` rows fit, unless `EXACT`.
/// - With `SUMS`, the last eight bytes of rows are a diff and not compared.
/// - The CPU has the level's instructions.
#[inline(always)]
pub(super) unsafe fn play<
    R: Rows,
    L: Level,
    const SUMS: bool,
    const EXACT: bool,
    const TIES: bool,
>(
    rows: R,
    game: &mut Game,
    place: &mut Place,
    count: usize,
    wrapped: &mut dyn FnMut(&[u8], i64),
) -> Stop {
    let mut now = *place;
    let (leaves, mask) = (game.leaves, game.leaves as u64 - 1);
    let (mut words, tail, mut winner) = (game.words, game.tail, game.winner);
    let (mut stop, mut mixed) = (Stop::Done, false);
    let streams = game.streams.as_mut_ptr();
    for done in 0..count {
        let run = (winner & mask) as usize;
        // SAFETY: rows are left, so the winner is a row and its run has a stream. `to` moves past a
        // row only when another row fits, and `end` with it. If the head is before the last row,
        // there is a row after it. Nodes on the way to the root are below the number of leaves.
        unsafe {
            let stream = streams.add(run);
            let (at, bytes) = ((*stream).head, (*stream).bytes);
            let (row, len) = (rows.row(at, bytes), rows.len(at));
            let before_len = if R::VARY { now.len } else { len };

            let word = (*stream).word;
            let tie = winner ^ now.word <= mask;
            let pair = [(row, len), (now.from, before_len)];
            let (same, differs) = is_same::<R, TIES>(rows, pair, tail, tie);
            mixed |= TIES & differs;
            if !TIES & !EXACT & differs {
                return Stop::Mixed;
            }
            let same = SUMS & same;
            // The last row stays, unless it is overwritten.
            let over = same | (now.sum == 0);
            let to = now.to.add(select_unpredictable(over, 0, before_len));
            let spare = if R::VARY { select_unpredictable(over, 0, now.spare) } else { 0 };
            let limit = now.limit.wrapping_sub(spare);
            if (EXACT || R::VARY) && to as usize + len > limit as usize {
                stop = Stop::Full(done);
                break;
            }
            now.limit = limit;
            let head = at.wrapping_add(rows.step());
            let goes_on = head < (*stream).last;
            // The game comes first, since all else waits for its winner: 64 runs take a twentieth
            // less time.
            let mut stray = if goes_on {
                (*stream).head = head;
                0
            } else {
                game.turn::<R, L>(rows, run)
            };
            let won = std::mem::replace(&mut winner, game.climb::<R, EXACT>(rows, run, word));

            mixed |= now.put::<R, SUMS, EXACT>(rows, (row, len), to, same, over, wrapped);
            now.word = won;

            if goes_on {
                let next = rows.row(head.add(rows.step()), bytes);
                ask_ahead(rows, next, leaves);
                ((*stream).word, stray) = words.of::<L>(next, run);
            }
            if stray != 0 {
                L::run(|| game.start::<R, L, EXACT>(rows));
                words = game.words;
                winner = game.winner;
                now.word = words.of::<L>(now.from, run).0;
            }
        }
    }
    if mixed {
        return Stop::Mixed;
    }
    game.winner = winner;
    *place = now;
    stop
}

/// Returns the sum of a row's diff and the diff before, and whether an overflow was not reported.
/// With `EXACT`, the function reports an overflow to `wrapped`.
///
/// # Safety
/// The row has `len` readable bytes, the last eight of which are its diff.
#[inline(always)]
unsafe fn add<const EXACT: bool>(
    (row, len): (*const u8, usize),
    before: i64,
    wrapped: &mut dyn FnMut(&[u8], i64),
) -> (i64, bool) {
    // SAFETY: the caller provides a row of `len` bytes that ends in a diff.
    unsafe {
        let diff = diff_at(row, len);
        let (sum, overflow) = diff.overflowing_add(before);
        if EXACT && overflow {
            let body = std::slice::from_raw_parts(row, len - 8);
            wrapped(body, if diff > 0 { 1 } else { -1 });
        }
        (sum, !EXACT & overflow)
    }
}

/// Prefetches lines of a run at a distance after its `next` row; the distance depends on the number
/// of `leaves`. The branch always goes the same way, and a constant distance takes no register.
#[inline(always)]
fn ask_ahead<R: Rows>(rows: R, next: *const u8, leaves: usize) {
    let ask = |row: *const u8| {
        for line in 0..rows.lines() {
            rows.ask(row.wrapping_add(LINE * line));
        }
    };
    if leaves <= FEW { ask(next.wrapping_add(FAR)) } else { ask(next.wrapping_add(NEAR)) }
}

/// Returns whether a row equals the one before, given whether their words `tie`, and whether the
/// two differ despite a tie. With `TIES`, a tie counts as equal, without a branch.
///
/// # Safety
/// Both rows have at least 8 compared bytes and `tail` more at their end.
#[inline(always)]
unsafe fn is_same<R: Rows, const TIES: bool>(
    rows: R,
    [row, before]: [(*const u8, usize); 2],
    tail: usize,
    tie: bool,
) -> (bool, bool) {
    // SAFETY: the caller provides two such rows.
    let is_equal = || unsafe { equal(rows, row, before, tail) };
    if TIES {
        return (tie, tie & !is_equal());
    }
    let same = tie && is_equal();
    (same, tie & !same)
}

/// Returns whether the compared bytes of two rows are equal.
///
/// # Safety
/// Both rows have at least 8 compared bytes and `tail` more at their end.
#[inline(always)]
unsafe fn equal<R: Rows>(
    rows: R,
    (p, p_len): (*const u8, usize),
    (q, q_len): (*const u8, usize),
    tail: usize,
) -> bool {
    let body = rows.body(p_len, tail);
    // SAFETY: both rows have the same length and `body` bytes, at least 8, and at least 32 where
    // `differ` is called.
    unsafe {
        p_len == q_len
            && if body >= 32 { !differ(p, q, body) } else { compare_from(p, q, 0, body).1 }
    }
}
