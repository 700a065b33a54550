//! Schemas and types as bytes.
//!
//! ```text
//! schema     count 4, fields, metadata
//! field      name, nullable 1, type, metadata
//! metadata   count 4, then each: key, value; ascending by key
//! type       a number of one byte, then what the type needs: a width, a unit, fields, ...
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{
    DataType, Field, Fields, IntervalUnit, Schema, TimeUnit, UnionFields, UnionMode,
};

use super::corrupt;
use super::wire::{Reader, Writer};
use crate::error::Result;

/// Maximum depth of types: the reader recurses.
const DEEPEST: usize = 64;

const TIME_UNITS: [TimeUnit; 4] =
    [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
const INTERVAL_UNITS: [IntervalUnit; 3] =
    [IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano];

/// Types that need nothing, by their numbers.
const PLAIN: [DataType; 21] = [
    DataType::Null,
    DataType::Boolean,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float16,
    DataType::Float32,
    DataType::Float64,
    DataType::Date32,
    DataType::Date64,
    DataType::Utf8,
    DataType::LargeUtf8,
    DataType::Utf8View,
    DataType::Binary,
    DataType::LargeBinary,
    DataType::BinaryView,
];

pub(super) fn put_schema(schema: &Schema, out: &mut Writer) {
    put_fields(schema.fields(), out);
    put_metadata(schema.metadata(), out);
}

pub(super) fn take_schema(input: &mut Reader<'_>) -> Result<Schema> {
    let fields = take_fields(input, 0)?;
    Ok(Schema::new_with_metadata(fields, take_metadata(input)?))
}

fn put_fields(fields: &Fields, out: &mut Writer) {
    out.count(fields.len());
    fields.iter().for_each(|field| put_field(field, out));
}

fn take_fields(input: &mut Reader<'_>, depth: usize) -> Result<Fields> {
    let count = input.count()?;
    (0..count).map(|_| take_field(input, depth)).collect()
}

fn put_field(field: &Field, out: &mut Writer) {
    out.text(field.name());
    out.byte(u8::from(field.is_nullable()));
    put_type(field.data_type(), out);
    put_metadata(field.metadata(), out);
}

fn take_field(input: &mut Reader<'_>, depth: usize) -> Result<Arc<Field>> {
    let (name, nullable) = (input.text()?, input.flag()?);
    let data_type = take_type(input, depth + 1)?;
    Ok(Arc::new(Field::new(name, data_type, nullable).with_metadata(take_metadata(input)?)))
}

fn put_metadata(metadata: &HashMap<String, String>, out: &mut Writer) {
    let mut entries: Vec<_> = metadata.iter().collect();
    entries.sort_unstable();
    out.count(entries.len());
    for (key, value) in entries {
        out.text(key);
        out.text(value);
    }
}

fn take_metadata(input: &mut Reader<'_>) -> Result<HashMap<String, String>> {
    let count = input.count()?;
    (0..count).map(|_| Ok((input.text()?, input.text()?))).collect()
}

fn put_type(data_type: &DataType, out: &mut Writer) {
    use DataType as T;
    let mut decimal = |number: u8, precision: u8, scale: i8| {
        out.raw(&[number, precision, scale as u8]);
    };
    match data_type {
        T::Decimal32(precision, scale) => decimal(32, *precision, *scale),
        T::Decimal64(precision, scale) => decimal(33, *precision, *scale),
        T::Decimal128(precision, scale) => decimal(34, *precision, *scale),
        T::Decimal256(precision, scale) => decimal(35, *precision, *scale),
        T::Time32(unit) => out.raw(&[36, *unit as u8]),
        T::Time64(unit) => out.raw(&[37, *unit as u8]),
        T::Duration(unit) => out.raw(&[38, *unit as u8]),
        T::Timestamp(unit, zone) => {
            out.raw(&[39, *unit as u8]);
            out.option(zone.as_deref());
        }
        T::Interval(unit) => out.raw(&[40, *unit as u8]),
        T::FixedSizeBinary(width) => {
            out.byte(41);
            out.raw(&width.to_le_bytes());
        }
        T::List(field) => put_parent(48, field, out),
        T::LargeList(field) => put_parent(49, field, out),
        T::ListView(field) => put_parent(50, field, out),
        T::LargeListView(field) => put_parent(51, field, out),
        T::FixedSizeList(field, size) => {
            put_parent(52, field, out);
            out.raw(&size.to_le_bytes());
        }
        T::Map(field, sorted) => {
            put_parent(53, field, out);
            out.byte(u8::from(*sorted));
        }
        T::Struct(fields) => {
            out.byte(54);
            put_fields(fields, out);
        }
        T::Union(fields, mode) => {
            out.raw(&[55, u8::from(*mode == UnionMode::Dense)]);
            out.count(fields.len());
            for (id, field) in fields.iter() {
                out.byte(id as u8);
                put_field(field, out);
            }
        }
        T::Dictionary(keys, values) => {
            out.byte(56);
            put_type(keys, out);
            put_type(values, out);
        }
        T::RunEndEncoded(ends, values) => {
            put_parent(57, ends, out);
            put_field(values, out);
        }
        plain => match PLAIN.iter().position(|of| of == plain) {
            Some(number) => out.byte(number as u8),
            None => unreachable!("a type with a number: {plain}"),
        },
    }
}

fn put_parent(number: u8, field: &Field, out: &mut Writer) {
    out.byte(number);
    put_field(field, out);
}

fn take_type(input: &mut Reader<'_>, depth: usize) -> Result<DataType> {
    use DataType as T;
    if depth > DEEPEST {
        return Err(corrupt(format!("types nested over {DEEPEST} levels deep")));
    }
    Ok(match input.byte()? {
        32 => T::Decimal32(input.byte()?, input.byte()? as i8),
        33 => T::Decimal64(input.byte()?, input.byte()? as i8),
        34 => T::Decimal128(input.byte()?, input.byte()? as i8),
        35 => T::Decimal256(input.byte()?, input.byte()? as i8),
        36 => T::Time32(unit(input, &TIME_UNITS)?),
        37 => T::Time64(unit(input, &TIME_UNITS)?),
        38 => T::Duration(unit(input, &TIME_UNITS)?),
        39 => T::Timestamp(unit(input, &TIME_UNITS)?, input.option()?.map(Into::into)),
        40 => T::Interval(unit(input, &INTERVAL_UNITS)?),
        41 => T::FixedSizeBinary(input.number()?),
        48 => T::List(take_field(input, depth)?),
        49 => T::LargeList(take_field(input, depth)?),
        50 => T::ListView(take_field(input, depth)?),
        51 => T::LargeListView(take_field(input, depth)?),
        52 => T::FixedSizeList(take_field(input, depth)?, input.number()?),
        53 => T::Map(take_field(input, depth)?, input.flag()?),
        54 => T::Struct(take_fields(input, depth)?),
        55 => {
            let mode = if input.flag()? { UnionMode::Dense } else { UnionMode::Sparse };
            let count = input.count()?;
            let children = (0..count)
                .map(|_| Ok((input.byte()? as i8, take_field(input, depth)?)))
                .collect::<Result<Vec<_>>>()?;
            let (ids, fields): (Vec<_>, Vec<_>) = children.into_iter().unzip();
            T::Union(UnionFields::try_new(ids, fields)?, mode)
        }
        56 => {
            let keys = take_type(input, depth + 1)?;
            T::Dictionary(Box::new(keys), Box::new(take_type(input, depth + 1)?))
        }
        57 => T::RunEndEncoded(take_field(input, depth)?, take_field(input, depth)?),
        other => match PLAIN.get(usize::from(other)) {
            Some(plain) => plain.clone(),
            None => return Err(corrupt(format!("no type has the number {other}"))),
        },
    })
}

fn unit<U: Copy>(input: &mut Reader<'_>, units: &[U]) -> Result<U> {
    let number = usize::from(input.byte()?);
    units.get(number).copied().ok_or_else(|| corrupt(format!("no unit has the number {number}")))
}
