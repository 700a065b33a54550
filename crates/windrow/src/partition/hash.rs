//! The partition hash: of values, so that every encoding of a value hashes alike.
//!
//! Per column and row `h = fold((h ^ value) * K)`, where `fold` XORs the halves of the 128-bit
//! product; byte strings eight bytes at a time, then their length; a null is a constant of its own.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, RunArray, UInt64Array};
use arrow_schema::DataType;
use arrow_select::take::take;

use crate::error::{Error, Result};

/// An odd constant with about as many ones as zeros: the fractional bits of the golden ratio.
const K: u64 = 0x9e37_79b9_7f4a_7c15;
const NULL: u64 = 0x6a09_e667_f3bc_c908;

/// Mixes the values of `array` into `hashes`, row by row.
pub(super) fn combine(array: &ArrayRef, hashes: &mut [u64]) -> Result<()> {
    match array.data_type() {
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            return combine(&take(dictionary.values(), dictionary.keys(), None)?, hashes);
        }
        DataType::RunEndEncoded(ends, _) => {
            let plain = match ends.data_type() {
                DataType::Int16 => expand(array.as_run::<Int16Type>())?,
                DataType::Int32 => expand(array.as_run::<Int32Type>())?,
                _ => expand(array.as_run::<Int64Type>())?,
            };
            return combine(&plain, hashes);
        }
        _ => {}
    }
    let valid = |row: usize| !array.is_null(row);
    let mut each = |value: &dyn Fn(usize, u64) -> u64| {
        for (row, hash) in hashes.iter_mut().enumerate() {
            *hash = if valid(row) { value(row, *hash) } else { mix(*hash, NULL) };
        }
    };
    match array.data_type() {
        DataType::Null => each(&|_, hash| hash),
        DataType::Boolean => {
            let array = array.as_boolean();
            each(&|row, hash| mix(hash, u64::from(array.value(row))));
        }
        DataType::Utf8 => each(&|row, h| bytes(h, array.as_string::<i32>().value(row).as_bytes())),
        DataType::LargeUtf8 => {
            each(&|row, h| bytes(h, array.as_string::<i64>().value(row).as_bytes()));
        }
        DataType::Utf8View => {
            each(&|row, h| bytes(h, array.as_string_view().value(row).as_bytes()))
        }
        DataType::Binary => each(&|row, h| bytes(h, array.as_binary::<i32>().value(row))),
        DataType::LargeBinary => each(&|row, h| bytes(h, array.as_binary::<i64>().value(row))),
        DataType::BinaryView => each(&|row, h| bytes(h, array.as_binary_view().value(row))),
        DataType::FixedSizeBinary(_) => {
            each(&|row, h| bytes(h, array.as_fixed_size_binary().value(row)));
        }
        other => {
            let width = other.primitive_width().ok_or_else(|| Error::UnsupportedColumn {
                column: String::new(),
                data_type: other.clone(),
                role: "a partition key",
            })?;
            let data = array.to_data();
            let values = &data.buffers()[0].as_slice()[data.offset() * width..];
            each(&|row, hash| {
                values[row * width..(row + 1) * width].chunks(8).fold(hash, |h, b| mix(h, word(b)))
            });
        }
    }
    Ok(())
}

fn expand<R: RunEndIndexType>(array: &RunArray<R>) -> Result<ArrayRef> {
    let at = UInt64Array::from_iter_values(
        (0..array.len()).map(|row| array.get_physical_index(row) as u64),
    );
    Ok(take(array.values(), &(Arc::new(at) as ArrayRef), None)?)
}

fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ value ^ NULL.rotate_left(17)) * u128::from(K);
    (product as u64 ^ (product >> 64) as u64).rotate_left(23)
}

fn bytes(hash: u64, bytes: &[u8]) -> u64 {
    let hash = bytes.chunks(8).fold(hash, |hash, part| mix(hash, word(part)));
    mix(hash, bytes.len() as u64)
}

/// Up to eight bytes as a little-endian number.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
