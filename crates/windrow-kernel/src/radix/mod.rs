//! Sorting of unique words: key bits above a row index.
//!
//! ```text
//! 1. runs     few, ascending or descending: a merge sort that finds runs
//! 2. split    more words than a cache holds: by the top bits, into parts of about 4,096
//! 3. radix    least significant digit first, over the varying top bits that distinguish most
//!             words; both digits counted in one sweep
//! 4. groups   equal in those bits: by insertion, if few words have to move far; otherwise
//!             small groups by comparison, large groups by 2. and 3. over the remaining bits
//! ```
//!
//! The words carry a row index in their low bits, so equal keys end up in the order of their rows:
//! the sort is stable without a stable algorithm.

mod digits;
mod parts;

use self::digits::{Counts, DIGIT, Digits};
use self::parts::sort_parts;
use crate::prefetch::Ahead;

/// Most words sorted without a split: with their scratch they take half of a second-level cache.
const NEAR: usize = 1 << 15;
/// Most words of a group sorted by insertion without a call: when 341 records of 12 columns, 40 %
/// of them equal, were sealed, such calls took a tenth of all instructions.
const TINY: usize = 12;
/// Below this many words a comparison sort wins over clearing the counters.
const SMALL: usize = 512;
/// Words searched for runs at once.
const SAMPLE: usize = 128;
/// Most runs that are merged: each level of their merge takes as long as a radix pass. For sixteen
/// runs of 8,192 words in all, the merge takes three times as long as the passes.
const FEW_RUNS: usize = 4;

/// Sorts `words`. They differ in the bits from `low` to `high` or below `low`, and the bits below
/// `low` ascend with a word's position. Overwrites `scratch`. Prefetches memory `ahead` on the way.
pub fn sort(
    words: &mut Vec<u64>,
    scratch: &mut Vec<u64>,
    (low, high): (u32, u32),
    ahead: &mut Ahead<'_>,
) {
    let (mut ascents, mut descents) = (0, 0);
    let mut are_many = |first: usize| {
        let some = &words[first..words.len().min(first + SAMPLE + 1)];
        let falls = some.windows(2).filter(|pair| pair[0] > pair[1]).count();
        (ascents, descents) = (ascents + some.len() - 1 - falls, descents + falls);
        ascents >= FEW_RUNS && descents >= FEW_RUNS
    };
    if !(0..words.len()).step_by(SAMPLE).any(&mut are_many) {
        if descents == 0 {
            return;
        }
        if descents + 1 == words.len() {
            words.reverse();
            return;
        }
        // The standard library's stable sort detects ascending and descending runs.
        words.sort();
        return;
    }
    // The old contents are overwritten.
    scratch.resize(words.len(), 0);
    if sort_spread(words, scratch, low, high, ahead) {
        std::mem::swap(words, scratch);
    }
}

/// Sorts as [`sort`] does, without a search for runs; `scratch` is as long as `words`. Returns true
/// if the sorted words are in `scratch`. May prefetch memory `ahead` on the way.
#[must_use]
fn sort_spread(
    words: &mut [u64],
    scratch: &mut [u64],
    low: u32,
    high: u32,
    ahead: &mut Ahead<'_>,
) -> bool {
    if words.len() <= SMALL || high <= low {
        words.sort_unstable();
        return false;
    }
    // With skewed keys, the top bits of most groups agree.
    let first: u64 = words[0];
    let differ = words.iter().fold(0, |bits, &word| bits | (word ^ first));
    let high = high.min(u64::BITS - differ.leading_zeros());
    if high <= low {
        words.sort_unstable();
        return false;
    }
    if words.len() > NEAR && high - low > DIGIT {
        sort_parts(words, scratch, low, high);
        return true;
    }
    let digits = Digits::of(words.len(), low, high);
    let moved = if digits.many == 1 {
        let mut counts = Counts::<1>::new();
        counts.add(digits, words);
        counts.spread(digits, words, scratch, ahead)
    } else {
        let mut counts = Counts::<2>::new();
        counts.add(digits, words);
        counts.spread(digits, words, scratch, ahead)
    };
    let (words, scratch) = if moved { (scratch, words) } else { (words, scratch) };
    // Most words are near their place.
    if digits.from > low && !insert_each(words, words.len()) {
        sort_groups(words, scratch, low, digits.from);
    }
    moved
}

/// Sorts words by insertion until more than `moves` moves were needed; the last word may exceed the
/// limit. Returns false if the limit ended the sort: some words are then nearer to their place.
#[inline(always)]
fn insert_each(words: &mut [u64], mut moves: usize) -> bool {
    for at in 1..words.len() {
        let word = words[at];
        if words[at - 1] <= word {
            continue;
        }
        let mut to = at;
        while to > 0 && words[to - 1] > word {
            words[to] = words[to - 1];
            to -= 1;
        }
        words[to] = word;
        match moves.checked_sub(at - to) {
            Some(left) => moves = left,
            None => return false,
        }
    }
    true
}

