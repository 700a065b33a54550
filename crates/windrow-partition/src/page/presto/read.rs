//! Decoding of blocks into arrays of expected types.
//!
//! Invariant: before an allocation, the reader checks every count against the available bytes, or
//! claims the memory from the limit.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, FixedSizeListArray, LargeListArray, ListArray,
    MapArray, StringArray, StringViewArray, StructArray, UInt32Array, make_array,
};
use arrow_buffer::{MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Fields};
use arrow_select::take::take;

use super::block::{DICTIONARY_ID, fixed_name, width};
use super::cursor::Cursor;
use super::row_bytes::row_bytes;
use crate::partition::run_ends;
use windrow_rows::Result;

/// Maximum nesting of RLE and DICTIONARY: no writer nests as deep.
const MOST_WRAPPERS: usize = 8;

/// Reads a block as an array of `data_type`, and checks its number of rows against `rows`.
/// `wrappers` counts the enclosing RLE and DICTIONARY blocks.
pub(super) fn block(
    cursor: &mut Cursor<'_>,
    data_type: &DataType,
    rows: Option<usize>,
    wrappers: usize,
) -> Result<ArrayRef> {
    let length = cursor.count()?;
    let name = cursor.take(length)?;
    if name == b"RLE" || name == b"DICTIONARY" {
        if wrappers == MOST_WRAPPERS {
            return Err(cursor.error("too many blocks of repeated values in one another"));
        }
        let count = cursor.count()?;
        check_rows(cursor, rows, count)?;
        return match name {
            b"RLE" => repeated(cursor, data_type, count, wrappers + 1),
            _ => dictionary(cursor, data_type, count, wrappers + 1),
        };
    }
    let array = match data_type {
        DataType::Dictionary(key, values) => {
            let values = plain(cursor, name, values)?;
            cursor.claim(8 * values.len())?;
            let ids: Vec<usize> = (0..values.len()).collect();
            with_keys(cursor, (data_type, key), &ids, &values)?
        }
        DataType::RunEndEncoded(ends, values) => {
            let values = plain(cursor, name, values.data_type())?;
            cursor.claim(16 * values.len())?;
            let all: Vec<usize> = (1..=values.len()).collect();
            with_ends(cursor, data_type, ends, &all, &values)?
        }
        _ => plain(cursor, name, data_type)?,
    };
    check_rows(cursor, rows, array.len())?;
    Ok(array)
}

fn check_rows(cursor: &Cursor<'_>, expected: Option<usize>, got: usize) -> Result<()> {
    match expected {
        Some(rows) if rows != got => Err(cursor.error(format!("expected {rows} rows, got {got}"))),
        _ => Ok(()),
    }
}

fn plain(cursor: &mut Cursor<'_>, name: &[u8], data_type: &DataType) -> Result<ArrayRef> {
    use DataType as D;
    let expected = match data_type {
        D::List(_) | D::LargeList(_) | D::FixedSizeList(..) => "ARRAY",
        D::Map(..) => "MAP",
        D::Struct(_) => "ROW",
        other => width(other).map_or("VARIABLE_WIDTH", fixed_name),
    };
    if name != expected.as_bytes() {
        let shown: String = String::from_utf8_lossy(name).chars().take(40).collect();
        return Err(cursor.error(format!("expected a block {expected}, got {shown:?}")));
    }
    match data_type {
        D::List(field) | D::LargeList(field) | D::FixedSizeList(field, _) => {
            list(cursor, data_type, field)
        }
        D::Map(entries, sorted) => map(cursor, entries, *sorted),
        D::Struct(fields) => row(cursor, fields),
        other => match width(other) {
            Some(width) => fixed(cursor, data_type, width),
            None => texts(cursor, data_type),
        },
    }
}

/// Reads the null flags of `rows` rows.
fn nulls(cursor: &mut Cursor<'_>, rows: usize) -> Result<Option<NullBuffer>> {
    match cursor.take(1)?[0] {
        0 => Ok(None),
        1 => {
            let bytes = cursor.take(rows.div_ceil(8))?;
            cursor.claim(bytes.len())?;
            let mut valid = BooleanBufferBuilder::new(rows);
            (0..rows).for_each(|row| valid.append(bytes[row / 8] >> (7 - row % 8) & 1 == 0));
            Ok(Some(NullBuffer::new(valid.finish())).filter(|nulls| nulls.null_count() > 0))
        }
        other => Err(cursor.error(format!("expected 0 or 1 for no or some nulls, got {other}"))),
    }
}

