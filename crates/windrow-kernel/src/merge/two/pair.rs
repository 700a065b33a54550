//! Two inputs of a merge: its progress in both, the comparison of rows, and a single step.
//!
//! ```text
//! row    | the same in all rows | lead | ...... | last | tail |       mostly, leads decide
//!                               at
//! a      . . . x x x x          heads: the cursors of the next rows, and the output position
//! b      . x x x x x
//! out    | row | row | row | row |
//! ```

use super::super::Wrapped;
use super::super::bytes::{AHEAD, compare_from, diff_at, word_at};
use super::super::rows::Rows;
use crate::prefetch::{LINE, prefetch};

/// The first compared part of a row, as a number: if two leads differ, they have the order of their
/// rows.
pub(super) trait Lead: Copy + Ord {
    /// Returns the lead of a row.
    ///
    /// # Safety
    /// `row` points to a row of the pair. If the lead has 16 bytes, the row's body has
    /// `wide_at + 16` bytes.
    unsafe fn of<R: Rows>(pair: &Pair<R>, row: *const u8) -> Self;
}

/// A lead of eight bytes.
impl Lead for u64 {
    #[inline(always)]
    unsafe fn of<R: Rows>(pair: &Pair<R>, row: *const u8) -> Self {
        // SAFETY: the caller provides a row of the pair, and every body has `at + 8` bytes.
        unsafe { word_at(row, pair.at) }
    }
}

/// A lead of sixteen bytes: the compiler would turn a pair of numbers into vectors, whose blends
/// take twice as long.
impl Lead for u128 {
    #[inline(always)]
    unsafe fn of<R: Rows>(pair: &Pair<R>, row: *const u8) -> Self {
        // SAFETY: the caller provides a row of the pair whose body has `wide_at + 16` bytes.
        Self::from_be(unsafe { row.add(pair.wide_at).cast::<Self>().read_unaligned() })
    }
}

/// Sorted rows of two inputs.
///
/// Invariant: cursors from the start of the merge up to `ends` belong to whole rows, which live as
/// long as the merge. All bodies agree in their first `at` bytes and have at least `at + 8` bytes,
/// and `wide_at + 16` if leads are wide.
#[derive(Clone, Copy)]
pub(super) struct Pair<R> {
    pub(super) rows: R,
    /// The base of starts, for each input.
    pub(super) bytes: [*const u8; 2],
    /// The cursors after the last rows.
    pub(super) ends: [*const u8; 2],
    /// The base of the ends of written rows.
    pub(super) base: *const u8,
    pub(super) at: usize,
    pub(super) wide_at: usize,
    /// Bytes at the end of rows that are not compared.
    pub(super) tail: usize,
}

/// Progress of a merge: the cursors of both heads, where the next row goes, and where its end goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    pub(super) a: *const u8,
    pub(super) b: *const u8,
    pub(super) to: *mut u8,
    pub(super) end: *mut u32,
}

impl<R: Rows> Pair<R> {
    /// Returns the number of steps before an input has no more than `rows` rows left. A step takes
    /// at most one row of each input.
    #[inline(always)]
    pub(super) fn steps(&self, heads: Heads, rows: usize) -> usize {
        let step = self.rows.step();
        let [a, b] = [(self.ends[0], heads.a), (self.ends[1], heads.b)]
            .map(|(end, head)| (end.addr() - head.addr()) / step);
        a.min(b).saturating_sub(rows)
    }

    /// Returns the row of input `INPUT` at a cursor, and its length.
    ///
    /// # Safety
    /// The cursor belongs to a row of that input.
    #[inline(always)]
    pub(super) unsafe fn row<const INPUT: usize>(&self, at: *const u8) -> (*const u8, usize) {
        // SAFETY: the caller provides the cursor of a row of this input.
        unsafe { (self.rows.row(at, self.bytes[INPUT]), self.rows.len(at)) }
    }

