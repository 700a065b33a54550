//! Byte strings and text: with offsets, and as views.
//!
//! # Invariant
//! All kinds write the same bytes for the same content, so a column may change its kind on the way.
//! Text is validated as UTF-8.

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder};
use arrow_schema::DataType;

use super::super::nested::{Form, Marked, other_node};
use super::super::row_ref::Rest;
use super::super::strings::{self, Strings};
use super::reader::ValueReader;
use super::wire::append;
use crate::error::Result;
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
    fn read_marked(
        &mut self,
        node: &Node,
        form: Form,
        marked: Option<Marked>,
        rows: &mut Rest<'_, '_>,
    ) -> Result<()> {
        let Node::Plain(code) = node else { return Err(other_node()) };
        let coded = strings::coded(*code, form.descending());
        let Some(marked) = marked else {
            self.nulls.append_n_non_nulls(rows.len());
            return self.values.read_codes(coded, None, rows, &mut Vec::new());
        };
        marked.are_values(rows)?;
        let (mut valid, count) = (Vec::with_capacity(rows.len().div_ceil(64)), rows.len());
        self.values.read_codes(coded, Some(marked.null), rows, &mut valid)?;
        let valid = BooleanBuffer::new(Buffer::from_vec(valid), 0, count);
        self.nulls.append_buffer(&NullBuffer::new(valid));
        Ok(())
    }

    fn fill(&mut self, count: usize, valid: bool) -> Result<()> {
        self.values.push_empty(count);
        append(&mut self.nulls, count, valid);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let nulls = self.nulls.finish();
        self.values.finish("(nested)", nulls)
    }
}
