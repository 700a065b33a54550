//! How rows of one length are compared and copied, fixed before the loops.
//!
//! The bytes that all rows of a merge share at their start need no comparison. Where at most 24 bytes
//! are left they are compared as one, two or three words, whole: the result is exact and needs no
//! branch. Where more are left, the first three words decide, and the rest if they do not. Loops that have what is
//! compared in registers look at a row's [`Lead`], one word or two, and at the row where leads agree.

use std::hint::black_box;

use super::bytes::{self, compare_from, subtract, word_at};

/// Rows of one length, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a> {
    pub(crate) bytes: &'a [u8],
    /// Bytes of a row.
    pub(crate) stride: usize,
    /// Bytes at the start of a row that are compared: at least 8.
    pub(crate) body: usize,
}

impl<'a> Strided<'a> {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.stride
    }

    /// The compared bytes of a row.
    pub(crate) fn body(&self, index: usize) -> &'a [u8] {
        &self.bytes[index * self.stride..][..self.body]
    }
}

/// The bytes in which `a` and `b` agree.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// What is compared first of a row, as a number: rows whose leads differ have their order.
pub(super) trait Lead: Copy + Ord {
    /// That of a row.
    ///
    /// # Safety
    /// `row` points to a whole row.
    unsafe fn of<const S: usize, const W: usize>(shape: Shape<S, W>, row: *const u8) -> Self;
}

/// The first word that is compared.
impl Lead for u64 {
    #[inline(always)]
    unsafe fn of<const S: usize, const W: usize>(shape: Shape<S, W>, row: *const u8) -> Self {
        // SAFETY: a whole row.
        unsafe { shape.word(row, 0) }
    }
}

/// The first words that are compared, two at the most.
impl Lead for u128 {
    #[inline(always)]
    unsafe fn of<const S: usize, const W: usize>(shape: Shape<S, W>, row: *const u8) -> Self {
        // SAFETY: a whole row.
        unsafe { shape.lead(row) }
    }
}

/// The words of a row that are compared first, as numbers.
pub(super) type Head = [u64; 3];

/// The first two words of a row that are compared, and another one.
pub(super) type Short = (u128, u64);

/// Bodies of any length, compared by three words, then whole.
pub(super) const LONG: usize = 0;
/// Bodies of less than three words that are not whole words: compared by one word, then whole.
pub(super) const ODD: usize = 4;

/// Rows of `S` bytes, the last eight of them a diff, or of `stride` if `S` is 0; compared by `W` words
/// from byte `at`, up to three, or as [`LONG`] or [`ODD`].
#[derive(Clone, Copy)]
pub(super) struct Shape<const S: usize, const W: usize> {
    stride: usize,
    at: usize,
    body: usize,
}

impl<const S: usize, const W: usize> Shape<S, W> {
    /// Words that decide most comparisons.
    pub(super) const WORDS: usize = match W {
        LONG => 3,
        ODD => 1,
        words => words,
    };

    pub(super) fn new(stride: usize, at: usize, body: usize) -> Self {
        assert!(at + 8 * Self::WORDS <= body && body <= stride);
        let whole = matches!(W, LONG | ODD) || at + 8 * W == body;
        assert!(S == 0 || S == stride && body + 8 == S && whole);
        Self { stride, at, body }
    }

    #[inline(always)]
    pub(super) fn stride(self) -> usize {
        if S > 0 { S } else { self.stride }
    }

    /// The eight bytes number `index` of those compared, as a number that has their order.
    ///
    /// # Safety
    /// `row` points to a whole row.
    #[inline(always)]
    unsafe fn word(self, row: *const u8, index: usize) -> u64 {
        // SAFETY: as the function's.
        unsafe { word_at(row, self.at() + 8 * index) }
    }

    /// The same, as it stands in memory.
    ///
    /// # Safety
    /// As [`Shape::word`]'s.
    #[inline(always)]
    unsafe fn raw(self, row: *const u8, index: usize) -> u64 {
        // SAFETY: `at + 8 * (index + 1) <= body`, by `new`, and the row is that long.
        unsafe { row.add(self.at() + 8 * index).cast::<u64>().read_unaligned() }
    }

