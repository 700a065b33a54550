//! How the bytes of rows that vary are compared and copied: by words and moves of constant size, the
//! last of which overlaps the one before.

use super::super::shape::subtract;

/// Eight bytes from `at` on, as a number that has their order.
///
/// # Safety
/// They can be read.
#[inline(always)]
pub(super) unsafe fn word_at(row: *const u8, at: usize) -> u64 {
    // SAFETY: as the function's.
    u64::from_be(unsafe { row.add(at).cast::<u64>().read_unaligned() })
}

/// True if the first `len` bytes of `p`, from `at` on, sort before those of `q`: one long subtraction,
/// the last word first, of which a part may have been looked at already.
///
/// # Safety
/// Both have `len` bytes, and `at + 8 <= len`.
#[inline(always)]
pub(super) unsafe fn less_from(p: *const u8, q: *const u8, at: usize, len: usize) -> bool {
    // SAFETY: every word ends at `len` or before.
    unsafe {
        let mut borrow = subtract(word_at(p, len - 8), word_at(q, len - 8), false);
        for index in (0..(len - at) / 8).rev() {
            let at = at + 8 * index;
            borrow = subtract(word_at(p, at), word_at(q, at), borrow);
        }
        borrow
    }
}

/// True if the first `len` bytes of `p` and `q` are equal from `at` on.
///
/// # Safety
/// As [`less_from`]'s.
#[inline(always)]
pub(super) unsafe fn equal_from(p: *const u8, q: *const u8, at: usize, len: usize) -> bool {
    // SAFETY: every word ends at `len` or before.
    unsafe {
        let mut different = word_at(p, len - 8) ^ word_at(q, len - 8);
        for index in 0..(len - at) / 8 {
            let at = at + 8 * index;
            different |= word_at(p, at) ^ word_at(q, at);
        }
        different == 0
    }
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

/// Copies `len` bytes, at least 8, towards the start, over what is there.
///
/// # Safety
/// They are readable at `from` and writable at `to`, which is at `from` or before.
#[inline(always)]
pub(super) unsafe fn slide(from: *const u8, to: *mut u8, len: usize) {
    macro_rules! halves {
        ($width:literal) => {{
            let head = from.cast::<[u8; $width]>().read_unaligned();
            let rest = from.add(len - $width).cast::<[u8; $width]>().read_unaligned();
            to.cast::<[u8; $width]>().write_unaligned(head);
            to.add(len - $width).cast::<[u8; $width]>().write_unaligned(rest);
        }};
    }
    // SAFETY: all is read before anything is written, and lies within the `len` bytes.
    unsafe {
        match len {
            65.. => std::ptr::copy(from, to, len),
            32.. => halves!(32),
            16.. => halves!(16),
            _ => halves!(8),
        }
    }
}

/// # Safety
/// `N` bytes are readable at `from` and writable at `to`, and the two do not overlap.
#[inline(always)]
unsafe fn move_bytes<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: as the function's.
    unsafe { to.cast::<[u8; N]>().write_unaligned(from.cast::<[u8; N]>().read_unaligned()) }
}
