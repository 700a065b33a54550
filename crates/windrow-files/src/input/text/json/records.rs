//! Checks of NDJSON records for faults that the decoder of arrow accepts.
//!
//! 1. The decoder takes the string "1.10" for the number 1.1. Among the first rows, such a string
//!    would have made its column text. In a column inferred as numbers, a string is therefore an
//!    error.
//! 2. Values nested ten thousand deep exhaust the decoder's stack. Among the first rows, such
//!    values are refused, so these checks refuse them as well.
//! 3. If the decoder decodes everything as text, a column of bytes (strings in JSON) may get a
//!    number. The type of such a column is never inferred, but comes from a file read before.
//!
//! The checks walk over every record that the decoder decodes (see [`walk`](super::walk)). Few
//! records need the decoder: see [`plain`](super::plain).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};

use crate::input::text::named::TypesAt;

use super::walk::{ANY, Node, RECORD, Walk};

/// The checks, and the current record.
pub(crate) struct Records {
    nodes: Vec<Node>,
    /// The walk over a record that has begun and not ended.
    walk: Walk,
}

impl Records {
    /// Creates the checks for records of `schema`; types outside of `named` were inferred.
    pub(super) fn new(schema: &Schema, named: TypesAt<'_>) -> Self {
        let mut records = Self { nodes: vec![Node::Any, Node::Any], walk: Walk::default() };
        let keys = records.members(schema.fields(), "", named);
        records.nodes[RECORD] = Node::Object(keys);
        records
    }

    /// Returns the keys and nodes of members whose types are not `named`. Messages use the path
    /// `front` and the name.
    fn members(
        &mut self,
        fields: &Fields,
        front: &str,
        named: TypesAt<'_>,
    ) -> HashMap<String, usize> {
        let fields = fields.iter().filter(|field| !named.has(field));
        let member = |field: &Arc<Field>| {
            let path = format!("{front}{}", field.name());
            (field.name().clone(), self.node(field, &path, named.within(field)))
        };
        fields.map(member).collect()
    }

    /// Returns the node for the values of `field`. Messages use `path`; the types of some members
    /// are `named`.
    fn node(&mut self, field: &Field, path: &str, named: TypesAt<'_>) -> usize {
        let node = match field.data_type() {
            kind if is_of_numbers(kind) => Node::Number(path.to_owned(), kind.clone()),
            kind if kind.is_binary() => Node::Bytes(path.to_owned(), kind.clone()),
            DataType::RunEndEncoded(_, of) => {
                let plain = Field::clone(of).with_name(field.name());
                return self.node(&plain, path, named);
            }
            DataType::List(of)
            | DataType::LargeList(of)
            | DataType::ListView(of)
            | DataType::LargeListView(of)
            | DataType::FixedSizeList(of, _) => Node::List(self.node(of, path, named)),
            DataType::Struct(fields) => {
                Node::Object(self.members(fields, &format!("{path}."), named))
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(entry) if entry.len() == 2 => {
                    Node::Map(self.node(&entry[1], path, named))
                }
                _ => return ANY,
            },
            _ => return ANY,
        };
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Checks `text`, a line or a part of one, after decoding. `goes_on` means that the last record
    /// continues after `text`.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn pass(&mut self, text: &[u8], goes_on: bool) -> Result<(), ArrowError> {
        self.walk.pass(text, &self.nodes)?;
        if !goes_on {
            self.walk.stop();
        }
        Ok(())
    }
}

/// Returns whether a column of `kind` accepts only numbers.
pub(super) fn is_of_numbers(kind: &DataType) -> bool {
    kind.is_integer()
        || kind.is_floating()
        || matches!(
            kind,
            DataType::Decimal128(_, 0) | DataType::Decimal256(_, 0) | DataType::Duration(_)
        )
}

#[cfg(test)]
mod tests;