    #[inline(always)]
    fn at(self) -> usize {
        if S > 0 && !matches!(W, LONG | ODD) { S - 8 - 8 * W } else { self.at }
    }

    /// What the first words say: true if the row at `p` sorts before the one at `q`, true if they agree.
    ///
    /// # Safety
    /// Both point to whole rows.
    #[inline(always)]
    unsafe fn words(self, p: *const u8, q: *const u8) -> (bool, bool) {
        let (mut borrow, mut different) = (false, 0);
        for index in (0..Self::WORDS).rev() {
            // SAFETY: whole rows; `index` is below `WORDS`.
            let (x, y) = unsafe { (self.word(p, index), self.word(q, index)) };
            borrow = subtract(x, y, borrow);
            different |= x ^ y;
        }
        (borrow, different == 0)
    }

    /// True if the row at `p` sorts before the one at `q`.
    ///
    /// # Safety
    /// Both point to whole rows.
    #[inline(always)]
    pub(super) unsafe fn less(self, p: *const u8, q: *const u8) -> bool {
        // SAFETY: whole rows, and `at + 8 <= body <= stride`.
        unsafe {
            let (less, agree) = self.words(p, q);
            if matches!(W, LONG | ODD) && agree {
                return compare_from(p, q, self.at, self.body).0;
            }
            less
        }
    }

    /// True if the rows at `p` and `q` are equal in what is compared.
    ///
    /// # Safety
    /// Both point to whole rows.
    #[inline(always)]
    pub(super) unsafe fn equal(self, p: *const u8, q: *const u8) -> bool {
        let mut different = 0;
        for index in 0..Self::WORDS {
            // SAFETY: whole rows; `index` is below `WORDS`.
            different |= unsafe { self.raw(p, index) ^ self.raw(q, index) };
        }
        if matches!(W, LONG | ODD) {
            // SAFETY: whole rows, and `at + 8 <= body <= stride`.
            return different == 0 && unsafe { compare_from(p, q, self.at, self.body).1 };
        }
        different == 0
    }

    /// Both, without a branch that cannot be predicted.
    ///
    /// # Safety
    /// Both point to whole rows.
    #[inline(always)]
    pub(super) unsafe fn compare(self, p: *const u8, q: *const u8) -> (bool, bool) {
        // SAFETY: whole rows, and `at + 8 <= body <= stride`; with `S`, `body` is `S - 8`.
        unsafe {
            if W == LONG && S >= 48 {
                let (p_lead, q_lead) = (self.lead(p), self.lead(q));
                let (less, agree) = (p_lead < q_lead, p_lead == q_lead);
                // Rows whose first words agree differ in the last one, mostly: their time.
                // As one condition: to jump on either of the two could not be predicted.
                if black_box(agree & self.differ_between(p, q)) {
                    return compare_from(p, q, self.at, self.body);
                }
                let (x, y) = (word_at(p, S - 16), word_at(q, S - 16));
                (less | (agree & (x < y)), agree & (x == y))
            } else if matches!(W, LONG | ODD) {
                compare_from(p, q, self.at, self.body)
            } else {
                self.words(p, q)
            }
        }
    }

    /// The words that are compared first.
    ///
    /// # Safety
    /// `row` points to a whole row.
    #[inline(always)]
    pub(super) unsafe fn head<const MOST: usize>(self, row: *const u8) -> Head {
        let mut head = [0; 3];
        for (index, word) in head.iter_mut().enumerate().take(Self::WORDS.min(MOST)) {
            // SAFETY: a whole row; `index` is below `WORDS`.
            *word = unsafe { self.word(row, index) };
        }
        head
    }

