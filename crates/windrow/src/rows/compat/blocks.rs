//! Byte strings as arrow-row writes them, appended and read back one by one.

use super::corrupt;
use crate::error::Result;
use crate::kernel::rows::blocks::{EMPTY, FULL, LARGE, MORE, SMALL, SMALL_BLOCKS};
pub(super) use crate::kernel::rows::blocks::{encoded_len, put_block_string as put};
use crate::rows::value::wire::{take, take_byte};

/// As [`put`], behind what is in `out`.
pub(super) fn append(bytes: &[u8], flip: u8, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + encoded_len(bytes.len()), 0);
    put(bytes, flip, &mut out[start..]);
}

/// Appends the string at the start of `source` to `out`; false for an empty one.
pub(super) fn read(source: &mut &[u8], flip: u8, out: &mut Vec<u8>) -> Result<bool> {
    match take_byte(source)? ^ flip {
        EMPTY => return Ok(false),
        FULL => {}
        _ => return Err(corrupt("a string that is neither empty nor full")),
    }
    for block in 0.. {
        let size = if block < SMALL_BLOCKS { SMALL } else { LARGE };
        let bytes = take(source, size)?;
        let (len, last) = match take_byte(source)? ^ flip {
            MORE => (size, false),
            len => (usize::from(len), true),
        };
        let bytes = bytes.get(..len).ok_or_else(|| corrupt("a block longer than blocks are"))?;
        out.extend(bytes.iter().map(|byte| byte ^ flip));
        if last {
            break;
        }
    }
    Ok(true)
}
