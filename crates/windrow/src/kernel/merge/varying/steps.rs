//! The loops of the merge of rows that vary.
//!
//! ```text
//! led       no branch depends on which word is less; in a file of its own, as the next    random interleaving
//! summed    the same, sums made on the way                                                many equal rows
//! deep      all words compared, sums made on the way                                      many words that agree
//! streamed  one branch a row                                                              what one can guess
//! runs      the same, and many rows at once as soon as some came                          runs
//! ```

use std::hint::select_unpredictable;

use super::super::super::prefetch::prefetch;
use super::super::bytes::{AHEAD, compare_from, copy, diff_at};
use super::block::Block;
use super::place::{Done, Place};

/// Rows of a run that come one by one before the others are looked at by eights.
const GALLOP: usize = 4;

impl Block<'_> {
    /// Merges from the front without a branch on a comparison, `rows` steps at the most or until
    /// one input is used up; with `SUMS` two rows that are equal become one.
    ///
    /// # Safety
    /// As [`Block::streamed`]'s; with `SUMS` the last eight bytes of every row are a diff.
    #[inline(always)]
    pub(super) unsafe fn deep<const SUMS: bool>(
        &self,
        rows: usize,
        mut place: Place,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) -> Done {
        let Self { a, b, .. } = self;
        let (mut i, mut j) = (0, 0);
        let mut left = rows;
        // SAFETY: both rows exist in every step, one behind the other, and no more is written than was taken.
        unsafe {
            // Where rows begin does not wait for where they are said to.
            let (mut p, mut q) = (a.at(0), b.at(0));
            while i < a.len() && j < b.len() && left > 0 {
                left -= 1;
                let (p_len, q_len) = (a.bytes_of(i), b.bytes_of(j));
                let (take_b, equal) = self.compare((q, q_len), (p, p_len));
                let row = select_unpredictable(take_b, q, p);
                let len = select_unpredictable(take_b, q_len, p_len);
                prefetch(row.wrapping_add(AHEAD));
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
                let both = take_b || (SUMS && equal);
                i += usize::from(!take_b);
                p = p.add(select_unpredictable(take_b, 0, p_len));
                j += usize::from(both);
                q = q.add(select_unpredictable(both, q_len, 0));
            }
        }
        Done { a: i, b: j, place, ties: false }
    }

    /// Of two rows that are equal `a`'s was first; if it was the last, the other one follows now.
    ///
    /// # Safety
    /// `done` is of this block, and its place has room for one row more.
    #[inline(always)]
    pub(super) unsafe fn with_equal(&self, mut done: Done) -> Done {
        let Self { a, b, at, .. } = self;
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
    pub(super) unsafe fn streamed<const RUNS: bool>(&self, rows: usize, mut place: Place) -> Done {
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
                            j += place.push_while(b, j, most, |j| self.less(j, i, &mut ties));
                        } else if !take_b && j < b.len() {
                            let most = (a.len() - i).min(rows - i - j);
                            i += place.push_while(a, i, most, |i| !self.less(j, i, &mut ties));
                        }
                    }
                }
            }
        }
        Done { a: i, b: j, place, ties }
    }
}
