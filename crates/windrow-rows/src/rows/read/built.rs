//! Columns read by [`ValueReader`]s: nested values, and varying values stored once for many rows.

use std::sync::Arc;

use arrow_schema::DataType;

use super::part::{Bits, Columns, Part};
use super::tile::Tile;
use super::whole::body;
use crate::error::{Error, Result};
use crate::order::code::{Node, plain_type};
use crate::order::{Layout, Slot};
use crate::rows::nested::{Form, Marked, other_node};
use crate::rows::row_ref::{Rest, left};
use crate::rows::text;
use crate::rows::value::{self, ValueReader};

/// A column of ordered values with their markers, or of payload after its length.
pub(super) struct Built {
    column: usize,
    name: String,
    reader: Box<dyn ValueReader>,
    node: Arc<Node>,
    /// The column's slot in the order; `None` for payload.
    slot: Option<Slot>,
}

impl Built {
    /// Creates the part for `column` of `layout`.
    pub(super) fn new(layout: &Layout, column: usize) -> Result<Self> {
        let field = layout.schema().field(column);
        let slot = layout.slots().iter().find(|slot| slot.column == column).cloned();
        let node = match &slot {
            Some(slot) => tree(slot, field.data_type()),
            None => Node::of(field.data_type()).map(Arc::new),
        };
        let (node, reader) = (node.ok_or_else(other_node)?, value::reader(field.data_type())?);
        Ok(Self { column, name: field.name().clone(), reader, node, slot })
    }

    /// Returns true if a [`ValueReader`] must read the values of `slot`, a column of `data_type`.
    pub(super) fn reads(slot: &Slot, data_type: &DataType) -> bool {
        tree(slot, data_type).is_some()
    }

    /// Reads payload. Every code must be exactly as long as its length says.
    fn take_bodies(&mut self, tile: &mut Tile<'_>) -> Result<()> {
        let bytes = tile.bytes();
        let (cursors, row_ends) = tile.cursors();
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for (cursor, &end) in cursors.iter_mut().zip(row_ends) {
            let (head, code) = body(left(bytes, *cursor, end).row())?;
            starts.push(*cursor + head);
            *cursor += head + code.len();
            ends.push(*cursor);
        }
        let rest = &mut Rest { bytes, cursors: &mut starts, ends: &ends };
        in_column(&self.name, self.reader.read_codes(&self.node, Form::STORED, rest))?;
        if *rest.cursors == *rest.ends {
            return Ok(());
        }
        Err(Error::Corrupt {
            place: format!("column {:?} of a row", self.name),
            message: "bytes behind a value".into(),
        })
    }
}

impl Part for Built {
    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        let Some(slot) = &self.slot else { return self.take_bodies(tile) };
        let (node, form, rest) = (&*self.node, Form::of(slot), &mut tile.rest());
        let (null, value) = text::markers(slot);
        let marked = slot.has_marker().then_some(Marked { null, value });
        in_column(&self.name, self.reader.read_marked(node, form, marked, rest))
    }

    fn finish(mut self: Box<Self>, columns: &mut Columns) -> Result<()> {
        columns.ready[self.column] = Some(in_column(&self.name, self.reader.finish())?);
        Ok(())
    }
}

/// Names the column in errors about a value: readers know only types.
fn in_column<T>(name: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        Error::Value { message, .. } => Error::Value { column: name.to_owned(), message },
        other => other,
    })
}

/// Returns the tree of a slot whose values need a [`ValueReader`]: nested values, and varying
/// values stored once for many rows.
fn tree(slot: &Slot, data_type: &DataType) -> Option<Arc<Node>> {
    let is_encoded = plain_type(data_type) != data_type;
    match &slot.node {
        Some(node) => Some(Arc::clone(node)),
        None => (is_encoded && slot.code.varies()).then(|| Arc::new(Node::Plain(slot.code))),
    }
}
