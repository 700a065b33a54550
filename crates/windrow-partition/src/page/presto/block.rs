//! Blocks: columns in the format's encodings, ready to be measured and written.
//!
//! ```text
//!  *_ARRAY         rows | nulls | values of the rows that are not null
//!  VARIABLE_WIDTH  rows | end of each value (4 a row) | nulls | bytes in all | bytes
//!  ARRAY           elements: block | rows | offsets (4 x (rows + 1)) | nulls
//!  MAP             keys: block | values: block | -1: no hash table | rows | offsets | nulls
//!  ROW             fields | a block each, of the rows that are not null | rows | offsets | nulls
//!  DICTIONARY      rows | values: block | ids (4 a row) | an id of the dictionary (24)
//!  RLE             rows | value: block of one row
//!
//!  every block opens with the length of its name (4) and its name
//!  nulls           0, or 1 and a bit a row from the high bit on, set if null
//! ```
//!
//! Invariant: children hold only elements that their parents refer to, in order.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, GenericListArray, Int32Array, OffsetSizeTrait, UInt32Array, downcast_run_array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use arrow_select::filter::filter;
use arrow_select::take::take;

use super::cursor::int;
use windrow_rows::{Error, Result};

/// Bytes that name a dictionary within an exchange.
pub(super) const DICTIONARY_ID: usize = 24;

/// A column in one of the format's encodings.
pub(super) enum Block {
    /// Values, with the width of each in bytes.
    Fixed(ArrayRef, usize),
    /// Strings or binaries, with the sum of their bytes.
    Bytes(ArrayRef, usize),
    Array {
        elements: Box<Block>,
        offsets: Vec<i32>,
        nulls: Option<NullBuffer>,
    },
    Map {
        keys: Box<Block>,
        values: Box<Block>,
        offsets: Vec<i32>,
        nulls: Option<NullBuffer>,
    },
    Row {
        fields: Vec<Block>,
        rows: usize,
        nulls: Option<NullBuffer>,
    },
    Dictionary {
        ids: Int32Array,
        values: Box<Block>,
    },
    Rle {
        value: Box<Block>,
        rows: usize,
    },
}

/// Returns the bytes of a value, for types of fixed width.
pub(super) fn width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Boolean | DataType::Null => Some(1),
        DataType::Interval(arrow_schema::IntervalUnit::MonthDayNano) => None,
        DataType::Decimal256(..) => None,
        other => other.primitive_width(),
    }
}

/// Returns the name of the block for values of `width` bytes.
pub(super) fn fixed_name(width: usize) -> &'static str {
    match width {
        1 => "BYTE_ARRAY",
        2 => "SHORT_ARRAY",
        4 => "INT_ARRAY",
        8 => "LONG_ARRAY",
        _ => "INT128_ARRAY",
    }
}

/// Returns true if the format has a block for the type.
pub(super) fn is_supported(data_type: &DataType) -> bool {
    use DataType as D;
    match data_type {
        D::Utf8 | D::LargeUtf8 | D::Utf8View | D::Binary | D::LargeBinary | D::BinaryView => true,
        D::FixedSizeBinary(_) => true,
        D::List(field) | D::LargeList(field) | D::FixedSizeList(field, _) => {
            is_supported(field.data_type())
        }
        D::Map(entries, _) => match entries.data_type() {
            D::Struct(fields) => fields.len() == 2 && is_supported(entries.data_type()),
            _ => false,
        },
        D::Struct(fields) => fields.iter().all(|field| is_supported(field.data_type())),
        D::Dictionary(_, values) => is_supported(values),
        D::RunEndEncoded(_, values) => is_supported(values.data_type()),
        other => width(other).is_some(),
    }
}

impl Block {
    fn lists<O: OffsetSizeTrait>(list: &GenericListArray<O>, array: &ArrayRef) -> Result<Self> {
        let end = |row: usize| list.value_offsets()[row].as_usize();
        let (elements, offsets) = compact(list.values(), array, |row| (end(row), end(row + 1)))?;
        Self::array(&elements, offsets, array)
    }

