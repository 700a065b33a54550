//! How the bytes of rows of any length are compared and copied: by words and moves of constant size,
//! the last of which overlaps the one before.

use super::super::prefetch::prefetch;

/// Bytes ahead of each of two inputs that are prefetched: hardware does not look beyond the end of a page, and
/// finding out where the next one lies takes as long as dozens of rows.
pub(super) const AHEAD: usize = 2048;

/// Eight bytes from `at` on, as a number that has their order.
///
/// # Safety
/// They can be read.
#[inline(always)]
pub(super) unsafe fn word_at(row: *const u8, at: usize) -> u64 {
    // SAFETY: as the function's.
    u64::from_be(unsafe { row.add(at).cast::<u64>().read_unaligned() })
}

/// The diff at the end of a row of `len` bytes.
///
/// # Safety
/// They can be read, and are at least 8.
#[inline(always)]
pub(super) unsafe fn diff_at(row: *const u8, len: usize) -> i64 {
    // SAFETY: as the function's.
    i64::from_le_bytes(unsafe { row.add(len - 8).cast::<[u8; 8]>().read() })
}

/// True if the first `len` bytes of `p`, from `at` on, sort before those of `q`, and true if they are
/// equal: one long subtraction, the last word first, of which a part comes twice.
///
/// # Safety
/// Both have `len` bytes, and `at + 8 <= len`.
#[inline(always)]
pub(super) unsafe fn compare_from(
    p: *const u8,
    q: *const u8,
    at: usize,
    len: usize,
) -> (bool, bool) {
    // SAFETY: every word ends at `len` or before.
    unsafe {
        let (x, y) = (word_at(p, len - 8), word_at(q, len - 8));
        let mut different = x ^ y;
        let mut borrow = subtract(x, y, false);
        for index in (0..(len - at) / 8).rev() {
            let (x, y) = (word_at(p, at + 8 * index), word_at(q, at + 8 * index));
            borrow = subtract(x, y, borrow);
            different |= x ^ y;
        }
        (borrow, different == 0)
    }
}

/// True if the first `len` bytes of `p` and `q` differ, at least 32: as wide as registers are.
///
/// # Safety
/// Both have as many.
#[inline(always)]
pub(super) unsafe fn differ(p: *const u8, q: *const u8, len: usize) -> bool {
    let mut different = [0u64; 4];
    let mut look = |at: usize| {
        // SAFETY: the words from `at` on end at `len` or before.
        let (x, y) = unsafe {
            (
                p.add(at).cast::<[u64; 4]>().read_unaligned(),
                q.add(at).cast::<[u64; 4]>().read_unaligned(),
            )
        };
        for (different, (x, y)) in different.iter_mut().zip(x.into_iter().zip(y)) {
            *different |= x ^ y;
        }
    };
    for at in (0..len - 31).step_by(32) {
        look(at);
    }
    look(len - 32);
    different != [0; 4]
}

/// Copies `len` bytes, at least 8.
///
/// # Safety
/// They are readable at `from` and writable at `to`, and the two do not overlap.
#[inline(always)]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: every move lies within the `len` bytes: the last of each width ends where they end.
    unsafe {
        if len >= 32 {
            if len <= 64 {
                move_bytes::<32>(from, to);
                move_bytes::<32>(from.add(len - 32), to.add(len - 32));
                return;
            }
            if len > 512 {
                std::ptr::copy_nonoverlapping(from, to, len);
                return;
            }
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

/// Copies `len` bytes, at least 64, and asks for what stands behind them, here and there.
///
/// # Safety
/// They are readable at `from` and writable at `to`, and the two do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_ahead(from: *const u8, to: *mut u8, len: usize) {
    let mut at = 0;
    // SAFETY: every move lies within the `len` bytes: the last two end where they end.
    unsafe {
        while at + 64 <= len {
            prefetch(from.wrapping_add(at + AHEAD));
            prefetch(to.wrapping_add(at + AHEAD));
            move_bytes::<32>(from.add(at), to.add(at));
            move_bytes::<32>(from.add(at + 32), to.add(at + 32));
            at += 64;
        }
        if at < len {
            move_bytes::<32>(from.add(len - 64), to.add(len - 64));
            move_bytes::<32>(from.add(len - 32), to.add(len - 32));
        }
    }
}

/// # Safety
/// `N` bytes are readable at `from` and writable at `to`, and the two do not overlap.
#[inline(always)]
pub(super) unsafe fn move_bytes<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: as the function's. As a value of an array type it would go by the stack, too.
    unsafe { std::ptr::copy_nonoverlapping(from, to, N) }
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
