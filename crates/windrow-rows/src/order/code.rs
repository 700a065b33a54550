//! Codes: how a row stores the values of a type.
//!
//! Ordered codes compare as bytes like the values; payload codes are equal only if the values are
//! equal. The schema alone determines both, so that separately encoded rows stay comparable.

use arrow_schema::{DataType, Field};

pub(crate) use super::node::Node;
pub(crate) use super::types::Kind;
use super::types::Physical;
pub(crate) use super::types::plain_type;

/// A code whose bytes have the order of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedCode {
    /// All values are null: no bytes.
    Null,
    /// One byte, 0 or 1.
    Bool,
    /// Big-endian, 1, 2, 4, 8, 16 or 32 bytes.
    Fixed(usize, Kind),
    /// The bytes themselves.
    FixedBinary(usize),
    /// Every byte plus 2, then 01. UTF-8 never holds FE or FF, so nothing wraps.
    Text,
    /// Bytes 00-02 as 02 and the byte plus 1, others as they are, then 01.
    Binary,
    /// The codes of the parts, combined: `rows::nested`, along the slot's `Node`.
    Nested,
}

impl OrderedCode {
    /// Returns the code of a type, or `None` if a width or size is below zero.
    pub fn of(data_type: &DataType) -> Option<Self> {
        Some(match Physical::of(plain_type(data_type))? {
            Physical::Null => Self::Null,
            Physical::Boolean => Self::Bool,
            Physical::Number(width, kind) => Self::Fixed(width, kind),
            Physical::FixedBinary(width) => Self::FixedBinary(width),
            Physical::Bytes(_, true) => Self::Text,
            Physical::Bytes(_, false) => Self::Binary,
            _ => return Node::of(data_type).map(|_| Self::Nested),
        })
    }

    /// Returns true for numbers without rounding: integers, dates, times, decimals.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Self::Fixed(_, Kind::Signed | Kind::Unsigned))
    }

    /// Returns the bytes of every value; 0 if the length varies.
    pub fn width(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Fixed(width, _) | Self::FixedBinary(width) => width,
            Self::Null | Self::Text | Self::Binary | Self::Nested => 0,
        }
    }

    /// Returns true if values differ in length.
    pub(crate) fn varies(self) -> bool {
        matches!(self, Self::Text | Self::Binary | Self::Nested)
    }
}

/// A code that only says whether values are equal, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadCode {
    /// All values are null: no bytes.
    Null,
    /// One byte, 0 or 1.
    Bool,
    /// The value's own bytes.
    Fixed(usize),
    /// After the fixed part: a length of 1 to 5 bytes, then the bytes.
    Bytes,
    /// Like `Bytes`, with the code of a value (`rows::nested`): nested and encoded types.
    Value,
}

impl PayloadCode {
    /// Returns the code of a column.
    pub(crate) fn of(field: &Field) -> Self {
        match Physical::of(field.data_type()) {
            Some(Physical::Null) => Self::Null,
            Some(Physical::Boolean) => Self::Bool,
            Some(Physical::Number(width, _) | Physical::FixedBinary(width)) => Self::Fixed(width),
            Some(Physical::Bytes(..)) => Self::Bytes,
            _ => Self::Value,
        }
    }

    /// Counts the bytes in the fixed part of the payload.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Fixed(width) => width,
            Self::Null | Self::Bytes | Self::Value => 0,
        }
    }

    /// Returns true if values differ in length.
    pub(crate) fn varies(self) -> bool {
        matches!(self, Self::Bytes | Self::Value)
    }

    /// Returns true if a separate bit marks nulls; codes of values contain their nulls.
    pub(crate) fn has_null_bit(self) -> bool {
        matches!(self, Self::Bool | Self::Fixed(_) | Self::Bytes)
    }
}