    /// Returns whether the row `p` sorts before the row `q`, and whether they are equal, tails
    /// aside.
    ///
    /// # Safety
    /// Both are rows of the pair with the given lengths.
    #[inline(always)]
    pub(super) unsafe fn compare(
        &self,
        (p, p_len): (*const u8, usize),
        (q, q_len): (*const u8, usize),
    ) -> (bool, bool) {
        let body = self.rows.body(p_len.min(q_len), self.tail);
        // SAFETY: both bodies have at least `body` bytes, and `body` is at least `at + 8`.
        let (less, agree) = unsafe { compare_from(p, q, self.at, body) };
        (less, agree & (p_len == q_len))
    }

    /// Returns the offset of `to` in the output, as ends count.
    #[inline(always)]
    pub(super) fn offset(&self, to: *mut u8) -> u32 {
        (to.addr() - self.base.addr()) as u32
    }

    /// Prefetches the bytes after a row and, if rows take more than a line, after its target.
    #[inline(always)]
    pub(super) fn ask(&self, row: *const u8, to: *const u8) {
        if R::VARY {
            return prefetch(row.wrapping_add(AHEAD));
        }
        let stride = self.rows.step();
        for line in (0..stride).step_by(LINE) {
            prefetch(row.wrapping_add(AHEAD + line));
            if stride > LINE {
                prefetch(to.wrapping_add(AHEAD + line));
            }
        }
    }
}

impl Heads {
    /// Writes a row of `len` bytes.
    ///
    /// # Safety
    /// `row` points to a row of the pair of `len` bytes. The row and its end fit into the output.
    #[inline(always)]
    pub(super) unsafe fn put<R: Rows>(&mut self, pair: &Pair<R>, row: *const u8, len: usize) {
        // SAFETY: the caller provides a row of `len` bytes, which fits with its end. The output
        // overlaps no input.
        unsafe {
            pair.rows.copy(row, self.to, len);
            self.to = self.to.add(len);
            if R::VARY {
                self.end.write(pair.offset(self.to));
                self.end = self.end.add(1);
            }
        }
    }

    /// Adds the diff of `other` to the diff of its equal, the last written row, of `len` bytes.
    /// Removes the row if the sum is zero. Calls `wrapped` if the sum overflows.
    ///
    /// # Safety
    /// A row was written before, `other` is a row of `len` bytes, and the last eight bytes of both
    /// are a diff.
    #[inline(always)]
    pub(super) unsafe fn add<R: Rows>(
        &mut self,
        pair: &Pair<R>,
        other: *const u8,
        len: usize,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) {
        // SAFETY: the last written row and `other` have `len` bytes, the last eight of which are a
        // diff. A removed row is the last written one, with its end.
        unsafe {
            let (row, diff) = (self.to.sub(len), diff_at(other, len));
            let (sum, overflow) = diff_at(row, len).overflowing_add(diff);
            if overflow {
                let body = std::slice::from_raw_parts(row, len - pair.tail);
                wrapped(body, if diff > 0 { 1 } else { -1 });
            }
            if sum != 0 {
                return self.to.sub(8).cast::<[u8; 8]>().write(sum.to_le_bytes());
            }
            self.to = row;
            if R::VARY {
                self.end = self.end.sub(1);
            }
        }
    }
}

/// One step of a merge: writes the lesser of both heads, or `a`'s if they are equal. With
/// `wrapped`, writes the sum of equal heads, or nothing if the sum is zero.
///
/// # Safety
/// Both heads are rows, one more row fits, and with `wrapped` the last eight bytes of rows are a
/// diff.
#[inline(never)]
pub(super) unsafe fn step<R: Rows>(
    pair: Pair<R>,
    mut heads: Heads,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let step = pair.rows.step();
    // SAFETY: both heads are rows, and one row fits with its end. With `wrapped`, rows end in a
    // diff.
    unsafe {
        let (p, q) = (pair.row::<0>(heads.a), pair.row::<1>(heads.b));
        let (take_b, equal) = pair.compare(q, p);
        let (row, len) = if take_b { q } else { p };
        heads.put(&pair, row, len);
        if equal && let Some(wrapped) = wrapped {
            heads.add(&pair, q.0, len, *wrapped);
            (heads.a, heads.b) = (heads.a.add(step), heads.b.add(step));
        } else if take_b {
            heads.b = heads.b.add(step);
        } else {
            heads.a = heads.a.add(step);
        }
    }
    heads
}
