//! Nulls, booleans and fixed-width numbers.
//!
//! # Invariant
//! A number's body is its bits, whatever they are: -0.0 differs from 0.0, and NaNs with different
//! payloads from each other. They are taken as they lie in Arrow's buffer, so in the byte order of
//! the machine (which rows do not leave): little-endian on all that we test.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, BooleanArray, NullArray, PrimitiveArray};
use arrow_buffer::{MutableBuffer, NullBufferBuilder, ScalarBuffer, ToByteSlice};
use arrow_schema::DataType;

use super::super::fixed::{Word, with_word};
use super::super::nested::{Form, Marked, cut_off, other_node};
use super::super::row_ref::Rest;
use super::wire::{corrupt, put_marker, refused, take, take_bool, take_marker, too_many};
use super::{ValueReader, ValueWriter};
use crate::error::Result;
use crate::kernel::rows::take_lists::{Lists, take_lists};
use crate::order::code::{Node, OrderedCode};

pub(super) struct PrimitiveWriter<'a, T: ArrowPrimitiveType>(pub(super) &'a PrimitiveArray<T>);

impl<T: ArrowPrimitiveType> ValueWriter for PrimitiveWriter<'_, T> {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if put_marker(self.0.is_valid(row), out) {
            out.extend_from_slice(self.0.value(row).to_byte_slice());
        }
    }
}

/// Gathers bytes: the buffer of the array is the bodies of the values, one after another.
pub(super) struct PrimitiveReader<T> {
    /// What `T` leaves open is in here: time zone, precision and scale.
    data_type: DataType,
    /// Arrow's own, because it is aligned for every `T`.
    values: MutableBuffer,
    nulls: NullBufferBuilder,
    number: PhantomData<fn() -> T>,
}

impl<T: ArrowPrimitiveType> PrimitiveReader<T> {
    const WIDTH: usize = size_of::<T::Native>();

    pub(super) fn new(data_type: &DataType) -> Self {
        Self {
            data_type: data_type.clone(),
            values: MutableBuffer::new(0),
            nulls: NullBufferBuilder::new(0),
            number: PhantomData,
        }
    }
}

impl<T: ArrowPrimitiveType> ValueReader for PrimitiveReader<T> {
    fn read(&mut self, bytes: &mut &[u8]) -> Result<()> {
        let valid = take_marker(bytes)?;
        match valid {
            true => self.values.extend_from_slice(take(bytes, Self::WIDTH)?),
            false => self.values.extend_zeros(Self::WIDTH),
        }
        self.nulls.append(valid);
        Ok(())
    }

    fn read_bodies(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        let Node::Plain(OrderedCode::Fixed(_, kind)) = *node else { return Err(other_node()) };
        let start = self.values.len();
        self.values.resize(start + rows.len() * Self::WIDTH, 0);
        self.nulls.append_n_non_nulls(rows.len());
        let bytes = rows.bytes;
        with_word!(Self::WIDTH, W => {
            let targets = self.values[start..].chunks_exact_mut(W::BYTES);
            for ((cursor, &end), target) in rows.cursors.iter_mut().zip(rows.ends).zip(targets) {
                let behind = *cursor + W::BYTES;
                let code = bytes.get(*cursor..behind).filter(|_| behind <= end);
                let code = code.ok_or_else(cut_off)?;
                W::read_big(code).value(kind, form.descending()).write_native(target);
                *cursor = behind;
            }
        });
        Ok(())
    }

    /// Markers and values in one pass.
    fn read_marked(
        &mut self,
        node: &Node,
        form: Form,
        marked: Marked,
        rows: &mut Rest<'_, '_>,
    ) -> Result<()> {
        let Node::Plain(OrderedCode::Fixed(_, kind)) = *node else { return Err(other_node()) };
        let start = self.values.len();
        self.values.resize(start + rows.len() * Self::WIDTH, 0);
        let targets = self.values[start..].chunks_exact_mut(Self::WIDTH);
        let (mut targets, nulls) = (targets, &mut self.nulls);
        with_word!(Self::WIDTH, W => rows.for_each(|row| {
            let valid = marked.is_value(row)?;
            let target = targets.next();
            if let (true, Some(target)) = (valid, target) {
                let code = row.take(W::BYTES).ok_or_else(cut_off)?;
                W::read_big(code).value(kind, form.descending()).write_native(target);
            }
            nulls.append(valid);
            Ok(())
        }))
    }

