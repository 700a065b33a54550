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
//! Invariant: a value is kept whole, or it is an error that names it and its column. A fraction becomes the
//! float that is nearest, as everywhere; an integer in a column of floats may be a number of something.

use std::fmt::LowerExp;
use std::sync::Arc;

use arrow::array::builder::PrimitiveBuilder;
use arrow::array::timezone::Tz;
use arrow::array::types::{
    ArrowPrimitiveType, ArrowTimestampType, Date32Type, Date64Type, Decimal128Type, Decimal256Type,
    Float32Type, Float64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
    StringArray, StructArray,
};
use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit, i256};
use arrow::error::ArrowError;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Digits that an integer may have to be sure to be a float.
const FLOAT32_DIGITS: usize = 6;
const FLOAT64_DIGITS: usize = 15;

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
    use TimeUnit as U;
    match kind {
        D::Decimal128(precision, scale) => {
            let mut digits = String::new();
            each::<Decimal128Type>(text, kind, |value| {
                unscaled(value, *precision, *scale, &mut digits)?;
                digits.parse().map_err(|_| no_value())
            })
        }
        D::Decimal256(precision, scale) => {
            let mut digits = String::new();
            each::<Decimal256Type>(text, kind, |value| {
                unscaled(value, *precision, *scale, &mut digits)?;
                i256::from_string(&digits).ok_or_else(no_value)
            })
        }
        D::Timestamp(unit, zone) => {
            let zone = Zone::of(zone.as_deref())?;
            match unit {
                U::Second => stamps::<TimestampSecondType>(text, kind, zone, numbers),
                U::Millisecond => stamps::<TimestampMillisecondType>(text, kind, zone, numbers),
                U::Microsecond => stamps::<TimestampMicrosecondType>(text, kind, zone, numbers),
                U::Nanosecond => stamps::<TimestampNanosecondType>(text, kind, zone, numbers),
            }
        }
        D::Date32 => {
            let zone = Zone::of(None)?;
            each::<Date32Type>(text, kind, |value| match plain_number(value, numbers) {
                Some(days) => i32::try_from(days).map_err(|_| no_value()),
                None if has_time(value) => match timestamp(value, U::Second, zone)? {
                    seconds if seconds % DAY == 0 => {
                        i32::try_from(seconds / DAY).map_err(|_| no_value())
                    }
                    _ => Err("has a time of day, which a date would lose".to_owned()),
                },
                None => Date32Type::parse(value).ok_or_else(no_value),
            })
        }
        D::Date64 => {
            let zone = Zone::of(None)?;
            each::<Date64Type>(text, kind, |value| match plain_number(value, numbers) {
                Some(milliseconds) => Ok(milliseconds),
                None if has_time(value) => timestamp(value, U::Millisecond, zone),
                None => Date64Type::parse(value).ok_or_else(no_value),
            })
        }
        D::Float32 => floats::<Float32Type>(text, kind, FLOAT32_DIGITS),
        D::Float64 => floats::<Float64Type>(text, kind, FLOAT64_DIGITS),
        D::Time32(U::Second) => times::<Time32SecondType>(text, kind, 0),
        D::Time32(_) => times::<Time32MillisecondType>(text, kind, 3),
        D::Time64(U::Microsecond) => times::<Time64MicrosecondType>(text, kind, 6),
        D::Time64(_) => times::<Time64NanosecondType>(text, kind, 9),
        _ => {
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(text, kind, &strict).map_err(|fault| match fault {
                ArrowError::CastError(what) => what,
                other => other.to_string(),
            })
        }
    }
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

fn times<T: ArrowPrimitiveType + Parser>(
    text: &StringArray,
    kind: &DataType,
    digits: usize,
) -> Result<ArrayRef, Fault> {
    each::<T>(text, kind, |value| {
        check_fraction(value, digits)?;
        T::parse(value).ok_or_else(no_value)
    })
}

fn floats<T: ArrowPrimitiveType<Native: LowerExp> + Parser>(
    text: &StringArray,
    kind: &DataType,
    digits: usize,
) -> Result<ArrayRef, Fault> {
    each::<T>(text, kind, |value| {
        let parsed = T::parse(value).ok_or_else(no_value)?;
        match value.len() > digits && !is_whole(value, &parsed) {
            true => Err(format!("is an integer of more digits than {kind} holds")),
            false => Ok(parsed),
        }
    })
}

/// Whether `parsed` is `value`, or prints as it, should that be an integer.
fn is_whole<F: LowerExp>(value: &str, parsed: &F) -> bool {
    let number = value.strip_prefix(['+', '-']).unwrap_or(value);
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return true;
    }
    let number = number.trim_start_matches('0').trim_end_matches('0');
    let is_printed = |printed: String| {
        let mantissa = printed.split('e').next().unwrap_or_default();
        mantissa.trim_start_matches('-').replace('.', "").trim_end_matches('0') == number
    };
    // The digits that tell it from other floats, and all that it has.
    is_printed(format!("{parsed:e}")) || is_printed(format!("{parsed:.*e}", value.len()))
}

