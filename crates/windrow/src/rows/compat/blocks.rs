//! Byte strings as arrow-row writes them: in blocks, each followed by a byte.
//!
//! ```text
//! null      00 (nulls first) or FF
//! empty     01
//! other     02, then blocks: up to 4 of 8 bytes, then of 32; padded with zeros
//!              each followed by FF, the last one by the number of its bytes
//! ```
//! Descending complements all of it but the null.

use super::corrupt;
use crate::error::Result;
use crate::rows::value::wire::{take, take_byte};

const EMPTY: u8 = 1;
const FULL: u8 = 2;
const MORE: u8 = 0xff;
/// Bytes of the first blocks, and how many there are.
const SMALL: usize = 8;
const SMALL_BLOCKS: usize = 4;
/// Bytes of all other blocks.
const LARGE: usize = 32;

/// Bytes that a string of `len` bytes takes.
pub(super) fn encoded_len(len: usize) -> usize {
    if len <= SMALL * SMALL_BLOCKS {
        1 + len.div_ceil(SMALL) * (SMALL + 1)
    } else {
        1 + SMALL_BLOCKS * (SMALL + 1) + (len - LARGE).div_ceil(LARGE) * (LARGE + 1)
    }
}

/// Writes the code of `bytes` to the start of `out`, which is zeroed; returns its length.
pub(super) fn put(bytes: &[u8], flip: u8, out: &mut [u8]) -> usize {
    let len = encoded_len(bytes.len());
    let out = &mut out[..len];
    if bytes.is_empty() {
        out[0] = EMPTY ^ flip;
        return 1;
    }
    out[0] = FULL;
    let (small, large) = bytes.split_at(bytes.len().min(SMALL * SMALL_BLOCKS));
    let mut at = 1;
    for (blocks, size) in [(small, SMALL), (large, LARGE)] {
        for block in blocks.chunks(size) {
            out[at..at + block.len()].copy_from_slice(block);
            out[at + size] = MORE;
            at += size + 1;
        }
    }
    let size = if large.is_empty() { SMALL } else { LARGE };
    let last = bytes.len() % size;
    out[len - 1] = if last == 0 { size } else { last } as u8;
    if flip != 0 {
        out.iter_mut().for_each(|byte| *byte ^= flip);
    }
    len
}

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
