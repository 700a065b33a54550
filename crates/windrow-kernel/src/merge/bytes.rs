//! Comparing and copying the bytes of rows, by words and moves of constant size. The last word or
//! move overlaps the one before.

/// Bytes ahead of each of two inputs that are prefetched: the hardware does not prefetch beyond the
/// end of a page, and translating the address of the next page takes as long as dozens of rows.
pub(super) const AHEAD: usize = 2048;

/// Returns the eight bytes from `at` on as a number of the same order.
///
/// # Safety
/// The eight bytes from `at` on are readable.
#[inline(always)]
pub(super) unsafe fn word_at(row: *const u8, at: usize) -> u64 {
    // SAFETY: the caller provides eight readable bytes from `at` on.
    u64::from_be(unsafe { row.add(at).cast::<u64>().read_unaligned() })
}

/// Returns the diff at the end of a row of `len` bytes.
///
/// # Safety
/// `len` is at least 8, and the `len` bytes are readable.
#[inline(always)]
pub(super) unsafe fn diff_at(row: *const u8, len: usize) -> i64 {
    // SAFETY: the caller provides `len` readable bytes, at least 8.
    i64::from_le_bytes(unsafe { row.add(len - 8).cast::<[u8; 8]>().read() })
}

/// Returns whether the bytes `at..len` of `p` sort before those of `q`, and whether they are equal.
/// One long subtraction from the last word to the first; the last word may overlap the one before.
///
/// # Safety
/// Both have `len` readable bytes, and `at + 8 <= len`.
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

/// Returns whether the first `len` bytes of `p` and `q`, at least 32, differ. Compares as many
/// bytes at once as a register has.
///
/// # Safety
/// Both have `len` readable bytes, and `len` is at least 32.
#[inline(always)]
pub(super) unsafe fn differ(p: *const u8, q: *const u8, len: usize) -> bool {
    let mut different = [0u64; 4];
    let mut look = |at: usize| {
        // SAFETY: the four words from `at` on end at `len` or before.
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
/// `len` is at least 8. The `len` bytes are readable at `from` and writable at `to`, and the two
/// ranges do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: every move lies within the `len` bytes: the last move of each width ends at `len`.
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

/// # Safety
/// `N` bytes are readable at `from` and writable at `to`, and the two ranges do not overlap.
#[inline(always)]
pub(super) unsafe fn move_bytes<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller provides both ranges, without overlap. A value of an array type would go
    // through the stack.
    unsafe { std::ptr::copy_nonoverlapping(from, to, N) }
}

/// Returns the borrow of `a - b - borrow`. A chain of borrows compares numbers of many words.
#[inline(always)]
fn subtract(a: u64, b: u64, borrow: bool) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        // The portable form compiles to three more instructions a word.
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
                    // SAFETY: both have `len` bytes.
                    let (found, back) =
                        unsafe { (compare_from(p, q, at, len), compare_from(q, p, at, len)) };
                    assert_eq!(found, expected, "{len} bytes, {differs:?} differs");
                    assert_eq!(back, (b[..len] < a[..len], expected.1));
                }
                if len >= 32 {
                    // SAFETY: both have `len` bytes, at least 32.
                    let found = unsafe { differ(p, q, len) };
                    assert_eq!(found, differs.is_some(), "{len}, {differs:?}");
                }
            }
        }
    }

    #[test]
    fn every_length_is_copied_and_nothing_else_is_written() {
        let source: Vec<u8> = (0..700).map(|at| (at % 251) as u8).collect();
        for len in 8..source.len() {
            let mut out = vec![0xaa; len + 8];
            // SAFETY: both buffers have `len` bytes at these places; the output has four more before
            // and after them.
            unsafe { copy(source.as_ptr(), out.as_mut_ptr().add(4), len) };
            assert_eq!(&out[4..4 + len], &source[..len]);
            assert_eq!((&out[..4], &out[4 + len..]), (&[0xaa; 4][..], &[0xaa; 4][..]), "{len}");
        }
    }

    #[test]
    fn every_level_extracts_the_same_bits() {
        for mask in (0..64).map(|at| 0x8421_f0f0_00ff_1234u64.rotate_left(at)).chain([0, u64::MAX])
        {
            for word in [0, u64::MAX, 0x0123_4567_89ab_cdef, mask] {
                // SAFETY: `by_level` chooses a level of this CPU.
                let (plain, wide) =
                    unsafe { (Plain::extract(word, mask), by_level!(L => L::extract(word, mask))) };
                let set = (0..64).filter(|at| mask >> at & 1 == 1);
                let bits = set.enumerate().fold(0, |all, (to, at)| all | (word >> at & 1) << to);
                assert_eq!((plain, wide), (bits, bits), "{word:x} {mask:x}");
            }
        }
    }
}
