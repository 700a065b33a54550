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
pub(in crate::kernel) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
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

#[cfg(test)]
mod tests {
    use super::super::level::{Level, Plain, by_level};
    use super::*;

    #[test]
    fn the_first_byte_that_differs_decides() {
        for (len, at) in (8..140).flat_map(|len| [0, 1, 5, 16].map(|at| (len, at))) {
            for differs in (at..len).map(Some).chain([None]) {
                let (mut a, mut b) = (vec![7u8; len + 9], vec![7u8; len + 9]);
                a[len..].fill(1);
                if let Some(differs) = differs {
                    (a[differs], b[differs]) = ([0x10, 0x7f][differs % 2], 0x80);
                    a[differs + 1..].fill(9);
                }
                let (p, q) = (a.as_ptr(), b.as_ptr());
                if at + 8 <= len {
                    let expected = (a[..len] < b[..len], a[..len] == b[..len]);
                    // SAFETY: both have as many bytes.
                    let (found, back) =
                        unsafe { (compare_from(p, q, at, len), compare_from(q, p, at, len)) };
                    assert_eq!(found, expected, "{len} bytes, {differs:?} differs");
                    assert_eq!(back, (b[..len] < a[..len], expected.1));
                }
                if len >= 32 {
                    // SAFETY: as above; the level is one that the CPU has.
                    let found = unsafe { [differ(p, q, len), Plain::differ(p, q, len)] };
                    // SAFETY: as above.
                    let wide = by_level!(L => unsafe { L::differ(p, q, len) });
                    let expected = differs.is_some();
                    assert_eq!((found, wide), ([expected; 2], expected), "{len}, {differs:?}");
                }
            }
        }
    }

    #[test]
    fn every_length_is_copied_and_nothing_else_is_written() {
        let source: Vec<u8> = (0..700).map(|at| (at % 251) as u8).collect();
        for len in 8..source.len() {
            for ahead in [false, true].into_iter().take(1 + usize::from(len >= 64)) {
                let mut out = vec![0xaa; len + 8];
                // SAFETY: there are as many bytes, four in front of the room and behind it.
                unsafe {
                    let (from, to) = (source.as_ptr(), out.as_mut_ptr().add(4));
                    if ahead { copy_ahead(from, to, len) } else { copy(from, to, len) }
                }
                assert_eq!(&out[4..4 + len], &source[..len]);
                assert_eq!((&out[..4], &out[4 + len..]), (&[0xaa; 4][..], &[0xaa; 4][..]), "{len}");
            }
        }
    }

    #[test]
    fn every_level_extracts_the_same_bits() {
        for mask in (0..64).map(|at| 0x8421_f0f0_00ff_1234u64.rotate_left(at)).chain([0, u64::MAX])
        {
            for word in [0, u64::MAX, 0x0123_4567_89ab_cdef, mask] {
                // SAFETY: the level is one that the CPU has.
                let (plain, wide) =
                    unsafe { (Plain::extract(word, mask), by_level!(L => L::extract(word, mask))) };
                let set = (0..64).filter(|at| mask >> at & 1 == 1);
                let bits = set.enumerate().fold(0, |all, (to, at)| all | (word >> at & 1) << to);
                assert_eq!((plain, wide), (bits, bits), "{word:x} {mask:x}");
            }
        }
    }
}