    fn read_lists(
        &mut self,
        node: &Node,
        form: Form,
        rows: &mut Rest<'_, '_>,
        counts: &mut [usize],
    ) -> usize {
        let Node::Plain(OrderedCode::Fixed(_, kind)) = *node else { return 0 };
        let lists =
            Lists { bytes: rows.bytes, ends: rows.ends, width: Self::WIDTH, flip: form.flip };
        let start = self.values.len();
        let mut values = std::mem::replace(&mut self.values, MutableBuffer::new(0)).into();
        let read = take_lists(&lists, rows.cursors, &mut values, counts);
        self.values = values.into();
        with_word!(Self::WIDTH, W => {
            for value in self.values[start..].chunks_exact_mut(W::BYTES) {
                W::read_native(value).value(kind, false).write_native(value);
            }
        });
        self.nulls.append_n_non_nulls((self.values.len() - start) / Self::WIDTH);
        read
    }

    fn skip(&self, bytes: &mut &[u8]) -> Result<()> {
        if take_marker(bytes)? {
            take(bytes, Self::WIDTH)?;
        }
        Ok(())
    }

    fn fill(&mut self, count: usize) -> Result<()> {
        self.values.extend_zeros(count * Self::WIDTH);
        self.nulls.append_n_non_nulls(count);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let len = self.nulls.len();
        let values = std::mem::replace(&mut self.values, MutableBuffer::new(0));
        let values = ScalarBuffer::new(values.into(), 0, len);
        let array = PrimitiveArray::<T>::try_new(values, self.nulls.finish()).map_err(refused)?;
        Ok(Arc::new(array.with_data_type(self.data_type.clone())))
    }
}

pub(super) struct BooleanWriter<'a>(pub(super) &'a BooleanArray);

impl ValueWriter for BooleanWriter<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if put_marker(self.0.is_valid(row), out) {
            out.push(u8::from(self.0.value(row)));
        }
    }
}

pub(super) struct BooleanReader(BooleanBuilder);

impl BooleanReader {
    pub(super) fn new() -> Self {
        Self(BooleanBuilder::with_capacity(0))
    }
}

impl ValueReader for BooleanReader {
    fn read(&mut self, bytes: &mut &[u8]) -> Result<()> {
        match take_marker(bytes)? {
            true => self.0.append_value(take_bool(bytes, "boolean")?),
            false => self.0.append_null(),
        }
        Ok(())
    }

    fn read_bodies(&mut self, _: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        rows.for_each(|row| match form.byte(row)? {
            byte @ (0 | 1) => {
                self.0.append_value(byte == 1);
                Ok(())
            }
            other => Err(corrupt(format!("expected a boolean of 0 or 1, got {other}"))),
        })
    }

    fn skip(&self, bytes: &mut &[u8]) -> Result<()> {
        if take_marker(bytes)? {
            take_bool(bytes, "boolean")?;
        }
        Ok(())
    }

    fn fill(&mut self, count: usize) -> Result<()> {
        self.0.append_n(count, false);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(self.0.finish()))
    }
}

pub(super) struct NullWriter;

impl ValueWriter for NullWriter {
    fn write(&self, _row: usize, _out: &mut Vec<u8>) {}
}

/// Counts.
#[derive(Default)]
pub(super) struct NullReader(usize);

impl ValueReader for NullReader {
    fn read(&mut self, _bytes: &mut &[u8]) -> Result<()> {
        self.fill(1)
    }

    fn read_bodies(&mut self, _: &Node, _: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        self.fill(rows.len())
    }

    fn skip(&self, _bytes: &mut &[u8]) -> Result<()> {
        Ok(())
    }

    fn fill(&mut self, count: usize) -> Result<()> {
        let total = self.0.checked_add(count);
        self.0 = total.ok_or_else(|| too_many(&DataType::Null, "the rows"))?;
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(NullArray::new(std::mem::take(&mut self.0))))
    }
}
