//! Checks values against the notation of an inferred type.
//!
//! The type is a guess from the notation of the first rows. A value in another notation would have
//! made the guess another type, mostly text. As the inferred type, the value might lose its
//! notation.
//!
//! ```text
//!  integers     12  -7  0              not 02139  +5  1_000  "5" in JSON
//!  floats       those, 1.5  .5  1e3    not 00.5   +.5; in CSV also NaN, nan, inf and -inf
//!  dates        2026-01-31             not 20260131  2026-1-31
//!  timestamps   those, and 2026-01-31[T ]12:00:00[.5][offset]; all have an offset if the type has a zone
//! ```
//! Types that are never inferred come from a binary file read before. Their values may have any
//! notation, except zeros or a sign in front, since these would be lost.
//!
//! Malformed values may pass this check: the next step parses them.

use arrow_array::StringArray;
use arrow_schema::DataType;

use crate::nested::of_decimal;

use super::reading::{Fault, Writing};
use super::times::has_offset;

/// Minimum number of digits of an integer beyond 64 bits.
const I64_DIGITS: usize = 19;

/// Digits of a fraction in nanoseconds.
const NANOSECOND_DIGITS: usize = 9;

/// Returns the first value in a notation other than the one `kind` was inferred from.
pub(super) fn strange<'a>(
    text: &'a StringArray,
    kind: &DataType,
    writing: Writing,
) -> Option<&'a str> {
    use DataType as D;
    let is_whole = matches!(of_decimal(kind), Some((_, 0))) || matches!(kind, D::Duration(_));
    match kind {
        kind if kind.is_integer() || is_whole => find(text, |value| !is_integer(value, writing)),
        kind if kind.is_decimal() => find(text, |value| is_padded(value) || value.starts_with('+')),
        kind if kind.is_floating() => find(text, |value| !is_float(value, writing)),
        D::Date32 => find(text, |value| !is_date(value)),
        D::Date64 | D::Timestamp(_, None) => find(text, |value| !is_time(value)),
        D::Time32(_) | D::Time64(_) => find(text, |value| !value.contains(':')),
        D::Timestamp(_, Some(_)) => find(text, |value| !is_time(value) || !has_offset(value)),
        _ => None,
    }
}

/// Why a value is refused that is written in another notation than `kind` was inferred from.
pub(super) fn fault(value: &str, kind: &DataType) -> Fault {
    use DataType as D;
    match kind {
        kind if kind.is_numeric() && is_padded(value) => {
            format!("{value:?} has leading zeros, which {kind} would lose")
        }
        D::Timestamp(_, Some(_)) if is_time(value) => {
            format!("{value:?} has no offset, unlike the values that {kind} was inferred from")
        }
        _ => format!("{value:?} is not written as the values that {kind} was inferred from"),
    }
}

fn find(text: &StringArray, is_strange: impl Fn(&str) -> bool) -> Option<&str> {
    text.iter().flatten().find(|value| is_strange(value))
}

/// Returns true for a number with superfluous zeros in front.
pub(crate) fn is_padded(value: &str) -> bool {
    let number = value.strip_prefix(['+', '-']).unwrap_or(value).as_bytes();
    matches!(number, [b'0', next, ..] if next.is_ascii_digit())
}

/// Returns true if `value` is a number in JSON.
pub(in super::super) fn is_json_number(value: &str) -> bool {
    is_float(value, Writing::Json)
}

/// Checks the notation of an integer. In JSON a negative zero is a float.
fn is_integer(value: &str, writing: Writing) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value).as_bytes();
    match digits {
        [b'0'] => writing == Writing::Csv || digits.len() == value.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn is_float(value: &str, writing: Writing) -> bool {
    let number = value.strip_prefix('-').unwrap_or(value).as_bytes();
    let whole = leading_digits(number);
    if whole > 1 && number[0] == b'0' {
        return false;
    }
    let (fraction, rest) = match &number[whole..] {
        [b'.', behind @ ..] => {
            let digits = leading_digits(behind);
            (Some(digits), &behind[digits..])
        }
        rest => (None, rest),
    };
    let exponent = match rest {
        [] => None,
        [b'e' | b'E', b'+' | b'-', rest @ ..] | [b'e' | b'E', rest @ ..] => {
            if rest.is_empty() || leading_digits(rest) < rest.len() {
                return false;
            }
            Some(rest)
        }
        _ => return writing == Writing::Csv && matches!(value, "NaN" | "nan" | "inf" | "-inf"),
    };
    match writing {
        Writing::Json => whole > 0 && fraction != Some(0),
        // An integer beyond 64 bits makes its column a decimal or text, even beside fractions.
        Writing::Csv if fraction.is_none() && exponent.is_none() => {
            whole > 0 && (whole < I64_DIGITS || value.parse::<i64>().is_ok())
        }
        Writing::Csv => whole + fraction.unwrap_or(0) > 0,
    }
}

fn leading_digits(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len())
}

/// Returns true if `value`, provided that it parses as a date, has ten bytes.
fn is_date(value: &str) -> bool {
    let value = value.as_bytes();
    value.len() == 10 && value[4] == b'-' && value[7] == b'-'
}

/// Returns true if `value`, provided that it parses as a time, is a date of ten bytes, alone or
/// with a time of day of eight bytes and a fraction of at most nine digits.
fn is_time(value: &str) -> bool {
    let value = value.as_bytes();
    match value.get(10) {
        None => true,
        Some(b'T' | b' ') => {
            let fraction = match value.get(19..) {
                Some([b'.', behind @ ..]) => leading_digits(behind),
                _ => 0,
            };
            value.get(13) == Some(&b':') && fraction <= NANOSECOND_DIGITS
        }
        Some(_) => false,
    }
}