/// Sorts groups of words that agree in the bits from `from` on.
fn sort_groups(words: &mut [u64], scratch: &mut [u64], low: u32, from: u32) {
    let mut start = 0;
    while start + 1 < words.len() {
        let group = words[start] >> from;
        let mut end = start + 1;
        while end < words.len() && words[end] >> from == group {
            end += 1;
        }
        match end - start {
            1..=TINY => _ = insert_each(&mut words[start..end], usize::MAX),
            count if count <= SMALL => words[start..end].sort_unstable(),
            _ => {
                let (group, other) = (&mut words[start..end], &mut scratch[start..end]);
                if sort_spread(group, other, low, from, &mut Ahead::default()) {
                    group.copy_from_slice(other);
                }
            }
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorts_like_the_standard_library(
            mut keys in prop::collection::vec(0u64..1 << 44, 0..3000),
            shift in 0u32..44,
            shape in 0usize..5,
        ) {
            match shape {
                0 => keys.sort_unstable(),
                1 => keys.sort_unstable_by(|a, b| b.cmp(a)),
                2 => {
                    keys.sort_unstable();
                    let by = shift as usize % keys.len().max(1);
                    keys.rotate_left(by);
                }
                3 => keys.iter_mut().step_by(7).for_each(|key| *key >>= 40),
                _ => {}
            }
            let mut words: Vec<u64> =
                keys.iter().zip(0u64..).map(|(key, at)| key >> shift << 12 | at).collect();
            let mut expected = words.clone();
            expected.sort_unstable();
            let high = 64 - words.iter().fold(0, |a, b| a | b).leading_zeros();
            sort(&mut words, &mut Vec::new(), (12, high), &mut Ahead::default());
            prop_assert_eq!(words, expected);
        }
    }

    #[test]
    fn a_few_words_in_every_order() {
        for (count, code) in
            (0..8).flat_map(|count| (0..3u64.pow(count)).map(move |code| (count, code)))
        {
            let word = |at| ((code / 3u64.pow(at)) % 3) << 12 | u64::from(at);
            check(&(0..count).map(word).collect::<Vec<u64>>(), 12, 14, "few");
        }
    }

    #[test]
    fn counts_around_every_threshold() {
        let around = [TINY, SAMPLE, SMALL, 2 * SMALL, 1 << DIGIT, NEAR].into_iter();
        for count in around.flat_map(|count| [count - 1, count, count + 1, count + TINY]) {
            let hash = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let keys: [(&str, &dyn Fn(u64) -> u64); 10] = [
                ("one key", &|_| 5),
                ("up", &|at| at),
                ("down", &|at| count as u64 - at),
                ("in turns", &|at| at % 2),
                ("runs", &|at| at % (count as u64 / 3 + 1)),
                ("groups", &|at| hash(at / 300)),
                ("few keys", &|at| hash(at) % 5),
                ("any", &hash),
                ("low bits", &|at| hash(at) % 64),
                ("high bits", &|at| hash(at) >> 20 << 40),
            ];
            for (name, key) in keys {
                let word = |at| (key(at) & 0xfff_ffff_ffff) << 20 | at;
                let words: Vec<u64> = (0..count as u64).map(word).collect();
                check(&words, 20, 64, name);
            }
        }
    }

    /// Checks that words are sorted.
    fn check(words: &[u64], low: u32, high: u32, name: &str) {
        let (mut sorted, mut expected) = (words.to_vec(), words.to_vec());
        expected.sort_unstable();
        sort(&mut sorted, &mut Vec::new(), (low, high), &mut Ahead::default());
        assert!(sorted == expected, "{} words, {name}", words.len());
    }

    #[test]
    fn many_words_are_split() {
        let mut state = 1u64;
        for skew in [0, 30, 44] {
            let words: Vec<u64> = (0..3 * NEAR as u64)
                .map(|at| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e);
                    // A tenth of the keys vary in all bits, the others in fewer.
                    let key = if state >> 60 == 0 { state >> 20 } else { state >> 20 >> skew };
                    key << 20 | at
                })
                .collect();
            check(&words, 20, 64, "skewed");
            // The first words do not show how many bits differ.
            let mut late = words;
            late[..5000].iter_mut().for_each(|word| *word = *word >> 30 << 20 | *word & 0xf_ffff);
            check(&late, 20, 64, "skewed late");
        }
        let ascending: Vec<u64> = (0..2 * NEAR as u64).map(|at| ((at / 3) << 20) | at).collect();
        check(&ascending, 20, 64, "ascending");
    }
}
