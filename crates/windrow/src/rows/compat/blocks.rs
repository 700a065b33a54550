//! Byte strings as arrow-row writes them, appended and read back one by one.

use super::corrupt;
use crate::error::Result;
pub(super) use crate::kernel::rows::blocks::{encoded_len, put_block_string as put};
use crate::kernel::rows::take_blocks::append_blocks;

/// As [`put`], behind what is in `out`.
pub(super) fn append(bytes: &[u8], flip: u8, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + encoded_len(bytes.len()), 0);
    put(bytes, flip, &mut out[start..]);
}

/// Appends the string at the start of `source` to `out`; false for an empty one.
pub(super) fn read(source: &mut &[u8], flip: u8, out: &mut Vec<u8>) -> Result<bool> {
    append_blocks(source, flip, out).ok_or_else(|| corrupt("a string that is not one of blocks"))
}
