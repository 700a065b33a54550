//! Nulls, Booleans, and values of fixed width: numbers and byte strings.
//!
//! Invariant: numbers keep their bits: -0.0 differs from 0.0, and NaNs with different payloads
//! differ.

use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::{ArrayRef, NullArray, make_array};
use arrow_buffer::{MutableBuffer, NullBufferBuilder};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::super::fixed::{Word, with_kind, with_word};
use super::super::nested::{END, Form, MORE, Marked, VALUE, cut_off, other_node};
use super::super::row_ref::Rest;
use super::reader::ValueReader;
use super::wire::{append, corrupt, refused, too_many};
use crate::error::Result;
use crate::order::code::{Node, OrderedCode};

/// Reads numbers, and byte strings of one width, into the buffer of an array.
pub(super) struct FixedReader {
    data_type: DataType,
    /// Bytes of a value.
    width: usize,
    /// A buffer of Arrow, aligned for all types.
    values: MutableBuffer,
    nulls: NullBufferBuilder,
}

impl FixedReader {
    pub(super) fn new(data_type: &DataType, width: usize) -> Self {
        Self {
            data_type: data_type.clone(),
            width,
            values: MutableBuffer::new(0),
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Reads values like [`FixedReader::read`]. `read` converts a code of `width` bytes into the
    /// given value.
    #[inline(always)]
    fn read_each(
        &mut self,
        width: usize,
        marked: Option<Marked>,
        rows: &mut Rest<'_, '_>,
        read: impl Fn(&[u8], &mut [u8]),
    ) -> Result<()> {
        let (start, bytes) = (self.values.len(), rows.bytes);
        self.values.resize(start + rows.len() * width, 0);
        let (values, nulls) = (&mut self.values[start..], &mut self.nulls);
        let mut targets = values.chunks_exact_mut(width.max(1));
        let Some(marked) = marked else {
            nulls.append_n_non_nulls(rows.len());
            for ((cursor, &end), target) in rows.cursors.iter_mut().zip(rows.ends).zip(targets) {
                let behind = *cursor + width;
                let code = bytes.get(*cursor..behind).filter(|_| behind <= end);
                read(code.ok_or_else(cut_off)?, target);
                *cursor = behind;
            }
            return Ok(());
        };
        // Markers and values in one pass.
        rows.for_each(|row| {
            let valid = marked.is_value(row)?;
            let target = targets.next();
            if let (true, Some(target)) = (valid, target) {
                read(row.take(width).ok_or_else(cut_off)?, target);
            }
            nulls.append(valid);
            Ok(())
        })
    }
}

impl ValueReader for FixedReader {
    fn read_marked(
        &mut self,
        node: &Node,
        form: Form,
        marked: Option<Marked>,
        rows: &mut Rest<'_, '_>,
    ) -> Result<()> {
        match *node {
            Node::Plain(OrderedCode::Fixed(_, kind)) => with_word!(self.width, W => {
                self.read_each(W::BYTES, marked, rows, |code, value| {
                    W::read_big(code).value(kind, form.descending()).write_native(value);
                })
            }),
            Node::Plain(OrderedCode::FixedBinary(width)) => {
                self.read_each(width, marked, rows, |code, value| {
                    value.iter_mut().zip(code).for_each(|(value, code)| *value = code ^ form.flip);
                })
            }
            _ => Err(other_node()),
        }
    }

    fn read_lists(
        &mut self,
        node: &Node,
        form: Form,
        rows: &mut Rest<'_, '_>,
        counts: &mut [usize],
    ) -> usize {
        let Node::Plain(OrderedCode::Fixed(_, kind)) = *node else { return 0 };
        // The list goes on, and the number is not null.
        let head = [MORE, VALUE].map(|byte| byte ^ form.flip);
        let (start, values, mut read) = (self.values.len(), &mut self.values, 0);
        with_word!(self.width, W => with_kind!(kind, KIND => {
            for (at, count) in counts.iter_mut().enumerate() {
                let (row, before) = (rows.row(at), values.len());
                let mut left = row.row();
                while let Some((cell, behind)) = left.split_first_chunk::<{ 2 + W::BYTES }>()
                    && cell.starts_with(&head)
                {
                    values.push(W::read_big(&cell[head.len()..]).value(KIND, form.descending()));
                    left = behind;
                }
                if left.first() != Some(&(END ^ form.flip)) {
                    values.truncate(before);
                    break;
                }
                *count = (values.len() - before) / W::BYTES;
                rows.cursors[at] += row.len() - left.len() + 1;
                read += 1;
            }
        }));
        self.nulls.append_n_non_nulls((self.values.len() - start) / self.width);
        read
    }

    fn fill(&mut self, count: usize, valid: bool) -> Result<()> {
        self.values.extend_zeros(count * self.width);
        append(&mut self.nulls, count, valid);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let len = self.nulls.len();
        let values = std::mem::replace(&mut self.values, MutableBuffer::new(0));
        let data = ArrayData::builder(self.data_type.clone())
            .len(len)
            .add_buffer(values.into())
            .nulls(self.nulls.finish());
        Ok(make_array(data.build().map_err(refused)?))
    }
}

pub(super) struct BooleanReader(BooleanBuilder);

impl BooleanReader {
    pub(super) fn new() -> Self {
        Self(BooleanBuilder::with_capacity(0))
    }
}

impl ValueReader for BooleanReader {
    fn read_bodies(&mut self, _: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        rows.for_each(|row| match form.byte(row)? {
            byte @ (0 | 1) => {
                self.0.append_value(byte == 1);
                Ok(())
            }
            other => Err(corrupt(format!("expected a boolean of 0 or 1, got {other}"))),
        })
    }

    fn fill(&mut self, count: usize, valid: bool) -> Result<()> {
        match valid {
            true => self.0.append_n(count, false),
            false => self.0.append_nulls(count),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(self.0.finish()))
    }
}

/// Counts nulls.
#[derive(Default)]
pub(super) struct NullReader(usize);

impl ValueReader for NullReader {
    fn read_bodies(&mut self, _: &Node, _: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        self.fill(rows.len(), false)
    }

    fn fill(&mut self, count: usize, _valid: bool) -> Result<()> {
        let total = self.0.checked_add(count);
        self.0 = total.ok_or_else(|| too_many(&DataType::Null, "the rows"))?;
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(NullArray::new(std::mem::take(&mut self.0))))
    }
}
