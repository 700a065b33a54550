//! Encoding of blocks into bytes.

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::block::{Block, DICTIONARY_ID, nulls};
use super::row_bytes::text;

#[cfg(target_endian = "big")]
compile_error!("values are copied as they lie in memory, and the format is little-endian");

/// Appends a block of [`Block::bytes`] bytes.
///
/// All counts fit 31 bits: the constructor of the block checked them.
pub(super) fn put(block: &Block, out: &mut Vec<u8>) {
    let name = block.name();
    int(name.len(), out);
    out.extend_from_slice(name.as_bytes());
    match block {
        Block::Fixed(array, width) => {
            let nulls = nulls(array);
            int(array.len(), out);
            flags(nulls.as_ref(), out);
            values(array, *width, nulls.as_ref(), out);
        }
        Block::Bytes(array, bytes) => {
            int(array.len(), out);
            let mut end = 0;
            for row in 0..array.len() {
                end += text(array, row).len();
                int(end, out);
            }
            flags(nulls(array).as_ref(), out);
            int(*bytes, out);
            (0..array.len()).for_each(|row| out.extend_from_slice(text(array, row)));
        }
        Block::Array { elements, offsets, nulls } => {
            put(elements, out);
            int(offsets.len() - 1, out);
            ints(offsets, out);
            flags(nulls.as_ref(), out);
        }
        Block::Map { keys, values, offsets, nulls } => {
            put(keys, out);
            put(values, out);
            ints(&[-1], out);
            int(offsets.len() - 1, out);
            ints(offsets, out);
            flags(nulls.as_ref(), out);
        }
        Block::Row { fields, rows, nulls } => {
            int(fields.len(), out);
            fields.iter().for_each(|field| put(field, out));
            int(*rows, out);
            let mut place = 0;
            int(place, out);
            for row in 0..*rows {
                place += usize::from(nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)));
                int(place, out);
            }
            flags(nulls.as_ref(), out);
        }
        Block::Dictionary { ids, values } => {
            int(ids.len(), out);
            put(values, out);
            ints(ids.values(), out);
            // Every page contains its dictionary, so an id need not identify a dictionary.
            out.extend_from_slice(&[0; DICTIONARY_ID]);
        }
        Block::Rle { value, rows } => {
            int(*rows, out);
            put(value, out);
        }
    }
}

fn int(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as i32).to_le_bytes());
}

fn ints(ints: &[i32], out: &mut Vec<u8>) {
    for int in ints {
        out.extend_from_slice(&int.to_le_bytes());
    }
}

fn flags(nulls: Option<&NullBuffer>, out: &mut Vec<u8>) {
    out.push(u8::from(nulls.is_some()));
    let Some(nulls) = nulls else { return };
    for start in (0..nulls.len()).step_by(8) {
        let rows = start..nulls.len().min(start + 8);
        let bit = |row: usize| u8::from(nulls.is_null(row)) << (7 - (row - start));
        out.push(rows.map(bit).fold(0, |byte, bit| byte | bit));
    }
}

/// Appends the values of rows without null.
fn values(array: &ArrayRef, width: usize, nulls: Option<&NullBuffer>, out: &mut Vec<u8>) {
    let valid = |row: &usize| nulls.is_none_or(|nulls| nulls.is_valid(*row));
    let rows = (0..array.len()).filter(valid);
    match array.data_type() {
        DataType::Null => {}
        DataType::Boolean => {
            let values = array.as_boolean().values();
            out.extend(rows.map(|row| u8::from(values.value(row))));
        }
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            for row in rows {
                out.extend_from_slice(&sign_and_magnitude(values[row]).to_le_bytes());
            }
        }
        _ => {
            let data = array.to_data();
            let bytes = &data.buffers()[0].as_slice()[data.offset() * width..];
            match nulls {
                None => out.extend_from_slice(&bytes[..array.len() * width]),
                Some(nulls) => {
                    for (start, end) in nulls.valid_slices() {
                        out.extend_from_slice(&bytes[start * width..end * width]);
                    }
                }
            }
        }
    }
}

/// Encodes Presto's long decimals: the magnitude in the low 127 bits, the sign in the highest.
fn sign_and_magnitude(value: i128) -> u128 {
    value.unsigned_abs() | u128::from(value < 0) << 127
}
