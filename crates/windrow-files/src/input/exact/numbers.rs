//! Decimals and floats, to the last digit.
//!
//! ```text
//! "-1.250e1"   digits 125, places 1   decimal(5,2): 125 and two zeros less one, so -1250
//! ```
//! A decimal has no more places than its scale and no more digits than its precision, zeros aside; a float
//! is the nearest, and the same integer, if it is one.

use std::fmt::LowerExp;

use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type,
};
use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::i256;
use arrow_cast::parse::Parser;
use arrow_schema::DataType;

use super::{Fault, cast, each, no_value};

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

/// Floats of `kind`.
pub(super) fn floats(text: &StringArray, kind: &DataType) -> Result<ArrayRef, Fault> {
    match kind {
        DataType::Float16 => floats_of::<Float16Type>(text, kind, FLOAT16_DIGITS),
        DataType::Float32 => floats_of::<Float32Type>(text, kind, FLOAT32_DIGITS),
        _ => floats_of::<Float64Type>(text, kind, FLOAT64_DIGITS),
    }
}

fn floats_of<T: ArrowPrimitiveType<Native: LowerExp + Into<f64>> + Parser>(
    text: &StringArray,
    kind: &DataType,
    digits: usize,
) -> Result<ArrayRef, Fault> {
    each::<T>(text, kind, |value| {
        let parsed = T::parse(value).ok_or_else(no_value)?;
        if value.len() > digits && !is_whole(value, &parsed) {
            return Err(format!("is an integer of more digits than {kind} holds"));
        }
        // Infinity has a name, and no digits.
        if parsed.into().is_infinite() && value.bytes().any(|byte| byte.is_ascii_digit()) {
            return Err(format!("is larger than any {kind}"));
        }
        Ok(parsed)
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
