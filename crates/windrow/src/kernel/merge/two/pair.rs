//! Two inputs of a merge: how far it has come in both, how their rows are compared, and a step of it.
//!
//! ```text
//! row    | the same in all rows | lead | ...... | last | tail |       leads decide, mostly; then all that is compared
//!                               at
//! a      . . . x x x x          heads: the cursors of the next rows, and where the one that comes goes
//! b      . x x x x x
//! out    | row | row | row | row |
//! ```

use super::super::super::prefetch::{LINE, prefetch};
use super::super::Wrapped;
use super::super::bytes::{AHEAD, compare_from, diff_at, subtract, word_at};
use super::super::rows::Rows;

/// What is compared first of a row, as a number: rows whose leads differ have their order.
pub(super) trait Lead: Copy + Ord {
    /// That of a row.
    ///
    /// # Safety
    /// `row` points to a row of the pair, of whose body 16 bytes are compared if the lead has as many.
    unsafe fn of<R: Rows>(pair: &Pair<R>, row: *const u8) -> Self;

    /// True if `a` is below `b`, each with a word behind it: one long subtraction.
    fn is_less(a: (Self, u64), b: (Self, u64)) -> bool;
}

/// Eight bytes.
impl Lead for u64 {
    #[inline(always)]
    unsafe fn of<R: Rows>(pair: &Pair<R>, row: *const u8) -> Self {
        // SAFETY: every body has `at + 8` bytes.
        unsafe { word_at(row, pair.at) }
    }

    #[inline(always)]
    fn is_less(a: (Self, u64), b: (Self, u64)) -> bool {
        subtract(a.0, b.0, subtract(a.1, b.1, false))
    }
}

/// Sixteen: as a pair of numbers they are made vectors, and blends take twice as long.
impl Lead for u128 {
    #[inline(always)]
    unsafe fn of<R: Rows>(pair: &Pair<R>, row: *const u8) -> Self {
        // SAFETY: every body has `wide_at + 16` bytes.
        Self::from_be(unsafe { row.add(pair.wide_at).cast::<Self>().read_unaligned() })
    }

    #[inline(always)]
    fn is_less(a: (Self, u64), b: (Self, u64)) -> bool {
        let borrow = subtract(a.0 as u64, b.0 as u64, subtract(a.1, b.1, false));
        subtract((a.0 >> 64) as u64, (b.0 >> 64) as u64, borrow)
    }
}

/// Rows of two inputs, in order.
///
/// Invariant: cursors from where the merge began up to `ends` are those of whole rows, which live as long as the
/// merge; bodies agree in their first `at` bytes, and have `at + 8` bytes or more, and `wide_at + 16` if leads are
/// wide.
#[derive(Clone, Copy)]
pub(super) struct Pair<R> {
    pub(super) rows: R,
    /// What starts count from, of both inputs.
    pub(super) bytes: [*const u8; 2],
    /// The cursors behind the last rows.
    pub(super) ends: [*const u8; 2],
    /// What the ends of rows that are written count from.
    pub(super) base: *const u8,
    pub(super) at: usize,
    pub(super) wide_at: usize,
    /// Bytes at the end of rows that are not compared.
    pub(super) tail: usize,
}

/// How far a merge has come: the cursors of both heads, where the next row goes, and its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    pub(super) a: *const u8,
    pub(super) b: *const u8,
    pub(super) to: *mut u8,
    pub(super) end: *mut u32,
}

impl<R: Rows> Pair<R> {
    /// Rows that are left of `a` and `b`.
    #[inline(always)]
    pub(super) fn left(&self, heads: Heads) -> [usize; 2] {
        let step = self.rows.step();
        [(self.ends[0], heads.a), (self.ends[1], heads.b)]
            .map(|(end, head)| (end.addr() - head.addr()) / step)
    }

    /// Steps of the merge before one input has no more than `rows` rows left: a step takes one of each at the most.
    #[inline(always)]
    pub(super) fn steps(&self, heads: Heads, rows: usize) -> usize {
        let [a, b] = self.left(heads);
        a.min(b).saturating_sub(rows)
    }

    /// The row of `a` at a cursor, and its length.
    ///
    /// # Safety
    /// There is one.
    #[inline(always)]
    pub(super) unsafe fn row<const INPUT: usize>(&self, at: *const u8) -> (*const u8, usize) {
        // SAFETY: as the function's.
        unsafe { (self.rows.row(at, self.bytes[INPUT]), self.rows.len(at)) }
    }

    /// True if the row `p` sorts before the row `q`, and true if they are equal, tails aside.
    ///
    /// # Safety
    /// Both are rows of the pair, of as many bytes.
    #[inline(always)]
    pub(super) unsafe fn compare(
        &self,
        (p, p_len): (*const u8, usize),
        (q, q_len): (*const u8, usize),
    ) -> (bool, bool) {
        let body = self.rows.body(p_len.min(q_len), self.tail);
        // SAFETY: both have a body of as many bytes, which are `at + 8` or more.
        let (less, agree) = unsafe { compare_from(p, q, self.at, body) };
        (less, agree & (p_len == q_len))
    }

    /// Where a row ends that is written up to `to`, as ends count.
    #[inline(always)]
    pub(super) fn offset(&self, to: *mut u8) -> u32 {
        (to.addr() - self.base.addr()) as u32
    }

    /// Prefetches what stands behind a row; if rows take more than a line, where it goes, too.
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
    /// They are those of a row of the pair, and have room, as its end has.
    #[inline(always)]
    pub(super) unsafe fn put<R: Rows>(&mut self, pair: &Pair<R>, row: *const u8, len: usize) {
        // SAFETY: as the function's.
        unsafe {
            pair.rows.copy(row, self.to, len);
            self.to = self.to.add(len);
            if R::VARY {
                self.end.write(pair.offset(self.to));
                self.end = self.end.add(1);
            }
        }
    }

    /// Gives the row that was written last, of `len` bytes, the sum of its diff and that of its equal `other`, or
    /// takes it back if that is zero. `wrapped` is called if the sum does not fit.
    ///
    /// # Safety
    /// There are such rows, and their last eight bytes are a diff.
    #[inline(always)]
    pub(super) unsafe fn add<R: Rows>(
        &mut self,
        pair: &Pair<R>,
        other: *const u8,
        len: usize,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) {
        // SAFETY: as the function's; a row that is taken back was written at `len` bytes before, with its end.
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

/// A step of a merge, whatever the rows: the lesser of both heads, `a`'s if they are equal; with `wrapped` their
/// sum, or nothing.
///
/// # Safety
/// Both heads are rows, and one more has room.
#[inline(never)]
pub(super) unsafe fn step<R: Rows>(
    pair: Pair<R>,
    mut heads: Heads,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    let step = pair.rows.step();
    // SAFETY: as the function's.
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
