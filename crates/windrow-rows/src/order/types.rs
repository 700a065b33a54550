//! Arrow's types, classified once: the layout of their arrays, and the types of their children.
//!
//! ```text
//! Int32, Date32, Decimal32, Float32 ..   Number(4, kind)       one buffer of 4 bytes a value
//! Utf8, LargeBinary, Utf8View ..         Bytes(layout, text)   strings
//! List, LargeListView, Map ..            List(layout, field)   lists of any length
//! Dictionary, RunEndEncoded              values stored once for many rows
//! ```
//!
//! Invariant: [`Physical::of`] matches every Arrow type by name, so that a new type does not
//! compile before it has a place here. Decisions in `order` and `rows` match on [`Physical`], by
//! name as well. The other full lists of types are [`without_dictionaries`] and the type numbers in
//! a layout's header (`header/types`).

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields, IntervalUnit, UnionFields, UnionMode};

/// How the bits of a fixed-width value become an unsigned number of the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

/// Storage of strings in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strings {
    /// With offsets of 32 bits.
    Small,
    /// With offsets of 64 bits.
    Large,
    Views,
}

/// Storage of lists in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lists {
    Small,
    Large,
    SmallViews,
    LargeViews,
    /// As `Small`; the elements are structs of a key and a value.
    Map,
}

/// A type by the layout of its arrays, with the types of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Physical<'a> {
    Null,
    Boolean,
    /// Numbers of 1, 2, 4, 8, 16 or 32 bytes.
    Number(usize, Kind),
    FixedBinary(usize),
    /// Byte strings; UTF-8 if true.
    Bytes(Strings, bool),
    List(Lists, &'a FieldRef),
    FixedList(&'a FieldRef, usize),
    Struct(&'a Fields),
    Union(&'a UnionFields, UnionMode),
    /// Keys and values.
    Dictionary(&'a DataType, &'a DataType),
    /// Ends and values.
    Runs(&'a FieldRef, &'a FieldRef),
}

impl<'a> Physical<'a> {
    /// Returns the layout of a type, or `None` if a width or size is below zero.
    pub(crate) fn of(data_type: &'a DataType) -> Option<Self> {
        use DataType as T;
        Some(match data_type {
            T::Null => Self::Null,
            T::Boolean => Self::Boolean,
            T::UInt8 => Self::Number(1, Kind::Unsigned),
            T::UInt16 => Self::Number(2, Kind::Unsigned),
            T::UInt32 => Self::Number(4, Kind::Unsigned),
            T::UInt64 => Self::Number(8, Kind::Unsigned),
            T::Int8 => Self::Number(1, Kind::Signed),
            T::Int16 => Self::Number(2, Kind::Signed),
            T::Int32 | T::Date32 | T::Time32(_) | T::Decimal32(..) => Self::Number(4, Kind::Signed),
            T::Int64
            | T::Date64
            | T::Time64(_)
            | T::Timestamp(..)
            | T::Duration(_)
            | T::Decimal64(..) => Self::Number(8, Kind::Signed),
            T::Decimal128(..) => Self::Number(16, Kind::Signed),
            T::Decimal256(..) => Self::Number(32, Kind::Signed),
            T::Float16 => Self::Number(2, Kind::Float),
            T::Float32 => Self::Number(4, Kind::Float),
            T::Float64 => Self::Number(8, Kind::Float),
            T::Interval(IntervalUnit::YearMonth) => Self::Number(4, Kind::Signed),
            T::Interval(IntervalUnit::DayTime) => Self::Number(8, Kind::DayTime),
            T::Interval(IntervalUnit::MonthDayNano) => Self::Number(16, Kind::MonthDayNano),
            T::FixedSizeBinary(width) => Self::FixedBinary(usize::try_from(*width).ok()?),
            T::Utf8 => Self::Bytes(Strings::Small, true),
            T::LargeUtf8 => Self::Bytes(Strings::Large, true),
            T::Utf8View => Self::Bytes(Strings::Views, true),
            T::Binary => Self::Bytes(Strings::Small, false),
            T::LargeBinary => Self::Bytes(Strings::Large, false),
            T::BinaryView => Self::Bytes(Strings::Views, false),
            T::List(field) => Self::List(Lists::Small, field),
            T::LargeList(field) => Self::List(Lists::Large, field),
            T::ListView(field) => Self::List(Lists::SmallViews, field),
            T::LargeListView(field) => Self::List(Lists::LargeViews, field),
            T::Map(field, _) => Self::List(Lists::Map, field),
            T::FixedSizeList(field, size) => Self::FixedList(field, usize::try_from(*size).ok()?),
            T::Struct(fields) => Self::Struct(fields),
            T::Union(fields, mode) => Self::Union(fields, *mode),
            T::Dictionary(keys, values) => Self::Dictionary(keys, values),
            T::RunEndEncoded(ends, values) => Self::Runs(ends, values),
        })
    }

    /// Returns the bytes of one value, for types whose values are whole bytes in one buffer.
    pub(crate) fn width(self) -> Option<usize> {
        match self {
            Self::Number(width, _) | Self::FixedBinary(width) => Some(width),
            _ => None,
        }
    }

    /// Returns the type of the values of an encoding that stores a value once for many rows.
    pub(crate) fn encoded(self) -> Option<&'a DataType> {
        match self {
            Self::Dictionary(_, values) => Some(values),
            Self::Runs(_, values) => Some(values.data_type()),
            _ => None,
        }
    }
}

/// Returns the type of the values, without dictionary or run-end encoding.
pub(crate) fn plain_type(data_type: &DataType) -> &DataType {
    Physical::of(data_type).and_then(Physical::encoded).map_or(data_type, plain_type)
}

/// Replaces dictionaries by their value types, also inside other types.
pub(crate) fn without_dictionaries(data_type: &DataType) -> DataType {
    use DataType as T;
    let field = |field: &FieldRef| {
        let data_type = without_dictionaries(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    match data_type {
        T::Dictionary(_, values) => without_dictionaries(values),
        T::List(item) => T::List(field(item)),
        T::LargeList(item) => T::LargeList(field(item)),
        T::ListView(item) => T::ListView(field(item)),
        T::LargeListView(item) => T::LargeListView(field(item)),
        T::Map(entries, sorted) => T::Map(field(entries), *sorted),
        T::FixedSizeList(item, size) => T::FixedSizeList(field(item), *size),
        T::Struct(fields) => T::Struct(fields.iter().map(field).collect()),
        T::Union(fields, mode) => {
            T::Union(fields.iter().map(|(id, child)| (id, field(child))).collect(), *mode)
        }
        T::RunEndEncoded(ends, values) => T::RunEndEncoded(Arc::clone(ends), field(values)),
        _ => data_type.clone(),
    }
}
