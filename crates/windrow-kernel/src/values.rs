//! Growable buffers of a column's values, aligned to cache lines.
//!
//! ```text
//! | 64 bytes | 64 bytes | ...      a register of values is a cache line: one store, no read first
//! ```

use std::marker::PhantomData;

use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer};

/// A vector of numbers whose memory begins at a cache line.
///
/// Benefit of the alignment: reading 8 columns of 8192 numbers out of rows takes 13.6 instead of
/// 19.7 us, 10 columns 18.4 instead of 36.5 us.
#[derive(Debug)]
pub struct Values<T> {
    buffer: MutableBuffer,
    of: PhantomData<T>,
}

impl<T: ArrowNativeType> Values<T> {
    /// Creates an empty vector with capacity for `count` values.
    pub fn with_capacity(count: usize) -> Self {
        let bytes = count.checked_mul(size_of::<T>()).expect("values fit the address space");
        Self { buffer: MutableBuffer::with_capacity(bytes), of: PhantomData }
    }

    pub fn push(&mut self, value: T) {
        self.buffer.push(value);
    }

    pub fn extend(&mut self, values: &[T]) {
        self.buffer.extend_from_slice(values);
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.buffer.len() / size_of::<T>()
    }

    /// Keeps the first `count` values.
    pub fn truncate(&mut self, count: usize) {
        self.buffer.truncate(count * size_of::<T>());
    }

    /// Returns the last `count` values.
    ///
    /// # Panics
    /// If the vector has fewer values.
    pub fn last_mut(&mut self, count: usize) -> &mut [T] {
        let first = self.len() - count;
        &mut self.buffer.typed_data_mut()[first..]
    }

    /// Reserves capacity for `count` more values.
    pub fn reserve(&mut self, count: usize) {
        let bytes = count.checked_mul(size_of::<T>()).expect("values fit the address space");
        self.buffer.reserve(bytes);
    }

    /// Reserves capacity for `count` more values and returns where to write them.
    pub(super) fn room(&mut self, count: usize) -> *mut T {
        self.reserve(count);
        // SAFETY: the length is at most the capacity, so the pointer is within the buffer or at its
        // end.
        unsafe { self.buffer.as_mut_ptr().add(self.buffer.len()).cast() }
    }

    /// Adds `count` values, which the caller wrote, to the length.
    ///
    /// # Safety
    /// The values were written to the pointer of [`Values::room`], called for at least `count`
    /// values.
    pub(super) unsafe fn grow(&mut self, count: usize) {
        // SAFETY: the caller wrote `count` values after the current length, within the capacity.
        unsafe { self.buffer.set_len(self.buffer.len() + count * size_of::<T>()) };
    }
}

impl<T> From<Values<T>> for Buffer {
    fn from(values: Values<T>) -> Self {
        values.buffer.into()
    }
}

#[cfg(test)]
impl<T> Values<T> {
    /// Returns the bytes of all values.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.as_slice()
    }
}

#[cfg(test)]
impl<T: ArrowNativeType> AsRef<[T]> for Values<T> {
    fn as_ref(&self) -> &[T] {
        self.buffer.typed_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_grow_in_lines() {
        let mut values = Values::<u32>::with_capacity(3);
        for round in 0..200u32 {
            values.push(round);
            // SAFETY: two values are written to a reservation of three.
            unsafe {
                let room = values.room(3);
                room.write(round + 1);
                room.add(1).write(round + 2);
                values.grow(2);
            }
            assert_eq!(values.last_mut(3), [round, round + 1, round + 2]);
            values.last_mut(1)[0] = 0;
            values.truncate(values.len() - 1);
            assert_eq!(values.bytes().as_ptr().align_offset(64), 0);
        }
        values.truncate(1000);
        let expected: Vec<u32> = (0..200).flat_map(|round| [round, round + 1]).collect();
        assert_eq!((values.len(), values.as_ref()), (400, &expected[..]));
        assert_eq!(Buffer::from(values).typed_data::<u32>(), &expected[..]);
    }
}
