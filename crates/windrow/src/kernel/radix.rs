//! Sorting of words that are unique: key bits above an index.
//!
//! ```text
//! 1. runs     a few at the most, up or down: a merge sort that finds runs
//! 2. split    more words than a cache holds: by their top bits, into parts of about 4,096
//! 3. radix    least significant digit first, over as many of the top bits that vary as tell most words
//!             apart; both digits counted in one sweep
//! 4. groups   that agree in those bits: by insertion, if few words have to move far; else
//!             small ones by comparison, large ones by 2. and 3. over the rest
//! ```
//!
//! The words carry a row index in their low bits, so that the order of equal keys is that of the rows: the
//! sort is stable without having to be.

/// Bits of one digit: 2,048 counters of four bytes are a quarter of a first-level cache.
const DIGIT: u32 = 11;
const DIGITS: usize = 1 << DIGIT;
/// Bits of what words are split by: as many streams as are written without missing the TLB.
const SPLIT: u32 = 8;
/// Words of a part, as the logarithm: with their scratch they stay in the caches of a core.
const PART: u32 = 12;
/// Words that are not split: with their scratch half of a second-level cache.
const NEAR: usize = 1 << 15;
/// Bits above the logarithm of the number of words that tell most of them apart, where half of the bits are
/// always the same: text.
const SPARE: u32 = 9;
/// Below this many words a comparison sort wins over clearing the counters.
const SMALL: usize = 512;
/// Words that are looked at before all of them are.
const SAMPLE: usize = 128;
/// Runs that are merged: each level of their merge takes as long as a radix pass. Of sixteen runs of 8,192
/// words in all the merge takes three times as long as the passes.
const FEW_RUNS: usize = 4;

/// Sorts `words`, which differ in the bits from `low` to `high` or below `low`, where they ascend
/// with their place. `scratch` is overwritten.
pub(crate) fn sort(words: &mut Vec<u64>, scratch: &mut Vec<u64>, low: u32, high: u32) {
    let count = |words: &[u64]| words.windows(2).filter(|pair| pair[0] > pair[1]).count();
    let mut is_spread = false;
    if words.len() > SMALL {
        // Enough turns at the beginning, in both directions: no few runs.
        let start = count(&words[..SAMPLE]);
        is_spread = start > SAMPLE / 4 && SAMPLE - start > SAMPLE / 4;
    }
    if !is_spread {
        let descents = count(words);
        if descents == 0 {
            return;
        }
        if descents + 1 == words.len() {
            words.reverse();
            return;
        }
        if descents < FEW_RUNS || words.len() - descents <= FEW_RUNS {
            // The standard library's stable sort is built on runs, up or down.
            words.sort();
            return;
        }
    }
    // Whatever is in it is overwritten.
    scratch.resize(words.len(), 0);
    if sort_spread(words, scratch, low, high) {
        std::mem::swap(words, scratch);
    }
}

/// As [`sort`], without a look for runs; `scratch` is as long as the words. True if the sorted words are in
/// the scratch.
#[must_use]
fn sort_spread(words: &mut [u64], scratch: &mut [u64], low: u32, high: u32) -> bool {
    if words.len() <= SMALL || high <= low {
        words.sort_unstable();
        return false;
    }
    // Skewed keys leave the top bits of most groups alike.
    let first = words[0];
    let differ = words.iter().fold(0, |bits, word| bits | (word ^ first));
    let high = high.min(u64::BITS - differ.leading_zeros());
    if high <= low {
        words.sort_unstable();
        return false;
    }
    if words.len() > NEAR && high - low > DIGIT {
        return split(words, scratch, low, high);
    }
    let bits = (high - low).min(words.len().ilog2() + SPARE).min(2 * DIGIT);
    let digits = bits.div_ceil(DIGIT);
    // Digits of equal width: no pass is for a bit or two.
    let width = bits.div_ceil(digits);
    let from = high.saturating_sub(digits * width).max(low);
    let moved = match digits {
        1 => passes::<1>(words, scratch, from, width),
        _ => passes::<2>(words, scratch, from, width),
    };
    let (words, scratch) = if moved { (scratch, words) } else { (words, scratch) };
    if from > low && !sort_neighbours(words) {
        sort_groups(words, scratch, low, from);
    }
    moved
}

