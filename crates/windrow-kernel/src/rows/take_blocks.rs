//! Reads byte strings of arrow-row out of rows: blocks of eight bytes, then of 32, each followed by
//! a byte.
//!
//! ```text
//! row      | 2 | s h o r t e s t | FF | o n e 0 0 0 0 0 | 3 |    the last mark is a length
//! data     | s h o r t e s t o n e |. . .                        whole blocks are written; the
//! ends                             ^                             next string overwrites the excess
//! ```
//!
//! Padding of the last block is not checked.

use std::hint::select_unpredictable;

use super::blocks::{EMPTY, FULL, LARGE, MORE, SMALL, SMALL_BLOCKS};
#[cfg(target_arch = "x86_64")]
use super::texts::Texts;

/// Bytes after the strings that reads may overwrite.
pub(super) const BEHIND: usize = 4 * LARGE;
/// Bytes of the small blocks, with the bytes before and after each.
pub(super) const SMALL_BYTES: usize = 1 + SMALL_BLOCKS * (SMALL + 1);

/// Returns whether some of a sample of strings have blocks of 32 bytes.
#[cfg(target_arch = "x86_64")]
pub(super) fn are_long(texts: &Texts<'_>, cursors: &[usize]) -> bool {
    const LOOKS: usize = 16;
    let Texts { bytes, ends, form, null } = *texts;
    let is_long = |(&cursor, &end): (&usize, &usize)| {
        let mut code = bytes[..end].get(cursor..).unwrap_or(&[]);
        if code.len() <= SMALL_BYTES || Some(code[0]) == null || code[0] ^ form.flip != FULL {
            return false;
        }
        code = &code[1..SMALL_BYTES];
        code.chunks_exact(SMALL + 1).all(|block| block[SMALL] ^ form.flip == MORE)
    };
    let mut rows = cursors.iter().zip(ends).step_by(cursors.len() / LOOKS + 1);
    rows.any(is_long)
}

/// Appends the string whose code is at the start of `code`, and moves `code` past it. Returns
/// whether the string is not empty, or `None` if the code is invalid or does not end; a part may
/// have been appended then.
#[inline(always)]
pub fn append_blocks(code: &mut &[u8], flip: u8, out: &mut Vec<u8>) -> Option<bool> {
    let Some(Short { block, len }) = short(code, flip) else {
        return for_each_block(code, flip, |own| out.extend(own.iter().map(|byte| byte ^ flip)));
    };
    let end = out.len() + len;
    out.extend_from_slice(&block);
    out.truncate(end);
    *code = &code[SHORT..];
    Some(true)
}

/// Skips a string as [`append_blocks`] reads one.
#[inline(always)]
pub fn skip_blocks(code: &mut &[u8], flip: u8) -> Option<bool> {
    if short(code, flip).is_none() {
        return for_each_block(code, flip, |_| ());
    }
    *code = &code[SHORT..];
    Some(true)
}

/// Bytes of the code of a string of one block.
const SHORT: usize = 1 + SMALL + 1;

/// A string of one block: the first `len` bytes of the block.
struct Short {
    block: [u8; SMALL],
    len: usize,
}

/// Returns the string at the start of `code`, if it has one block.
#[inline(always)]
fn short(code: &[u8], flip: u8) -> Option<Short> {
    let &[first, block @ .., last] = code.first_chunk::<SHORT>()?;
    let len = usize::from(last ^ flip);
    let block = u64::from_ne_bytes(block) ^ u64::from_ne_bytes([flip; SMALL]);
    (first ^ flip == FULL && len <= SMALL).then_some(Short { block: block.to_ne_bytes(), len })
}

/// A string of up to sixteen bytes, as two words, padded with zeros; its first byte is the least
/// significant.
pub struct TwoWords {
    pub words: [u64; 2],
    pub len: usize,
    /// Bytes of its code.
    pub code_len: usize,
}

/// Masks of two words for strings of up to sixteen bytes.
const BITS: [[u64; 2]; 2 * SMALL + 1] = {
    let mut bits = [[0; 2]; 2 * SMALL + 1];
    let mut len = 1;
    while len <= 2 * SMALL {
        let own = u128::MAX >> (128 - 8 * len);
        bits[len] = [own as u64, (own >> 64) as u64];
        len += 1;
    }
    bits
};

