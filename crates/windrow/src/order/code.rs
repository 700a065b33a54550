//! Codes: how the values of a type stand in a row.
//!
//! An ordered code compares as bytes the way the values compare; a payload code is only equal when
//! the values are. Both are chosen from the schema alone, so that rows made apart stay comparable.

use arrow_schema::{DataType, Field};

pub(crate) use super::node::Node;
use super::types::Physical;
pub(crate) use super::types::{Kind, plain_type};

/// A code whose bytes have the order of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderedCode {
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
    /// A code made of those of the parts: `rows::nested`, along the slot's [`Node`].
    Nested,
}

impl OrderedCode {
    /// The code of a type; nothing if it has a width or a size below zero.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        Some(match Physical::of(plain_type(data_type))? {
            Physical::Null => Self::Null,
            Physical::Boolean => Self::Bool,
            Physical::Number(width, kind) => Self::Fixed(width, kind),
            Physical::FixedBinary(width) => Self::FixedBinary(width),
            Physical::Bytes(_, true) => Self::Text,
            Physical::Bytes(_, false) => Self::Binary,
            Physical::List(..)
            | Physical::FixedList(..)
            | Physical::Struct(_)
            | Physical::Union(..)
            | Physical::Dictionary(..)
            | Physical::Runs(..) => return Node::of(data_type).map(|_| Self::Nested),
        })
    }

    /// True for numbers without a fraction's rounding: integers, dates, times, decimals.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Self::Fixed(_, Kind::Signed | Kind::Unsigned))
    }

    /// Bytes that every value takes; 0 if it varies.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Fixed(width, _) | Self::FixedBinary(width) => width,
            Self::Null | Self::Text | Self::Binary | Self::Nested => 0,
        }
    }

    /// True if values take different numbers of bytes.
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
    /// Behind the fixed part: a length of 1 to 5 bytes, then the bytes.
    Bytes,
    /// As `Bytes`, and the bytes are the code of a value (`rows::nested`): nested and encoded types.
    Value,
}

impl PayloadCode {
    /// The code of a column.
    pub(crate) fn of(field: &Field) -> Self {
        match Physical::of(field.data_type()) {
            Some(Physical::Null) => Self::Null,
            Some(Physical::Boolean) => Self::Bool,
            Some(Physical::Number(width, _) | Physical::FixedBinary(width)) => Self::Fixed(width),
            Some(Physical::Bytes(..)) => Self::Bytes,
            Some(
                Physical::List(..)
                | Physical::FixedList(..)
                | Physical::Struct(_)
                | Physical::Union(..)
                | Physical::Dictionary(..)
                | Physical::Runs(..),
            )
            | None => Self::Value,
        }
    }

    /// Bytes in the fixed part of the payload.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Fixed(width) => width,
            Self::Null | Self::Bytes | Self::Value => 0,
        }
    }

    /// True if values take different numbers of bytes.
    pub(crate) fn varies(self) -> bool {
        matches!(self, Self::Bytes | Self::Value)
    }

    /// True if nulls are told by a bit of their own; codes of values hold their nulls themselves.
    pub(crate) fn has_null_bit(self) -> bool {
        matches!(self, Self::Bool | Self::Fixed(_) | Self::Bytes)
    }
}
