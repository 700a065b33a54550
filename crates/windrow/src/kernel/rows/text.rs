//! Text of any length into rows and back: a constant added to every byte, on the way.
//!
//! Lengths of strings are hard to predict, and a wrong guess costs as much as copying 100 bytes. So
//! short strings move 32 bytes or more whatever their length, where that much may be read and written:
//!
//! ```text
//! source  | s h o r t|n e x t   s t r  |         32 bytes are read from the start of the string,
//! target  | u j q t v 01| . . . . . .  |         and written: what is behind the end is to be
//!                                                written yet, and comes later
//! ```
//!
//! Where what is behind the end was written before, it is read and written back ([`add_exact`]).
//! Everything but [`append_text`] is bounds-checked, safe code.

use super::super::copy::add_short;
use super::block::{self, BLOCK, Block};

/// Bytes that are read at once.
const SHORT: usize = 2 * BLOCK;
/// Bytes of a longer text that are read at once.
const LONG: usize = 6 * BLOCK;

/// Writes the bytes `start..end` of `source`, plus `add` and then with the bits of `flip`
/// complemented, to `target` from `at` on, `N` bytes at once. Up to `N - 1` bytes behind them are
/// overwritten too.
#[inline(always)]
pub(crate) fn add_over<const N: usize>(
    target: &mut [u8],
    at: usize,
    source: &[u8],
    (start, end): (usize, usize),
    add: u8,
    flip: u8,
) {
    let len = end - start;
    if len <= N
        && let (Some(from), Some(to)) = (source.get(start..start + N), target.get_mut(at..at + N))
    {
        return sums::<N>(to, from, add, flip);
    }
    let moved = len.next_multiple_of(N);
    let (Some(from), Some(to)) = (source.get(start..start + moved), target.get_mut(at..at + moved))
    else {
        return add_short(&mut target[at..at + len], &source[start..end], add, flip);
    };
    let blocks = from.chunks_exact(N).zip(to.chunks_exact_mut(N));
    blocks.for_each(|(from, to)| sums::<N>(to, from, add, flip));
}

/// As [`add_over`], and the bytes behind are as they were.
#[inline(always)]
pub(crate) fn add_exact(
    target: &mut [u8],
    at: usize,
    source: &[u8],
    (start, end): (usize, usize),
    add: u8,
    flip: u8,
) {
    let len = end - start;
    if len <= BLOCK
        && let (Some(from), Some(to)) =
            (source.get(start..start + BLOCK), target.get_mut(at..at + BLOCK))
    {
        let behind = block_at(to, 0);
        to.copy_from_slice(&block::first(block::sum(block_at(from, 0), add, flip), behind, len));
        return;
    }
    add_short(&mut target[at..at + len], &source[start..end], add, flip);
}

#[inline(always)]
fn block_at(bytes: &[u8], at: usize) -> Block {
    let mut block = [0; BLOCK];
    block.copy_from_slice(&bytes[at..at + BLOCK]);
    block
}

/// `N` bytes.
#[inline(always)]
fn sums<const N: usize>(to: &mut [u8], from: &[u8], add: u8, flip: u8) {
    let (from, to) = (&from[..N], &mut to[..N]);
    for at in (0..N).step_by(BLOCK) {
        to[at..at + BLOCK].copy_from_slice(&block::sum(block_at(from, at), add, flip));
    }
}

/// Bytes in front of the first one that is below 2 once the bits of `flip` are complemented.
#[inline(always)]
pub(crate) fn find_end(bytes: &[u8], flip: u8) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<SHORT>();
    for (at, block) in blocks.iter().enumerate() {
        let len = first_end(block, flip);
        if len < SHORT {
            return Some(at * SHORT + len);
        }
    }
    let found = rest.iter().position(|&byte| byte ^ flip < 2);
    found.map(|found| blocks.len() * SHORT + found)
}

/// Bytes of `bytes` in front of the first one that is below 2 once the bits of `flip` are complemented;
/// all of them if there is none.
#[inline(always)]
fn first_end(bytes: &[u8; SHORT], flip: u8) -> usize {
    let ends = [0, BLOCK].map(|at| u64::from(block::ends(block_at(bytes, at), flip)));
    (ends[0] | ends[1] << BLOCK | 1 << SHORT).trailing_zeros() as usize
}

