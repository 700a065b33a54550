//! The transforms of values that divide a table into partitions, as Iceberg defines them.
//!
//! ```text
//!  identity  day  month(2026-01-31) = 672    bucket[16] = hash mod 16    truncate[2]("berlin") = "be"
//! ```
//! A null is a partition of its own under every transform.

use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::date32_to_datetime;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, Decimal128Array, Int64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use chrono::Datelike;

use crate::error::{Error, Result, failed};

/// A column whose values divide a table into partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionColumn {
    /// The name of the column.
    pub name: String,
    /// What the rows of a partition have in common in this column.
    pub transform: PartitionTransform,
}

impl PartitionColumn {
    /// Divides by a transform of a column.
    pub fn new(name: impl Into<String>, transform: PartitionTransform) -> Self {
        Self { name: name.into(), transform }
    }
}

/// A transform of values, as Iceberg defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionTransform {
    /// The value itself.
    Identity,
    /// Years of a date or time.
    Year,
    /// Months of a date or time.
    Month,
    /// Days of a date or time.
    Day,
    /// Hours of a time.
    Hour,
    /// A hash, modulo this number.
    Bucket(NonZeroU32),
    /// The first characters of text, or a number rounded down to a multiple.
    Truncate(NonZeroU32),
}

/// Parses the name that Iceberg gives to a transform: `day`, `bucket[16]`.
impl FromStr for PartitionTransform {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let sized = |name: &str| {
            let size = text.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            size.parse::<NonZeroU32>().ok()
        };
        Ok(match text {
            "identity" => Self::Identity,
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            _ => match (sized("bucket"), sized("truncate")) {
                (Some(buckets), _) => Self::Bucket(buckets),
                (_, Some(width)) => Self::Truncate(width),
                _ => {
                    return Err(Error::usage(format!(
                        "{text}: no transform of partitions that is known"
                    )));
                }
            },
        })
    }
}

const HOUR: i64 = 3_600_000_000;

impl PartitionTransform {
    /// Returns the transforms of `values`.
    pub(super) fn of(self, values: &ArrayRef) -> Result<ArrayRef> {
        let refused = || {
            let kind = values.data_type();
            Error::usage(format!("partitions by the transform {self:?} of {kind} are not served"))
        };
        let of_time = |unit: i64| Ok(map(&micros(values)?, |time| time.div_euclid(unit)));
        let of_day = |of: &dyn Fn(chrono::NaiveDateTime) -> i64| {
            let day = |time: i64| i32::try_from(time.div_euclid(24 * HOUR)).ok();
            let of = |time| day(time).and_then(date32_to_datetime).map_or(i64::MIN, of);
            Ok(map(&micros(values)?, of))
        };
        match self {
            Self::Identity => Ok(ArrayRef::clone(values)),
            _ if matches!(values.data_type(), DataType::Null) => Ok(ArrayRef::clone(values)),
            Self::Year => of_day(&|day| day.year().into()),
            Self::Month => of_day(&|day| i64::from(day.year()) * 12 + i64::from(day.month0())),
            Self::Day => of_time(24 * HOUR),
            Self::Hour => of_time(HOUR),
            Self::Bucket(buckets) => {
                let bytes = hashed(values)?.ok_or_else(refused)?;
                let bucket =
                    |bytes: &[u8]| i64::from((murmur3(bytes) & 0x7fff_ffff) % buckets.get());
                let of = bytes.as_binary::<i32>().iter().map(|bytes| bytes.map(bucket));
                Ok(Arc::new(of.collect::<Int64Array>()))
            }
            Self::Truncate(width) => truncated(values, width.get())?.ok_or_else(refused),
        }
    }
}

fn map(values: &Int64Array, of: impl Fn(i64) -> i64) -> ArrayRef {
    Arc::new(values.unary::<_, Int64Type>(of))
}

/// Returns dates and times as microseconds since 1970.
fn micros(values: &ArrayRef) -> Result<Int64Array> {
    let zone = match values.data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    let times = cast(values, &DataType::Timestamp(TimeUnit::Microsecond, zone)).map_err(failed)?;
    let numbers = cast(&times, &DataType::Int64).map_err(failed)?;
    Ok(numbers.as_primitive().clone())
}

/// Returns the bytes that Iceberg hashes; `None` for a type without a hash.
fn hashed(values: &ArrayRef) -> Result<Option<ArrayRef>> {
    use DataType as T;
    let numbers = match values.data_type() {
        kind if kind.is_string() || kind.is_binary() => {
            return cast(values, &T::Binary).map(Some).map_err(failed);
        }
        T::Decimal128(..) => {
            let least = |value: i128| {
                let bytes = value.to_be_bytes();
                let same = if value < 0 { 0xff } else { 0 };
                // The first byte that stays has the sign.
                let spare = bytes
                    .windows(2)
                    .take_while(|pair| pair[0] == same && (pair[0] ^ pair[1]) < 0x80);
                bytes[spare.count()..].to_vec()
            };
            let values =
                values.as_primitive::<Decimal128Type>().iter().map(|value| value.map(least));
            return Ok(Some(Arc::new(values.collect::<BinaryArray>())));
        }
        T::Int8 | T::Int16 | T::Int32 | T::Int64 => cast(values, &T::Int64).map_err(failed)?,
        T::Date32 => cast(&cast(values, &T::Int32).map_err(failed)?, &T::Int64).map_err(failed)?,
        T::Time64(TimeUnit::Microsecond) => cast(values, &T::Int64).map_err(failed)?,
        T::Timestamp(..) => Arc::new(micros(values)?),
        _ => return Ok(None),
    };
    let numbers = numbers.as_primitive::<Int64Type>().iter();
    let bytes = numbers.map(|value| value.map(i64::to_le_bytes));
    Ok(Some(Arc::new(bytes.collect::<BinaryArray>())))
}

