//! Strict parsing of text values: each value is kept to the last digit.
//!
//! The parsers of arrow drop a part of some values: the digits of a decimal after its scale, the
//! digits of a time after its unit, the offset of a timestamp, the time of day of a date, the
//! digits of an integer in a float column. Columns of such types are therefore decoded as text
//! first, and parsed here:
//!
//! ```text
//!  "12.50"                 decimal128(12,1)    12.5
//!  "12.55"                 decimal128(12,1)    an error
//!  "2026-01-31T12:00+02"   timestamp_us(UTC)   2026-01-31 10:00:00 UTC
//!  "2026-01-31T12:00+02"   timestamp_us        an error
//!  "02139"                 int64, inferred     an error
//!  "02139"                 int64, of `schema`  2139
//! ```
//! A type that the user names states the intent. An inferred type is a guess from the first rows: a
//! later value that contradicts the guess is an error, because its conversion would lose
//! information.
//!
//! This file selects the columns to parse, and finds them within nested types. `bytes`, `csv`
//! (options of CSV), `durations`, `integers`, `numbers` (decimals and floats) and `times`
//! (timestamps, dates and times of day) parse values; `guess` checks values against an inferred
//! type.
//!
//! Invariant: a value is kept whole, or an error names the value and its column. A fraction becomes
//! the nearest float only if a user names the type. A float of an inferred type, printed with as
//! many digits as the value, is the value.

mod bytes;
pub(crate) mod csv;
mod durations;
pub(crate) mod guess;
mod integers;
pub(crate) mod numbers;
mod reading;
#[cfg(test)]
mod tests;
pub(crate) mod times;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use crate::input::options::csv::CsvOptions;
use crate::nested::{child_fields, mapped, with_children, with_rows, with_type};

use super::named::NamedTypes;
use reading::{Fault, Reading, Writing, cast_strictly};

pub(super) use guess::is_json_number;

/// The columns of a schema that are parsed here.
pub(crate) struct Exact {
    /// The schema of parsed batches.
    pub(super) schema: SchemaRef,
    /// The schema for the decoder, with text for all values that are parsed here.
    pub(super) text: SchemaRef,
    named: NamedTypes,
    /// The reading of a column whose type is named.
    reading: Reading<'static>,
}

impl Exact {
    /// Creates a parser for JSON. The types of `schema` outside of `named` were inferred.
    pub(super) fn of_json(schema: &SchemaRef, named: NamedTypes) -> Self {
        Self::new(schema, named, Reading::of(Writing::Json))
    }

    /// Creates a parser for CSV with these options.
    pub(super) fn of_csv(schema: &SchemaRef, named: NamedTypes, csv: &CsvOptions) -> Self {
        let reading = Reading {
            blank_is_null: csv.has_other_nulls(),
            decimal_comma: csv.decimal_comma,
            of_fields: true,
            ..Reading::of(Writing::Csv)
        };
        Self::new(schema, named, reading)
    }

    fn new(schema: &SchemaRef, named: NamedTypes, reading: Reading<'static>) -> Self {
        let mut exact = Self { schema: schema.clone(), text: schema.clone(), named, reading };
        let all = exact.all();
        let fields = schema.fields().iter().map(|field| as_text(field, all.at(field)));
        let fields: Fields = fields.collect();
        if fields != *schema.fields() {
            let metadata = schema.metadata().clone();
            exact.text = Arc::new(Schema::new_with_metadata(fields, metadata));
        }
        exact
    }

    /// Returns the reading of columns without a named type.
    fn all(&self) -> Reading<'_> {
        Reading { guessed: true, named: self.named.all(), ..self.reading }
    }

    /// Parses the values of a decoded batch.
    pub(super) fn parse(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        if Arc::ptr_eq(&self.text, &self.schema) {
            return Ok(batch);
        }
        let all = self.all();
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns
            .map(|(column, field)| parsed(column, field, all.at(field)))
            .collect::<Result<_, _>>()
            .map_err(|Misfit { path, fault }| {
                ArrowError::ParseError(format!("column '{path}': {fault}"))
            })?;
        with_rows(&self.schema, columns, batch.num_rows())
    }
}

/// Returns `field`, with text for all values that are parsed here.
fn as_text(field: &FieldRef, reading: Reading<'_>) -> FieldRef {
    use DataType as D;
    let kind = match field.data_type() {
        D::Interval(_) => return field.clone(),
        D::LargeUtf8 => D::Utf8,
        kind if kind.is_decimal() || kind.is_floating() => D::Utf8,
        kind if kind.is_temporal() || kind.is_binary() => D::Utf8,
        kind if kind.is_integer() && (reading.guessed || reading.writing == Writing::Json) => {
            D::Utf8
        }
        kind if reading.of_fields && (kind.is_integer() || *kind == D::Boolean) => D::Utf8,
        // The runs are formed again after parsing.
        D::RunEndEncoded(_, of) => match as_text(of, reading) {
            text if text == *of => return field.clone(),
            text => text.data_type().clone(),
        },
        D::Struct(_) => return mapped(field, |of| as_text(of, reading.at(of))),
        _ => return mapped(field, |of| as_text(of, reading)),
    };
    with_type(field, kind)
}