/// Returns the string at the start of `code`, if it has one or two blocks and `code` has as many
/// bytes as two blocks take.
///
/// Works in registers only: a load of two stored halves would wait for the stores, 7 of 18 ns a
/// string.
#[inline(always)]
pub fn two_words(code: &[u8], flip: u8) -> Option<TwoWords> {
    const BOTH: usize = SHORT + SMALL + 1;
    let code: &[u8; BOTH] = code.first_chunk()?;
    let flips = u64::from_ne_bytes([flip; SMALL]);
    let word =
        |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)) ^ flips;
    let [first, second] = [code[SHORT - 1], code[BOTH - 1]].map(|byte| usize::from(byte ^ flip));
    let has_more = first == usize::from(MORE);
    let len = select_unpredictable(has_more, SMALL + second, first);
    let most = select_unpredictable(has_more, 2 * SMALL, SMALL);
    if code[0] ^ flip != FULL || len > most {
        return None;
    }
    let [low, high] = BITS[len];
    let words = [word(&code[1..]) & low, word(&code[SHORT..]) & high];
    Some(TwoWords { words, len, code_len: select_unpredictable(has_more, BOTH, SHORT) })
}

/// Calls `f` with the encoded bytes of each block of the string at the start of `code`.
fn for_each_block(code: &mut &[u8], flip: u8, mut f: impl FnMut(&[u8])) -> Option<bool> {
    let (first, rest) = code.split_first()?;
    *code = rest;
    match first ^ flip {
        EMPTY => return Some(false),
        FULL => {}
        _ => return None,
    }
    for block in 0.. {
        let size = if block < SMALL_BLOCKS { SMALL } else { LARGE };
        let (block, rest) = code.split_at_checked(size + 1)?;
        *code = rest;
        let last = block[size] ^ flip;
        let len = if last == MORE { size } else { usize::from(last) };
        f(block[..size].get(..len)?);
        if last != MORE {
            break;
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::{encoded_len, put_block_string};
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn blocks_are_read_or_passed_over(
            strings in prop::collection::vec(
                prop::option::of(prop::collection::vec(any::<u8>(), 0..300)), 1..200),
            most in prop::sample::select(vec![12usize, 31, 34, 70, 130, 300]),
            ascii: bool,
            descending: bool,
            nulls_first: bool,
            gap in 0usize..3,
            broken in prop::option::of((any::<u16>(), any::<u8>())),
        ) {
            let flip = if descending { 0xff } else { 0 };
            let null = if nulls_first { 0 } else { 0xff };
            let (mut rows, mut starts, mut ends) = (vec![], vec![], vec![]);
            let mut expected = vec![];
            for string in &strings {
                starts.push(rows.len());
                match string {
                    Some(string) => {
                        let string = string.iter().take(string.len() % (most + 1));
                        let string: Vec<u8> =
                            string.map(|byte| if ascii { byte & 0x7f } else { *byte }).collect();
                        let at = rows.len();
                        rows.resize(at + encoded_len(string.len()), 0);
                        put_block_string(&string, flip, &mut rows[at..]);
                        expected.extend(string);
                    }
                    None => rows.push(null),
                }
                rows.resize(rows.len() + gap, 7);
                ends.push(rows.len());
            }
            if let Some((at, byte)) = broken {
                let at = usize::from(at) % rows.len();
                rows[at] = byte;
            }
            let at_starts = starts;
            for (&at, &end) in at_starts.iter().zip(&ends) {
                let (mut code, mut whole, mut behind) = (&rows[at..end], vec![], &rows[at..end]);
                let read = append_blocks(&mut code, flip, &mut whole);
                prop_assert_eq!(read, skip_blocks(&mut behind, flip));
                prop_assert!(read.is_none() || code == behind);
                if let Some(TwoWords { words, len, code_len }) = two_words(&rows[at..end], flip) {
                    prop_assert_eq!(read, Some(true));
                    let bytes = words.map(u64::to_le_bytes).concat();
                    prop_assert_eq!(&bytes[..len], &whole[..]);
                    prop_assert!(bytes[len..].iter().all(|&byte| byte == 0));
                    prop_assert_eq!(end - at - code_len, code.len());
                }
            }
            if broken.is_none() {
                let mut whole = vec![];
                for ((&at, &end), string) in at_starts.iter().zip(&ends).zip(&strings) {
                    let mut code = &rows[at..end];
                    let read = string.as_ref().map(|_| append_blocks(&mut code, flip, &mut whole));
                    prop_assert!(read.is_none_or(|read| read.is_some() && code.len() == gap));
                }
                prop_assert_eq!(whole, expected);
            }
        }
    }
}
