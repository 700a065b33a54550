//! Values of text, to the last digit.
//!
//! The parsers of arrow take what they can of a value and leave the rest: the digits of a decimal behind
//! its scale, those of a time behind its unit, the offset of a timestamp, the time of day of a date, those
//! of an integer that a float does not hold.
//! Columns of such types are therefore decoded as the text that they are, and parsed here:
//!
//! ```text
//!  "12.50"                 decimal128(12,1)    12.5
//!  "12.55"                 decimal128(12,1)    an error
//!  "2026-01-31T12:00+02"   timestamp_us(UTC)   2026-01-31 10:00:00 UTC
//!  "2026-01-31T12:00+02"   timestamp_us        an error
//! ```
//! This file decides what is parsed, and where it stands; `numbers` parses decimals and floats, `times`
//! timestamps, dates and times of day.
//!
//! Invariant: a value is kept whole, or it is an error that names it and its column. A fraction becomes the
//! float that is nearest, as everywhere; an integer in a column of floats may be a number of something.

mod numbers;
#[cfg(test)]
mod tests;
mod times;

use std::sync::Arc;

use arrow::array::builder::PrimitiveBuilder;
use arrow::array::types::ArrowPrimitiveType;
use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
    StringArray, StructArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;

pub(super) use times::has_offset;

/// Why a value is refused, to be put behind the value.
type Fault = String;

/// What is parsed here, of a schema.
pub(super) struct Exact {
    schema: SchemaRef,
    text: SchemaRef,
    numbers: bool,
}

impl Exact {
    /// `numbers`: integers are parsed here too, and one in a column of times counts their units.
    pub(super) fn new(schema: &SchemaRef, numbers: bool) -> Self {
        let fields: Fields = schema.fields().iter().map(|field| as_text(field, numbers)).collect();
        let text = if fields == *schema.fields() {
            schema.clone()
        } else {
            Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
        };
        Self { schema: schema.clone(), text, numbers }
    }

    /// The schema to decode to, with text where values are parsed here.
    pub(super) fn text(&self) -> &SchemaRef {
        &self.text
    }

    /// What was decoded, with its values parsed.
    pub(super) fn parse(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        if Arc::ptr_eq(&self.text, &self.schema) {
            return Ok(batch);
        }
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns
            .map(|(column, field)| parsed(column, field, self.numbers))
            .collect::<Result<_, _>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &rows)
    }
}

/// `field`, with text where values are parsed here.
fn as_text(field: &FieldRef, numbers: bool) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Decimal128(..)
        | DataType::Decimal256(..)
        | DataType::Timestamp(..)
        | DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Float32
        | DataType::Float64
        | DataType::LargeUtf8 => DataType::Utf8,
        kind if numbers && kind.is_integer() => DataType::Utf8,
        DataType::List(of) => DataType::List(as_text(of, numbers)),
        DataType::LargeList(of) => DataType::LargeList(as_text(of, numbers)),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| as_text(field, numbers)).collect())
        }
        _ => return field.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(kind))
}

fn parsed(column: &ArrayRef, field: &Field, numbers: bool) -> Result<ArrayRef, ArrowError> {
    if column.data_type() == field.data_type() {
        return Ok(column.clone());
    }
    match field.data_type() {
        DataType::Struct(fields) => {
            let column = column.as_struct();
            let members = column.columns().iter().zip(fields);
            let members = members
                .map(|(member, field)| parsed(member, field, numbers))
                .collect::<Result<_, _>>()?;
            let nulls = column.nulls().cloned();
            Ok(Arc::new(StructArray::try_new(fields.clone(), members, nulls)?))
        }
        DataType::List(of) => list::<i32>(column, of, numbers),
        DataType::LargeList(of) => list::<i64>(column, of, numbers),
        kind => values(column.as_string(), kind, numbers)
            .map_err(|fault| ArrowError::ParseError(format!("column '{}': {fault}", field.name()))),
    }
}