fn fixed(cursor: &mut Cursor<'_>, data_type: &DataType, width: usize) -> Result<ArrayRef> {
    let rows = cursor.count()?;
    let nulls = nulls(cursor, rows)?;
    let present = rows - nulls.as_ref().map_or(0, NullBuffer::null_count);
    let bytes = cursor.take(present.saturating_mul(width))?;
    if *data_type == DataType::Null {
        return match present {
            0 => Ok(Arc::new(arrow_array::NullArray::new(rows))),
            _ => Err(cursor.error(format!("{present} values in a column of nulls"))),
        };
    }
    cursor.claim(rows.saturating_mul(width))?;
    let mut values = MutableBuffer::from_len_zeroed(rows * width);
    match &nulls {
        None => values.copy_from_slice(bytes),
        Some(nulls) => {
            let mut at = 0;
            for (start, end) in nulls.valid_slices() {
                let length = (end - start) * width;
                values[start * width..end * width].copy_from_slice(&bytes[at..at + length]);
                at += length;
            }
        }
    }
    match data_type {
        DataType::Boolean => {
            let mut bits = BooleanBufferBuilder::new(rows);
            values.iter().for_each(|byte| bits.append(*byte != 0));
            return Ok(Arc::new(arrow_array::BooleanArray::new(bits.finish(), nulls)));
        }
        DataType::Decimal128(..) => {
            for value in values.chunks_exact_mut(16) {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(value);
                value.copy_from_slice(&twos_complement(u128::from_le_bytes(bytes)).to_le_bytes());
            }
        }
        _ => {}
    }
    build(cursor, ArrayData::builder(data_type.clone()).len(rows).add_buffer(values.into()), nulls)
}

/// Converts from sign and magnitude.
fn twos_complement(value: u128) -> i128 {
    let magnitude = (value & (u128::MAX >> 1)) as i128;
    if value >> 127 == 1 { -magnitude } else { magnitude }
}

fn build(
    cursor: &Cursor<'_>,
    data: arrow_data::ArrayDataBuilder,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let data = data.nulls(nulls).build().map_err(|error| cursor.error(error.to_string()))?;
    Ok(make_array(data))
}

fn texts(cursor: &mut Cursor<'_>, data_type: &DataType) -> Result<ArrayRef> {
    use DataType as D;
    let rows = cursor.count()?;
    let mut offsets = vec![0];
    offsets.extend(cursor.counts(rows)?);
    let nulls = nulls(cursor, rows)?;
    let total = cursor.count()?;
    let bytes = cursor.take(total)?;
    ascending(cursor, &offsets, total)?;
    cursor.claim(bytes.len() + 16 * rows)?;
    if let D::FixedSizeBinary(size) = data_type {
        return fixed_bytes(cursor, data_type, *size as usize, &offsets, bytes, nulls);
    }
    let binary = |nulls| {
        let offsets = OffsetBuffer::new(offsets.iter().map(|&offset| offset as i32).collect());
        BinaryArray::new(offsets, bytes.to_vec().into(), nulls)
    };
    let large = || -> ScalarBuffer<i64> { offsets.iter().map(|&offset| offset as i64).collect() };
    let wide = |cursor: &Cursor<'_>, nulls| {
        let data = ArrayData::builder(data_type.clone()).len(rows);
        let data = data.add_buffer(large().into_inner()).add_buffer(bytes.to_vec().into());
        build(cursor, data, nulls)
    };
    let text = |cursor: &Cursor<'_>, nulls| {
        StringArray::try_from_binary(binary(nulls)).map_err(|error| cursor.error(error.to_string()))
    };
    Ok(match data_type {
        D::Utf8 => Arc::new(text(cursor, nulls)?),
        D::Utf8View => Arc::new(StringViewArray::from(&text(cursor, nulls)?)),
        D::Binary => Arc::new(binary(nulls)),
        D::BinaryView => Arc::new(BinaryViewArray::from(&binary(nulls))),
        _ => wide(cursor, nulls)?,
    })
}

fn fixed_bytes(
    cursor: &mut Cursor<'_>,
    data_type: &DataType,
    size: usize,
    offsets: &[usize],
    bytes: &[u8],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let rows = offsets.len() - 1;
    cursor.claim(rows.saturating_mul(size))?;
    let mut values = MutableBuffer::from_len_zeroed(rows * size);
    for row in 0..rows {
        let value = &bytes[offsets[row]..offsets[row + 1]];
        if value.len() == size {
            values[row * size..(row + 1) * size].copy_from_slice(value);
        } else if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
            return Err(
                cursor.error(format!("expected values of {size} bytes, got {}", value.len()))
            );
        }
    }
    build(cursor, ArrayData::builder(data_type.clone()).len(rows).add_buffer(values.into()), nulls)
}

