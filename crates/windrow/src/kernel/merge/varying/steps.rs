//! The loops of the merge of rows that vary. Each merges all of a block.
//!
//! ```text
//! woven     from both ends, no branch depends on which word is less      random interleaving
//! deep      from the front, all words compared, sums made on the way      many words that agree
//! streamed  one branch a row                                              what one can guess
//! runs      the same, and many rows at once as soon as some came          runs
//! ```

use std::hint::select_unpredictable;

use super::super::super::prefetch::prefetch;
use super::super::Wrapped;
use super::super::bytes::{compare_from, copy, copy_ahead, diff_at, word_at};
use super::super::steps::pace;
use super::sum::add_up;
use super::{Target, Varying};

/// A sample with at most this many switches has runs.
const RUNS: usize = 5;
/// A sample in which more words agree than these has many that agree: nobody can guess which.
const TIES: usize = 3;
/// Rows of a run that come one by one before its end is searched for.
const GALLOP: usize = 4;

/// The loop for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Woven,
    Deep,
    Streamed,
    Runs,
}

/// Rows of two inputs whose bodies are compared from byte `at` on.
///
/// Invariant: starts ascend and lie within the bytes; no body has less than `at + 8` bytes.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    a: Varying<'a>,
    b: Varying<'a>,
    at: usize,
}

/// Where the next row goes.
#[derive(Clone, Copy)]
struct Place {
    to: *mut u8,
    /// Offset of `to`, as ends have it.
    offset: u32,
    end: *mut u32,
}

/// What a loop did: the rows used of each input, where the next one goes, whether words agreed.
struct Done {
    a: usize,
    b: usize,
    place: Place,
    ties: bool,
}

impl Done {
    /// The rows that were written since.
    fn rows_since(&self, start: &Place) -> usize {
        (self.place.end as usize - start.end as usize) / size_of::<u32>()
    }
}

impl<'a> Varying<'a> {
    /// # Safety
    /// The rows lie within the bytes, and `index` is at most their number.
    #[inline(always)]
    unsafe fn at(&self, index: usize) -> *const u8 {
        // SAFETY: `starts` has an entry more than rows, all within the bytes.
        unsafe { self.bytes.as_ptr().add(*self.starts.get_unchecked(index) as usize) }
    }

    /// # Safety
    /// `index` is below the number of rows.
    #[inline(always)]
    unsafe fn bytes_of(&self, index: usize) -> usize {
        // SAFETY: `starts` has an entry more than rows.
        unsafe {
            (*self.starts.get_unchecked(index + 1) - *self.starts.get_unchecked(index)) as usize
        }
    }
}

impl<'a> Block<'a> {
    /// Rows of `a` and `b`, neither of which is empty and which agree in their first `at` bytes;
    /// `None` if a body has no eight bytes.
    ///
    /// # Panics
    /// If rows do not lie within their bytes.
    #[inline(always)]
    pub(super) fn new(a: Varying<'a>, b: Varying<'a>, at: usize) -> Option<Self> {
        assert!(a.tail == b.tail);
        let shortest = a.shortest().min(b.shortest());
        let behind = shortest.checked_sub(8 + a.tail)?;
        Some(Self { a, b, at: at.min(behind) })
    }

    /// The first rows of both.
    pub(super) fn part(&self, a_rows: usize, b_rows: usize) -> Self {
        Self { a: self.a.first(a_rows), b: self.b.first(b_rows), at: self.at }
    }

    /// The loop for the block, by a look at its first rows.
    #[inline(always)]
    pub(super) fn choose(&self, rows: usize) -> Choice {
        match self.sample(rows) {
            (_, ties) if ties > TIES => Choice::Deep,
            (switches, _) if switches <= RUNS => Choice::Runs,
            (switches, _) if switches + 2 >= rows => Choice::Streamed,
            _ => Choice::Woven,
        }
    }

    /// Eight bytes of the row at `row`, as a number that has their order.
    ///
    /// # Safety
    /// `row` points to a row of the block.
    #[inline(always)]
    unsafe fn word(&self, row: *const u8) -> u64 {
        // SAFETY: every row has `at + 8` bytes.
        unsafe { word_at(row, self.at) }
    }

