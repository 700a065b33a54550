//! The syntax of `schema`: `id:int64,name:utf8,at:timestamp_us,amount:decimal128(12,2)`.
//!
//! A column is a name, a colon and a type. Names may contain anything but commas: the last colon
//! outside of the type's parentheses separates name and type. Lists and objects of JSON are
//! `list(int64)` and `struct(id:int64,tags:list(utf8))`. Every column is nullable, as text formats
//! cannot promise otherwise.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::timezone::Tz;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::error::{Error, Result};
use crate::settings::Setting;

/// The known types, for messages about an unknown type.
const TYPES: &str = "bool, int8..int64, uint8..uint64, float16..float64, utf8, binary, binary(length), date32, \
     date64, time32_s, time32_ms, time64_us, time64_ns, timestamp_s..timestamp_ns, timestamp_us(UTC), \
     duration_s..duration_ns, decimal128(precision,scale), decimal256(precision,scale), list(type), \
     struct(name:type,...)";

/// Maximum depth of nested types. JSON is not read any deeper.
const MOST_DEPTH: usize = 64;

/// Parses the text of `schema`.
///
/// # Errors
/// `Usage` with the incomprehensible part.
pub fn parse_schema(text: &str) -> Result<SchemaRef> {
    parsed(text).map_err(|why| Error::usage(format!("{}: {why}", Setting::Schema)))
}

/// Parses the text of a schema. The error does not name the setting.
pub(crate) fn parsed(text: &str) -> Result<SchemaRef, String> {
    Ok(Arc::new(Schema::new(fields(text, 0)?)))
}

/// Parses the columns of `text`, or the members of a struct at depth `within`.
fn fields(text: &str, within: usize) -> Result<Vec<Field>, String> {
    let (mut fields, mut names) = (Vec::new(), HashSet::new());
    for part in columns(text) {
        let part = part.trim();
        // An offset in parentheses also contains a colon.
        let arguments = opening(part);
        let Some(colon) = part[..arguments.unwrap_or(part.len())].rfind(':') else {
            return Err(bad(part, "expected name:type"));
        };
        let (name, kind) = (part[..colon].trim(), part[colon + 1..].trim());
        if name.is_empty() {
            return Err(bad(part, "the name is missing"));
        }
        if !names.insert(name) {
            return Err(bad(part, "the name is there twice"));
        }
        let kind = parse_type(kind, within).map_err(|why| bad(part, &why))?;
        fields.push(Field::new(name, kind, true));
    }
    Ok(fields)
}

