//! A block of two inputs whose rows vary: how its rows are found and compared, which loop is for it.
//!
//! ```text
//! starts   i i+1 ...      the rows of `a` and of `b` are known by their numbers
//! bytes    | the same | word | rest |        words decide, then the rest does
//! ```

use std::hint::{black_box, select_unpredictable};

use super::super::Wrapped;
use super::super::bytes::{compare_from, differ, word_at};
use super::level::Loops;
use super::place::Place;
use super::sum::add_up;
use super::{Target, Varying};

/// A sample with at most this many switches has runs.
const RUNS: usize = 5;
/// A sample in which more words agree than these has many that agree: nobody can guess which.
const TIES: usize = 3;
/// The loop for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Led,
    Summed,
    Deep,
    Streamed,
    Runs,
}

/// Rows of two inputs whose bodies are compared from byte `at` on.
///
/// Invariant: starts ascend and lie within the bytes; no body has less than `at + 8` bytes.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) a: Varying<'a>,
    pub(super) b: Varying<'a>,
    pub(super) at: usize,
    /// Where sixteen bytes of every body begin that are not behind `at`; nothing if there are no such.
    lead: Option<usize>,
    /// Every body has 40 bytes or more.
    long: bool,
    /// Bytes of the longest row.
    pub(super) longest: usize,
}

impl<'a> Varying<'a> {
    /// # Safety
    /// The rows lie within the bytes, and `index` is at most their number.
    #[inline(always)]
    pub(super) unsafe fn at(&self, index: usize) -> *const u8 {
        // SAFETY: `starts` has an entry more than rows, all within the bytes.
        unsafe { self.bytes.as_ptr().add(*self.starts.get_unchecked(index) as usize) }
    }

    /// # Safety
    /// `index` is below the number of rows.
    #[inline(always)]
    pub(super) unsafe fn bytes_of(&self, index: usize) -> usize {
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
        let (lengths, others) = (a.lengths(), b.lengths());
        let (shortest, longest) = (lengths.0.min(others.0), lengths.1.max(others.1));
        let behind = shortest.checked_sub(8 + a.tail)?;
        let lead = shortest.checked_sub(16 + a.tail).map(|behind| at.min(behind));
        let long = shortest >= 40 + a.tail;
        Some(Self { a, b, at: at.min(behind), lead, long, longest })
    }

    /// The first rows of both.
    pub(super) fn part(&self, a_rows: usize, b_rows: usize) -> Self {
        Self { a: self.a.first(a_rows), b: self.b.first(b_rows), ..*self }
    }