    /// True if row `j` of `b` sorts before row `i` of `a`; notes if their words agree.
    ///
    /// # Safety
    /// The rows exist.
    #[inline(always)]
    unsafe fn less(&self, j: usize, i: usize, ties: &mut bool) -> bool {
        // SAFETY: the rows exist, and no body has less than `at + 8` bytes.
        unsafe {
            let (p, q) = (self.b.at(j), self.a.at(i));
            let (x, y) = (self.word(p), self.word(q));
            if x == y {
                *ties = true;
                let len = self.b.bytes_of(j).min(self.a.bytes_of(i)) - self.a.tail;
                return compare_from(p, q, self.at, len).0;
            }
            x < y
        }
    }

    /// Among the first rows of the merge, how often the next one comes from the other input, and how
    /// often words agree.
    #[inline(always)]
    fn sample(&self, rows: usize) -> (usize, usize) {
        let (mut i, mut j) = (0, 0);
        let (mut before, mut switches, mut ties) = (false, 0, 0);
        for row in 0..rows {
            if i == self.a.len() || j == self.b.len() {
                break;
            }
            let mut tie = false;
            // SAFETY: both rows exist.
            let take_b = unsafe { self.less(j, i, &mut tie) };
            ties += usize::from(tie);
            switches += usize::from(row > 0 && take_b != before);
            before = take_b;
            j += usize::from(take_b);
            i += usize::from(!take_b);
        }
        (switches, ties)
    }

    /// Merges the block into `out`, which has room for it: all of it, if the choice is woven; else
    /// from the front, until there are `rows` or one input is used up. Returns the rows used of
    /// each; of rows that are equal both or none, if they are added up.
    #[inline(always)]
    pub(super) fn merge(
        &self,
        choice: Choice,
        rows: usize,
        out: &mut Target<'_>,
        wrapped: &mut Wrapped<'_>,
    ) -> (usize, usize) {
        let all = self.a.len() + self.b.len();
        let bytes = self.a.span() + self.b.span();
        let most = all.min(rows + 1);
        assert!(out.fits(most, bytes) && out.used <= out.bytes.len());
        assert!(rows == all || choice != Choice::Woven);
        out.ends.reserve(most);
        let (before, start) = (out.ends.len(), out.used);
        // SAFETY: within the bytes and the reserved ends.
        let place = unsafe {
            let to = out.bytes.as_mut_ptr().add(start);
            Place { to, offset: start as u32, end: out.ends.as_mut_ptr().add(before) }
        };
        // SAFETY: `bytes` bytes and `most` ends have room, as asserted and reserved, and `out`,
        // being mutable, overlaps no input. All ends are written before they count.
        unsafe {
            let done = match (choice, &mut *wrapped) {
                (Choice::Deep, Some(wrapped)) => self.deep::<true>(rows, place, *wrapped),
                (Choice::Deep, None) => self.deep::<false>(rows, place, &mut |_, _| {}),
                (Choice::Woven, _) => self.woven(place),
                (Choice::Streamed, _) => self.streamed::<false>(rows, place),
                (Choice::Runs, _) => self.streamed::<true>(rows, place),
            };
            let done = if wrapped.is_some() { self.with_equal(done) } else { done };
            out.ends.set_len(before + done.rows_since(&place));
            out.used = start + (done.place.offset - place.offset) as usize;
            if let Some(wrapped) = wrapped
                && done.ties
            {
                let ends = &mut out.ends[before..];
                let rows = out.bytes.as_mut_ptr().add(start);
                // The rows that were just written, of which none is shorter than those merged.
                let (rows, bytes) = add_up(rows, start as u32, ends, self.at, *wrapped);
                out.ends.truncate(before + rows);
                out.used = start + bytes;
            }
            (done.a, done.b)
        }
    }