fn ascending(cursor: &Cursor<'_>, offsets: &[usize], most: usize) -> Result<()> {
    if offsets.first() == Some(&0) && offsets.is_sorted() && offsets.last() <= Some(&most) {
        return Ok(());
    }
    Err(cursor.error(format!("expected offsets that ascend from 0 to {most}")))
}

/// Reads the offsets of rows into the preceding elements, and the nulls of the rows.
fn ends(cursor: &mut Cursor<'_>, elements: usize) -> Result<(Vec<usize>, Option<NullBuffer>)> {
    let rows = cursor.count()?;
    let offsets = cursor.counts(rows + 1)?;
    ascending(cursor, &offsets, elements)?;
    let nulls = nulls(cursor, rows)?;
    Ok((offsets, nulls))
}

fn list(cursor: &mut Cursor<'_>, data_type: &DataType, field: &Arc<Field>) -> Result<ArrayRef> {
    let elements = block(cursor, field.data_type(), None, 0)?;
    let (offsets, nulls) = ends(cursor, elements.len())?;
    let failed = |error: arrow_schema::ArrowError| cursor.error(error.to_string());
    let field = Arc::clone(field);
    Ok(match data_type {
        DataType::LargeList(_) => {
            let offsets = OffsetBuffer::new(offsets.iter().map(|&offset| offset as i64).collect());
            Arc::new(LargeListArray::try_new(field, offsets, elements, nulls).map_err(failed)?)
        }
        DataType::FixedSizeList(_, size) => {
            let rows = offsets.len() - 1;
            let width = *size as usize;
            let null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            let mut places: Vec<Option<u32>> = Vec::new();
            for row in 0..rows {
                let (from, to) = (offsets[row], offsets[row + 1]);
                if null(row) {
                    cursor.claim(width.saturating_mul(32))?;
                    places.extend(std::iter::repeat_n(None, width));
                } else if to - from == width {
                    places.extend((from..to).map(|place| Some(place as u32)));
                } else {
                    let message = format!("expected lists of {size} values, got {}", to - from);
                    return Err(cursor.error(message));
                }
            }
            let elements = take(&elements, &UInt32Array::from(places), None)?;
            let list = FixedSizeListArray::try_new_with_length(field, *size, elements, nulls, rows);
            Arc::new(list.map_err(|error| cursor.error(error.to_string()))?)
        }
        _ => {
            let offsets = OffsetBuffer::new(offsets.iter().map(|&offset| offset as i32).collect());
            Arc::new(ListArray::try_new(field, offsets, elements, nulls).map_err(failed)?)
        }
    })
}

fn map(cursor: &mut Cursor<'_>, entries: &Arc<Field>, sorted: bool) -> Result<ArrayRef> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(cursor.error("a map without entries"));
    };
    let keys = block(cursor, fields[0].data_type(), None, 0)?;
    let values = block(cursor, fields[1].data_type(), Some(keys.len()), 0)?;
    // -1 stands for no hash table. A hash table only speeds up look-ups and is skipped.
    let hashes = usize::try_from(cursor.int()?).unwrap_or(0);
    cursor.take(hashes.saturating_mul(4))?;
    let (offsets, nulls) = ends(cursor, keys.len())?;
    let failed = |error: arrow_schema::ArrowError| cursor.error(error.to_string());
    let columns = vec![keys, values];
    let pairs = StructArray::try_new(fields.clone(), columns, None).map_err(failed)?;
    let offsets = OffsetBuffer::new(offsets.iter().map(|&offset| offset as i32).collect());
    let entries = Arc::clone(entries);
    Ok(Arc::new(MapArray::try_new(entries, offsets, pairs, nulls, sorted).map_err(failed)?))
}

