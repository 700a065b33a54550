//! The loops that hold what is compared in registers: a word of each head, and its last one where equal rows are
//! added up.
//!
//! ```text
//! starts   i i+1 i+2 ...       i: the head, whose words are known; i+1: the row behind it, whose words are
//! bytes    | head | next |        loaded while the heads are compared
//! ```
//!
//! Where a row starts is loaded, and what it begins with from there: two loads, one after the other, that do not
//! wait for the comparison of this step, but for the one before. What is left to wait for is that instructions
//! are many: with two words instead of one, as rows of one length have them, a row of 49 bytes takes 4.5 ns
//! instead of 3.5.

use std::hint::{black_box, select_unpredictable};

use super::super::super::prefetch::prefetch;
use super::super::Wrapped;
use super::super::bytes::{AHEAD, compare_from, copy, diff_at, differ, subtract, word_at};
use super::block::Block;
use super::place::{Done, Place};

/// The starts of both heads, and where the next row goes, and its end: pointers that stay in registers.
type Heads = (*const u32, *const u32, *mut u8, *mut u32);

impl Block<'_> {
    /// The starts of the first rows, and of the ends of the last ones.
    fn starts(&self) -> ([*const u32; 2], [*const u32; 2]) {
        let starts = [self.a.starts, self.b.starts].map(<[u32]>::as_ptr_range);
        // The last entry is an end.
        (starts.each_ref().map(|range| range.start), starts.map(|range| range.end.wrapping_sub(1)))
    }

    /// What a loop did that began at `place` and came to `heads`.
    fn done(&self, place: Place, (i, j, to, end): Heads) -> Done {
        let rows =
            |from: &[u32], to: *const u32| (to.addr() - from.as_ptr().addr()) / size_of::<u32>();
        let place = Place { to, end, offset: place.offset_of(to) };
        Done { a: rows(self.a.starts, i), b: rows(self.b.starts, j), place, ties: false }
    }

    /// Merges from the front, without a branch on a comparison but where words agree, until there are `rows` or
    /// one input is used up; with `wrapped` two rows that are equal become one with the sum of their diffs, or
    /// none.
    ///
    /// # Safety
    /// As [`Block::streamed`]'s; with `wrapped` the last eight bytes of every row are a diff.
    #[inline(always)]
    pub(super) unsafe fn led(&self, rows: usize, place: Place, wrapped: &mut Wrapped<'_>) -> Done {
        let (a, b) = (self.a.bytes.as_ptr(), self.b.bytes.as_ptr());
        let ([mut i, mut j], [i_end, j_end]) = self.starts();
        let (mut to, mut end) = (place.to, place.end);
        let mut left = rows;
        // SAFETY: a step takes one row of each input at the most, so all `steps` leave one of both: heads and, in
        // a step, the rows behind them are there. No more is written than was taken.
        unsafe {
            let word =
                |bytes: *const u8, start: *const u32| word_at(bytes.add(*start as usize), self.at);
            loop {
                let least = i_end.offset_from(i).min(j_end.offset_from(j)) as usize;
                let steps = least.saturating_sub(1).min(left);
                if steps == 0 {
                    break;
                }
                left -= steps;
                let (mut a_word, mut b_word) = (word(a, i), word(b, j));
                for _ in 0..steps {
                    if a_word == b_word {
                        (i, j, to, end) = self.one_step(place, (i, j, to, end), wrapped);
                        (a_word, b_word) = (word(a, i), word(b, j));
                        continue;
                    }
                    let (a_next, b_next) = (word(a, i.add(1)), word(b, j.add(1)));
                    let take_b = b_word < a_word;
                    let at = select_unpredictable(take_b, j, i);
                    let row = select_unpredictable(take_b, b, a).add(*at as usize);
                    prefetch(row.wrapping_add(AHEAD));
                    let len = (*at.add(1) - *at) as usize;
                    copy(row, to, len);
                    to = to.add(len);
                    end.write(place.offset_of(to));
                    end = end.add(1);
                    a_word = select_unpredictable(take_b, a_word, a_next);
                    b_word = select_unpredictable(take_b, b_next, b_word);
                    i = i.add(usize::from(!take_b));
                    j = j.add(usize::from(take_b));
                }
            }
            while i < i_end && j < j_end && left > 0 {
                (i, j, to, end) = self.one_step(place, (i, j, to, end), wrapped);
                left -= 1;
            }
        }
        self.done(place, (i, j, to, end))
    }

    /// A step of [`Block::led`], whatever the rows.
    ///
    /// # Safety
    /// Both heads are rows, and one more has room; with `wrapped` the last eight bytes of both are a diff.
    #[inline(never)]
    unsafe fn one_step(
        &self,
        place: Place,
        (i, j, to, end): Heads,
        wrapped: &mut Wrapped<'_>,
    ) -> Heads {
        // SAFETY: both are rows of the block, none of whose bodies has less than `at + 8` bytes.
        unsafe {
            let row = |bytes: &[u8], start: *const u32| {
                (bytes.as_ptr().add(*start as usize), (*start.add(1) - *start) as usize)
            };
            let ((p, p_len), (q, q_len)) = (row(self.a.bytes, i), row(self.b.bytes, j));
            let body = p_len.min(q_len) - self.a.tail;
            let (take_b, agree) = compare_from(q, p, self.at, body);
            if agree
                && p_len == q_len
                && let Some(wrapped) = wrapped
            {
                let diff = diff_at(q, q_len);
                let (sum, overflow) = diff_at(p, p_len).overflowing_add(diff);
                if overflow {
                    wrapped(std::slice::from_raw_parts(p, body), if diff > 0 { 1 } else { -1 });
                }
                if sum == 0 {
                    return (i.add(1), j.add(1), to, end);
                }
                copy(p, to, p_len);
                let to = to.add(p_len);
                to.sub(8).cast::<[u8; 8]>().write(sum.to_le_bytes());
                end.write(place.offset_of(to));
                return (i.add(1), j.add(1), to, end.add(1));
            }
            let (row, len) = if take_b { (q, q_len) } else { (p, p_len) };
            copy(row, to, len);
            let to = to.add(len);
            end.write(place.offset_of(to));
            (i.add(usize::from(!take_b)), j.add(usize::from(take_b)), to, end.add(1))
        }
    }

    /// Merges from the front without a branch on a comparison, until there are `rows` or one input is used up;
    /// two rows that are equal become one with the sum of their diffs, or none. For rows that differ, if their words
    /// agree, in the last eight bytes that are compared, mostly: their time.
    ///
    /// # Safety
    /// As [`Block::streamed`]'s; bodies have 40 bytes or more, and the last eight bytes of every row are a diff.
    #[inline(always)]
    pub(super) unsafe fn summed(
        &self,
        rows: usize,
        place: Place,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) -> Done {
        let (a, b, behind) = (self.a.bytes.as_ptr(), self.b.bytes.as_ptr(), self.a.tail + 8);
        let ([mut i, mut j], [i_end, j_end]) = self.starts();
        let (mut to, mut end) = (place.to, place.end);
        let mut left = rows;
        // SAFETY: as in `led`; what is looked at in one stretch has 32 bytes at the least.
        unsafe {
            let head = |bytes: *const u8, start: *const u32| {
                let last = word_at(bytes, *start.add(1) as usize - behind);
                (word_at(bytes.add(*start as usize), self.at), last)
            };
            loop {
                let least = i_end.offset_from(i).min(j_end.offset_from(j)) as usize;
                let steps = least.saturating_sub(1).min(left);
                if steps == 0 {
                    break;
                }
                left -= steps;
                let (mut a_head, mut b_head) = (head(a, i), head(b, j));
                for _ in 0..steps {
                    let (p, q) = (a.add(*i as usize), b.add(*j as usize));
                    let p_len = (*i.add(1) - *i) as usize;
                    let q_len = (*j.add(1) - *j) as usize;
                    let agree = a_head.0 == b_head.0;
                    let apart = (p_len != q_len) | differ(p, q, p_len.min(q_len) - behind);
                    // As one condition: to jump on either of the two could not be predicted.
                    if black_box(agree & apart) {
                        (i, j, to, end) =
                            self.one_step(place, (i, j, to, end), &mut Some(&mut *wrapped));
                        (a_head, b_head) = (head(a, i), head(b, j));
                        continue;
                    }
                    let (a_next, b_next) = (head(a, i.add(1)), head(b, j.add(1)));
                    let borrow = subtract(b_head.1, a_head.1, false);
                    let take_b = subtract(b_head.0, a_head.0, borrow);
                    let equal = agree & (a_head.1 == b_head.1);
                    let row = select_unpredictable(take_b, q, p);
                    let len = select_unpredictable(take_b, q_len, p_len);
                    let other = select_unpredictable(equal, diff_at(q, q_len), 0);
                    let (sum, overflow) = diff_at(row, len).overflowing_add(other);
                    if overflow {
                        let body = std::slice::from_raw_parts(row, len - 8);
                        wrapped(body, if other > 0 { 1 } else { -1 });
                    }
                    prefetch(row.wrapping_add(AHEAD));
                    copy(row, to, len);
                    to.add(len - 8).cast::<[u8; 8]>().write(sum.to_le_bytes());
                    end.write(place.offset_of(to.add(len)));
                    let stays = !(equal & (sum == 0));
                    to = to.add(select_unpredictable(stays, len, 0));
                    end = end.add(usize::from(stays));
                    let both = take_b | equal;
                    a_head.0 = select_unpredictable(take_b, a_head.0, a_next.0);
                    a_head.1 = select_unpredictable(take_b, a_head.1, a_next.1);
                    b_head.0 = select_unpredictable(both, b_next.0, b_head.0);
                    b_head.1 = select_unpredictable(both, b_next.1, b_head.1);
                    i = i.add(usize::from(!take_b));
                    j = j.add(usize::from(both));
                }
            }
            while i < i_end && j < j_end && left > 0 {
                (i, j, to, end) = self.one_step(place, (i, j, to, end), &mut Some(&mut *wrapped));
                left -= 1;
            }
        }
        self.done(place, (i, j, to, end))
    }
}
