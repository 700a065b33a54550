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
use crate::kernel::rows::block;
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

/// Writes the code of the string `start..end` of `source` to the start of `out`; returns its length.
#[inline(always)]
pub(super) fn put(source: &[u8], (start, end): (usize, usize), flip: u8, out: &mut [u8]) -> usize {
    if start == end {
        out[0] = EMPTY ^ flip;
        return 1;
    }
    out[0] = FULL ^ flip;
    let mut at = 1;
    let mut from = start;
    let small = end.min(start + SMALL * SMALL_BLOCKS);
    while from < small {
        at += put_block::<SMALL>(source, (from, small), small == end, flip, &mut out[at..]);
        from += SMALL;
    }
    while from < end {
        at += put_block::<LARGE>(source, (from, end), true, flip, &mut out[at..]);
        from += LARGE;
    }
    at
}

/// Writes one block of what is left of a string, padded with zeros, and the byte behind it; `ends` if
/// nothing follows what is left.
#[inline(always)]
fn put_block<const N: usize>(
    source: &[u8],
    (start, end): (usize, usize),
    ends: bool,
    flip: u8,
    out: &mut [u8],
) -> usize {
    let len = end - start;
    let out = &mut out[..N + 1];
    let (to, behind) = out.split_at_mut(N);
    match source.get(start..start + N) {
        // What is behind the end is masked: lengths are hard to predict.
        Some(from) if N == SMALL => {
            let mut word = [0; SMALL];
            word.copy_from_slice(from);
            let mask = u64::MAX >> (64 - 8 * len.min(SMALL));
            let word = (u64::from_le_bytes(word) & mask) ^ u64::from_ne_bytes([flip; 8]);
            to.copy_from_slice(&word.to_le_bytes());
        }
        Some(from) => {
            let from = from.as_chunks::<{ block::BLOCK }>().0;
            let to = to.as_chunks_mut::<{ block::BLOCK }>().0;
            for (at, (from, to)) in from.iter().zip(to).enumerate() {
                let own = len.saturating_sub(at * block::BLOCK);
                *to = block::sum(block::first(*from, [0; block::BLOCK], own), 0, flip);
            }
        }
        None => {
            to.fill(flip);
            let own = to.iter_mut().zip(&source[start..end]);
            own.for_each(|(to, from)| *to = from ^ flip);
        }
    }
    behind[0] = if ends && len <= N { len as u8 } else { MORE } ^ flip;
    N + 1
}

/// As [`put`], behind what is in `out`.
pub(super) fn append(bytes: &[u8], flip: u8, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + encoded_len(bytes.len()), 0);
    put(bytes, (0, bytes.len()), flip, &mut out[start..]);
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
