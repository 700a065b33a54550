//! Byte strings in the format of arrow-row: blocks, each followed by a byte.
//!
//! ```text
//! null      00 (nulls first) or FF
//! empty     01
//! other     02, then blocks: up to 4 of 8 bytes, then of 32; padded with zeros
//!              each followed by FF, the last one by the number of its bytes
//! ```
//! A descending column complements all bytes but a null's.

use super::block;
use super::text::Text;
use crate::copy::copy_short;

/// First byte of an empty string, and of any other string.
pub(crate) const EMPTY: u8 = 1;
pub(crate) const FULL: u8 = 2;
/// Byte after each block but the last.
pub const MORE: u8 = 0xff;
/// Bytes of the first blocks, and their number.
pub const SMALL: usize = 8;
pub(crate) const SMALL_BLOCKS: usize = 4;
/// Bytes of all other blocks.
pub(crate) const LARGE: usize = 32;

/// Returns the encoded length of a string of `len` bytes.
pub fn encoded_len(len: usize) -> usize {
    if len <= SMALL * SMALL_BLOCKS {
        1 + len.div_ceil(SMALL) * (SMALL + 1)
    } else {
        1 + SMALL_BLOCKS * (SMALL + 1) + (len - LARGE).div_ceil(LARGE) * (LARGE + 1)
    }
}

/// Writes strings, each at its cursor, and advances the cursors; a null is `null`. Writes nothing
/// after a string.
///
/// # Panics
/// If a string does not fit.
pub fn put_blocks<'a>(
    strings: impl Iterator<Item = impl Into<Text<'a>>>,
    null: u8,
    flip: u8,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let strings = strings.map(Into::into);
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected.
        return unsafe { super::avx512::blocks::put_blocks(strings, null, flip, cursors, out) };
    }
    put_each(strings, null, flip, cursors, out);
}

/// The portable twin.
fn put_each<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    null: u8,
    flip: u8,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    for (text, cursor) in strings.zip(cursors) {
        if text.valid {
            *cursor += put_block_string(text.bytes(), flip, &mut out[*cursor..]);
        } else {
            out[*cursor] = null;
            *cursor += 1;
        }
    }
}

