//! Lossless common types of two types, and conversion of columns to a common type.
//!
//! ```text
//!  integers                     the narrower of the types that hold both; uint64 beside a sign: decimal128(20,0)
//!  floats; integers of up to    the wider; float64
//!    32 bits and floats
//!  integers of 64 bits and floats   float64: an integer that is none is an error
//!  decimals, and integers       as many digits before and behind the point as either has, up to 76
//!  timestamps, durations        the finer unit: a value that it does not reach is an error
//!  dates                        date64
//!  structs                      all members, by name; what one of them lacks is null there
//! ```
//! Timestamps with and without a zone have no common type, nor have dates and times.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray, new_null_array};
use arrow_cast::cast;
use arrow_cast::display::array_value_to_string;
use arrow_ord::cmp::distinct;
use arrow_schema::DataType as D;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, TimeUnit};

use crate::names::Places;
use crate::nested::{of_decimal, strict_cast, with_children, with_type};

/// Maximum digits of a decimal.
const MOST_DIGITS: u8 = 76;

/// Returns the type for the numbers or times of both types; `None` if there is no such type.
pub(crate) fn wider(one: &DataType, other: &DataType) -> Option<DataType> {
    match (one, other) {
        (D::Timestamp(unit, zone), D::Timestamp(second, other))
            if zone.is_some() == other.is_some() =>
        {
            Some(D::Timestamp(finer(*unit, *second), zone.clone()))
        }
        (D::Duration(unit), D::Duration(other)) => Some(D::Duration(finer(*unit, *other))),
        (D::Time32(unit), D::Time32(other)) => Some(D::Time32(finer(*unit, *other))),
        (D::Time64(unit), D::Time64(other)) => Some(D::Time64(finer(*unit, *other))),
        (D::Time32(_), D::Time64(unit)) | (D::Time64(unit), D::Time32(_)) => Some(D::Time64(*unit)),
        (one, other) if one.is_floating() && other.is_floating() => {
            let width = |kind: &DataType| kind.primitive_width();
            Some(if width(one) >= width(other) { one.clone() } else { other.clone() })
        }
        (float, integer) | (integer, float) if float.is_floating() && integer.is_integer() => {
            Some(D::Float64)
        }
        (D::Date32, D::Date64) | (D::Date64, D::Date32) => Some(D::Date64),
        (one, other) if one.is_integer() && other.is_integer() => integers(one, other),
        (one, other) => decimals(one, other),
    }
}

fn finer(one: TimeUnit, other: TimeUnit) -> TimeUnit {
    one.max(other)
}

fn integers(one: &DataType, other: &DataType) -> Option<DataType> {
    let (least, most) = (one.primitive_width()?, other.primitive_width()?);
    let width = match one.is_signed_integer() == other.is_signed_integer() {
        true => least.max(most),
        // The unsigned type needs one more bit.
        false if one.is_signed_integer() => least.max(2 * most),
        false => most.max(2 * least),
    };
    let signed = one.is_signed_integer() || other.is_signed_integer();
    Some(match (signed, width) {
        (true, 1) => D::Int8,
        (true, 2) => D::Int16,
        (true, 4) => D::Int32,
        (true, 8) => D::Int64,
        (true, _) => D::Decimal128(20, 0),
        (false, 1) => D::UInt8,
        (false, 2) => D::UInt16,
        (false, 4) => D::UInt32,
        (false, _) => D::UInt64,
    })
}

fn decimals(one: &DataType, other: &DataType) -> Option<DataType> {
    if !one.is_decimal() && !other.is_decimal() {
        return None;
    }
    let ((digits, scale), (others, second)) = (digits(one)?, digits(other)?);
    let most = scale.max(second);
    let before = (i16::from(digits) - i16::from(scale)).max(i16::from(others) - i16::from(second));
    let precision =
        u8::try_from(before + i16::from(most)).ok().filter(|&all| all <= MOST_DIGITS)?;
    Some(match precision {
        ..=38 => DataType::Decimal128(precision, most),
        _ => DataType::Decimal256(precision, most),
    })
}

/// Returns the digits of a number type, and how many of the digits follow the point.
fn digits(kind: &DataType) -> Option<(u8, i8)> {
    match kind {
        D::Int8 | D::UInt8 => Some((3, 0)),
        D::Int16 | D::UInt16 => Some((5, 0)),
        D::Int32 | D::UInt32 => Some((10, 0)),
        D::Int64 => Some((19, 0)),
        D::UInt64 => Some((20, 0)),
        kind => of_decimal(kind),
    }
}

