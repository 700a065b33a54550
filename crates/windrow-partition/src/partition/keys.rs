//! Comparable keys: columns as words or bytes in the order of their slots, nested columns as rows
//! of their own.
//!
//! Invariant: rows compare as under the layout; nulls stand where the slot says.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::downcast_primitive_array;
use arrow_array::{Array, ArrayRef, NullArray, RecordBatch};
use arrow_buffer::{IntervalDayTime, IntervalMonthDayNano, NullBuffer, i256};
use arrow_schema::{DataType, Field, Schema};

use super::nested::select;
use super::runs::runs;
use windrow_rows::engine::Slot;
use windrow_rows::{Order, Result, RowEncoder, SortColumn};

/// Name of a column in a layout of its own.
const KEY: &str = "key";

/// A column of a key.
#[derive(Clone, Debug)]
pub(super) struct KeyColumn {
    pub(super) values: Values,
    pub(super) nulls: Option<NullBuffer>,
    pub(super) nulls_first: bool,
    /// For bytes; words are complemented instead.
    descending: bool,
}

/// Values in the order of their column.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// Numbers of up to 64 bits, and Booleans.
    Words(Vec<u64>),
    /// Longer values: the end of each value, and the bytes of all.
    Bytes(Vec<usize>, Vec<u8>),
}

impl KeyColumn {
    pub(super) fn new(slot: &Slot, array: &ArrayRef) -> Result<Self> {
        if array.data_type().is_nested() {
            return Self::nested(slot, array);
        }
        let nulls = array.logical_nulls();
        let array = expanded(array)?;
        let mut values = values(&array);
        let complement = matches!(values, Values::Words(_)) && slot.descending;
        if let Values::Words(words) = &mut values
            && complement
        {
            words.iter_mut().for_each(|word| *word = !*word);
        }
        Ok(Self {
            values,
            nulls: nulls.filter(|nulls| nulls.null_count() > 0),
            nulls_first: slot.nulls_first,
            descending: slot.descending,
        })
    }

    /// Encodes the column as rows of its own, whose bytes include direction and nulls.
    fn nested(slot: &Slot, array: &ArrayRef) -> Result<Self> {
        let schema = Arc::new(Schema::new(vec![Field::new(KEY, array.data_type().clone(), true)]));
        let (descending, nulls_first) = (slot.descending, slot.nulls_first);
        let layout =
            Order::by(SortColumn { name: KEY.into(), descending, nulls_first }).bind(&schema)?;
        let rows =
            RowEncoder::new(&layout).encode(&RecordBatch::try_new(schema, vec![array.clone()])?)?;
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        });
        let values = Values::Bytes(ends.collect(), rows.bytes().to_vec());
        Ok(Self { values, nulls: None, nulls_first, descending: false })
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Compares a value with a value of a column of the same slot.
    pub(super) fn compare(&self, row: usize, other: &Self, other_row: usize) -> Ordering {
        match (self.is_null(row), other.is_null(other_row)) {
            (false, false) => {}
            (null, other) if self.nulls_first => return other.cmp(&null),
            (null, other) => return null.cmp(&other),
        }
        match (&self.values, &other.values) {
            (Values::Words(words), Values::Words(others)) => words[row].cmp(&others[other_row]),
            (Values::Bytes(..), Values::Bytes(..)) => {
                let order = self.bytes(row).cmp(other.bytes(other_row));
                if self.descending { order.reverse() } else { order }
            }
            _ => Ordering::Equal,
        }
    }

    fn bytes(&self, row: usize) -> &[u8] {
        match &self.values {
            Values::Bytes(ends, bytes) => {
                let start = row.checked_sub(1).map_or(0, |before| ends[before]);
                &bytes[start..ends[row]]
            }
            Values::Words(_) => &[],
        }
    }
}

/// Compares a row with a row of another record batch, column by column.
pub(super) fn compare(a: &[KeyColumn], row: usize, b: &[KeyColumn], other: usize) -> Ordering {
    let columns = a.iter().zip(b);
    columns
        .map(|(a, b)| a.compare(row, b, other))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Returns the values without dictionaries or runs.
fn expanded(array: &ArrayRef) -> Result<ArrayRef> {
    if let Some((values, of)) = runs(array) {
        return expanded(&select(values, &of)?);
    }
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let values = dictionary.values();
        if values.is_empty() {
            return Ok(Arc::new(NullArray::new(array.len())));
        }
        // A null may have any key; normalized keys are in range.
        let rows: Vec<u64> =
            dictionary.normalized_keys().into_iter().map(|key| key as u64).collect();
        return expanded(&select(values, &rows)?);
    }
    Ok(array.clone())
}

