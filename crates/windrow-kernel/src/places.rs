//! Turns sorted words into a permutation and into bits for equal neighbours.
//!
//! ```text
//! words    pear 0 | pear 5 | plum 1 | quin 2 | quin 3 | quin 7
//! places   0        5        1        2        3        7
//! same     1        0        0        1        1        0        a bit each: equal to the next?
//! ```

use std::ops::Range;

use crate::cpu::compiled_for;

/// Words whose bits make one number of `same`.
const BLOCK: usize = 64;

/// Returns the rows of sorted words, their lowest `shift` bits. `same` receives one bit a word, 64
/// bits a number, set if the word equals the next one above those bits.
///
/// # Panics
/// If `shift` is above 32.
pub fn places(words: &[u64], shift: u32, same: &mut Vec<u64>) -> Vec<u32> {
    assert!(shift <= 32, "places of 32 bits");
    same.clear();
    same.reserve(words.len().div_ceil(BLOCK));
    let mut places = Vec::with_capacity(words.len());
    add(words, shift, &mut places, same);
    places
}

compiled_for! {
    ["avx512f" "avx512dq" "avx512vl"]
    fn add(words: &[u64], shift: u32, places: &mut Vec<u32>, same: &mut Vec<u64>) = add_each
}

#[inline(always)]
fn add_each(words: &[u64], shift: u32, places: &mut Vec<u32>, same: &mut Vec<u64>) {
    let mask = (1u64 << shift) - 1;
    places.extend(words.iter().map(|&word| (word & mask) as u32));
    let alike = |a: u64, b: u64| u64::from((a ^ b) >> shift == 0);
    for first in (0..words.len()).step_by(BLOCK) {
        same.push(match words[first..].first_chunk::<{ BLOCK + 1 }>() {
            // A constant length lets the compiler vectorise.
            Some(block) => {
                (0..BLOCK).fold(0, |bits, bit| bits | alike(block[bit], block[bit + 1]) << bit)
            }
            None => {
                let pairs = words[first..].windows(2).enumerate();
                pairs.fold(0, |bits, (bit, pair)| bits | alike(pair[0], pair[1]) << bit)
            }
        });
    }
}

/// Returns where groups of equal neighbours, of two words or more, begin and end, alternately,
/// among the words of `range`.
pub fn groups(same: &[u64], range: Range<usize>) -> Vec<u32> {
    let mut ends = Vec::new();
    // The bit of the last word compares it with a word outside the range.
    let (start, end) = (range.start, range.end.saturating_sub(1));
    let (mut inside, mut last) = (0, 0);
    let blocks = same.iter().enumerate().take(end.div_ceil(BLOCK)).skip(start / BLOCK);
    for (block, &bits) in blocks {
        let (from, to) = (start.saturating_sub(block * BLOCK), end - block * BLOCK);
        let own = u64::MAX << from & if to < BLOCK { (1 << to) - 1 } else { u64::MAX };
        let bits = bits & own;
        // Set where a bit differs from the one before it.
        let mut turns = bits ^ (bits << 1 | last);
        last = bits >> (BLOCK - 1);
        while turns != 0 {
            // A group ends one word after its last set bit.
            ends.push((block * BLOCK) as u32 + turns.trailing_zeros() + inside);
            inside ^= 1;
            turns &= turns - 1;
        }
    }
    if inside == 1 {
        ends.push(range.end as u32);
    }
    ends
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_and_groups_of_sorted_words(
            mut keys in prop::collection::vec(0u64..100, 0..400),
            spread in 0u32..7,
            shift in 10u32..24,
            cut in (0usize..400, 0usize..400),
        ) {
            keys.iter_mut().for_each(|key| *key >>= spread);
            keys.sort_unstable();
            let word = |(key, at): (&u64, u64)| (key << shift) | (at * 7 % (1 << shift));
            let words: Vec<u64> = keys.iter().zip(0..).map(word).collect();
            let mut same = vec![5];
            let found = places(&words, shift, &mut same);
            let alike: Vec<bool> = keys.windows(2).map(|pair| pair[0] == pair[1]).collect();
            prop_assert_eq!(same.len(), words.len().div_ceil(BLOCK));
            for bit in 0..same.len() * BLOCK {
                let is_set = same[bit / BLOCK] >> (bit % BLOCK) & 1 == 1;
                prop_assert_eq!(is_set, alike.get(bit).is_some_and(|alike| *alike));
            }
            let expected: Vec<u32> = (0..keys.len() as u32).map(|at| at * 7 % (1 << shift)).collect();
            prop_assert_eq!(found, expected);
            let end = cut.0.min(keys.len());
            let start = cut.1.min(end);
            let (mut expected, mut at) = (vec![], start as u32);
            for group in keys[start..end].chunk_by(|a, b| a == b) {
                if group.len() > 1 {
                    expected.extend([at, at + group.len() as u32]);
                }
                at += group.len() as u32;
            }
            prop_assert_eq!(groups(&same, start..end), expected);
        }
    }
}