    /// Returns the block of an array of a supported type.
    pub(super) fn of(array: &ArrayRef) -> Result<Self> {
        use DataType as D;
        if let Some(width) = width(array.data_type()) {
            check_decimals(array)?;
            return Ok(Self::Fixed(array.clone(), width));
        }
        match array.data_type() {
            D::List(_) => Self::lists(array.as_list::<i32>(), array),
            D::LargeList(_) => Self::lists(array.as_list::<i64>(), array),
            D::FixedSizeList(_, size) => {
                let (list, size) = (array.as_fixed_size_list(), *size as usize);
                let start = |row: usize| list.value_offset(row) as usize;
                let ends = |row| (start(row), start(row) + size);
                let (elements, offsets) = compact(list.values(), array, ends)?;
                Ok(Self::array(&elements, offsets, array)?)
            }
            D::Map(..) => {
                let map = array.as_map();
                let ends = |row: usize| (map.value_offsets()[row], map.value_offsets()[row + 1]);
                let ends = |row| (ends(row).0 as usize, ends(row).1 as usize);
                let entries: ArrayRef = Arc::new(map.entries().clone());
                let (entries, offsets) = compact(&entries, array, ends)?;
                let entries = entries.as_struct();
                Ok(Self::Map {
                    keys: Box::new(Self::of(entries.column(0))?),
                    values: Box::new(Self::of(entries.column(1))?),
                    offsets,
                    nulls: nulls(array),
                })
            }
            D::Struct(_) => {
                let nulls = nulls(array);
                let valid = nulls.as_ref().map(|nulls| nulls.inner().clone().into());
                let field = |column: &ArrayRef| match &valid {
                    Some(valid) => Self::of(&filter(column, valid)?),
                    None => Self::of(column),
                };
                let fields = array.as_struct().columns().iter().map(field);
                Ok(Self::Row { fields: fields.collect::<Result<_>>()?, rows: array.len(), nulls })
            }
            D::Dictionary(..) => dictionary(array),
            D::RunEndEncoded(..) => runs(array),
            _ => {
                let bytes = super::row_bytes::text_bytes(array);
                int(bytes)?;
                Ok(Self::Bytes(array.clone(), bytes))
            }
        }
    }

    fn array(elements: &ArrayRef, offsets: Vec<i32>, array: &ArrayRef) -> Result<Self> {
        let elements = Box::new(Self::of(elements)?);
        Ok(Self::Array { elements, offsets, nulls: nulls(array) })
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Fixed(_, width) => fixed_name(*width),
            Self::Bytes(..) => "VARIABLE_WIDTH",
            Self::Array { .. } => "ARRAY",
            Self::Map { .. } => "MAP",
            Self::Row { .. } => "ROW",
            Self::Dictionary { .. } => "DICTIONARY",
            Self::Rle { .. } => "RLE",
        }
    }

    /// Returns the exact number of bytes of the written block.
    pub(super) fn bytes(&self) -> usize {
        let flags = |nulls: &Option<NullBuffer>| match nulls {
            Some(nulls) => 1 + nulls.len().div_ceil(8),
            None => 1,
        };
        let body = match self {
            Self::Fixed(array, width) => {
                let nulls = nulls(array);
                let absent = nulls.as_ref().map_or(0, NullBuffer::null_count);
                4 + flags(&nulls) + (array.len() - absent) * width
            }
            Self::Bytes(array, bytes) => 4 + 4 * array.len() + flags(&nulls(array)) + 4 + bytes,
            Self::Array { elements, offsets, nulls } => {
                elements.bytes() + 4 + 4 * offsets.len() + flags(nulls)
            }
            Self::Map { keys, values, offsets, nulls } => {
                keys.bytes() + values.bytes() + 4 + 4 + 4 * offsets.len() + flags(nulls)
            }
            Self::Row { fields, rows, nulls } => {
                let fields: usize = fields.iter().map(Self::bytes).sum();
                4 + fields + 4 + 4 * (rows + 1) + flags(nulls)
            }
            Self::Dictionary { ids, values } => 4 + values.bytes() + 4 * ids.len() + DICTIONARY_ID,
            Self::Rle { value, .. } => 4 + value.bytes(),
        };
        4 + self.name().len() + body
    }
}

