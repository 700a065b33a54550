//! Text of any length into rows and back: a constant added to every byte, on the way.
//!
//! Lengths of strings are hard to predict, and a wrong guess costs as much as copying 100 bytes. So
//! short strings move 16 bytes whatever their length, where that much may be read and written:
//!
//! ```text
//! source  | s h o r t|n e x t   s t r  |         16 bytes are read from the start of the string,
//! target  | u j q t v 01| . . . . . .  |         and written: what is behind the end is to be
//!                                                written yet, and comes later
//! ```
//!
//! Everything here is bounds-checked, safe code, whose 16-byte arrays compile to one move.

/// Bytes that a longer string moves at a time.
const BLOCK: usize = 32;
/// Bytes that a short string moves.
const SHORT: usize = 16;

/// Writes the bytes `start..end` of `source`, plus `add` and then with the bits of `flip`
/// complemented, to `target` from `at` on. Up to 31 bytes behind them are overwritten too.
#[inline(always)]
pub(crate) fn add_over(
    target: &mut [u8],
    at: usize,
    source: &[u8],
    (start, end): (usize, usize),
    add: u8,
    flip: u8,
) {
    let len = end - start;
    if len <= SHORT
        && let (Some(from), Some(to)) =
            (source.get(start..start + SHORT), target.get_mut(at..at + SHORT))
    {
        sum::<SHORT>(to, from, add, flip);
        return;
    }
    let blocks = len.next_multiple_of(BLOCK);
    if let (Some(from), Some(to)) =
        (source.get(start..start + blocks), target.get_mut(at..at + blocks))
    {
        let (from, _) = from.as_chunks::<BLOCK>();
        for (from, to) in from.iter().zip(to.as_chunks_mut::<BLOCK>().0) {
            sum::<BLOCK>(to, from, add, flip);
        }
        return;
    }
    super::super::copy::add_short(&mut target[at..at + len], &source[start..end], add, flip);
}

#[inline(always)]
fn sum<const N: usize>(to: &mut [u8], from: &[u8], add: u8, flip: u8) {
    let mut bytes = [0; N];
    bytes.copy_from_slice(from);
    bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(add) ^ flip);
    to.copy_from_slice(&bytes);
}

/// Bytes in front of the first one that is below 2 once the bits of `flip` are complemented.
#[inline(always)]
pub(crate) fn find_end(bytes: &[u8], flip: u8) -> Option<usize> {
    let mut at = 0;
    if let Some(block) = bytes.first_chunk::<SHORT>() {
        // Both words at once: which one holds the end of a short string is not to be predicted.
        let (words, _) = block.as_chunks::<8>();
        let (low, high) = (ends(words[0], flip), ends(words[1], flip));
        if low | high != 0 {
            let (word, skipped) = if low != 0 { (low, 0) } else { (high, 8) };
            return Some(skipped + (word.trailing_zeros() / 8) as usize);
        }
        at = SHORT;
    }
    while let Some(block) = bytes.get(at..at + 8) {
        let ends = ends(block.try_into().expect("eight bytes"), flip);
        if ends != 0 {
            return Some(at + (ends.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let found = bytes[at..].iter().position(|&byte| byte ^ flip < 2);
    found.map(|found| at + found)
}

/// The top bit of each byte that is below 2, and perhaps of some behind the first of them.
#[inline(always)]
fn ends(block: [u8; 8], flip: u8) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let word = u64::from_le_bytes(block) ^ (u64::from(flip) * ONES);
    word.wrapping_sub(2 * ONES) & !word & (0x80 * ONES)
}

/// Appends `len` bytes of `source`, plus `add` and then with the bits of `flip` complemented.
#[inline(always)]
pub(crate) fn append_sum(source: &[u8], len: usize, add: u8, flip: u8, out: &mut Vec<u8>) {
    if len <= SHORT
        && let Some(from) = source.get(..SHORT)
    {
        let mut bytes = [0; SHORT];
        sum::<SHORT>(&mut bytes, from, add, flip);
        out.extend_from_slice(&bytes);
        out.truncate(out.len() - (SHORT - len));
        return;
    }
    let start = out.len();
    let blocks = len.next_multiple_of(BLOCK);
    if let Some(from) = source.get(..blocks) {
        out.resize(start + blocks, 0);
        let (to, _) = out[start..].as_chunks_mut::<BLOCK>();
        for (from, to) in from.as_chunks::<BLOCK>().0.iter().zip(to) {
            sum::<BLOCK>(to, from, add, flip);
        }
        out.truncate(start + len);
        return;
    }
    out.resize(start + len, 0);
    super::super::copy::add_short(&mut out[start..], &source[..len], add, flip);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_is_moved_found_and_read_back(
            text in prop::collection::vec(0u8..254, 0..60),
            behind in prop::collection::vec(any::<u8>(), 0..40),
            room in 0usize..40,
            descending: bool,
        ) {
            let flip = if descending { 0xff } else { 0 };
            let source = [&text[..], &behind].concat();
            let mut target = vec![0xaa; 3 + text.len() + room];
            add_over(&mut target, 3, &source, (0, text.len()), 2, flip);
            let expected: Vec<u8> = text.iter().map(|byte| (byte + 2) ^ flip).collect();
            prop_assert_eq!(&target[3..3 + text.len()], &expected[..]);
            prop_assert_eq!(&target[..3], &[0xaa; 3]);
            let coded = [&expected[..], &[1 ^ flip], &behind].concat();
            prop_assert_eq!(find_end(&coded, flip), Some(text.len()));
            prop_assert_eq!(find_end(&expected, flip), None);
            let mut back = vec![9];
            let add = if descending { 2 } else { 254 };
            append_sum(&coded, text.len(), add, flip, &mut back);
            prop_assert_eq!(&back[1..], &text[..]);
        }
    }
}
