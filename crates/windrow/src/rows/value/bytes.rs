//! Byte strings and text: with offsets, as views, of fixed size.
//!
//! # Invariant
//! All of them write the same bytes for the same content, so a column may change between the kinds
//! on its way. Text that is read is UTF-8.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder};
use arrow_schema::DataType;

use super::super::nested::{Form, Marked, cut_off, other_node};
use super::super::row_ref::Rest;
use super::super::strings::Strings;
use super::ValueReader;
use super::wire::refused;
use crate::error::{Error, Result};
use crate::order::code::Node;

pub(super) struct BytesReader {
    values: Strings,
    nulls: NullBufferBuilder,
}

impl BytesReader {
    pub(super) fn new(data_type: &DataType) -> Self {
        Self { values: Strings::new(data_type), nulls: NullBufferBuilder::new(0) }
    }
}

impl ValueReader for BytesReader {
    fn push_null(&mut self) -> Result<()> {
        self.values.push_empty(1);
        self.nulls.append_null();
        Ok(())
    }

    fn read_bodies(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        let Node::Plain(code) = node else { return Err(other_node()) };
        self.nulls.append_n_non_nulls(rows.len());
        self.values.read_codes(*code, form.descending(), None, rows, &mut Vec::new())
    }

    fn read_marked(
        &mut self,
        node: &Node,
        form: Form,
        marked: Marked,
        rows: &mut Rest<'_, '_>,
    ) -> Result<()> {
        let Node::Plain(code) = node else { return Err(other_node()) };
        marked.are_values(rows)?;
        let (mut valid, count) = (Vec::with_capacity(rows.len().div_ceil(64)), rows.len());
        let null = Some(marked.null);
        self.values.read_codes(*code, form.descending(), null, rows, &mut valid)?;
        let valid = BooleanBuffer::new(Buffer::from_vec(valid), 0, count);
        self.nulls.append_buffer(&NullBuffer::new(valid));
        Ok(())
    }

    fn fill(&mut self, count: usize) -> Result<()> {
        self.values.push_empty(count);
        self.nulls.append_n_non_nulls(count);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let nulls = self.nulls.finish();
        self.values.finish("(nested)", nulls).map_err(|error| match error {
            Error::Arrow(error) => refused(error),
            other => other,
        })
    }
}

pub(super) struct FixedBinaryReader {
    builder: FixedSizeBinaryBuilder,
    width: usize,
}

impl FixedBinaryReader {
    /// Of values of `width` bytes, which came from an `i32`.
    pub(super) fn new(width: usize) -> Self {
        Self { builder: FixedSizeBinaryBuilder::with_capacity(0, width as i32), width }
    }
}

impl ValueReader for FixedBinaryReader {
    fn push_null(&mut self) -> Result<()> {
        self.builder.append_null();
        Ok(())
    }

    fn read_bodies(&mut self, _: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        let mut value = vec![0; self.width];
        rows.for_each(|row| {
            let code = row.take(self.width).ok_or_else(cut_off)?;
            value.iter_mut().zip(code).for_each(|(value, code)| *value = code ^ form.flip);
            Ok(self.builder.append_value(&value)?)
        })
    }

    fn fill(&mut self, count: usize) -> Result<()> {
        let zeros = vec![0; self.width];
        (0..count).try_for_each(|_| Ok(self.builder.append_value(&zeros)?))
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(self.builder.finish()))
    }
}
