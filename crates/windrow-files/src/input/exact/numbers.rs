//! Decimals and floats, to the last digit.
//!
//! ```text
//! "-1.250e1"   digits 125, places 1   decimal(5,2): 125 and two zeros less one, so -1250
//! ```
//! A decimal has no more places than its scale and no more digits than its precision, zeros aside. A float is the nearest: the
//! same integer, if the value is one, and where nobody named the type the same fraction too. A float that is printed with as many
//! digits as the value has must be the value, so what another program printed of a float passes, however many digits it has.

use std::fmt::{self, LowerExp, Write};

use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type,
};
use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::i256;
use arrow_cast::parse::Parser;
use arrow_schema::DataType;

use super::{Fault, cast, each, no_value};
use crate::setting::Setting;

/// Digits that an integer may have to be sure to be a float.
const FLOAT16_DIGITS: usize = 3;
const FLOAT32_DIGITS: usize = 6;
const FLOAT64_DIGITS: usize = 15;

/// Decimals of `kind`.
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
        _ => cast(text, kind),
    }
}

/// Floats of `kind`. Where the type is `guessed`, a fraction of more digits than the float keeps is refused.
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

/// Whether a float of 64 bits prints as the number that `value` is.
pub(in super::super) fn is_a_float(value: &str) -> bool {
    value.len() <= FLOAT64_DIGITS
        || value.parse::<f64>().is_ok_and(|parsed| prints_as(value, &parsed, true))
}

/// Whether `parsed` prints as `value`, should that be an integer, or a fraction, where these count.
fn prints_as<F: LowerExp>(value: &str, parsed: &F, with_fractions: bool) -> bool {
    if !with_fractions && !is_integer(value) {
        return true;
    }
    let number = value.strip_prefix(['+', '-']).unwrap_or(value);
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    if !mantissa.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        // Infinity, and what is no number.
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
    // The digits that tell it from other floats, as many as the value has, and, of an integer, all that it has.
    is_printed(None)
        || is_printed(Some(count.saturating_sub(1)))
        || is_integer(value) && is_printed(Some(value.len()))
}

/// Compares the digits of a float, as it is printed with an exponent, to those of a number. Zeros behind do not count.
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