/// Returns the null buffer, if the array has nulls.
pub(super) fn nulls(array: &ArrayRef) -> Option<NullBuffer> {
    array.logical_nulls().filter(|nulls| nulls.null_count() > 0)
}

/// Returns the elements that rows refer to, and the offsets of the rows into these elements.
fn compact(
    elements: &ArrayRef,
    rows: &ArrayRef,
    ends: impl Fn(usize) -> (usize, usize),
) -> Result<(ArrayRef, Vec<i32>)> {
    let mut offsets = Vec::with_capacity(rows.len() + 1);
    offsets.push(0);
    let mut total = 0;
    let start = if rows.is_empty() { 0 } else { ends(0).0 };
    let mut dense = true;
    for row in 0..rows.len() {
        let (from, to) = ends(row);
        dense &= from == start + total;
        total += if rows.is_valid(row) { to - from } else { 0 };
        offsets.push(int(total)?);
    }
    if dense {
        return Ok((elements.slice(start, total), offsets));
    }
    let kept = (0..rows.len()).filter(|&row| rows.is_valid(row));
    let kept = kept.flat_map(|row| {
        let (from, to) = ends(row);
        from as u32..to as u32
    });
    int(elements.len())?;
    Ok((take(elements, &UInt32Array::from_iter_values(kept), None)?, offsets))
}

/// Encodes a dictionary. The format has no nulls among ids: null rows refer to a null among the
/// values.
fn dictionary(array: &ArrayRef) -> Result<Block> {
    let dictionary = array.as_any_dictionary();
    let keys = match dictionary.values().is_empty() {
        true => vec![0; array.len()],
        false => dictionary.normalized_keys(),
    };
    let valid = dictionary.keys().nulls();
    let null = |row: usize| valid.is_some_and(|valid| valid.is_null(row));
    // Keeps used values only, in order of first use: partitions share dictionaries.
    let mut places = vec![-1; dictionary.values().len()];
    let mut none = -1;
    let mut used: Vec<Option<u32>> = Vec::new();
    let mut ids = Vec::with_capacity(keys.len());
    for (row, key) in keys.into_iter().enumerate() {
        let (place, value) = match null(row) {
            true => (&mut none, None),
            false => (&mut places[key], Some(key as u32)),
        };
        if *place < 0 {
            *place = int(used.len())?;
            used.push(value);
        }
        ids.push(*place);
    }
    let values = take(dictionary.values(), &UInt32Array::from(used), None)?;
    Ok(Block::Dictionary { ids: Int32Array::from(ids), values: Box::new(Block::of(&values)?) })
}

/// Encodes run ends: one run as RLE, several runs as plain values.
fn runs(array: &ArrayRef) -> Result<Block> {
    let mut places: Vec<u32> = Vec::with_capacity(array.len());
    let runs = array.as_ref();
    let values = downcast_run_array! {
        runs => {
            let physical = |row: usize| runs.get_physical_index(row) as u32;
            places.extend((0..runs.len()).map(physical));
            runs.values().clone()
        },
        other => return Err(Error::InvalidOrder(format!("runs of {other}"))),
    };
    match (places.first(), places.last()) {
        (Some(&first), Some(&last)) if first == last => {
            let value = Box::new(Block::of(&values.slice(first as usize, 1))?);
            Ok(Block::Rle { value, rows: array.len() })
        }
        _ => Block::of(&take(&values, &UInt32Array::from(places), None)?),
    }
}

/// Refuses -2^127, which has no code in sign and magnitude and is not a decimal either.
fn check_decimals(array: &ArrayRef) -> Result<()> {
    let least = |array: &ArrayRef| {
        array.as_primitive::<arrow_array::types::Decimal128Type>().values().contains(&i128::MIN)
    };
    if matches!(array.data_type(), DataType::Decimal128(..)) && least(array) {
        return Err(Error::Value {
            column: "(page)".to_owned(),
            message: "-2^127 is no decimal of a Presto page".to_owned(),
        });
    }
    Ok(())
}
