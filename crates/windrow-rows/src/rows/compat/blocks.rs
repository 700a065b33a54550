//! Byte strings in arrow-row's blocks: appended, read and skipped one by one.

use super::field::corrupt;
use crate::error::{Error, Result};
pub(super) use windrow_kernel::rows::blocks::{encoded_len, put_block_string as put};
pub(super) use windrow_kernel::rows::take_blocks::two_words;
use windrow_kernel::rows::take_blocks::{append_blocks, skip_blocks};

/// Appends a string to `out`, as [`put`] writes it.
pub(super) fn append(bytes: &[u8], flip: u8, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + encoded_len(bytes.len()), 0);
    put(bytes, flip, &mut out[start..]);
}

/// Appends the string at the start of `source` to `out`. Returns false for an empty string.
#[inline(always)]
pub(super) fn read(source: &mut &[u8], flip: u8, out: &mut Vec<u8>) -> Result<bool> {
    append_blocks(source, flip, out).ok_or_else(no_string)
}

/// Skips the string at the start of `source`. Returns false for an empty string.
#[inline(always)]
pub(super) fn skip(source: &mut &[u8], flip: u8) -> Result<bool> {
    skip_blocks(source, flip).ok_or_else(no_string)
}

#[cold]
fn no_string() -> Error {
    corrupt("a string that is not one of blocks")
}