fn stamps<T: ArrowTimestampType>(
    text: &StringArray,
    kind: &DataType,
    zone: Zone,
    numbers: bool,
) -> Result<ArrayRef, Fault> {
    each::<T>(text, kind, |value| match plain_number(value, numbers) {
        Some(units) => Ok(units),
        None => timestamp(value, T::UNIT, zone),
    })
}

/// What a timestamp without an offset is relative to.
#[derive(Clone, Copy)]
struct Zone {
    zone: Tz,
    /// An offset would be lost.
    local: bool,
}

impl Zone {
    fn of(name: Option<&str>) -> Result<Self, Fault> {
        let zone = name.unwrap_or("+00:00").parse();
        let zone = zone.map_err(|error: ArrowError| error.to_string())?;
        Ok(Self { zone, local: name.is_none() })
    }
}

/// Units since the epoch.
fn timestamp(value: &str, unit: TimeUnit, Zone { zone, local }: Zone) -> Result<i64, Fault> {
    if local && has_offset(value) {
        return Err("has an offset, which a timestamp without a zone would lose; \
                    give its column a zone, as in timestamp_us(UTC)"
            .to_owned());
    }
    check_fraction(value, digits_of(unit))?;
    let at = string_to_datetime(&zone, value).map_err(|_| no_value())?;
    match unit {
        TimeUnit::Second => Ok(at.timestamp()),
        TimeUnit::Millisecond => Ok(at.timestamp_millis()),
        TimeUnit::Microsecond => Ok(at.timestamp_micros()),
        TimeUnit::Nanosecond => at.timestamp_nanos_opt().ok_or_else(|| {
            "is out of the range of nanoseconds, 1677-09-21 to 2262-04-11; \
             give its column another unit, as in timestamp_us"
                .to_owned()
        }),
    }
}

fn plain_number(value: &str, numbers: bool) -> Option<i64> {
    if numbers { value.parse().ok() } else { None }
}