/// Returns the position of the parenthesis closed by the last character of `text`.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut places = text.char_indices().rev();
    let found = places.find(|(_, c)| {
        match c {
            ')' => depth += 1,
            '(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    found.map(|(place, _)| place).filter(|_| text.ends_with(')'))
}

fn bad(part: &str, why: &str) -> String {
    format!("'{part}': {why}")
}

/// Splits `text` at the commas outside of parentheses.
fn columns(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn parse_type(text: &str, within: usize) -> Result<DataType, String> {
    let (word, arguments) = match text.split_once('(') {
        Some((word, rest)) => {
            let inside = rest.strip_suffix(')').ok_or("the parenthesis is not closed")?;
            (word.trim(), Some(inside.trim()))
        }
        None => (text, None),
    };
    let word = word.to_ascii_lowercase();
    let unit = |text: &str| match text {
        "_s" => Ok(TimeUnit::Second),
        "_ms" => Ok(TimeUnit::Millisecond),
        "_us" | "" => Ok(TimeUnit::Microsecond),
        "_ns" => Ok(TimeUnit::Nanosecond),
        _ => Err(format!("unknown type; known are {TYPES}")),
    };
    if let Some(text) = word.strip_prefix("timestamp") {
        let unit = unit(text)?;
        if let Some(zone) = arguments
            && zone.parse::<Tz>().is_err()
        {
            return Err(format!("unknown time zone {zone}; write UTC or an offset, +02:00"));
        }
        return Ok(DataType::Timestamp(unit, arguments.map(Into::into)));
    }
    if word == "list" || word == "struct" {
        let inside = arguments.filter(|inside| !inside.is_empty());
        let inside = inside.ok_or_else(|| format!("write {word}(...), with what is in it"))?;
        if within >= MOST_DEPTH {
            return Err(format!("is nested more than {MOST_DEPTH} deep"));
        }
        return match word.as_str() {
            "list" => Ok(DataType::new_list(parse_type(inside, within + 1)?, true)),
            _ => fields(inside, within + 1).map(|members| DataType::Struct(members.into())),
        };
    }
    if word == "decimal128" || word == "decimal256" || word == "decimal" {
        return decimal(&word, arguments);
    }
    if let (Some(text), None) = (word.strip_prefix("duration"), arguments) {
        return Ok(DataType::Duration(unit(text)?));
    }
    if let ("binary", Some(length)) = (word.as_str(), arguments) {
        let length = length.parse().ok().filter(|length| *length > 0);
        return length.map(DataType::FixedSizeBinary).ok_or("write binary(length)".to_owned());
    }
    if arguments.is_some() {
        return Err(format!("the type {word} takes nothing in parentheses"));
    }
    Ok(match word.as_str() {
        "bool" | "boolean" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" | "int" => DataType::Int32,
        "int64" | "bigint" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float16" => DataType::Float16,
        "float32" | "float" => DataType::Float32,
        "float64" | "double" => DataType::Float64,
        "utf8" | "string" | "text" => DataType::Utf8,
        "binary" | "bytes" | "blob" => DataType::Binary,
        "date32" | "date" => DataType::Date32,
        "date64" => DataType::Date64,
        "time32_s" => DataType::Time32(TimeUnit::Second),
        "time32_ms" => DataType::Time32(TimeUnit::Millisecond),
        "time64_us" => DataType::Time64(TimeUnit::Microsecond),
        "time64_ns" => DataType::Time64(TimeUnit::Nanosecond),
        _ => return Err(format!("unknown type; known are {TYPES}")),
    })
}

fn decimal(word: &str, arguments: Option<&str>) -> Result<DataType, String> {
    let wide = word == "decimal256";
    let most = if wide { 76 } else { 38 };
    let usage = || {
        format!(
            "write {word}(precision,scale) with 1 <= precision <= {most}, 0 <= scale <= precision"
        )
    };
    let (precision, scale) =
        arguments.and_then(|arguments| arguments.split_once(',')).ok_or_else(usage)?;
    let precision: u8 = precision.trim().parse().map_err(|_| usage())?;
    let scale: i8 = scale.trim().parse().map_err(|_| usage())?;
    if precision == 0 || precision > most || scale < 0 || scale as u8 > precision {
        return Err(usage());
    }
    Ok(if wide {
        DataType::Decimal256(precision, scale)
    } else {
        DataType::Decimal128(precision, scale)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn every_kind_of_type_is_read() {
        let schema = parse_schema(
            "id:int64, name:utf8,ts:timestamp_us,at:timestamp_ns(UTC),\
             d:decimal128(12,2),flag:bool,day:date32,a:b:float64,c:timestamp_s(+02:00),\
             x:binary,y:binary(16),h:float16,t:duration_ms",
        )
        .unwrap();
        let expected = [
            ("id", DataType::Int64),
            ("name", DataType::Utf8),
            ("ts", DataType::Timestamp(TimeUnit::Microsecond, None)),
            ("at", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))),
            ("d", DataType::Decimal128(12, 2)),
            ("flag", DataType::Boolean),
            ("day", DataType::Date32),
            ("a:b", DataType::Float64),
            ("c", DataType::Timestamp(TimeUnit::Second, Some("+02:00".into()))),
            ("x", DataType::Binary),
            ("y", DataType::FixedSizeBinary(16)),
            ("h", DataType::Float16),
            ("t", DataType::Duration(TimeUnit::Millisecond)),
        ];
        assert_eq!(schema.fields().len(), expected.len());
        for (field, (name, kind)) in schema.fields().iter().zip(&expected) {
            assert_eq!((field.name().as_str(), field.data_type()), (*name, kind));
            assert!(field.is_nullable());
        }
    }

    #[test]
    fn the_bad_part_is_named() {
        for (text, part) in [
            ("id:int64,name", "'name'"),
            ("id:int64,x:strnig", "'x:strnig'"),
            ("id:int64,:utf8", "':utf8'"),
            ("d:decimal128(99,2)", "'d:decimal128(99,2)'"),
            ("d:decimal128(5,7)", "'d:decimal128(5,7)'"),
            ("d:decimal128(5", "'d:decimal128(5'"),
            ("d:int64(5)", "'d:int64(5)'"),
            ("a:utf8,a:utf8", "'a:utf8'"),
            ("", "''"),
        ] {
            match parse_schema(text) {
                Err(error) if error.kind() == ErrorKind::Usage => {
                    let message = error.to_string();
                    assert!(message.contains(part), "{message}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
