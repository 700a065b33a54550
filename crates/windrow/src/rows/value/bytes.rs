//! Byte strings and text: with offsets, as views, of fixed size.
//!
//! # Invariant
//! All of them write the same bytes for the same content, so a column may change between the kinds
//! on its way. Text that is read is UTF-8.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, GenericByteBuilder, GenericByteViewBuilder};
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{Array, ArrayAccessor, ArrayRef, FixedSizeBinaryArray};
use arrow_buffer::ArrowNativeType;

use super::wire::{corrupt, put_len, put_marker, take, take_len, take_marker, too_many};
use super::{ValueReader, ValueWriter};
use crate::error::Result;

pub(super) struct BytesWriter<A>(pub(super) A);

impl<A: ArrayAccessor<Item: AsRef<[u8]>>> ValueWriter for BytesWriter<A> {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if put_marker(self.0.is_valid(row), out) {
            let value = self.0.value(row);
            let value = value.as_ref();
            put_len(value.len(), out);
            out.extend_from_slice(value);
        }
    }
}

/// What bytes may be taken for: anything, or UTF-8 only.
pub(super) trait Content {
    fn check(bytes: &[u8]) -> Result<&Self>;
}

impl Content for [u8] {
    fn check(bytes: &[u8]) -> Result<&Self> {
        Ok(bytes)
    }
}

impl Content for str {
    fn check(bytes: &[u8]) -> Result<&Self> {
        std::str::from_utf8(bytes).map_err(|error| corrupt(error.to_string()))
    }
}

/// The part of Arrow's two builders that a reader needs.
pub(super) trait BytesBuilder {
    type Item: Content + ?Sized;
    fn append(&mut self, value: &Self::Item) -> Result<()>;
    fn append_null(&mut self);
    fn build(&mut self) -> ArrayRef;
}

impl<T: ByteArrayType<Native: Content>> BytesBuilder for GenericByteBuilder<T> {
    type Item = T::Native;

    fn append(&mut self, value: &T::Native) -> Result<()> {
        let bytes: &[u8] = value.as_ref();
        // The builder itself would panic.
        if T::Offset::from_usize(self.values_slice().len() + bytes.len()).is_none() {
            return Err(too_many(&T::DATA_TYPE, "the bytes"));
        }
        self.append_value(value);
        Ok(())
    }

    fn append_null(&mut self) {
        self.append_null();
    }

    fn build(&mut self) -> ArrayRef {
        Arc::new(self.finish())
    }
}

impl<T: ByteViewType<Native: Content>> BytesBuilder for GenericByteViewBuilder<T> {
    type Item = T::Native;

    fn append(&mut self, value: &T::Native) -> Result<()> {
        self.try_append_value(value).map_err(|_| too_many(&T::DATA_TYPE, "the bytes"))
    }

    fn append_null(&mut self) {
        self.append_null();
    }

    fn build(&mut self) -> ArrayRef {
        Arc::new(self.finish())
    }
}

pub(super) struct BytesReader<B>(pub(super) B);

impl<B: BytesBuilder> ValueReader for BytesReader<B> {
    fn read(&mut self, bytes: &mut &[u8]) -> Result<()> {
        if take_marker(bytes)? {
            let len = take_len(bytes)?;
            return self.0.append(B::Item::check(take(bytes, len)?)?);
        }
        self.0.append_null();
        Ok(())
    }

    fn skip(&self, bytes: &mut &[u8]) -> Result<()> {
        if take_marker(bytes)? {
            let len = take_len(bytes)?;
            take(bytes, len)?;
        }
        Ok(())
    }

    fn fill(&mut self, count: usize) -> Result<()> {
        let empty = B::Item::check(&[])?;
        (0..count).try_for_each(|_| self.0.append(empty))
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(self.0.build())
    }
}

pub(super) struct FixedBinaryWriter<'a>(pub(super) &'a FixedSizeBinaryArray);

impl ValueWriter for FixedBinaryWriter<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if put_marker(self.0.is_valid(row), out) {
            out.extend_from_slice(self.0.value(row));
        }
    }
}

pub(super) struct FixedBinaryReader {
    builder: FixedSizeBinaryBuilder,
    width: usize,
}

impl FixedBinaryReader {
    /// `width` in bytes, not negative.
    pub(super) fn new(width: i32) -> Self {
        Self { builder: FixedSizeBinaryBuilder::with_capacity(0, width), width: width as usize }
    }
}

impl ValueReader for FixedBinaryReader {
    fn read(&mut self, bytes: &mut &[u8]) -> Result<()> {
        if take_marker(bytes)? {
            return Ok(self.builder.append_value(take(bytes, self.width)?)?);
        }
        self.builder.append_null();
        Ok(())
    }

    fn skip(&self, bytes: &mut &[u8]) -> Result<()> {
        if take_marker(bytes)? {
            take(bytes, self.width)?;
        }
        Ok(())
    }

    fn fill(&mut self, count: usize) -> Result<()> {
        let zeros = vec![0; self.width];
        (0..count).try_for_each(|_| Ok(self.builder.append_value(&zeros)?))
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(self.builder.finish()))
    }
}
