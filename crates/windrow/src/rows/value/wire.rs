//! The smallest parts of the format: markers, lengths, and taking bytes from a slice.
//!
//! # Invariant
//! Each `take_*` either advances `bytes` past what it returns, or reports [`Error::Corrupt`]; it
//! accepts only what its `put_*` writes, so bytes that read back are canonical. Nothing here
//! allocates for a length that was read.

use arrow_schema::{ArrowError, DataType};

use crate::error::{Error, Result};

/// The marker of a null, and of the null key of a dictionary.
pub(super) const NULL: u8 = 0;
/// The marker of a value.
pub(super) const VALID: u8 = 1;

/// Whether a value follows.
pub(super) fn take_marker(bytes: &mut &[u8]) -> Result<bool> {
    take_bool(bytes, "marker")
}

/// One byte that is 0 or 1.
pub(super) fn take_bool(bytes: &mut &[u8], what: &str) -> Result<bool> {
    match take_byte(bytes)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(corrupt(format!("expected a {what} of 0 or 1, got {other}"))),
    }
}

pub(in crate::rows) fn take_byte(bytes: &mut &[u8]) -> Result<u8> {
    take(bytes, 1).map(|byte| byte[0])
}

/// The next `len` bytes.
pub(in crate::rows) fn take<'b>(bytes: &mut &'b [u8], len: usize) -> Result<&'b [u8]> {
    let Some((head, tail)) = bytes.split_at_checked(len) else {
        return Err(short(len, bytes.len()));
    };
    *bytes = tail;
    Ok(head)
}

/// Bytes that a length takes as LEB128: one below 128, which most are.
pub(in crate::rows) fn len_of_len(len: usize) -> usize {
    (usize::BITS - len.leading_zeros()).div_ceil(7).max(1) as usize
}

/// Writes a length as LEB128 to the start of `out`; returns its bytes.
#[inline(always)]
pub(in crate::rows) fn write_len(mut len: usize, out: &mut [u8]) -> usize {
    let mut at = 0;
    while len > 0x7f {
        out[at] = len as u8 | 0x80;
        (len, at) = (len >> 7, at + 1);
    }
    out[at] = len as u8;
    at + 1
}

/// As [`write_len`], behind what is in `out`.
pub(in crate::rows) fn put_len(len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + len_of_len(len), 0);
    write_len(len, &mut out[start..]);
}

/// A length, in its shortest form only: a longer one would be a second spelling of one value.
pub(in crate::rows) fn take_len(bytes: &mut &[u8]) -> Result<usize> {
    let mut len = 0usize;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = take_byte(bytes)?;
        let bits = usize::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(corrupt("a length has more bits than fit"));
        }
        len |= bits << shift;
        if byte <= 0x7f {
            return match byte {
                0 if shift > 0 => Err(corrupt("a length is not in its shortest form")),
                _ => Ok(len),
            };
        }
    }
    Err(corrupt("a length does not end"))
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

fn short(expected: usize, got: usize) -> Error {
    corrupt(format!("expected {expected} more bytes, got {got}"))
}