fn values(array: &ArrayRef) -> Values {
    fn strings<'a>(values: impl Iterator<Item = &'a [u8]>) -> Values {
        let (mut ends, mut bytes) = (Vec::new(), Vec::new());
        for value in values {
            bytes.extend_from_slice(value);
            ends.push(bytes.len());
        }
        Values::Bytes(ends, bytes)
    }
    fn of<V: Ordered>(values: &[V]) -> Values {
        if size_of::<V>() <= 8 {
            return Values::Words(values.iter().map(|value| value.word()).collect());
        }
        let (mut ends, mut bytes) = (Vec::new(), Vec::new());
        for value in values {
            value.append(&mut bytes);
            ends.push(bytes.len());
        }
        Values::Bytes(ends, bytes)
    }
    let rows = 0..array.len();
    let array: &dyn Array = array;
    downcast_primitive_array! {
        array => of(array.values()),
        DataType::Boolean => {
            Values::Words(array.as_boolean().values().iter().map(u64::from).collect())
        }
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            strings(rows.map(|row| array.value(row).as_bytes()))
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            strings(rows.map(|row| array.value(row).as_bytes()))
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            strings(rows.map(|row| array.value(row).as_bytes()))
        }
        DataType::Binary => strings(rows.map(|row| array.as_binary::<i32>().value(row))),
        DataType::LargeBinary => strings(rows.map(|row| array.as_binary::<i64>().value(row))),
        DataType::BinaryView => strings(rows.map(|row| array.as_binary_view().value(row))),
        DataType::FixedSizeBinary(_) => {
            strings(rows.map(|row| array.as_fixed_size_binary().value(row)))
        }
        _other => Values::Words(vec![0; array.len()]),
    }
}

/// A value of fixed width as a number or bytes of the same order.
trait Ordered {
    /// Returns the number of a value of up to eight bytes.
    fn word(&self) -> u64 {
        0
    }

    /// Appends the bytes of a longer value.
    fn append(&self, _bytes: &mut Vec<u8>) {}
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Ordered for $type {
            #[inline(always)]
            fn word(&self) -> u64 {
                // Signed: the least number becomes 0. Unsigned: the same shift keeps the order.
                (*self as i64 as u64) ^ 1 << 63
            }
        })*
    };
}

integers!(i8 i16 i32 i64 u8 u16 u32);

impl Ordered for u64 {
    #[inline(always)]
    fn word(&self) -> u64 {
        *self
    }
}

macro_rules! floats {
    ($($type:ty, $bits:ty, $word:ty;)*) => {
        $(impl Ordered for $type {
            #[inline(always)]
            fn word(&self) -> u64 {
                // totalOrder: complement the lower bits of negative numbers.
                let bits = self.to_bits() as $bits;
                (bits ^ (((bits >> (<$bits>::BITS - 1)) as $word) >> 1) as $bits).word()
            }
        })*
    };
}

floats! {
    half::f16, i16, u16;
    f32, i32, u32;
    f64, i64, u64;
}

impl Ordered for i128 {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(*self ^ i128::MIN).to_be_bytes());
    }
}

impl Ordered for i256 {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(*self ^ i256::MIN).to_be_bytes());
    }
}

/// Days, then milliseconds.
impl Ordered for IntervalDayTime {
    fn word(&self) -> u64 {
        let half = |number: i32| u64::from((number ^ i32::MIN) as u32);
        half(self.days) << 32 | half(self.milliseconds)
    }
}

/// Months, then days, then nanoseconds.
impl Ordered for IntervalMonthDayNano {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(self.months ^ i32::MIN).to_be_bytes());
        bytes.extend_from_slice(&(self.days ^ i32::MIN).to_be_bytes());
        bytes.extend_from_slice(&(self.nanoseconds ^ i64::MIN).to_be_bytes());
    }
}
