//! Bytes taken from a slice, and what can be wrong with them.

use arrow_buffer::NullBufferBuilder;
use arrow_schema::{ArrowError, DataType};

use crate::error::{Error, Result};

pub(in crate::rows) fn take_byte(bytes: &mut &[u8]) -> Result<u8> {
    take(bytes, 1).map(|byte| byte[0])
}

/// The next `len` bytes.
pub(in crate::rows) fn take<'b>(bytes: &mut &'b [u8], len: usize) -> Result<&'b [u8]> {
    let Some((head, tail)) = bytes.split_at_checked(len) else {
        return Err(corrupt(format!("expected {len} more bytes, got {}", bytes.len())));
    };
    *bytes = tail;
    Ok(head)
}

/// Appends that `count` values are there, or are not.
pub(super) fn append(nulls: &mut NullBufferBuilder, count: usize, valid: bool) {
    match valid {
        true => nulls.append_n_non_nulls(count),
        false => nulls.append_n_nulls(count),
    }
}

pub(super) fn corrupt(message: impl Into<String>) -> Error {
    Error::Corrupt { place: "a value of a row".into(), message: message.into() }
}

/// Arrow refuses what was read. The writer's array passed the same tests, so the bytes are wrong.
pub(in crate::rows) fn refused(error: ArrowError) -> Error {
    corrupt(error.to_string())
}

/// The values read together are more than their type can hold in one array.
pub(in crate::rows) fn too_many(data_type: &DataType, what: &str) -> Error {
    Error::Value {
        column: data_type.to_string(),
        message: format!("{what} of one array exceed its type; build smaller record batches"),
    }
}

/// A column of `data_type` has no `role`, which is a phrase: "a sort key".
pub(in crate::rows) fn unsupported(data_type: &DataType, role: &'static str) -> Error {
    Error::UnsupportedColumn { column: data_type.to_string(), data_type: data_type.clone(), role }
}