/// Writes the code of `string` to the start of `out`. Returns its length.
#[inline(always)]
pub fn put_block_string(string: &[u8], flip: u8, out: &mut [u8]) -> usize {
    if string.is_empty() {
        out[0] = EMPTY ^ flip;
        return 1;
    }
    out[0] = FULL ^ flip;
    let (mut at, mut rest) = (1, string);
    if string.len() > SMALL * SMALL_BLOCKS {
        let (front, behind) = string.split_at(SMALL * SMALL_BLOCKS);
        let targets = out[at..at + (SMALL + 1) * SMALL_BLOCKS].chunks_exact_mut(SMALL + 1);
        let blocks = front.as_chunks().0.iter();
        blocks.zip(targets).for_each(|(block, target)| put_small(*block, MORE, flip, target));
        (rest, at) = (behind, at + (SMALL + 1) * SMALL_BLOCKS);
        while let Some((block, behind)) =
            rest.split_first_chunk::<LARGE>().filter(|(_, behind)| !behind.is_empty())
        {
            put_large(block, MORE, flip, &mut out[at..]);
            (rest, at) = (behind, at + LARGE + 1);
        }
        let mut last = [0; LARGE];
        copy_short(&mut last, rest);
        put_large(&last, rest.len() as u8, flip, &mut out[at..]);
        return at + LARGE + 1;
    }
    while let Some((block, behind)) =
        rest.split_first_chunk::<SMALL>().filter(|(_, behind)| !behind.is_empty())
    {
        put_small(*block, MORE, flip, &mut out[at..]);
        (rest, at) = (behind, at + SMALL + 1);
    }
    let last = match string.last_chunk::<SMALL>() {
        // Shifts out the bytes before the last block: lengths are hard to predict.
        Some(last) => u64::from_le_bytes(*last) >> (8 * (SMALL - rest.len())),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    put_small(last.to_le_bytes(), rest.len() as u8, flip, &mut out[at..]);
    at + SMALL + 1
}

/// Writes a block of eight bytes and the following byte.
#[inline(always)]
fn put_small(block: [u8; SMALL], behind: u8, flip: u8, out: &mut [u8]) {
    let word = u64::from_ne_bytes(block) ^ u64::from_ne_bytes([flip; SMALL]);
    out[..SMALL].copy_from_slice(&word.to_ne_bytes());
    out[SMALL] = behind ^ flip;
}

/// Writes a block of 32 bytes and the following byte.
#[inline(always)]
fn put_large(block: &[u8; LARGE], behind: u8, flip: u8, out: &mut [u8]) {
    let (to, mark) = out[..LARGE + 1].split_at_mut(LARGE);
    let to = to.as_chunks_mut::<{ block::BLOCK }>().0;
    let from = block.as_chunks::<{ block::BLOCK }>().0;
    from.iter().zip(to).for_each(|(from, to)| *to = block::sum(*from, 0, flip));
    mark[0] = behind ^ flip;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_write_the_same(
            strings in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..400)), 1..40),
            most in prop::sample::select(vec![9usize, 34, 70, 130, 400]),
            descending: bool,
        ) {
            let flip = if descending { 0xff } else { 0 };
            let strings = strings.iter().map(|string| match string {
                Some(string) => (&string[..string.len() % most], true),
                None => (&[7, 8, 9][..], false),
            });
            let (mut cursors, mut end) = (vec![], 3);
            for (string, valid) in strings.clone() {
                cursors.push(end);
                end += if valid { encoded_len(string.len()) } else { 1 };
            }
            // Last to first, so that writes after a code are detected.
            cursors.reverse();
            let strings = strings.rev();
            let (mut out, mut twin) = (vec![0xaa; end + 1], vec![0xaa; end + 1]);
            let mut moved = cursors.clone();
            put_blocks(strings.clone(), 7, flip, &mut moved, &mut out);
            put_each(strings.map(Text::from), 7, flip, &mut cursors, &mut twin);
            prop_assert_eq!(moved, cursors);
            prop_assert_eq!(out, twin);
        }
    }

    /// Encodes block by block, as the module's documentation describes.
    fn model(string: &[u8], flip: u8) -> Vec<u8> {
        let mut code = vec![if string.is_empty() { EMPTY } else { FULL }];
        let (mut rest, mut blocks) = (string, 0);
        while !rest.is_empty() {
            let size = if blocks < SMALL_BLOCKS { SMALL } else { LARGE };
            let (own, behind) = rest.split_at(size.min(rest.len()));
            code.extend_from_slice(own);
            code.resize(code.len() + size - own.len(), 0);
            code.push(if behind.is_empty() { own.len() as u8 } else { MORE });
            (rest, blocks) = (behind, blocks + 1);
        }
        code.into_iter().map(|byte| byte ^ flip).collect()
    }

    #[test]
    fn every_length_is_coded_in_blocks() {
        let bytes: Vec<u8> = (0..200u8).map(|byte| byte.wrapping_mul(91)).collect();
        for (len, flip) in (0..=bytes.len()).flat_map(|len| [(len, 0), (len, 0xff)]) {
            let (string, expected) = (&bytes[..len], model(&bytes[..len], flip));
            assert_eq!(encoded_len(len), expected.len());
            let (mut out, mut twin) = (vec![0xaa; expected.len()], vec![0xaa; expected.len()]);
            put_blocks([(string, true)].into_iter(), 7, flip, &mut [0], &mut out);
            put_each([(string, true)].into_iter().map(Text::from), 7, flip, &mut [0], &mut twin);
            assert_eq!((&out, &twin), (&expected, &expected), "{len} bytes");
        }
    }
}