/// The column or member of a refused value, and the reason.
struct Misfit {
    path: String,
    fault: Fault,
}

impl Misfit {
    /// Adds the name of the outer field `of` to the path.
    fn within(self, of: &Field) -> Self {
        Self { path: format!("{}.{}", of.name(), self.path), ..self }
    }
}

fn parsed(column: &ArrayRef, field: &Field, reading: Reading<'_>) -> Result<ArrayRef, Misfit> {
    if column.data_type() == field.data_type() {
        return Ok(column.clone());
    }
    let misfit = |fault| Misfit { path: field.name().clone(), fault };
    // Messages call the items of a list by the name of the list.
    let items = |values: &ArrayRef, of: &FieldRef| {
        let named = Field::clone(of).with_name(field.name());
        parsed(values, &named, reading)
    };
    match field.data_type() {
        DataType::RunEndEncoded(_, of) => {
            cast_strictly(&items(column, of)?, field.data_type()).map_err(misfit)
        }
        kind if kind.is_nested() => {
            let fields = child_fields(kind);
            let child = |child: ArrayRef, at: usize| match kind {
                DataType::Struct(of) => parsed(&child, &of[at], reading.at(&of[at]))
                    .map_err(|misfit| misfit.within(field)),
                _ => items(&child, &fields[at]),
            };
            with_children(column, kind, child)?.map_err(|fault| misfit(fault.to_string()))
        }
        kind => values(column.as_string(), kind, reading).map_err(misfit),
    }
}

fn values(text: &StringArray, kind: &DataType, reading: Reading<'_>) -> Result<ArrayRef, Fault> {
    use DataType as D;
    let is_plain = reading.guessed && *kind == D::Int64;
    if is_plain && let Some(integers) = integers::plain(text) {
        return Ok(Arc::new(integers));
    }
    let converted = csv::converted(text, kind, reading)?;
    let text = converted.as_ref().unwrap_or(text);
    if reading.guessed {
        if is_plain && let Some(integers) = integers::plain(text) {
            return Ok(Arc::new(integers));
        }
        if let Some(value) = guess::strange(text, kind, reading.writing) {
            // A malformed value is reported as malformed.
            values(&StringArray::from(vec![value]), kind, Reading::of(reading.writing))?;
            return Err(guess::fault(value, kind));
        }
    }
    match kind {
        D::Decimal128(..) | D::Decimal256(..) => numbers::decimals(text, kind),
        D::Decimal32(precision, scale) | D::Decimal64(precision, scale) => {
            let wide = numbers::decimals(text, &D::Decimal128(*precision, *scale))?;
            cast_strictly(&wide, kind)
        }
        kind if kind.is_floating() => numbers::floats(text, kind, reading.guessed),
        D::Timestamp(..) | D::Date32 | D::Date64 | D::Time32(_) | D::Time64(_) => {
            times::times(text, kind, reading.writing == Writing::Json && !reading.guessed)
        }
        D::Duration(unit) => durations::durations(text, *unit),
        D::Boolean if reading.of_fields => csv::booleans(text),
        kind if kind.is_binary() => bytes::bytes(text, kind),
        // Integers, and strings of other widths.
        _ => cast_strictly(text, kind),
    }
}

/// Parses a value of `kind`, a type without nesting and encoding.
///
/// # Errors
/// The fault of the value. A value that the type cannot hold exactly is also refused.
pub(crate) fn one_value(text: &str, kind: &DataType) -> Result<ArrayRef, Fault> {
    exact(&StringArray::from(vec![text]), kind)
}

/// Parses values of `kind`, like [`one_value`].
pub(crate) fn exact(text: &StringArray, kind: &DataType) -> Result<ArrayRef, Fault> {
    values(text, kind, Reading::of(Writing::Csv))
}

/// Converts JSON `values`, decoded as a narrower type, to `kind`, their type in another part of the
/// file.
///
/// # Errors
/// The first value that `kind` cannot hold exactly.
pub(crate) fn widened(values: &ArrayRef, kind: &DataType) -> Result<ArrayRef, Fault> {
    let text = cast_strictly(values, &DataType::Utf8)?;
    let text: &StringArray = text.as_string();
    let is_said = |value: &str| match kind {
        DataType::Boolean => matches!(value, "true" | "false"),
        kind if kind.is_numeric() => is_json_number(value),
        kind => !kind.is_nested(),
    };
    match text.iter().flatten().find(|value| !is_said(value)) {
        Some(value) => Err(format!("{value:?} is no value of its type, {kind}")),
        None => self::values(text, kind, Reading::of(Writing::Json)),
    }
}
