//! Reading of bytes from a slice, and errors of values.

use arrow_buffer::NullBufferBuilder;
use arrow_schema::{ArrowError, DataType};

use crate::error::{Error, Result};

pub(in crate::rows) fn take_byte(bytes: &mut &[u8]) -> Result<u8> {
    take(bytes, 1).map(|byte| byte[0])
}

/// Takes the next `len` bytes.
pub(in crate::rows) fn take<'b>(bytes: &mut &'b [u8], len: usize) -> Result<&'b [u8]> {
    let Some((head, tail)) = bytes.split_at_checked(len) else {
        return Err(corrupt(format!("expected {len} more bytes, got {}", bytes.len())));
    };
    *bytes = tail;
    Ok(head)
}

/// Appends `count` valid or null rows.
pub(super) fn append(nulls: &mut NullBufferBuilder, count: usize, valid: bool) {
    match valid {
        true => nulls.append_n_non_nulls(count),
        false => nulls.append_n_nulls(count),
    }
}

pub(super) fn corrupt(message: impl Into<String>) -> Error {
    Error::Corrupt { place: "a value of a row".into(), message: message.into() }
}

/// Converts an error of Arrow. The writer's array passed the same tests, so the bytes are wrong.
pub(in crate::rows) fn refused(error: ArrowError) -> Error {
    corrupt(error.to_string())
}

/// Returns the error for values that exceed their type in one array.
pub(in crate::rows) fn too_many(data_type: &DataType, what: &str) -> Error {
    Error::Value {
        column: data_type.to_string(),
        message: format!("{what} of one array exceed its type; build smaller record batches"),
    }
}

/// Returns the error for a column of `data_type` without `role`, a phrase: "a sort key".
pub(in crate::rows) fn unsupported(data_type: &DataType, role: &'static str) -> Error {
    Error::UnsupportedColumn { column: data_type.to_string(), data_type: data_type.clone(), role }
}