    /// Merges all from both ends.
    ///
    /// # Safety
    /// `place` has room for all rows and their ends, which overlaps no input.
    #[inline(always)]
    unsafe fn woven(&self, mut front: Place) -> Done {
        let Self { a, b, .. } = self;
        let start = front;
        let (mut i, mut i_end, mut j, mut j_end) = (0, a.len(), 0, b.len());
        let mut ties = false;
        let bytes = a.span() + b.span();
        // SAFETY: one past the room of the bytes, and of the ends.
        let mut back = unsafe {
            Place {
                to: front.to.add(bytes),
                offset: front.offset + bytes as u32,
                end: front.end.add(i_end + j_end),
            }
        };
        // SAFETY: at most the end of each.
        let mut ahead = unsafe { (a.at(i_end), b.at(j_end)) };
        loop {
            // Steps from both ends that cannot use up either input.
            let steps = (i_end - i).min(j_end - j) / 2;
            if steps == 0 {
                break;
            }
            for _ in 0..steps {
                prefetch(ahead.0);
                prefetch(ahead.1);
                ahead = (ahead.0.wrapping_add(64), ahead.1.wrapping_add(64));
                // SAFETY: `i < i_end` and `j < j_end` in every step, and what is written are as many
                // rows as were taken: the front's room ends where the back's begins, or before.
                unsafe {
                    let take_b = self.less(j, i, &mut ties);
                    let row = select_unpredictable(take_b, b.at(j), a.at(i));
                    let len = select_unpredictable(take_b, b.bytes_of(j), a.bytes_of(i));
                    front.push(row, len);
                    j += usize::from(take_b);
                    i += usize::from(!take_b);

                    let take_a = self.less(j_end - 1, i_end - 1, &mut ties);
                    let (p, q) = (a.at(i_end - 1), b.at(j_end - 1));
                    let row = select_unpredictable(take_a, p, q);
                    let (p, q) = (a.bytes_of(i_end - 1), b.bytes_of(j_end - 1));
                    let len = select_unpredictable(take_a, p, q);
                    back.push_before(row, len);
                    i_end -= usize::from(take_a);
                    j_end -= usize::from(!take_a);
                }
            }
        }
        // SAFETY: what is left of both, and its room.
        unsafe {
            while i < i_end && j < j_end {
                if self.less(j, i, &mut ties) {
                    front.push(b.at(j), b.bytes_of(j));
                    j += 1;
                } else {
                    front.push(a.at(i), a.bytes_of(i));
                    i += 1;
                }
            }
            front.push_run(a, i, i_end - i);
            front.push_run(b, j, j_end - j);
        }
        // What the back wrote stands behind it.
        let whole = Place {
            offset: start.offset + bytes as u32,
            end: start.end.wrapping_add(a.len() + b.len()),
            ..front
        };
        Done { a: a.len(), b: b.len(), place: whole, ties }
    }

    /// Merges from the front without a branch on a comparison, `rows` steps at the most or until
    /// one input is used up; with `SUMS` two rows that are equal become one.
    ///
    /// # Safety
    /// As [`Block::streamed`]'s; with `SUMS` the last eight bytes of every row are a diff.
    #[inline(always)]
    unsafe fn deep<const SUMS: bool>(
        &self,
        rows: usize,
        mut place: Place,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) -> Done {
        let Self { a, b, at } = self;
        let (mut i, mut j) = (0, 0);
        let mut left = rows;
        // SAFETY: both rows exist in every step, and no more is written than was taken.
        unsafe {
            while i < a.len() && j < b.len() && left > 0 {
                left -= 1;
                let (p, q) = (a.at(i), b.at(j));
                let (p_len, q_len) = (a.bytes_of(i), b.bytes_of(j));
                let (take_b, equal) = compare_from(q, p, *at, p_len.min(q_len) - a.tail);
                let row = select_unpredictable(take_b, q, p);
                let len = select_unpredictable(take_b, q_len, p_len);
                let mut stays = true;
                copy(row, place.to, len);
                if SUMS {
                    let other = diff_at(select_unpredictable(take_b, p, q), p_len + q_len - len);
                    let (sum, overflow) =
                        diff_at(row, len).overflowing_add(select_unpredictable(equal, other, 0));
                    if overflow {
                        let body = std::slice::from_raw_parts(row, len - 8);
                        wrapped(body, if other > 0 { 1 } else { -1 });
                    }
                    place.to.add(len - 8).cast::<[u8; 8]>().write(sum.to_le_bytes());
                    stays = !(equal && sum == 0);
                }
                place.end.write(place.offset + len as u32);
                let (len, one) = select_unpredictable(stays, (len, 1), (0, 0));
                place.to = place.to.add(len);
                place.offset += len as u32;
                place.end = place.end.add(one);
                i += usize::from(!take_b);
                j += usize::from(take_b || (SUMS && equal));
            }
        }
        Done { a: i, b: j, place, ties: false }
    }

