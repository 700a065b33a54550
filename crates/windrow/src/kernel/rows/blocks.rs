//! Byte strings as arrow-row writes them: in blocks, each followed by a byte.
//!
//! ```text
//! null      00 (nulls first) or FF
//! empty     01
//! other     02, then blocks: up to 4 of 8 bytes, then of 32; padded with zeros
//!              each followed by FF, the last one by the number of its bytes
//! ```
//! Descending complements all of it but the null.

use super::block;
use super::lane::Span;

/// A string without bytes, and any other.
pub(crate) const EMPTY: u8 = 1;
pub(crate) const FULL: u8 = 2;
/// What follows a block that is not the last.
pub(crate) const MORE: u8 = 0xff;
/// Bytes of the first blocks, and how many there are.
pub(crate) const SMALL: usize = 8;
pub(crate) const SMALL_BLOCKS: usize = 4;
/// Bytes of all other blocks.
pub(crate) const LARGE: usize = 32;

/// Bytes that a string of `len` bytes takes.
pub(crate) fn encoded_len(len: usize) -> usize {
    if len <= SMALL * SMALL_BLOCKS {
        1 + len.div_ceil(SMALL) * (SMALL + 1)
    } else {
        1 + SMALL_BLOCKS * (SMALL + 1) + (len - LARGE).div_ceil(LARGE) * (LARGE + 1)
    }
}

/// Writes strings of `source`, each at its cursor, and moves the cursors behind them. A null is `null`.
pub(crate) fn put_blocks(
    source: &[u8],
    spans: &[Span],
    null: u8,
    flip: u8,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected.
        return unsafe { super::avx512::put_blocks(source, spans, null, flip, cursors, out) };
    }
    put_each(source, spans, null, flip, cursors, out);
}

/// The portable twin.
fn put_each(
    source: &[u8],
    spans: &[Span],
    null: u8,
    flip: u8,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    for (&span, cursor) in spans.iter().zip(cursors) {
        if span.0 <= span.1 {
            *cursor += put_block_string(source, span, flip, &mut out[*cursor..]);
        } else {
            out[*cursor] = null;
            *cursor += 1;
        }
    }
}

/// Writes the code of the string `start..end` of `source` to the start of `out`; returns its length.
#[inline(always)]
pub(crate) fn put_block_string(
    source: &[u8],
    (start, end): (usize, usize),
    flip: u8,
    out: &mut [u8],
) -> usize {
    if start == end {
        out[0] = EMPTY ^ flip;
        return 1;
    }
    out[0] = FULL ^ flip;
    let mut at = 1;
    let mut from = start;
    if end - start > SMALL * SMALL_BLOCKS {
        let blocks = source[from..from + SMALL * SMALL_BLOCKS].chunks_exact(SMALL);
        let targets = out[at..at + (SMALL + 1) * SMALL_BLOCKS].chunks_exact_mut(SMALL + 1);
        blocks.zip(targets).for_each(|(block, target)| put_whole(block, flip, target));
        (from, at) = (from + SMALL * SMALL_BLOCKS, at + (SMALL + 1) * SMALL_BLOCKS);
        let whole = (end - from - 1) / LARGE;
        let blocks = source[from..from + whole * LARGE].chunks_exact(LARGE);
        let targets = out[at..at + whole * (LARGE + 1)].chunks_exact_mut(LARGE + 1);
        for (block, target) in blocks.zip(targets) {
            let (bytes, behind) = target.split_at_mut(LARGE);
            let block = block.as_chunks::<{ block::BLOCK }>().0;
            let bytes = bytes.as_chunks_mut::<{ block::BLOCK }>().0;
            block.iter().zip(bytes).for_each(|(from, to)| *to = block::sum(*from, 0, flip));
            behind[0] = MORE ^ flip;
        }
        (from, at) = (from + whole * LARGE, at + whole * (LARGE + 1));
        return at + put_last_large(source, (from, end), flip, &mut out[at..]);
    }
    while end - from > SMALL {
        put_whole(&source[from..from + SMALL], flip, &mut out[at..at + SMALL + 1]);
        (from, at) = (from + SMALL, at + SMALL + 1);
    }
    let (len, target) = (end - from, &mut out[at..at + SMALL + 1]);
    let mut word = [0; SMALL];
    match source.get(from..from + SMALL) {
        // What is behind the end is masked: lengths are hard to predict.
        Some(bytes) => {
            word.copy_from_slice(bytes);
            let mask = u64::MAX >> (64 - 8 * len);
            word = (u64::from_le_bytes(word) & mask).to_le_bytes();
        }
        None => word[..len].copy_from_slice(&source[from..end]),
    }
    put_whole(&word, flip, target);
    target[SMALL] = len as u8 ^ flip;
    at + SMALL + 1
}

/// Writes a block of eight bytes that others follow.
#[inline(always)]
fn put_whole(block: &[u8], flip: u8, out: &mut [u8]) {
    let mut word = [0; SMALL];
    word.copy_from_slice(block);
    let word = u64::from_ne_bytes(word) ^ u64::from_ne_bytes([flip; SMALL]);
    out[..SMALL].copy_from_slice(&word.to_ne_bytes());
    out[SMALL] = MORE ^ flip;
}

/// Writes the last block of a long string, padded with zeros, and how many of its bytes are the string's.
#[inline(always)]
fn put_last_large(source: &[u8], (start, end): (usize, usize), flip: u8, out: &mut [u8]) -> usize {
    let len = end - start;
    let (to, behind) = out[..LARGE + 1].split_at_mut(LARGE);
    match source.get(start..start + LARGE) {
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
    behind[0] = len as u8 ^ flip;
    LARGE + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lane::NULL;
    use super::*;

    proptest! {
        #[test]
        fn both_write_the_same(
            strings in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..80)), 1..40),
            short: bool,
            descending: bool,
        ) {
            let flip = if descending { 0xff } else { 0 };
            let (mut source, mut spans, mut cursors) = (vec![], vec![], vec![]);
            let mut end = 3;
            for string in &strings {
                let bytes = string.as_deref().unwrap_or_default();
                let bytes = &bytes[..if short { bytes.len() % 34 } else { bytes.len() }];
                let span = (source.len(), source.len() + bytes.len());
                spans.push(if string.is_some() { span } else { NULL });
                source.extend_from_slice(bytes);
                cursors.push(end);
                end += if string.is_some() { encoded_len(bytes.len()) } else { 1 };
            }
            // Last to first, so that what is written behind a code is seen.
            cursors.reverse();
            spans.reverse();
            let (mut out, mut twin) = (vec![0xaa; end + 1], vec![0xaa; end + 1]);
            let mut moved = cursors.clone();
            put_blocks(&source, &spans, 7, flip, &mut moved, &mut out);
            put_each(&source, &spans, 7, flip, &mut cursors, &mut twin);
            prop_assert_eq!(moved, cursors);
            prop_assert_eq!(out, twin);
        }
    }
}
