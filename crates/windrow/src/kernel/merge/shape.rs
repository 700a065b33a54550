//! How rows of one length are compared and copied, fixed before the loops.
//!
//! The bytes that all rows of a merge share at their start need no comparison. Where at most 24 bytes
//! are left they are compared as one, two or three words, whole: the result is exact and needs no
//! branch. Where more are left, the first word decides, and the rest if it does not.

use std::cmp::Ordering;

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

/// Rows of `S` bytes, the last eight of them a diff, or of `stride` if `S` is 0; compared by `W` words from byte `at`, or by one
/// word and the rest if `W` is 0.
#[derive(Clone, Copy)]
pub(super) struct Shape<const S: usize, const W: usize> {
    stride: usize,
    at: usize,
    body: usize,
}

impl<const S: usize, const W: usize> Shape<S, W> {
    pub(super) fn new(stride: usize, at: usize, body: usize) -> Self {
        assert!(at + 8 * W.max(1) <= body && body <= stride);
        assert!(S == 0 || S == stride && body + 8 == S && (W == 0 || at + 8 * W == body));
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
        u64::from_be(unsafe { self.raw(row, index) })
    }

    /// The same, as it stands in memory.
    ///
    /// # Safety
    /// As [`Shape::word`].
    #[inline(always)]
    unsafe fn raw(self, row: *const u8, index: usize) -> u64 {
        // SAFETY: `at + 8 * (index + 1) <= body`, by `new`, and the row is that long.
        unsafe { row.add(self.at() + 8 * index).cast::<u64>().read_unaligned() }
    }

    #[inline(always)]
    fn at(self) -> usize {
        if S > 0 && W > 0 { S - 8 - 8 * W } else { self.at }
    }

    /// True if the row at `p` sorts before the one at `q`.
    ///
    /// # Safety
    /// Both point to whole rows.
    #[inline(always)]
    pub(super) unsafe fn less(self, p: *const u8, q: *const u8) -> bool {
        // SAFETY: whole rows; `index` is below `W.max(1)`.
        let words = |index| unsafe { (self.word(p, index), self.word(q, index)) };
        match W {
            1 => {
                let (a, b) = words(0);
                a < b
            }
            2 | 3 => {
                let mut borrow = false;
                for index in (0..W).rev() {
                    let (a, b) = words(index);
                    borrow = subtract(a, b, borrow);
                }
                borrow
            }
            _ => {
                let (a, b) = words(0);
                if a == b {
                    // SAFETY: whole rows, and `at + 8 <= body <= stride`.
                    return unsafe { self.rest(p).cmp(self.rest(q)) == Ordering::Less };
                }
                a < b
            }
        }
    }

    /// True if the rows at `p` and `q` are equal in what is compared.
    ///
    /// # Safety
    /// Both point to whole rows.
    #[inline(always)]
    pub(super) unsafe fn equal(self, p: *const u8, q: *const u8) -> bool {
        let mut different = 0;
        for index in 0..W.max(1) {
            // SAFETY: whole rows; `index` is below `W.max(1)`.
            different |= unsafe { self.raw(p, index) ^ self.raw(q, index) };
        }
        if W == 0 {
            // SAFETY: whole rows, and `at + 8 <= body <= stride`.
            return different == 0 && unsafe { self.rest(p) == self.rest(q) };
        }
        different == 0
    }

    /// What is compared behind the first word.
    ///
    /// # Safety
    /// `row` points to a whole row, which lives as long as `'a`.
    #[inline(always)]
    unsafe fn rest<'a>(self, row: *const u8) -> &'a [u8] {
        let from = self.at + 8;
        // SAFETY: `from <= body <= stride`, by `new`.
        unsafe { std::slice::from_raw_parts(row.add(from), self.body - from) }
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
        let len = self.stride();
        // SAFETY: every move lies within the `len` bytes of the row: the last of each width ends
        // where the row ends.
        unsafe {
            if S > 0 {
                std::ptr::copy_nonoverlapping(from, to, S);
            } else if len >= 32 {
                let mut at = 0;
                while at + 32 <= len {
                    move_bytes::<32>(from.add(at), to.add(at));
                    at += 32;
                }
                move_bytes::<32>(from.add(len - 32), to.add(len - 32));
            } else if len >= 16 {
                move_bytes::<16>(from, to);
                move_bytes::<16>(from.add(len - 16), to.add(len - 16));
            } else {
                move_bytes::<8>(from, to);
                move_bytes::<8>(from.add(len - 8), to.add(len - 8));
            }
        }
    }
}

/// The borrow out of `a - b - borrow`: a chain of them compares numbers of many words.
#[inline(always)]
pub(super) fn subtract(a: u64, b: u64, borrow: bool) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        // The portable form becomes three instructions a word more.
        let mut difference = 0;
        std::arch::x86_64::_subborrow_u64(u8::from(borrow), a, b, &mut difference) != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        a.borrowing_sub(b, borrow).1
    }
}

/// # Safety
/// `N` bytes are readable at `from` and writable at `to`, and the two do not overlap.
#[inline(always)]
unsafe fn move_bytes<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: as the function's.
    unsafe { to.cast::<[u8; N]>().write_unaligned(from.cast::<[u8; N]>().read_unaligned()) }
}
