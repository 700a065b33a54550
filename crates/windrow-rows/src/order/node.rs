//! Nested types without their encodings: the part of a type that determines the order of its
//! values.

use arrow_schema::{DataType, FieldRef};

use super::code::OrderedCode;
use super::types::Physical;

/// A type as a tree. Every kind of list becomes a list; dictionaries and runs become their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// All values are null and take no bytes.
    Nothing,
    Plain(OrderedCode),
    List(Box<Node>),
    FixedList(Box<Node>, usize),
    Struct(Vec<Node>),
    Union(Vec<(i8, Node)>),
}

impl Node {
    /// Returns the tree of a type, or `None` if a width or size is below zero.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        let child = |field: &FieldRef| Self::of(field.data_type());
        Some(match Physical::of(data_type)? {
            Physical::Null => Self::Nothing,
            Physical::Boolean
            | Physical::Number(..)
            | Physical::FixedBinary(_)
            | Physical::Bytes(..) => Self::Plain(OrderedCode::of(data_type)?),
            Physical::Dictionary(_, values) => Self::of(values)?,
            Physical::Runs(_, values) => child(values)?,
            Physical::List(_, field) => Self::List(Box::new(child(field)?)),
            Physical::FixedList(field, size) => Self::FixedList(Box::new(child(field)?), size),
            Physical::Struct(fields) => {
                Self::Struct(fields.iter().map(child).collect::<Option<_>>()?)
            }
            Physical::Union(fields, _) => {
                let children = fields.iter().map(|(id, field)| Some((id, child(field)?)));
                Self::Union(children.collect::<Option<_>>()?)
            }
        })
    }
}
