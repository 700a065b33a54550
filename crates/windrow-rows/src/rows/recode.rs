//! Conversion between encodings: dictionaries and run ends to plain arrays, and back.

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::nested::{Form, other_node, stored};
use super::row_ref::Rest;
use super::value::reader;
use crate::error::Result;
use crate::order::code::Node;

/// Converts `array` to another encoding: `to` must be the same type apart from encodings.
pub(super) fn recode(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let (bytes, offsets) = stored(array)?;
    let mut cursors = offsets[..array.len()].to_vec();
    let node = Node::of(to).ok_or_else(other_node)?;
    let mut reader = reader(to)?;
    let rows = &mut Rest { bytes: &bytes, cursors: &mut cursors, ends: &offsets[1..] };
    reader.read_codes(&node, Form::STORED, rows)?;
    reader.finish()
}