fn list<O: OffsetSizeTrait>(
    column: &ArrayRef,
    of: &FieldRef,
    numbers: bool,
) -> Result<ArrayRef, ArrowError> {
    let column: &GenericListArray<O> = column.as_list();
    let elements = parsed(column.values(), of, numbers)?;
    let (offsets, nulls) = (column.offsets().clone(), column.nulls().cloned());
    Ok(Arc::new(GenericListArray::try_new(of.clone(), offsets, elements, nulls)?))
}

fn values(text: &StringArray, kind: &DataType, numbers: bool) -> Result<ArrayRef, Fault> {
    use DataType as D;
    match kind {
        D::Decimal128(..) | D::Decimal256(..) => numbers::decimals(text, kind),
        D::Float32 | D::Float64 => numbers::floats(text, kind),
        D::Timestamp(..) | D::Date32 | D::Date64 | D::Time32(_) | D::Time64(_) => {
            times::times(text, kind, numbers)
        }
        _ => cast(text, kind),
    }
}

/// A value of `kind` that is neither nested nor encoded, as people write it.
///
/// # Errors
/// What is wrong with it: also where the type keeps less of it.
pub(crate) fn one_value(text: &str, kind: &DataType) -> Result<ArrayRef, Fault> {
    let (column, wide) = (StringArray::from(vec![text]), decimal128(kind));
    let value = values(&column, wide.as_ref().unwrap_or(kind), false)?;
    cast_strictly(&value, kind)
}

/// What JSON has as `values`, of which one part of a file said that they are of `kind`, and another one of a type that
/// holds less.
///
/// # Errors
/// The first value that `kind` does not hold as it is.
pub(crate) fn widened(values: &ArrayRef, kind: &DataType) -> Result<ArrayRef, Fault> {
    let text = cast_strictly(values, &DataType::Utf8)?;
    let text: &StringArray = text.as_string();
    let is_said = |value: &str| match kind {
        DataType::Boolean => matches!(value, "true" | "false"),
        kind if kind.is_numeric() => !is_padded(value),
        kind => !kind.is_nested(),
    };
    match text.iter().flatten().find(|value| !is_said(value)) {
        Some(value) => Err(format!("{value:?} is no value of its type, {kind}")),
        None => self::values(text, kind, true),
    }
}

/// Whether zeros that are no part of a number stand in front of it.
fn is_padded(value: &str) -> bool {
    let number = value.strip_prefix(['+', '-']).unwrap_or(value).as_bytes();
    matches!(number, [b'0', next, ..] if next.is_ascii_digit())
}

/// The decimals of 128 bits that have the values of smaller ones.
fn decimal128(kind: &DataType) -> Option<DataType> {
    match *kind {
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            Some(DataType::Decimal128(precision, scale))
        }
        _ => None,
    }
}

/// As arrow casts it: integers, and strings of other widths.
fn cast(text: &StringArray, kind: &DataType) -> Result<ArrayRef, Fault> {
    cast_strictly(text, kind)
}

fn cast_strictly(values: &dyn Array, kind: &DataType) -> Result<ArrayRef, Fault> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(values, kind, &strict).map_err(|fault| match fault {
        ArrowError::CastError(what) => what,
        other => other.to_string(),
    })
}

/// Parses every value that is not null.
fn each<T: ArrowPrimitiveType>(
    text: &StringArray,
    kind: &DataType,
    mut parse: impl FnMut(&str) -> Result<T::Native, Fault>,
) -> Result<ArrayRef, Fault> {
    let mut values = PrimitiveBuilder::<T>::with_capacity(text.len()).with_data_type(kind.clone());
    for value in text {
        let parsed = value.map(|value| {
            parse(value).map_err(|fault| match fault.as_str() {
                "" => format!("{value:?} is no value of its type, {kind}"),
                fault => format!("{value:?} {fault}"),
            })
        });
        values.append_option(parsed.transpose()?);
    }
    Ok(Arc::new(values.finish()))
}

/// The value is not of its type at all.
fn no_value() -> Fault {
    Fault::new()
}
