//! Numbers as the words that a sort moves: what tells them apart, above their place. And as small codes,
//! if few of them are worth telling apart.
//!
//! ```text
//! word = | bits of other columns | bit of a value or null | (code - least) without its lowest bits | place |
//! small code = code - below: 0 if that is less, top if it is more
//! ```

use super::lanes::Bits;

/// How the numbers of a column become words. A code is `v ^ (float if v is negative) ^ flip`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pack {
    pub(crate) flip: u64,
    pub(crate) float: u64,
    pub(crate) least: u64,
    /// Bits that are left out of a code, below 64.
    pub(crate) dropped: u32,
    /// Bits that what is in a word moves up by; 64 if nothing of it stays.
    pub(crate) width: u32,
    /// Bits of a place, below 64; nothing if that comes later.
    pub(crate) place: Option<u32>,
    /// The place of the first word.
    pub(crate) first: usize,
    /// The bit in front of a value, if there is one, and all that stands for a null.
    pub(crate) front: u64,
    pub(crate) null: u64,
}

impl Pack {
    /// What a word moves up by for its place, and which bits of that are written.
    pub(super) fn end(self) -> (u32, u64) {
        self.place.map_or((0, 0), |shift| (shift, u64::MAX))
    }
}

/// Adds each number to its word; `valid` is nothing if none is null.
///
/// # Panics
/// If there are not as many words as values, or fewer bits.
pub(crate) fn pack(values: &[[u8; 8]], valid: Option<Bits<'_>>, pack: Pack, words: &mut [u64]) {
    assert_eq!(values.len(), words.len(), "a word for each value");
    assert!(valid.is_none_or(|valid| valid.holds(values.len())), "a bit for each value");
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected; values, words and bits were checked above.
        done = unsafe { super::avx512::pack::pack(values, valid, pack, words) };
    }
    pack_each(values, valid, pack, done, words);
}

/// The portable twin, and the last few: those from `from` on, a multiple of 64 or all of them.
fn pack_each(
    values: &[[u8; 8]],
    valid: Option<Bits<'_>>,
    pack: Pack,
    from: usize,
    words: &mut [u64],
) {
    let (shift, places) = pack.end();
    for (at, (value, word)) in values.iter().zip(words).enumerate().skip(from) {
        let value = u64::from_ne_bytes(*value);
        let negative = (value as i64 >> 63) as u64;
        let code = value ^ (negative & pack.float) ^ pack.flip;
        let own = pack.front | code.wrapping_sub(pack.least) >> pack.dropped;
        let is_valid = valid.is_none_or(|valid| valid.get(at));
        let own = if is_valid { own } else { pack.null };
        let own = word.checked_shl(pack.width).unwrap_or(0) | own;
        *word = own << shift | (pack.first + at) as u64 & places;
    }
}

/// Writes words of half the width: without the lowest `shift` of the bits above the place, which has `low` bits.
///
/// # Panics
/// If there are not as many of both; if either is above 32.
pub(crate) fn narrow(words: &[u64], shift: u32, low: u32, narrow: &mut [u32]) {
    assert_eq!(words.len(), narrow.len(), "a narrow word for each");
    assert!(shift <= 32 && low <= 32, "words of 32 bits");
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected; words were counted above.
        done = unsafe { super::avx512::pack::narrow(words, shift, low, narrow) };
    }
    narrow_each(&words[done..], shift, low, &mut narrow[done..]);
}

/// The portable twin, and the last few.
fn narrow_each(words: &[u64], shift: u32, low: u32, narrow: &mut [u32]) {
    let mask = (1 << low) - 1;
    for (word, narrow) in words.iter().zip(narrow) {
        *narrow = (word >> shift & !mask | word & mask) as u32;
    }
}

/// How the numbers of a column become small codes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clamp {
    pub(crate) flip: u64,
    pub(crate) float: u64,
    pub(crate) below: u64,
    pub(crate) top: u16,
}

/// Writes the small code of each number.
///
/// # Panics
/// If there are not as many codes as values.
pub(crate) fn clamp(values: &[[u8; 8]], clamp: Clamp, codes: &mut [u16]) {
    assert_eq!(values.len(), codes.len(), "a code for each value");
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected; values and codes were checked above.
        done = unsafe { super::avx512::pack::clamp(values, clamp, codes) };
    }
    clamp_each(&values[done..], clamp, &mut codes[done..]);
}

/// The portable twin, and the last few.
fn clamp_each(values: &[[u8; 8]], clamp: Clamp, codes: &mut [u16]) {
    for (value, small) in values.iter().zip(codes) {
        let value = u64::from_ne_bytes(*value);
        let negative = (value as i64 >> 63) as u64;
        let code = value ^ (negative & clamp.float) ^ clamp.flip;
        *small = code.saturating_sub(clamp.below).min(clamp.top.into()) as u16;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_narrow_the_same(
            words in prop::collection::vec(any::<u64>(), 0..100),
            shift in 0u32..=32,
            low in 0u32..=32,
        ) {
            let (mut found, mut twin) = (vec![7; words.len()], vec![9; words.len()]);
            narrow(&words, shift, low, &mut found);
            narrow_each(&words, shift, low, &mut twin);
            prop_assert_eq!(found, twin);
        }

        #[test]
        fn both_clamp_the_same(
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
                let (mut codes, mut twin) = (vec![7; values.len()], vec![9; values.len()]);
                clamp(&values, with, &mut codes);
                clamp_each(&values, with, &mut twin);
                prop_assert_eq!(codes, twin);
            }
        }

        #[test]
        fn both_pack_the_same(
            values in prop::collection::vec(any::<[u8; 8]>(), 0..200),
            bits in prop::collection::vec(any::<u8>(), 40),
            constants: [u64; 5],
            before: u64,
            dropped in 0u32..64,
            width in 0u32..=64,
            place in prop::option::of(8u32..64),
            start in 0usize..70,
            first in 0usize..1 << 20,
            nullable: bool,
        ) {
            let [flip, float, least, front, null] = constants;
            let constants = Pack { flip, float, least, dropped, width, place, first, front, null };
            let valid = nullable.then_some(Bits { bytes: &bits, first: start });
            let (mut words, mut twin) = (vec![before; values.len()], vec![before; values.len()]);
            pack(&values, valid, constants, &mut words);
            pack_each(&values, valid, constants, 0, &mut twin);
            prop_assert_eq!(words, twin);
        }
    }
}