/// Returns the first characters or bytes, or numbers rounded down; `None` for other types.
fn truncated(values: &ArrayRef, width: u32) -> Result<Option<ArrayRef>> {
    use DataType as T;
    Ok(Some(match values.data_type() {
        T::Int8 | T::Int16 | T::Int32 | T::Int64 => {
            let numbers = cast(values, &T::Int64).map_err(failed)?;
            let width = i64::from(width);
            map(numbers.as_primitive(), |value| value.wrapping_sub(value.rem_euclid(width)))
        }
        T::Decimal128(..) => {
            let width = i128::from(width);
            let down = |value: i128| value.wrapping_sub(value.rem_euclid(width));
            let values: Decimal128Array = values.as_primitive::<Decimal128Type>().unary(down);
            Arc::new(values)
        }
        kind if kind.is_string() => {
            let text = cast(values, &T::Utf8).map_err(failed)?;
            let first =
                |text: &str| text.chars().take(width as usize).collect::<String>().into_bytes();
            let first = text.as_string::<i32>().iter().map(|text| text.map(first));
            Arc::new(first.collect::<BinaryArray>())
        }
        T::Binary | T::LargeBinary => {
            let bytes = cast(values, &T::Binary).map_err(failed)?;
            let first = |bytes: &[u8]| bytes[..bytes.len().min(width as usize)].to_vec();
            let first = bytes.as_binary::<i32>().iter().map(|bytes| bytes.map(first));
            Arc::new(first.collect::<BinaryArray>())
        }
        _ => return Ok(None),
    }))
}

/// The 32-bit variant of MurmurHash3 for x86, with seed 0.
fn murmur3(bytes: &[u8]) -> u32 {
    let mixed =
        |word: u32| word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let (words, rest) = bytes.as_chunks::<4>();
    let mut hash = words.iter().fold(0_u32, |hash, word| {
        let hash = hash ^ mixed(u32::from_le_bytes(*word));
        hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    });
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    hash ^= mixed(u32::from_le_bytes(last));
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use arrow_array::{Date32Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    /// The values of the appendix of Iceberg's specification.
    #[test]
    fn hashes_are_those_of_the_specification() {
        let one = |values: ArrayRef| {
            let bytes = hashed(&values).expect("a type with a hash").expect("bytes");
            murmur3(bytes.as_binary::<i32>().value(0)) as i32
        };
        assert_eq!(one(Arc::new(arrow_array::Int32Array::from(vec![34]))), 2_017_239_379);
        assert_eq!(one(Arc::new(Int64Array::from(vec![34]))), 2_017_239_379);
        let decimal = Decimal128Array::from(vec![1420]).with_precision_and_scale(9, 2);
        assert_eq!(one(Arc::new(decimal.expect("a type"))), -500_754_589);
        assert_eq!(one(Arc::new(Date32Array::from(vec![17486]))), -653_330_422);
        let time = TimestampMicrosecondArray::from(vec![1_510_871_468_000_000]);
        assert_eq!(one(Arc::new(time)), -2_047_944_441);
        assert_eq!(one(Arc::new(StringArray::from(vec!["iceberg"]))), 1_210_000_089);
        assert_eq!(one(Arc::new(BinaryArray::from(vec![&[0_u8, 1, 2, 3][..]]))), -188_683_207);
    }

    #[test]
    fn times_before_1970_round_down() {
        let times: ArrayRef = Arc::new(Date32Array::from(vec![Some(-1), Some(0), Some(31), None]));
        let of = |name: &str| name.parse::<PartitionTransform>().expect("a name").of(&times);
        let numbers = |name: &str| of(name).expect("a date").as_primitive::<Int64Type>().clone();
        assert_eq!(numbers("day"), vec![Some(-1), Some(0), Some(31), None].into());
        let months = [1969 * 12 + 11, 1970 * 12, 1970 * 12 + 1].map(Some).into_iter();
        assert_eq!(numbers("month"), months.chain([None]).collect());
        assert_eq!(numbers("year"), vec![Some(1969), Some(1970), Some(1970), None].into());
        assert!("bucket[0]".parse::<PartitionTransform>().is_err());
        let text: ArrayRef = Arc::new(StringArray::from(vec!["äöü"]));
        let first = "truncate[2]".parse::<PartitionTransform>().expect("a name").of(&text);
        assert_eq!(first.expect("text").as_binary::<i32>().value(0), "äö".as_bytes());
    }
}