    /// The loop for the block, by a look at its first rows.
    #[inline(always)]
    pub(super) fn choose(&self, rows: usize) -> Choice {
        match self.sample(rows) {
            (_, ties, 0) if ties > TIES && self.long => Choice::Summed,
            (_, ties, _) if ties > TIES => Choice::Deep,
            (switches, ..) if switches <= RUNS => Choice::Runs,
            (switches, ..) if switches + 2 >= rows => Choice::Streamed,
            _ => Choice::Led,
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
    pub(super) unsafe fn less(&self, j: usize, i: usize, ties: &mut bool) -> bool {
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

    /// True if the row at `p` sorts before the one at `q`, and true if they are equal in what is compared,
    /// without a branch that cannot be predicted: rows whose first bytes agree are of one length, mostly, and
    /// differ in their last eight bytes if at all, their time.
    ///
    /// # Safety
    /// Both are rows of the block, of as many bytes.
    #[inline(always)]
    pub(super) unsafe fn compare(
        &self,
        (p, p_len): (*const u8, usize),
        (q, q_len): (*const u8, usize),
    ) -> (bool, bool) {
        let body = p_len.min(q_len) - self.a.tail;
        // SAFETY: both bodies have as many bytes, which are `at + 8` or more, and `lead + 16`; what is looked
        // at in one stretch has 32 bytes at the least.
        unsafe {
            let Some(lead) = self.lead.filter(|_| body >= 40) else {
                return compare_from(p, q, self.at, body);
            };
            let lead_of =
                |row: *const u8| u128::from_be(row.add(lead).cast::<u128>().read_unaligned());
            let (x, y) = (lead_of(p), lead_of(q));
            let agree = x == y;
            let apart = (p_len != q_len) | differ(p, q, body - 8);
            // As one condition: to jump on either of the two could not be predicted.
            if black_box(agree & apart) {
                return compare_from(p, q, self.at, body);
            }
            let (p_last, q_last) = (word_at(p, body - 8), word_at(q, body - 8));
            (
                select_unpredictable(agree, p_last < q_last, x < y),
                select_unpredictable(agree, p_last == q_last, false),
            )
        }
    }

    /// Among the first rows of the merge, how often the next one comes from the other input, how often words
    /// agree, and how often rows differ elsewhere than in their last words though they do.
    #[inline(always)]
    fn sample(&self, rows: usize) -> (usize, usize, usize) {
        let (mut i, mut j) = (0, 0);
        let (mut before, mut switches, mut ties, mut apart) = (false, 0, 0, 0);
        for row in 0..rows {
            if i == self.a.len() || j == self.b.len() {
                break;
            }
            let mut tie = false;
            // SAFETY: both rows exist.
            let take_b = unsafe { self.less(j, i, &mut tie) };
            ties += usize::from(tie);
            apart += usize::from(tie && self.are_apart(i, j));
            switches += usize::from(row > 0 && take_b != before);
            before = take_b;
            j += usize::from(take_b);
            i += usize::from(!take_b);
        }
        (switches, ties, apart)
    }

    /// True if row `i` of `a` and row `j` of `b` differ elsewhere than in the last eight bytes of their bodies.
    fn are_apart(&self, i: usize, j: usize) -> bool {
        let (p, q) = (self.a.body(i), self.b.body(j));
        p.len() != q.len() || p[..p.len() - 8] != q[..q.len() - 8]
    }

    /// Merges the block into `out`, which has room for it, until there are `rows` or one input is used up.
    /// Returns the rows used of each; of rows that are equal both or none, if they are added up.
    ///
    /// # Safety
    /// The processor has the instructions of `L`.
    #[inline(always)]
    pub(super) unsafe fn merge<L: Loops>(
        &self,
        choice: Choice,
        rows: usize,
        out: &mut Target<'_>,
        wrapped: &mut Wrapped<'_>,
    ) -> (usize, usize) {
        let all = self.a.len() + self.b.len();
        let most = all.min(rows + 1);
        let bytes = (self.a.span() + self.b.span()).min(most * self.longest);
        assert!(out.fits(most, bytes) && out.used <= out.bytes.len());
        out.ends.reserve(most);
        let (before, start) = (out.ends.len(), out.used);
        // SAFETY: within the bytes and the reserved ends.
        let place = unsafe {
            let to = out.bytes.as_mut_ptr().add(start);
            Place { to, offset: start as u32, end: out.ends.as_mut_ptr().add(before) }
        };
        // SAFETY: `bytes` bytes and `most` ends have room, as asserted and reserved, and `out`,
        // being mutable, overlaps no input. All ends are written before they count. The instructions are there.
        unsafe {
            let done = match (choice, &mut *wrapped) {
                (Choice::Summed, Some(wrapped)) => L::summed(self, rows, place, *wrapped),
                (Choice::Deep, Some(wrapped)) => L::deep::<true>(self, rows, place, *wrapped),
                (Choice::Led, wrapped) => L::led(self, rows, place, wrapped),
                (Choice::Summed | Choice::Deep, None) => {
                    L::deep::<false>(self, rows, place, &mut |_, _| {})
                }
                (Choice::Streamed, _) => L::streamed::<false>(self, rows, place),
                (Choice::Runs, _) => L::streamed::<true>(self, rows, place),
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
}