    /// As [`Shape::compare`], of rows whose heads are known, with branches: for what one can predict.
    ///
    /// # Safety
    /// Both point to whole rows.
    #[inline(always)]
    pub(super) unsafe fn compare_heads<const MOST: usize>(
        self,
        (p, p_head): (*const u8, Head),
        (q, q_head): (*const u8, Head),
    ) -> (bool, bool) {
        for index in 0..Self::WORDS.min(MOST) {
            if p_head[index] != q_head[index] {
                return (p_head[index] < q_head[index], false);
            }
        }
        if MOST < Self::WORDS {
            // SAFETY: whole rows.
            return unsafe { self.compare(p, q) };
        }
        if matches!(W, LONG | ODD) {
            // SAFETY: whole rows, and `at + 8 <= body <= stride`.
            return unsafe { compare_from(p, q, self.at, self.body) };
        }
        (false, true)
    }

    /// The first words that are compared, two at the most, as one number.
    ///
    /// # Safety
    /// `row` points to a whole row.
    #[inline(always)]
    pub(super) unsafe fn lead(self, row: *const u8) -> u128 {
        // SAFETY: a whole row, which has these words: `at + 8 * WORDS <= body`, by `new`.
        unsafe {
            match Self::WORDS {
                1 => u128::from(self.word(row, 0)),
                _ => u128::from_be(row.add(self.at()).cast::<u128>().read_unaligned()),
            }
        }
    }

    /// Whether [`Shape::short`] tells rows apart, but for those that [differ between](Shape::differ_between).
    pub(super) const SHORT: bool = matches!(W, 1..=3) || W == LONG && S >= 48;

    /// Of a row what decides nearly always: its [lead](Shape::lead), and the last word if that has not all words.
    ///
    /// # Safety
    /// `row` points to a whole row; `SHORT`.
    #[inline(always)]
    pub(super) unsafe fn short(self, row: *const u8) -> Short {
        // SAFETY: a whole row, and `at + 8 * W <= body`, or `body` is `S - 8`, by `new`.
        unsafe {
            let last = match W {
                LONG => word_at(row, S - 16),
                3 => self.word(row, 2),
                _ => 0,
            };
            (self.lead(row), last)
        }
    }

    /// True if `a` sorts before `b`: one long subtraction.
    #[inline(always)]
    pub(super) fn is_less(a: Short, b: Short) -> bool {
        let mut borrow = false;
        if matches!(W, LONG | 3) {
            borrow = subtract(a.1, b.1, borrow);
        }
        borrow = subtract(a.0 as u64, b.0 as u64, borrow);
        if W == 1 { borrow } else { subtract((a.0 >> 64) as u64, (b.0 >> 64) as u64, borrow) }
    }

    /// True if rows differ elsewhere than in their last words, of those whose leads agree.
    ///
    /// # Safety
    /// Both point to whole rows, and `S` is 48 or more.
    #[inline(always)]
    pub(super) unsafe fn differ_between(self, p: *const u8, q: *const u8) -> bool {
        // The lead is behind this, or what is in front of it is the same in all rows.
        let start = if S >= 64 { 16 } else { 0 };
        // SAFETY: whole rows; 32 bytes or more are compared.
        unsafe { bytes::differ(p.add(start), q.add(start), S - 16 - start) }
    }

    /// The compared bytes of the row at `row`, from its start.
    ///
    /// # Safety
    /// `row` points to a whole row, which lives as long as `'a`.
    pub(super) unsafe fn body<'a>(self, row: *const u8) -> &'a [u8] {
        // SAFETY: `body <= stride`, by `new`.
        unsafe { std::slice::from_raw_parts(row, self.body) }
    }

    /// Copies one row.
    ///
    /// # Safety
    /// `from` points to a whole row, `to` to room for one; they do not overlap.
    #[inline(always)]
    pub(super) unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller's promise; a row has 8 bytes at the least.
        unsafe {
            if S > 0 {
                std::ptr::copy_nonoverlapping(from, to, S);
            } else {
                bytes::copy(from, to, self.stride());
            }
        }
    }
}