/// Converts `values` to `kind`, a type for all of the values.
pub(super) fn widened(values: &ArrayRef, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    match (values.data_type(), kind) {
        (given, kind) if given == kind => Ok(ArrayRef::clone(values)),
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let parts = values.as_struct();
            let places = Places::of(parts.fields());
            let member = |field: &FieldRef| match places.first(field.name()) {
                Some(place) => widened(parts.column(place), field.data_type()),
                None => Ok(new_null_array(field.data_type(), parts.len())),
            };
            let columns = fields.iter().map(member).collect::<Result<_, _>>()?;
            let nulls = parts.nulls().cloned();
            let whole =
                StructArray::try_new_with_length(fields.clone(), columns, nulls, parts.len());
            Ok(Arc::new(whole?))
        }
        (D::List(_), D::List(item)) | (D::LargeList(_), D::LargeList(item)) => {
            with_children(values, kind, |items, _| widened(&items, item.data_type()))?
        }
        (D::Int64 | D::UInt64, D::Float64) => floats(values),
        (_, kind) => strict_cast(values, kind),
    }
}

/// Converts integers to floats.
///
/// # Errors
/// The first integer between two floats.
fn floats(integers: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let floats = strict_cast(integers, &DataType::Float64)?;
    let back = cast(&floats, integers.data_type())?;
    let differ = distinct(integers, &back)?;
    match differ.values().set_indices().next() {
        None => Ok(floats),
        Some(row) => Err(ArrowError::CastError(format!(
            "the integer {} is between two floats, and the column has fractions in another file; cast the column to a \
             decimal there",
            array_value_to_string(integers, row)?
        ))),
    }
}

/// Returns `kind` with wide dictionary keys, for the values of many files.
pub(crate) fn with_wide_keys(kind: &DataType) -> DataType {
    let wide = |field: &FieldRef| with_type(field, with_wide_keys(field.data_type()));
    match kind {
        D::Dictionary(key, of) if key.primitive_width().is_some_and(|width| width < 4) => {
            D::Dictionary(Box::new(D::Int32), of.clone())
        }
        D::Struct(fields) => D::Struct(fields.iter().map(wide).collect()),
        D::List(of) => D::List(wide(of)),
        D::LargeList(of) => D::LargeList(wide(of)),
        kind => kind.clone(),
    }
}

/// Returns `field` as nullable.
pub(super) fn nullable(field: &FieldRef) -> FieldRef {
    match field.is_nullable() {
        true => Arc::clone(field),
        false => Arc::new(Field::clone(field).with_nullable(true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_hold_both_lose_nothing() {
        let ns = D::Timestamp(TimeUnit::Nanosecond, None);
        let us = D::Timestamp(TimeUnit::Microsecond, None);
        for (one, other, expected) in [
            (D::Int8, D::Int64, Some(D::Int64)),
            (D::UInt8, D::Int8, Some(D::Int16)),
            (D::UInt32, D::Int8, Some(D::Int64)),
            (D::UInt8, D::UInt32, Some(D::UInt32)),
            (D::UInt64, D::Int8, Some(D::Decimal128(20, 0))),
            (D::Float32, D::Float64, Some(D::Float64)),
            (D::Float16, D::Float32, Some(D::Float32)),
            (D::Int32, D::Float32, Some(D::Float64)),
            (D::Int64, D::Float64, Some(D::Float64)),
            (D::Float32, D::UInt64, Some(D::Float64)),
            (D::Date64, D::Date32, Some(D::Date64)),
            (D::Decimal128(10, 2), D::Decimal128(20, 2), Some(D::Decimal128(20, 2))),
            (D::Decimal128(10, 2), D::Decimal128(10, 4), Some(D::Decimal128(12, 4))),
            (D::Decimal128(38, 0), D::Decimal128(10, 5), Some(D::Decimal256(43, 5))),
            (D::Decimal256(76, 0), D::Decimal128(10, 5), None),
            (D::Int32, D::Decimal128(5, 2), Some(D::Decimal128(12, 2))),
            (us.clone(), ns.clone(), Some(ns.clone())),
            (D::Timestamp(TimeUnit::Second, Some("UTC".into())), ns.clone(), None),
            (
                D::Time32(TimeUnit::Second),
                D::Time64(TimeUnit::Microsecond),
                Some(D::Time64(TimeUnit::Microsecond)),
            ),
            (D::Date32, us, None),
            (D::Boolean, D::Int8, None),
            (D::Utf8, D::Int64, None),
            (D::Utf8, D::Float64, None),
        ] {
            let found = wider(&one, &other);
            assert_eq!(found, expected, "{one} {other}");
            let back = wider(&other, &one);
            assert_eq!(back.is_some(), expected.is_some(), "{other} {one}");
        }
    }
}
