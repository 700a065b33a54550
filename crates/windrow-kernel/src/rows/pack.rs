//! Packs numbers into words to sort: the bits that distinguish them, above their place. Also packs
//! numbers into small codes, if few of them need to be distinguished.
//!
//! ```text
//! word = | bits of other columns | null bit | (code - least) without its lowest bits | place |
//! small code = code - below: 0 if code is less, top if it is more
//! ```

use super::lanes::Bits;
use crate::cpu::compiled_for;
use crate::prefetch::{LINE, prefetch};

/// The way from numbers of a column to words. A code is `v ^ (float if v is negative) ^ flip`.
#[derive(Clone, Copy, Debug)]
pub struct Pack {
    pub flip: u64,
    pub float: u64,
    pub least: u64,
    /// Low bits omitted from a code, below 64.
    pub dropped: u32,
    /// Bits by which the previous word is shifted up; 64 to drop it.
    pub width: u32,
    /// Bits of a place, below 64; `None` if places are added later.
    pub place: Option<u32>,
    /// The bit before a value, if any, and the whole code of a null.
    pub front: u64,
    pub null: u64,
}

/// Numbers between two loads of validity bits: a word of bits.
const BLOCK: usize = 64;

/// Adds each number to its word; `valid` is `None` if there are no nulls.
///
/// # Panics
/// If the number of words differs from the number of values, or there are fewer bits.
pub fn pack(values: &[[u8; 8]], valid: Option<Bits<'_>>, pack: Pack, words: &mut [u64]) {
    assert_eq!(values.len(), words.len(), "a word for each value");
    assert!(valid.is_none_or(|valid| valid.holds(values.len())), "a bit for each value");
    pack_all(values, valid, pack, words);
}

compiled_for! {
    ["avx512f" "avx512dq" "avx512vl"]
    fn pack_all(
        values: &[[u8; 8]],
        valid: Option<Bits<'_>>,
        pack: Pack,
        words: &mut [u64],
    ) = pack_each
}

#[inline(always)]
fn pack_each(values: &[[u8; 8]], valid: Option<Bits<'_>>, pack: Pack, words: &mut [u64]) {
    let (shift, places) = pack.place.map_or((0, 0), |shift| (shift, u64::MAX));
    // A shift by 64 drops the word, which no shift of a word does.
    let (width, kept) = if pack.width < 64 { (pack.width, u64::MAX) } else { (0, 0) };
    let blocks = values.chunks(BLOCK).zip(words.chunks_mut(BLOCK));
    for (block, (values, words)) in blocks.enumerate() {
        prefetch_ahead(values);
        let first = block * BLOCK;
        let bits = valid.map_or(u64::MAX, |valid| valid.word(first));
        for (at, (value, word)) in (0..).zip(values.iter().zip(words)) {
            let code = coded(*value, pack.flip, pack.float);
            let own = pack.front | code.wrapping_sub(pack.least) >> pack.dropped;
            let own = if bits >> at & 1 == 1 { own } else { pack.null };
            let own = (*word & kept) << width | own;
            *word = own << shift | ((first as u64 + at) & places);
        }
    }
}

/// Returns the code of a number without nulls: see [`super::Code`].
#[inline(always)]
pub(super) fn coded(value: [u8; 8], flip: u64, float: u64) -> u64 {
    let value = u64::from_ne_bytes(value);
    let negative = (value.cast_signed() >> 63).cast_unsigned();
    value ^ (negative & float) ^ flip
}

/// Prefetches values some blocks ahead: the hardware does not prefetch beyond a page.
#[inline(always)]
pub(super) fn prefetch_ahead(values: &[[u8; 8]]) {
    /// Bytes between the reads and the prefetches.
    const AHEAD: usize = 2048;
    let start = values.as_ptr().cast::<u8>();
    for at in (0..size_of_val(values)).step_by(LINE) {
        prefetch(start.wrapping_add(AHEAD + at));
    }
}

/// The way from numbers of a column to small codes.
#[derive(Clone, Copy, Debug)]
pub struct Clamp {
    pub flip: u64,
    pub float: u64,
    pub below: u64,
    pub top: u16,
}

/// Writes the small code of each number.
///
/// # Panics
/// If the number of codes differs from the number of values.
pub fn clamp(values: &[[u8; 8]], clamp: Clamp, codes: &mut [u16]) {
    assert_eq!(values.len(), codes.len(), "a code for each value");
    clamp_all(values, clamp, codes);
}

compiled_for! {
    ["avx512f" "avx512dq" "avx512vl"]
    fn clamp_all(values: &[[u8; 8]], clamp: Clamp, codes: &mut [u16]) = clamp_each
}

#[inline(always)]
fn clamp_each(values: &[[u8; 8]], clamp: Clamp, codes: &mut [u16]) {
    for (value, small) in values.iter().zip(codes) {
        let code = coded(*value, clamp.flip, clamp.float);
        *small = code.saturating_sub(clamp.below).min(clamp.top.into()) as u16;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn codes_are_clamped(
            values in prop::collection::vec(any::<u64>(), 0..100),
            shift in 0u32..64,
            constants: [u64; 3],
            top: u16,
        ) {
            let [flip, float, below] = constants;
            let values: Vec<[u8; 8]> =
                values.iter().map(|value| (below.wrapping_add(value >> shift)).to_ne_bytes()).collect();
            for (flip, float) in [(flip, float), (0, 0)] {
                let with = Clamp { flip, float, below, top };
                let mut codes = vec![7; values.len()];
                clamp(&values, with, &mut codes);
                for (value, small) in values.iter().zip(codes) {
                    let value = u64::from_ne_bytes(*value);
                    let code = if value >> 63 == 1 { value ^ float } else { value } ^ flip;
                    let expected = if code < below { 0 } else { (code - below).min(top.into()) };
                    prop_assert_eq!(u64::from(small), expected);
                }
            }
        }

        #[test]
        fn numbers_are_packed_behind_what_is_there(
            values in prop::collection::vec(any::<[u8; 8]>(), 0..200),
            bits in prop::collection::vec(any::<u8>(), 40),
            constants: [u64; 5],
            before: u64,
            dropped in 0u32..64,
            width in 0u32..=64,
            place in prop::option::of(8u32..64),
            start in 0usize..70,
            nullable: bool,
        ) {
            let [flip, float, least, front, null] = constants;
            let constants = Pack { flip, float, least, dropped, width, place, front, null };
            let valid = nullable.then_some(Bits { bytes: &bits, first: start });
            let mut words = vec![before; values.len()];
            pack(&values, valid, constants, &mut words);
            for (at, (value, word)) in values.iter().zip(words).enumerate() {
                let value = u64::from_ne_bytes(*value);
                let code = if value >> 63 == 1 { value ^ float } else { value } ^ flip;
                let is_valid = valid.is_none_or(|valid| valid.get(at));
                let own = if is_valid { front | code.wrapping_sub(least) >> dropped } else { null };
                let own = before.checked_shl(width).unwrap_or(0) | own;
                let place = place.map_or((own, 0), |bits| (own << bits, at as u64));
                prop_assert_eq!(word, place.0 | place.1);
            }
        }
    }
}
