//! Values of a fixed number of other values: Struct and FixedSizeList.
//!
//! # Invariant
//! A null writes none of its parts. The reader fills their slots with valid placeholders, so that
//! non-nullable fields have no nulls.

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, StructArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, FieldRef, Fields};

use super::super::nested::{Form, other_node};
use super::super::row_ref::Rest;
use super::list::Elements;
use super::reader::ValueReader;
use super::wire::{append, refused, too_many};
use crate::error::Result;
use crate::order::code::Node;

/// Maximum number of placeholder elements for fixed-size lists at once. Sizes multiply when such
/// lists nest, and a few corrupt bytes must not request more than any real array holds.
const MAX_FILL: usize = u32::MAX as usize;

pub(super) struct StructReader {
    types: Fields,
    fields: Vec<Box<dyn ValueReader>>,
    nulls: NullBufferBuilder,
}

impl StructReader {
    pub(super) fn new(types: &Fields, fields: Vec<Box<dyn ValueReader>>) -> Self {
        Self { types: types.clone(), fields, nulls: NullBufferBuilder::new(0) }
    }
}

impl ValueReader for StructReader {
    fn read_bodies(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        let Node::Struct(nodes) = node else { return Err(other_node()) };
        self.nulls.append_n_non_nulls(rows.len());
        let mut fields = self.fields.iter_mut().zip(nodes);
        fields.try_for_each(|(field, node)| field.read_codes(node, form, rows))
    }

    fn fill(&mut self, count: usize, valid: bool) -> Result<()> {
        append(&mut self.nulls, count, valid);
        self.fields.iter_mut().try_for_each(|field| field.fill(count, true))
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let len = self.nulls.len();
        let fields = (self.fields.iter_mut().map(|field| field.finish())).collect::<Result<_>>()?;
        let types = self.types.clone();
        let array = StructArray::try_new_with_length(types, fields, self.nulls.finish(), len);
        Ok(Arc::new(array.map_err(refused)?))
    }
}

pub(super) struct FixedListReader {
    data_type: DataType,
    field: FieldRef,
    size: usize,
    nulls: NullBufferBuilder,
    values: Box<dyn ValueReader>,
}

impl FixedListReader {
    pub(super) fn new(
        data_type: &DataType,
        field: &FieldRef,
        size: usize,
        values: Box<dyn ValueReader>,
    ) -> Self {
        Self {
            data_type: data_type.clone(),
            field: field.clone(),
            size,
            nulls: NullBufferBuilder::new(0),
            values,
        }
    }

    fn fill_elements(&mut self, lists: usize) -> Result<()> {
        match lists.checked_mul(self.size) {
            Some(count) if count <= MAX_FILL => self.values.fill(count, true),
            _ => Err(too_many(&self.data_type, "the elements")),
        }
    }
}

impl ValueReader for FixedListReader {
    fn read_bodies(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        let Node::FixedList(element, size) = node else { return Err(other_node()) };
        self.nulls.append_n_non_nulls(rows.len());
        if matches!(**element, Node::Nothing) {
            return self.fill_elements(rows.len());
        }
        // An element has a byte or more: damaged rows reserve no more than they have.
        let count = rows.len().saturating_mul(*size).min(rows.bytes.len());
        let mut elements = Elements::with_capacity(count);
        for at in 0..rows.len() {
            for _ in 0..*size {
                elements.add(rows, at, |row| form.skip(element, row))?;
            }
        }
        self.values.read_codes(element, form, &mut elements.rest(rows.bytes))
    }

    fn fill(&mut self, count: usize, valid: bool) -> Result<()> {
        append(&mut self.nulls, count, valid);
        self.fill_elements(count)
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let len = self.nulls.len();
        let array = FixedSizeListArray::try_new_with_length(
            self.field.clone(),
            // The size came from an i32.
            self.size as i32,
            self.values.finish()?,
            self.nulls.finish(),
            len,
        );
        Ok(Arc::new(array.map_err(refused)?))
    }
}
