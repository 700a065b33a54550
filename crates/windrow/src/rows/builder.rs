//! Columns whose values are read by [`ValueReader`]s: nested ones, and those that are stored once for many rows and vary.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::nested::{Form, Marked, other_node};
use super::row_ref::Rest;
use super::text;
use super::value::{self, ValueReader};
use crate::error::{Error, Result};
use crate::order::code::{Node, plain_type};
use crate::order::{Layout, Slot};

/// Builds one column.
pub(super) struct Builder {
    name: String,
    reader: Box<dyn ValueReader>,
    node: Arc<Node>,
}

impl Builder {
    /// The builder of `column` of `layout`.
    pub(super) fn new(layout: &Layout, column: usize) -> Result<Self> {
        let field = layout.schema().field(column);
        let slot = layout.slots().iter().find(|slot| slot.column == column);
        let node = match slot {
            Some(slot) => tree(slot, field.data_type()),
            None => Node::of(field.data_type()).map(Arc::new),
        };
        Ok(Self {
            name: field.name().clone(),
            reader: value::reader(field.data_type())?,
            node: node.ok_or_else(other_node)?,
        })
    }

    /// True if the values of `slot`, a column of `data_type`, are to be read this way.
    pub(super) fn reads(slot: &Slot, data_type: &DataType) -> bool {
        tree(slot, data_type).is_some()
    }

    /// Values that take no part in the order: all that is left of each row, which is then empty.
    pub(super) fn extend_stored(&mut self, rest: &mut Rest<'_, '_>) -> Result<()> {
        in_column(&self.name, self.reader.read_codes(&self.node, Form::STORED, rest))?;
        if &*rest.cursors == rest.ends {
            return Ok(());
        }
        Err(Error::Corrupt {
            place: format!("column {:?} of a row", self.name),
            message: "bytes behind a value".into(),
        })
    }

    /// Ordered values of a slot with their markers, at the start of what is left of each row; that is then behind them.
    pub(super) fn extend_values(&mut self, slot: &Slot, rest: &mut Rest<'_, '_>) -> Result<()> {
        let (node, form) = (&*self.node, Form::of(slot));
        let (null, value) = text::markers(slot);
        let read = match slot.has_marker() {
            true => self.reader.read_marked(node, form, Marked { null, value }, rest),
            false => self.reader.read_bodies(node, form, rest),
        };
        in_column(&self.name, read)
    }

    /// The column of all that was read.
    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        in_column(&self.name, self.reader.finish())
    }
}

/// `result`, of which an error about a value names the column: readers know types alone.
fn in_column<T>(name: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        Error::Value { message, .. } => Error::Value { column: name.to_owned(), message },
        other => other,
    })
}

/// The tree of a slot whose values are read one by one: nested ones, and those that are stored once for
/// many rows and vary.
fn tree(slot: &Slot, data_type: &DataType) -> Option<Arc<Node>> {
    let is_encoded = plain_type(data_type) != data_type;
    match &slot.node {
        Some(node) => Some(Arc::clone(node)),
        None => (is_encoded && slot.code.varies()).then(|| Arc::new(Node::Plain(slot.code))),
    }
}