    /// Of two rows that are equal `a`'s was first; if it was the last, the other one follows now.
    ///
    /// # Safety
    /// `done` is of this block, and its place has room for one row more.
    #[inline(always)]
    unsafe fn with_equal(&self, mut done: Done) -> Done {
        let Self { a, b, at } = self;
        if done.a > 0 && done.b < b.len() {
            // SAFETY: both rows exist.
            unsafe {
                let (p, q, len) = (a.at(done.a - 1), b.at(done.b), b.bytes_of(done.b));
                if a.bytes_of(done.a - 1) == len && compare_from(p, q, *at, len - a.tail).1 {
                    done.place.push(q, len);
                    done.b += 1;
                    done.ties = true;
                }
            }
        }
        done
    }

    /// Merges from the front, until there are `rows` or one input is used up.
    ///
    /// # Safety
    /// `place` has room for `rows` rows, or all, and their ends, which overlaps no input.
    #[inline(always)]
    unsafe fn streamed<const RUNS: bool>(&self, rows: usize, mut place: Place) -> Done {
        let Self { a, b, .. } = self;
        let (mut i, mut j) = (0, 0);
        let mut ties = false;
        let mut run = 0;
        let mut before = false;
        // SAFETY: the rows exist, and each is written once.
        unsafe {
            while i < a.len() && j < b.len() && i + j < rows {
                let take_b = self.less(j, i, &mut ties);
                if take_b {
                    place.push(b.at(j), b.bytes_of(j));
                    j += 1;
                } else {
                    place.push(a.at(i), a.bytes_of(i));
                    i += 1;
                }
                if RUNS {
                    run = if take_b == before { run + 1 } else { 0 };
                    before = take_b;
                    if run == GALLOP {
                        run = 0;
                        if take_b && i < a.len() {
                            let most = (b.len() - j).min(rows - i - j);
                            let count = pace(most, |at| self.less(j + at, i, &mut ties));
                            place.push_run(b, j, count);
                            j += count;
                        } else if !take_b && j < b.len() {
                            let most = (a.len() - i).min(rows - i - j);
                            let count = pace(most, |at| !self.less(j, i + at, &mut ties));
                            place.push_run(a, i, count);
                            i += count;
                        }
                    }
                }
            }
        }
        Done { a: i, b: j, place, ties }
    }
}

impl Place {
    /// Writes a row of `len` bytes, at least 8.
    ///
    /// # Safety
    /// `row` points to as many bytes; the place has room for them and their end, in front.
    #[inline(always)]
    unsafe fn push(&mut self, row: *const u8, len: usize) {
        // SAFETY: as the function's.
        unsafe {
            copy(row, self.to, len);
            self.to = self.to.add(len);
            self.offset += len as u32;
            self.end.write(self.offset);
            self.end = self.end.add(1);
        }
    }

    /// The same, towards the start.
    ///
    /// # Safety
    /// `row` points to as many bytes; the place has room for them and their end, behind.
    #[inline(always)]
    unsafe fn push_before(&mut self, row: *const u8, len: usize) {
        // SAFETY: as the function's.
        unsafe {
            self.end = self.end.sub(1);
            self.end.write(self.offset);
            self.offset -= len as u32;
            self.to = self.to.sub(len);
            copy(row, self.to, len);
        }
    }

    /// Writes `count` rows from row `from` on.
    ///
    /// # Safety
    /// The rows exist, and the place has room for them and their ends.
    #[inline(always)]
    unsafe fn push_run(&mut self, rows: &Varying<'_>, from: usize, count: usize) {
        if count == 0 {
            return;
        }
        // SAFETY: the rows exist, one behind the other, and have room.
        unsafe {
            let (start, end) = (rows.at(from), rows.at(from + count));
            let len = end as usize - start as usize;
            if len >= 64 {
                copy_ahead(start, self.to, len);
            } else {
                std::ptr::copy_nonoverlapping(start, self.to, len);
            }
            let shift = self.offset.wrapping_sub(*rows.starts.get_unchecked(from));
            for at in 0..count {
                let end = rows.starts.get_unchecked(from + at + 1).wrapping_add(shift);
                self.end.add(at).write(end);
            }
            self.to = self.to.add(len);
            self.offset += len as u32;
            self.end = self.end.add(count);
        }
    }
}
