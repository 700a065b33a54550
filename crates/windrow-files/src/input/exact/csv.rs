//! Values of CSV that its options make others: fields without text, decimal commas; and truth values, as the parser of
//! CSV has them.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, StringArray};
use arrow_schema::DataType;

use super::{Fault, Reading};

/// What is parsed instead of `text` for `kind`, if that is something else.
///
/// # Errors
/// The first number with a point where fractions stand behind a comma.
pub(super) fn converted(
    text: &StringArray,
    kind: &DataType,
    reading: Reading,
) -> Result<Option<StringArray>, Fault> {
    let of_text = matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let blank = reading.blank_is_null && !of_text;
    let comma = reading.decimal_comma && (kind.is_floating() || kind.is_decimal());
    if !blank && !comma {
        return Ok(None);
    }
    let value = |value: Option<&str>| match value {
        Some("") if blank => Ok(None),
        Some(value) if comma && value.contains('.') => {
            Err(format!("{value:?} has a point, and fractions stand behind a comma"))
        }
        Some(value) if comma => Ok(Some(value.replace(',', "."))),
        value => Ok(value.map(str::to_owned)),
    };
    text.iter().map(value).collect::<Result<StringArray, _>>().map(Some)
}

/// Truth values.
pub(super) fn booleans(text: &StringArray) -> Result<ArrayRef, Fault> {
    let mut values = BooleanArray::builder(text.len());
    for value in text {
        values.append_option(match value {
            None => None,
            Some(value) if value.eq_ignore_ascii_case("true") => Some(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Some(false),
            Some(value) => return Err(format!("{value:?} is no value of its type, Boolean")),
        });
    }
    Ok(Arc::new(values.finish()))
}
