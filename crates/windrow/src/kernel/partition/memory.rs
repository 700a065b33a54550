//! Memory for columns in order: buffers that come back when the last array that uses them drops.
//!
//! ```text
//! shelf --take--> Piece --freeze--> Buffer (arrays, slices, other threads)
//!   ^                                  |
//!   |______________ drop ______________|       if the shelf is still there and not full
//! ```
//!
//! A fresh allocation of 128 KiB or more is a mapping, and its first touch a page fault for each
//! 4 KiB: several times the cost of the split itself. What comes back is also initialised already.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer};

use crate::kernel::region::Region;

/// Buffers above this are given back to the system: they are too few to be worth keeping. They are
/// mappings of their own: an allocator would write zeros to what the system has just cleared.
const LARGEST: usize = 8 << 20;
/// Bytes on a shelf, at the most.
const SHELF: usize = 32 << 20;

/// A shelf of buffers. A clone has one of its own.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    shelf: Arc<Mutex<Shelf>>,
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[derive(Debug, Default)]
struct Shelf {
    /// By their length, which is one of few.
    buffers: BTreeMap<usize, Vec<MutableBuffer>>,
    bytes: usize,
}

impl Memory {
    /// At least `len` bytes with any contents.
    pub(crate) fn take(&self, len: usize) -> Piece {
        if len > LARGEST
            && let Ok(region) = Region::new(len.next_multiple_of(64))
        {
            return Piece { bytes: Bytes::Mapped(region), shelf: Weak::new() };
        }
        let len = rounded(len);
        let kept = {
            let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = shelf.buffers.get_mut(&len).and_then(Vec::pop);
            shelf.bytes -= kept.as_ref().map_or(0, |buffer| buffer.len());
            kept
        };
        let buffer = kept.unwrap_or_else(|| MutableBuffer::from_len_zeroed(len));
        Piece { bytes: Bytes::Allocated(buffer), shelf: Arc::downgrade(&self.shelf) }
    }
}

/// Four lengths for each power of two, so that buffers fit what is asked next.
fn rounded(len: usize) -> usize {
    let step = (len.next_power_of_two() / 8).max(64);
    len.next_multiple_of(step)
}

/// Bytes of a shelf.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Bytes,
    shelf: Weak<Mutex<Shelf>>,
}

#[derive(Debug)]
enum Bytes {
    Allocated(MutableBuffer),
    Mapped(Region),
}

impl Piece {
    /// The first `len` bytes as an Arrow buffer, which gives the memory back when it drops.
    pub(crate) fn freeze(self, len: usize) -> Buffer {
        let owner = Arc::new(self);
        let bytes: &[u8] = (*owner).as_ref();
        let (start, all) = (NonNull::from(bytes).cast(), bytes.len());
        // SAFETY: the bytes are on the heap or a mapping, and stay where they are while the owner lives,
        // which nobody else can reach: nothing writes to them any more.
        let buffer = unsafe { Buffer::from_custom_allocation(start, all, owner) };
        buffer.slice_with_length(0, len)
    }

    /// The bytes as numbers; the buffer is aligned for all of them.
    pub(crate) fn as_mut<T: ArrowNativeType>(&mut self) -> &mut [T] {
        match &mut self.bytes {
            Bytes::Allocated(buffer) => buffer.typed_data_mut(),
            Bytes::Mapped(region) => {
                // SAFETY: the trait is Arrow's, sealed, for numbers, of which any bytes are one.
                let (front, numbers, back) = unsafe { region.align_to_mut() };
                debug_assert!(front.is_empty() && back.is_empty());
                numbers
            }
        }
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Allocated(buffer) => buffer,
            Bytes::Mapped(region) => region,
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let Bytes::Allocated(buffer) = &mut self.bytes else { return };
        let len = buffer.len();
        let Some(shelf) = self.shelf.upgrade().filter(|_| len <= LARGEST) else { return };
        let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.bytes + len <= SHELF {
            shelf.bytes += len;
            let buffer = std::mem::replace(buffer, MutableBuffer::new(0));
            shelf.buffers.entry(len).or_default().push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_once_nobody_uses_them() {
        let memory = Memory::default();
        let mut piece = memory.take(1000);
        piece.as_mut::<u64>()[0] = 7;
        let buffer = piece.freeze(16);
        let slice = buffer.slice(8);
        let place = buffer.as_ptr();
        drop(buffer);
        assert_ne!(memory.take(1000).freeze(1).as_ptr(), place);
        assert_eq!(slice.len(), 8);
        std::thread::spawn(move || drop(slice)).join().unwrap();
        // The one that came back, or a new one: whichever the shelf holds.
        let mut found = [memory.take(990), memory.take(1000)];
        assert!(found.iter_mut().any(|piece| piece.as_mut::<u64>()[0] == 7));
        let again = found;
        drop(memory);
        drop(again);
    }

    #[test]
    fn a_shelf_has_an_end() {
        let memory = Memory::default();
        let pieces: Vec<Piece> = (0..9).map(|_| memory.take(LARGEST)).collect();
        drop(pieces);
        let mut mapped = memory.take(LARGEST + 1);
        assert!(mapped.as_mut::<u64>().len() * 8 > LARGEST);
        mapped.as_mut::<u128>()[7] = 1;
        assert_eq!(mapped.freeze(LARGEST + 1).as_slice()[112], 1);
        let shelf = memory.shelf.lock().unwrap();
        assert_eq!(shelf.bytes, SHELF);
        assert_eq!(shelf.buffers.values().flatten().map(|b| b.len()).sum::<usize>(), SHELF);
    }

    #[test]
    fn lengths_are_few_and_long_enough() {
        for len in [0, 1, 63, 64, 65, 1000, 4096, 4097, 1 << 20, (1 << 20) + 1] {
            let rounded = rounded(len);
            assert!(rounded >= len && rounded <= len + len / 4 + 64, "{len} {rounded}");
        }
    }
}
