//! Buffers that are written again once nobody else has them, and who supplies them.
//!
//! ```text
//! Slot --as a piece: written--> freeze --> Buffer (arrays, slices, other threads)
//!   ^                                        |
//!   `--------- idle: the last one dropped ---'
//! ```
//!
//! A slot is a buffer of Arrow's and the place of its bytes, as the allocator or the system gave it. While
//! nobody else has that buffer its bytes are written, through their own place, never through what the buffer
//! hands out. So memory that is taken again costs no allocation, one count up and one down: 35 ns less a column
//! than a buffer made anew, two counts and a slot that is locked twice.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use arrow_buffer::alloc::Allocation;
use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer};

use crate::kernel::region::Region;

/// Buffers above this are mappings of their own: an allocator would write zeros to what the system
/// has just cleared.
const MAPPED: usize = 8 << 20;

/// Supplies memory for columns.
pub(crate) trait Supply {
    /// At least `len` bytes with any contents.
    fn take(&mut self, len: usize) -> Piece;

    /// The first `len` bytes of `piece` as an Arrow buffer.
    fn freeze(&mut self, piece: Piece, len: usize) -> Buffer;
}

/// Initialised bytes, aligned for all numbers.
pub(crate) struct Slot {
    /// Where they are, as they were allocated or mapped: what is written through it comes from no reference.
    start: NonNull<u8>,
    /// All of them, which it owns.
    buffer: Buffer,
}

// SAFETY: `start` is used by `Slot::bytes` only, which borrows the slot for itself alone; buffers move.
unsafe impl Send for Slot {}
// SAFETY: nothing that takes a shared slot uses `start`; buffers are shared.
unsafe impl Sync for Slot {}

/// Says where the bytes are, and does not read them.
impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slot").field(&self.start).field(&self.buffer.len()).finish()
    }
}

impl Slot {
    /// `len` bytes, all of them zeros.
    pub(crate) fn new(len: usize) -> Self {
        let (start, owner): (_, Arc<dyn Allocation>) =
            match Region::new(if len > MAPPED { len } else { 0 }) {
                Ok(mut region) if !region.is_empty() => (region.start(), Arc::new(region)),
                _ => {
                    let mut buffer = MutableBuffer::from_len_zeroed(len);
                    (buffer.as_mut_ptr(), Arc::new(buffer))
                }
            };
        let start = NonNull::new(start).expect("allocations are not at zero");
        // SAFETY: `len` initialised bytes are at `start`, on the heap or a mapping, and stay there while
        // the owner lives, which the buffer has. They are written by `Slot::bytes` only, whose caller sees to
        // it that nobody can read them then.
        let buffer = unsafe { Buffer::from_custom_allocation(start, len, owner) };
        Self { start, buffer }
    }

    /// Bytes that it has.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// True if no array has the buffer any more.
    pub(crate) fn is_idle(&self) -> bool {
        let idle = self.buffer.strong_count() == 1;
        // Others count down with `Release`: what they read is read before anything is written here.
        fence(Ordering::Acquire);
        idle
    }

    /// All bytes, as numbers.
    ///
    /// # Safety
    /// No buffer over them is anywhere else, nor any reference that one handed out.
    unsafe fn bytes<T: ArrowNativeType>(&mut self) -> &mut [T] {
        let len = self.buffer.len() / size_of::<T>();
        // SAFETY: so many initialised bytes are at `start`, aligned to a line at the least; the trait is
        // Arrow's, sealed, for numbers, of which any bytes are one. Buffers are the only way to them, the
        // caller promises that this is the only one, and it is borrowed until what is returned is done with.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast().as_ptr(), len) }
    }
}

/// Bytes that nobody else has: the buffer of its slot is the only one, until it is frozen.
#[derive(Debug)]
pub(crate) struct Piece {
    slot: Slot,
    /// Where the slot comes from, as its supplier numbers places.
    home: Option<(usize, usize)>,
}

impl Piece {
    /// Of a slot that nobody else has.
    ///
    /// # Panics
    /// If somebody has.
    pub(crate) fn new(slot: Slot, home: Option<(usize, usize)>) -> Self {
        assert!(slot.is_idle(), "nobody else has the buffer");
        Self { slot, home }
    }

    /// The bytes as numbers; the buffer is aligned for all of them.
    pub(crate) fn as_mut<T: ArrowNativeType>(&mut self) -> &mut [T] {
        // SAFETY: a piece has an idle slot, and hands out no buffer before it ends.
        unsafe { self.slot.bytes() }
    }

    /// The first `len` bytes as a buffer, the slot, and where it comes from.
    pub(crate) fn into_parts(self, len: usize) -> (Buffer, Slot, Option<(usize, usize)>) {
        (self.slot.buffer.slice_with_length(0, len), self.slot, self.home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_written_again_once_nobody_has_it() {
        for len in [0, 1, 64, 1000, MAPPED, MAPPED + 1] {
            let mut piece = Piece::new(Slot::new(len), Some((1, 2)));
            let bytes = piece.as_mut::<u8>();
            assert!(bytes.len() == len && bytes.iter().all(|&byte| byte == 0), "{len} bytes");
            assert!(len < 64 || bytes.as_ptr().align_offset(64) == 0);
            bytes.fill(7);
            let (buffer, slot, home) = piece.into_parts(len / 2);
            assert_eq!((buffer.len(), slot.len(), home), (len / 2, len, Some((1, 2))));
            let slice = buffer.slice(len / 4);
            drop(buffer);
            assert!(!slot.is_idle(), "a slice has it");
            assert!(slice.iter().all(|&byte| byte == 7));
            drop(slice);
            assert!(slot.is_idle());
            let mut again = Piece::new(slot, None);
            assert_eq!(again.as_mut::<u64>().len(), len / 8);
            assert!(again.as_mut::<u8>().iter().all(|&byte| byte == 7), "nothing is cleared");
        }
    }

    #[test]
    #[should_panic(expected = "nobody else has the buffer")]
    fn memory_that_somebody_has_is_no_piece() {
        let (_buffer, slot, _) = Piece::new(Slot::new(10), None).into_parts(10);
        Piece::new(slot, None);
    }
}
