//! Conversion of CSV values before parsing: fields without text, decimal commas, blanks around
//! numbers; and a parser of booleans.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, StringArray};
use arrow_schema::DataType;

use super::reading::{Fault, Reading};

/// Returns the text to parse for `kind` in place of `text`, if different.
///
/// # Errors
/// The first number with a point, if commas precede fractions.
pub(super) fn converted(
    text: &StringArray,
    kind: &DataType,
    reading: Reading,
) -> Result<Option<StringArray>, Fault> {
    let blank = reading.blank_is_null && !kind.is_string();
    let comma = reading.decimal_comma && (kind.is_floating() || kind.is_decimal());
    let is_number = kind.is_integer() || kind.is_floating() || kind.is_decimal();
    let is_blank =
        |value: &str| matches!(value.as_bytes(), [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
    let trims = reading.of_fields && is_number && text.iter().flatten().any(is_blank);
    if !blank && !comma && !trims {
        return Ok(None);
    }
    let value =
        |value: Option<&str>| match value.map(|value| if trims { trimmed(value) } else { value }) {
            Some("") if blank => Ok(None),
            Some(value) if comma && value.contains('.') => {
                Err(format!("{value:?} has a point, and fractions stand behind a comma"))
            }
            Some(value) if comma => Ok(Some(value.replace(',', "."))),
            value => Ok(value.map(str::to_owned)),
        };
    text.iter().map(value).collect::<Result<StringArray, _>>().map(Some)
}

/// Characters allowed around a number.
const BLANKS: [char; 2] = [' ', '\t'];

/// Returns `value` without blanks around.
pub(crate) fn trimmed(value: &str) -> &str {
    value.trim_matches(BLANKS)
}

/// Parses booleans.
pub(super) fn booleans(text: &StringArray) -> Result<ArrayRef, Fault> {
    let mut values = BooleanArray::builder(text.len());
    for value in text {
        values.append_option(match value {
            None => None,
            // The most frequent notation.
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(value) if value.eq_ignore_ascii_case("true") => Some(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Some(false),
            Some(value) => return Err(format!("{value:?} is no value of its type, Boolean")),
        });
    }
    Ok(Arc::new(values.finish()))
}
