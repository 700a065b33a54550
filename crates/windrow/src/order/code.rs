//! Codes: how the values of a type stand in a row.
//!
//! An ordered code compares as bytes the way the values compare; a payload code is only equal when
//! the values are. Both are chosen from the schema alone, so that rows made apart stay comparable.

use arrow_schema::{DataType, Field, IntervalUnit};

pub(crate) use super::node::Node;

/// How the bits of a fixed-width value become an unsigned number of the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unsigned,
    /// Two's complement: flip the sign bit.
    Signed,
    /// IEEE 754: flip the sign bit, or every bit of a negative number (totalOrder).
    Float,
    /// Days, then milliseconds, as Arrow orders them.
    DayTime,
    /// Months, then days, then nanoseconds.
    MonthDayNano,
}

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
    /// The code of a type, or `None` if its order is not supported.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        use DataType as T;
        let data_type = plain_type(data_type);
        Some(match data_type {
            T::Null => Self::Null,
            T::Boolean => Self::Bool,
            T::Utf8 | T::LargeUtf8 | T::Utf8View => Self::Text,
            T::Binary | T::LargeBinary | T::BinaryView => Self::Binary,
            T::FixedSizeBinary(width) => Self::FixedBinary(usize::try_from(*width).ok()?),
            T::Interval(IntervalUnit::DayTime) => Self::Fixed(8, Kind::DayTime),
            T::Interval(IntervalUnit::MonthDayNano) => Self::Fixed(16, Kind::MonthDayNano),
            T::Float16 | T::Float32 | T::Float64 => {
                Self::Fixed(fixed_width(data_type)?, Kind::Float)
            }
            T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
                Self::Fixed(fixed_width(data_type)?, Kind::Unsigned)
            }
            other if other.is_nested() => return Node::of(other).map(|_| Self::Nested),
            other => Self::Fixed(fixed_width(other)?, Kind::Signed),
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
    /// As `Bytes`, and the bytes are the value codec's: nested and encoded types.
    Value,
}

impl PayloadCode {
    /// The code of a column.
    pub(crate) fn of(field: &Field) -> Self {
        use DataType as T;
        match field.data_type() {
            T::Null => Self::Null,
            T::Boolean => Self::Bool,
            T::Utf8 | T::LargeUtf8 | T::Utf8View | T::Binary | T::LargeBinary | T::BinaryView => {
                Self::Bytes
            }
            other => fixed_width(other).map_or(Self::Value, Self::Fixed),
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

    /// True if nulls are told by a bit of their own; the value codec holds its nulls itself.
    pub(crate) fn has_null_bit(self) -> bool {
        matches!(self, Self::Bool | Self::Fixed(_) | Self::Bytes)
    }
}

/// The type of the values, without dictionary or run-end encoding.
pub(crate) fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        other => other,
    }
}

/// Bytes of one value in its Arrow buffer, for types that have one buffer of whole bytes.
fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        other => other.primitive_width(),
    }
}
