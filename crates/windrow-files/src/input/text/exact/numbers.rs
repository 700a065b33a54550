//! Decimals and floats, to the last digit.
//!
//! ```text
//! "-1.250e1"   digits 125, places 1   decimal(5,2): 125 and two zeros less one, so -1250
//! ```
//! A decimal may have at most as many places as its scale, and as many digits as its precision,
//! apart from zeros. A float is the nearest float. The float of an integer must equal the integer;
//! if the type was inferred, the same holds for fractions. Equality means: the float, printed with
//! as many digits as the value, is the value. Any float printed by another program passes, whatever
//! its number of digits.

use std::fmt::{self, LowerExp, Write};

use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type,
};
use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::i256;
use arrow_cast::parse::Parser;
use arrow_schema::DataType;

use crate::settings::Setting;

use super::reading::{Fault, cast_strictly, each, no_value};

/// Number of digits for which every integer is exactly a float.
const FLOAT16_DIGITS: usize = 3;
const FLOAT32_DIGITS: usize = 6;
const FLOAT64_DIGITS: usize = 15;

/// Parses decimals of `kind`.
pub(super) fn decimals(text: &StringArray, kind: &DataType) -> Result<ArrayRef, Fault> {
    let mut digits = String::new();
    match kind {
        DataType::Decimal128(precision, scale) => each::<Decimal128Type>(text, kind, |value| {
            unscaled(value, *precision, *scale, &mut digits)?;
            digits.parse().map_err(|_| no_value())
        }),
        DataType::Decimal256(precision, scale) => each::<Decimal256Type>(text, kind, |value| {
            unscaled(value, *precision, *scale, &mut digits)?;
            i256::from_string(&digits).ok_or_else(no_value)
        }),
        _ => cast_strictly(text, kind),
    }
}

/// Parses floats of `kind`. If the type is `guessed`, a fraction with more digits than the float is
/// refused.
pub(super) fn floats(
    text: &StringArray,
    kind: &DataType,
    guessed: bool,
) -> Result<ArrayRef, Fault> {
    match kind {
        DataType::Float16 => floats_of::<Float16Type>(text, kind, FLOAT16_DIGITS, guessed),
        DataType::Float32 => floats_of::<Float32Type>(text, kind, FLOAT32_DIGITS, guessed),
        _ => floats_of::<Float64Type>(text, kind, FLOAT64_DIGITS, guessed),
    }
}

fn floats_of<T: ArrowPrimitiveType<Native: LowerExp + Into<f64>> + Parser>(
    text: &StringArray,
    kind: &DataType,
    digits: usize,
    guessed: bool,
) -> Result<ArrayRef, Fault> {
    each::<T>(text, kind, |value| {
        let parsed = T::parse(value).ok_or_else(no_value)?;
        if value.len() > digits && !prints_as(value, &parsed, guessed) {
            return Err(match is_integer(value) {
                true => format!("is an integer of more digits than {kind} holds"),
                false => format!(
                    "has more digits than {kind} keeps; give its type with {}, decimal(38,10) for instance, or {kind} to \
                     have it rounded",
                    Setting::Schema
                ),
            });
        }
        // Infinity has a name, and no digits.
        if parsed.into().is_infinite() && value.bytes().any(|byte| byte.is_ascii_digit()) {
            return Err(format!("is larger than any {kind}"));
        }
        Ok(parsed)
    })
}

fn is_integer(value: &str) -> bool {
    let number = value.strip_prefix(['+', '-']).unwrap_or(value);
    number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if a float of 64 bits prints as the number `value`.
pub(crate) fn is_a_float(value: &str) -> bool {
    value.len() <= FLOAT64_DIGITS
        || value.parse::<f64>().is_ok_and(|parsed| prints_as(value, &parsed, true))
}

/// Returns true if `parsed` prints as `value`. Fractions pass unless `with_fractions` is set.
fn prints_as<F: LowerExp>(value: &str, parsed: &F, with_fractions: bool) -> bool {
    if !with_fractions && !is_integer(value) {
        return true;
    }
    let number = value.strip_prefix(['+', '-']).unwrap_or(value);
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    if !mantissa.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        // Infinity, or a malformed number.
        return true;
    }
    let significant =
        || mantissa.bytes().filter(u8::is_ascii_digit).skip_while(|byte| *byte == b'0');
    let count = significant().count();
    let is_printed = |decimals: Option<usize>| {
        let mut printed = Printed { expected: significant(), is_equal: true, ended: false };
        let written = match decimals {
            Some(decimals) => write!(printed, "{parsed:.decimals$e}"),
            None => write!(printed, "{parsed:e}"),
        };
        written.is_ok() && printed.is_equal && printed.expected.all(|byte| byte == b'0')
    };
    // Three notations: the shortest digits of the float, as many digits as the value has, and for
    // an integer all digits.
    is_printed(None)
        || is_printed(Some(count.saturating_sub(1)))
        || is_integer(value) && is_printed(Some(value.len()))
}

/// Compares the digits of a float, printed with an exponent, to a number's digits. Zeros at the end
/// do not count.
struct Printed<I> {
    expected: I,
    is_equal: bool,
    /// The exponent has begun.
    ended: bool,
}

impl<I: Iterator<Item = u8>> Write for Printed<I> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.ended |= byte == b'e';
            if byte.is_ascii_digit() && !self.ended {
                self.is_equal &= self.expected.next().unwrap_or(b'0') == byte;
            }
        }
        Ok(())
    }
}

/// Writes the digits of `value` times ten to the power of `scale` into `digits`.
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
