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

/// Bytes that a short string moves.
const SHORT: usize = 16;

/// Writes the bytes `start..end` of `source`, plus `add` and then with the bits of `flip`
/// complemented, to `target` from `at` on. Up to 15 bytes behind them are overwritten too.
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
    while let Some(block) = bytes.get(at..at + SHORT) {
        let mut ends = [0; SHORT];
        ends.copy_from_slice(block);
        // One bit a byte: a compare and a move of the mask.
        let mask = ends
            .iter()
            .enumerate()
            .fold(0u32, |mask, (bit, byte)| mask | u32::from(byte ^ flip < 2) << bit);
        if mask != 0 {
            return Some(at + mask.trailing_zeros() as usize);
        }
        at += SHORT;
    }
    let found = bytes[at..].iter().position(|&byte| byte ^ flip < 2);
    found.map(|found| at + found)
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