/// Digits behind the point that a unit keeps.
fn digits_of(unit: TimeUnit) -> usize {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn check_fraction(value: &str, keeps: usize) -> Result<(), Fault> {
    let Some((_, behind)) = value.split_once('.') else { return Ok(()) };
    let end = behind.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(behind.len());
    match behind[..end].trim_end_matches('0').len() {
        digits if digits > keeps => {
            Err(format!("has {digits} digits behind the point, of which its type keeps {keeps}"))
        }
        _ => Ok(()),
    }
}

/// Whether there is more than a date. A year may have a sign and any number of digits.
fn has_time(value: &str) -> bool {
    value.len() > 10 && !value.starts_with(['+', '-'])
}

/// Whether a timestamp says how far from UTC it is, or in which zone.
pub(super) fn has_offset(value: &str) -> bool {
    let time = value.as_bytes().get(11..).unwrap_or_default();
    time.iter().any(|byte| matches!(byte, b'+' | b'-') || byte.is_ascii_alphabetic())
}

/// Puts the digits of `value` times ten to the power of `scale` into `digits`.
fn unscaled(value: &str, precision: u8, scale: i8, digits: &mut String) -> Result<(), Fault> {
    let number = value.strip_prefix(['+', '-']).unwrap_or(value);
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse().map_err(|_| no_value())?),
        None => (number, 0_i32),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits.clear();
    digits.push_str(whole);
    digits.push_str(fraction);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(no_value());
    }
    let significant = digits.trim_end_matches('0').len();
    let places = fraction.len() as i64 - (digits.len() - significant) as i64 - i64::from(exponent);
    digits.truncate(significant);
    let zeros = digits.len() - digits.trim_start_matches('0').len();
    digits.drain(..zeros);
    if digits.is_empty() {
        digits.push('0');
        return Ok(());
    }
    let missing = i64::from(scale) - places;
    if missing < 0 {
        return Err(format!(
            "has {places} digits behind the point, of which decimal({precision},{scale}) keeps \
             {scale}"
        ));
    }
    if digits.len() as i64 + missing > i64::from(precision) {
        return Err(format!("has more digits than decimal({precision},{scale}) holds"));
    }
    digits.extend(std::iter::repeat_n('0', missing as usize));
    if value.starts_with('-') {
        digits.insert(0, '-');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(value: &str, kind: &DataType, numbers: bool) -> Result<ArrayRef, Fault> {
        values(&StringArray::from(vec![Some(value), None]), kind, numbers)
    }

    #[test]
    fn decimals_are_kept_whole_or_refused() {
        let kind = DataType::Decimal128(5, 2);
        for (text, unscaled) in [
            ("1.25", 125),
            ("-1.250", -125),
            ("+.5", 50),
            ("7.", 700),
            ("0.00", 0),
            ("-0", 0),
            ("00012", 1200),
            ("1.25e1", 1250),
            ("12500e-4", 125),
            ("999.99", 99_999),
            ("0e99999999", 0),
        ] {
            let parsed = one(text, &kind, false).unwrap_or_else(|fault| panic!("{text}: {fault}"));
            let parsed = parsed.as_primitive::<Decimal128Type>();
            assert_eq!((parsed.value(0), parsed.is_null(1)), (unscaled, true), "{text}");
        }
        for (text, why) in [
            ("1.255", "3 digits behind the point"),
            ("1e-3", "3 digits behind the point"),
            ("1000", "more digits than"),
            ("1e2147483647", "more digits than"),
            ("", "no value"),
            (".", "no value"),
            ("1.2.3", "no value"),
            ("1e", "no value"),
            ("--1", "no value"),
            ("1,5", "no value"),
        ] {
            let fault = one(text, &kind, false).unwrap_err();
            assert!(fault.contains(why) && fault.contains(text), "{text}: {fault}");
        }
        let wide = DataType::Decimal256(76, 0);
        let most = "9".repeat(76);
        let parsed = one(&most, &wide, false).unwrap();
        assert_eq!(parsed.as_primitive::<Decimal256Type>().value(0).to_string(), most);
        assert!(one(&"9".repeat(77), &wide, false).is_err());
    }

    #[test]
    fn integers_are_floats_or_refused() {
        for (text, number) in [
            ("9007199254740992", 9_007_199_254_740_992.0),
            ("-9007199254740994", -9_007_199_254_740_994.0),
            ("000000000000000001", 1.0),
            ("00000000000000000000", 0.0),
            ("123456789012345680000", 123_456_789_012_345_680_000.0),
            ("1180591620717411303424", 2_f64.powi(70)),
            ("0.1234567890123456789", 0.123_456_789_012_345_68),
            ("12345678901234567890e0", 12_345_678_901_234_567_890_f64),
        ] {
            let parsed = one(text, &DataType::Float64, true);
            let parsed = parsed.unwrap_or_else(|fault| panic!("{text}: {fault}"));
            assert_eq!(parsed.as_primitive::<Float64Type>().value(0), number, "{text}");
        }
        let single = one("16777216", &DataType::Float32, false).unwrap();
        assert_eq!(single.as_primitive::<Float32Type>().value(0), 16_777_216.0);
        for (text, kind) in [
            ("9007199254740993", DataType::Float64),
            ("-123456789012345678901234567890", DataType::Float64),
            ("99999999999999999999", DataType::Float64),
            ("16777217", DataType::Float32),
        ] {
            let fault = one(text, &kind, false).unwrap_err();
            assert!(fault.contains("more digits than") && fault.contains(text), "{text}: {fault}");
        }
    }

    #[test]
    fn times_are_kept_whole_or_refused() {
        let stamp = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
        let us = stamp(TimeUnit::Microsecond, None);
        let utc = stamp(TimeUnit::Microsecond, Some("UTC"));
        let ns = stamp(TimeUnit::Nanosecond, None);
        let value = |text: &str, kind: &DataType| {
            let parsed = one(text, kind, false);
            parsed
                .map(|parsed| cast_with_options(&parsed, &DataType::Int64, &CastOptions::default()))
        };
        let hour = 3_600_000_000;
        for (text, kind, expected) in [
            ("1970-01-01T01:00:00", &us, hour),
            ("1970-01-01 00:00:00.000001000", &us, 1),
            ("1970-01-01T01:00:00+02:00", &utc, -hour),
            ("1970-01-01T00:00:00Z", &utc, 0),
            ("1970-01-01T00:00:00", &utc, 0),
            ("1970-01-01 00:00:00", &DataType::Date64, 0),
        ] {
            let parsed = value(text, kind).unwrap_or_else(|fault| panic!("{text}: {fault}"));
            let parsed = parsed.unwrap();
            assert_eq!(parsed.as_primitive::<arrow::datatypes::Int64Type>().value(0), expected);
        }
        for (text, kind, why) in [
            ("1970-01-01T01:00:00+02:00", &us, "offset"),
            ("1970-01-01T01:00:00 Z", &us, "offset"),
            ("1970-01-01T01:00:00.0000001", &us, "7 digits"),
            ("1600-01-01T00:00:00", &ns, "out of the range of nanoseconds"),
            ("1970-01-01 10:00:00", &DataType::Date32, "time of day"),
            ("1970-13-01", &DataType::Date32, "no value"),
            ("10:00:00.5", &DataType::Time32(TimeUnit::Second), "1 digits"),
            ("17", &us, "no value"),
        ] {
            let fault = one(text, kind, false).unwrap_err();
            assert!(fault.contains(why) && fault.contains(text), "{text}: {fault}");
        }
        assert_eq!(
            one("17", &us, true).unwrap().as_primitive::<TimestampMicrosecondType>().value(0),
            17
        );
        let days = one("1970-01-02 00:00:00", &DataType::Date32, false).unwrap();
        assert_eq!(days.as_primitive::<Date32Type>().value(0), 1);
    }
}