fn row(cursor: &mut Cursor<'_>, fields: &Fields) -> Result<ArrayRef> {
    let count = cursor.count()?;
    if count != fields.len() {
        return Err(cursor.error(format!("expected {} fields, got {count}", fields.len())));
    }
    let columns = fields.iter().map(|field| block(cursor, field.data_type(), None, 0));
    let mut columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
    let rows = cursor.count()?;
    // Offsets follow from the nulls, and writers differ in the offsets of null rows.
    cursor.take((rows + 1).saturating_mul(4))?;
    let nulls = nulls(cursor, rows)?;
    let present = rows - nulls.as_ref().map_or(0, NullBuffer::null_count);
    if let Some(column) = columns.iter().find(|column| column.len() != present) {
        return Err(
            cursor.error(format!("expected {present} rows of a field, got {}", column.len()))
        );
    }
    if let Some(nulls) = &nulls {
        cursor.claim(columns.len().saturating_mul(rows).saturating_mul(24))?;
        let mut next = 0;
        let place = |row: usize| {
            nulls.is_valid(row).then(|| {
                next += 1;
                next - 1
            })
        };
        let places: UInt32Array = (0..rows).map(place).collect();
        for (column, field) in columns.iter_mut().zip(fields) {
            // A field without nulls keeps some value where its row is null.
            *column = if field.is_nullable() || column.is_empty() {
                take(column, &places, None)?
            } else {
                let filled = places.iter().map(|place| place.unwrap_or(0));
                take(column, &UInt32Array::from_iter_values(filled), None)?
            };
        }
    }
    let array = match fields.is_empty() {
        true => Ok(StructArray::new_empty_fields(rows, nulls)),
        false => StructArray::try_new(fields.clone(), columns, nulls),
    };
    Ok(Arc::new(array.map_err(|error| cursor.error(error.to_string()))?))
}

fn repeated(
    cursor: &mut Cursor<'_>,
    data_type: &DataType,
    rows: usize,
    wrappers: usize,
) -> Result<ArrayRef> {
    if let DataType::RunEndEncoded(ends, values) = data_type {
        let value = block(cursor, values.data_type(), Some(1), wrappers)?;
        return match rows {
            0 => with_ends(cursor, data_type, ends, &[], &value.slice(0, 0)),
            _ => with_ends(cursor, data_type, ends, &[rows], &value),
        };
    }
    let value = block(cursor, data_type, Some(1), wrappers)?;
    cursor.claim(rows.saturating_mul(4 + row_bytes(&value, 0)))?;
    Ok(take(&value, &UInt32Array::from(vec![0; rows]), None)?)
}

fn dictionary(
    cursor: &mut Cursor<'_>,
    data_type: &DataType,
    rows: usize,
    wrappers: usize,
) -> Result<ArrayRef> {
    let of = match data_type {
        DataType::Dictionary(_, values) => values,
        _ => data_type,
    };
    let values = block(cursor, of, None, wrappers)?;
    let ids = cursor.counts(rows)?;
    cursor.take(DICTIONARY_ID)?;
    if let Some(id) = ids.iter().find(|id| **id >= values.len()) {
        return Err(cursor.error(format!("id {id} of a dictionary of {} values", values.len())));
    }
    if let DataType::Dictionary(key, _) = data_type {
        return with_keys(cursor, (data_type, key), &ids, &values);
    }
    for &id in &ids {
        cursor.claim(4 + row_bytes(&values, id))?;
    }
    let ids = UInt32Array::from_iter_values(ids.into_iter().map(|id| id as u32));
    Ok(take(&values, &ids, None)?)
}

/// Builds a dictionary array of ids, which must be in bounds.
fn with_keys(
    cursor: &mut Cursor<'_>,
    (data_type, key): (&DataType, &DataType),
    ids: &[usize],
    values: &ArrayRef,
) -> Result<ArrayRef> {
    let width = width(key).unwrap_or(8);
    let bits = 8 * width as u32 - u32::from(key.is_signed_integer());
    if bits < 32 && values.len() > 1 << bits {
        return Err(cursor.error(format!("{} values are too many for {key} keys", values.len())));
    }
    cursor.claim(ids.len().saturating_mul(width))?;
    let mut keys = MutableBuffer::with_capacity(ids.len() * width);
    ids.iter().for_each(|id| keys.extend_from_slice(&(*id as u64).to_le_bytes()[..width]));
    let data = ArrayData::builder(data_type.clone()).len(ids.len());
    build(cursor, data.add_buffer(keys.into()).add_child_data(values.to_data()), None)
}

/// Builds a run-end array.
fn with_ends(
    cursor: &mut Cursor<'_>,
    data_type: &DataType,
    field: &Field,
    ends: &[usize],
    values: &ArrayRef,
) -> Result<ArrayRef> {
    let rows = ends.last().copied().unwrap_or(0);
    let ends = run_ends(field.data_type(), ends).ok_or_else(|| {
        cursor.error(format!("{rows} rows are too many for {}", field.data_type()))
    })?;
    let data = ArrayData::builder(data_type.clone()).len(rows);
    let data = data.add_child_data(ends.to_data()).add_child_data(values.to_data());
    build(cursor, data, None)
}
