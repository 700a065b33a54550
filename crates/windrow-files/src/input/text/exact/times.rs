//! Timestamps, dates and times of day, exact to the last digit of a fraction.
//!
//! ```text
//! 2026-01-31T12:00:00.5+02:00
//! \________/          |  \___/   an offset, which a timestamp without a zone would lose
//!    date             a fraction, which a unit may not keep
//! ```

use arrow_array::timezone::Tz;
use arrow_array::types::{
    ArrowPrimitiveType, ArrowTimestampType, Date32Type, Date64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{ArrayRef, StringArray};
use arrow_cast::parse::{Parser, string_to_datetime};
use arrow_schema::{ArrowError, DataType, TimeUnit};

use super::reading::{Fault, cast_strictly, each, no_value};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Digits of a date without hyphens.
const DATE_DIGITS: usize = 8;

/// Why an integer of [`DATE_DIGITS`] digits is refused.
const AMBIGUOUS: &str = "may be a date or a count since 1970; write dates as 2026-01-31";

/// Nanoseconds of a second. A larger fraction of a second lies in a leap second.
const NANOSECONDS: u32 = 1_000_000_000;

/// Why a time in a leap second is refused.
const LEAP_SECOND: &str = "is within a leap second, and would become a second later";

/// Parses times of `kind`. With `numbers`, an integer counts units of `kind`.
pub(super) fn times(text: &StringArray, kind: &DataType, numbers: bool) -> Result<ArrayRef, Fault> {
    use DataType as D;
    use TimeUnit as U;
    match kind {
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
                Some(_) if value.len() == DATE_DIGITS => Err(AMBIGUOUS.to_owned()),
                Some(days) => i32::try_from(days).map_err(|_| no_value()),
                None if has_time(value) => match timestamp(value, U::Second, zone)? {
                    seconds if seconds % DAY == 0 => {
                        i32::try_from(seconds / DAY).map_err(|_| no_value())
                    }
                    _ => Err("has a time of day, which a date would lose".to_owned()),
                },
                None if is_cut(value) => Err(no_value()),
                None => Date32Type::parse(value).ok_or_else(no_value),
            })
        }
        D::Date64 => {
            let zone = Zone::of(None)?;
            each::<Date64Type>(text, kind, |value| match plain_number(value, numbers) {
                Some(_) if value.len() == DATE_DIGITS => Err(AMBIGUOUS.to_owned()),
                Some(milliseconds) => Ok(milliseconds),
                None if has_time(value) => timestamp(value, U::Millisecond, zone),
                None if is_cut(value) => Err(no_value()),
                None => Date64Type::parse(value).ok_or_else(no_value),
            })
        }
        D::Time32(U::Second) => times_of::<Time32SecondType>(text, kind, 0),
        D::Time32(_) => times_of::<Time32MillisecondType>(text, kind, 3),
        D::Time64(U::Microsecond) => times_of::<Time64MicrosecondType>(text, kind, 6),
        D::Time64(_) => times_of::<Time64NanosecondType>(text, kind, 9),
        _ => cast_strictly(text, kind),
    }
}

fn times_of<T: ArrowPrimitiveType<Native: Into<i64>> + Parser>(
    text: &StringArray,
    kind: &DataType,
    digits: usize,
) -> Result<ArrayRef, Fault> {
    let units = (0..digits).fold(1, |units, _| units * 10);
    each::<T>(text, kind, |value| {
        check_fraction(value, digits)?;
        if value.split(':').nth(2).is_some_and(|seconds| seconds.starts_with("60")) {
            return Err(LEAP_SECOND.to_owned());
        }
        let time = T::parse(value).ok_or_else(no_value)?;
        // A number counts units.
        match (0..DAY * units).contains(&time.into()) {
            true => Ok(time),
            false => Err("is no time of a day".to_owned()),
        }
    })
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

/// Time zone of a timestamp without an offset.
#[derive(Clone, Copy)]
struct Zone {
    zone: Tz,
    /// The type has no zone, so an offset would be lost.
    local: bool,
}

impl Zone {
    fn of(name: Option<&str>) -> Result<Self, Fault> {
        let zone = name.unwrap_or("+00:00").parse();
        let zone = zone.map_err(|error: ArrowError| error.to_string())?;
        Ok(Self { zone, local: name.is_none() })
    }
}

/// Parses a timestamp into units since the epoch.
fn timestamp(value: &str, unit: TimeUnit, Zone { zone, local }: Zone) -> Result<i64, Fault> {
    if local && has_offset(value) {
        return Err("has an offset, which a timestamp without a zone would lose; \
                    give its column a zone, as in timestamp_us(UTC)"
            .to_owned());
    }
    check_fraction(value, digits_of(unit))?;
    let at = string_to_datetime(&zone, value).map_err(|_| no_value())?;
    if at.timestamp_subsec_nanos() >= NANOSECONDS {
        return Err(LEAP_SECOND.to_owned());
    }
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

/// Returns the number of decimal places of a unit.
pub(super) fn digits_of(unit: TimeUnit) -> usize {
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

/// Returns true for a date with a suffix ignored by its parser.
fn is_cut(value: &str) -> bool {
    !value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-'))
        || value.ends_with(['+', '-'])
}

/// Returns true if `value` is longer than a date. A year may have a sign and any number of digits.
fn has_time(value: &str) -> bool {
    value.len() > 10 && !value.starts_with(['+', '-'])
}

/// Returns true if a timestamp has an offset from UTC, or a zone.
pub(crate) fn has_offset(value: &str) -> bool {
    let time = value.as_bytes().get(11..).unwrap_or_default();
    time.iter().any(|byte| matches!(byte, b'+' | b'-') || byte.is_ascii_alphabetic())
}