/// Sorts words by their top bits, and then each part by the rest. True if they are in the scratch.
fn split(words: &mut [u64], scratch: &mut [u64], low: u32, high: u32) -> bool {
    let width = (words.len().ilog2() - PART).min(SPLIT).min(high - low);
    let from = high - width;
    let mask = (1usize << width) - 1;
    let digit = |word: u64| (word >> from) as usize & mask & ((1 << SPLIT) - 1);
    let mut ends = [0usize; 1 << SPLIT];
    words.iter().for_each(|&word| ends[digit(word)] += 1);
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    for &word in &*words {
        let at = &mut ends[digit(word)];
        scratch[*at] = word;
        *at += 1;
    }
    let mut start = 0;
    for end in &ends[..=mask] {
        let (part, other) = (&mut scratch[start..*end], &mut words[start..*end]);
        if !sort_spread(part, other, low, from) {
            other.copy_from_slice(part);
        }
        start = *end;
    }
    false
}

/// Sorts words of which few are far from their place, by insertion. False if too many are: some are then
/// nearer to it.
fn sort_neighbours(words: &mut [u64]) -> bool {
    let mut moves = words.len();
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

/// `N` stable passes over digits of `width` bits, the lowest at `from`. True if the words are in the scratch.
///
/// Benefit of unchecked stores: 8 % of a sort of 8,192 numbers.
///
/// # Panics
/// If the scratch is shorter.
fn passes<const N: usize>(words: &mut [u64], scratch: &mut [u64], from: u32, width: u32) -> bool {
    assert!(scratch.len() >= words.len(), "scratch for all words");
    let mask = (1usize << width) - 1;
    let mut counts = [[0u32; DIGITS]; N];
    for word in &*words {
        for (digit, counts) in counts.iter_mut().enumerate() {
            counts[(word >> (from + digit as u32 * width)) as usize & mask & (DIGITS - 1)] += 1;
        }
    }
    let (mut source, mut target, mut is_home) = (words, scratch, true);
    for (digit, ends) in counts.iter_mut().enumerate() {
        let shift = from + digit as u32 * width;
        let same = (source[0] >> shift) as usize & mask;
        if ends[same] as usize == source.len() {
            continue;
        }
        let mut start = 0;
        for end in &mut ends[..=mask] {
            start += std::mem::replace(end, start);
        }
        for &word in &*source {
            let at = &mut ends[(word >> shift) as usize & mask & (DIGITS - 1)];
            // SAFETY: the counts were taken of these words, and `target` is as long as they are: each is below
            // the end of its digit, and the last end is their number.
            unsafe { *target.get_unchecked_mut(*at as usize) = word };
            *at += 1;
        }
        (source, target, is_home) = (target, source, !is_home);
    }
    !is_home
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
            1 => {}
            2 => {
                if words[start] > words[start + 1] {
                    words.swap(start, start + 1);
                }
            }
            count if count <= SMALL => words[start..end].sort_unstable(),
            _ => {
                let (group, other) = (&mut words[start..end], &mut scratch[start..end]);
                if sort_spread(group, other, low, from) {
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
            sort(&mut words, &mut Vec::new(), 12, high);
            prop_assert_eq!(words, expected);
        }
    }

    #[test]
    fn many_words_are_split() {
        let mut state = 1u64;
        for skew in [0, 30, 44] {
            let words: Vec<u64> = (0..3 * NEAR as u64)
                .map(|at| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e);
                    // A tenth of them over all bits, the others fewer.
                    let key = if state >> 60 == 0 { state >> 20 } else { state >> 20 >> skew };
                    key << 20 | at
                })
                .collect();
            let mut expected = words.clone();
            expected.sort_unstable();
            let mut sorted = words;
            sort(&mut sorted, &mut Vec::new(), 20, 64);
            assert!(sorted == expected, "skewed by {skew} bits");
        }
    }
}