/// Appends the bytes of `from` in front of the end of the text, or all of them if it is not there; returns
/// how many.
#[inline(always)]
fn append_block<const N: usize>(from: &[u8; N], add: u8, flip: u8, out: &mut Vec<u8>) -> usize {
    let mut ends = 0u128;
    out.reserve(N);
    let end = out.len();
    for at in (0..N).step_by(BLOCK) {
        let block = block_at(from, at);
        ends |= u128::from(block::ends(block, flip)) << at;
        // SAFETY: there is room for `N` bytes behind those of `out`.
        unsafe {
            let to = out.as_mut_ptr().add(end + at);
            to.cast::<Block>().write(block::sum(block, add, flip));
        }
    }
    let len = (ends.trailing_zeros() as usize).min(N);
    // SAFETY: there is room for these bytes, and all of them were written.
    unsafe { out.set_len(end + len) };
    len
}

/// Appends the text whose code is at the start of `bytes`: `shift` was added to each of its bytes,
/// then `flip` complemented them, and a byte below 2, complemented too, ends it. Returns the bytes of
/// the code with its end, or nothing if it does not end; some of it was then appended.
///
/// Benefit: no second pass for the length, and no checks of room for each string; twice as fast for
/// strings of up to 31 bytes.
#[inline(always)]
pub(crate) fn append_text(bytes: &[u8], shift: u8, flip: u8, out: &mut Vec<u8>) -> Option<usize> {
    // (b ^ ff) - 2 = (b + 2) ^ ff, so both directions are an addition and a flip.
    let add = if flip == 0 { 0u8.wrapping_sub(shift) } else { shift };
    let mut at = 0;
    // Most are short. Of those that are not most need one step more, so that how many is predicted.
    if let Some(from) = bytes.first_chunk::<SHORT>() {
        at = append_block(from, add, flip, out);
        if at < SHORT {
            return Some(at + 1);
        }
    }
    while let Some(from) = bytes.get(at..).and_then(|rest| rest.first_chunk::<LONG>()) {
        let len = append_block(from, add, flip, out);
        at += len;
        if len < LONG {
            return Some(at + 1);
        }
    }
    while let Some(from) = bytes.get(at..).and_then(|rest| rest.first_chunk::<SHORT>()) {
        let len = append_block(from, add, flip, out);
        at += len;
        if len < SHORT {
            return Some(at + 1);
        }
    }
    // Near the end of all rows.
    let rest = bytes.get(at..).unwrap_or(&[]);
    let len = find_end(rest, flip)?;
    out.extend(rest[..len].iter().map(|byte| byte.wrapping_add(add) ^ flip));
    Some(at + len + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_is_moved_found_and_read_back(
            text in prop::collection::vec(0u8..254, 0..200),
            behind in prop::collection::vec(any::<u8>(), 0..140),
            room in 0usize..140,
            descending: bool,
        ) {
            let flip = if descending { 0xff } else { 0 };
            let source = [&text[..], &behind].concat();
            let mut target = vec![0xaa; 3 + text.len() + room];
            add_over::<32>(&mut target, 3, &source, (0, text.len()), 2, flip);
            let expected: Vec<u8> = text.iter().map(|byte| (byte + 2) ^ flip).collect();
            prop_assert_eq!(&target[3..3 + text.len()], &expected[..]);
            prop_assert_eq!(&target[..3], &[0xaa; 3]);
            target.fill(0xaa);
            add_over::<128>(&mut target, 3, &source, (0, text.len()), 2, flip);
            prop_assert_eq!(&target[3..3 + text.len()], &expected[..]);
            target.fill(0xaa);
            add_exact(&mut target, 3, &source, (0, text.len()), 2, flip);
            prop_assert_eq!(&target[3..3 + text.len()], &expected[..]);
            prop_assert!(target[3 + text.len()..].iter().all(|&byte| byte == 0xaa));
            let coded = [&expected[..], &[1 ^ flip], &behind].concat();
            prop_assert_eq!(find_end(&coded, flip), Some(text.len()));
            prop_assert_eq!(find_end(&expected, flip), None);
            let mut back = vec![9];
            prop_assert_eq!(append_text(&coded, 2, flip, &mut back), Some(text.len() + 1));
            prop_assert_eq!(&back[1..], &text[..]);
            prop_assert_eq!(append_text(&expected, 2, flip, &mut back), None);
        }
    }
}
