//! Sorting of words that are unique: key bits above an index.
//!
//! ```text
//! 1. runs     none or few descents, or nearly all: a merge sort that finds runs
//! 2. radix    least significant digit first, over the top bits that vary: 22 of them for
//!             thousands of words, 33 for more; all digits counted in one sweep
//! 3. groups   that agree in those bits: by insertion, if few words have to move far; else
//!             small ones by comparison, large ones by 2. over the rest
//! ```

/// Bits of one digit: 2,048 counters of four bytes are a quarter of a first-level cache.
const DIGIT: u32 = 11;
const DIGITS: usize = 1 << DIGIT;
/// Below this many words a comparison sort wins over clearing the counters.
const SMALL: usize = 512;
/// Words that are looked at before all of them are.
const SAMPLE: usize = 128;
/// Words a run has on average where merging runs wins over the radix passes.
const LONG_RUN: usize = 64;

/// Sorts `words`, which differ in the bits from `low` to `high` or below `low`, where they ascend
/// with their place. `scratch` is overwritten.
pub(crate) fn sort(words: &mut Vec<u64>, scratch: &mut Vec<u64>, low: u32, high: u32) {
    let count = |words: &[u64]| words.windows(2).filter(|pair| pair[0] > pair[1]).count();
    if words.len() > SMALL {
        // Enough turns at the beginning, in both directions: no few runs.
        let start = count(&words[..SAMPLE]);
        if start > SAMPLE / 4 && SAMPLE - start > SAMPLE / 4 {
            return sort_spread(words, scratch, low, high);
        }
    }
    let descents = count(words);
    if descents == 0 {
        return;
    }
    if descents + 1 == words.len() {
        words.reverse();
        return;
    }
    let rare = words.len() / LONG_RUN;
    if descents <= rare || words.len() - descents <= rare {
        // The standard library's stable sort is built on runs, up or down.
        words.sort();
        return;
    }
    sort_spread(words, scratch, low, high);
}

fn sort_spread(words: &mut Vec<u64>, scratch: &mut Vec<u64>, low: u32, high: u32) {
    if words.len() <= SMALL || high <= low {
        words.sort_unstable();
        return;
    }
    // Skewed keys leave the top bits of most groups alike.
    let first = words[0];
    let differ = words.iter().fold(0, |bits, word| bits | (word ^ first));
    let high = high.min(u64::BITS - differ.leading_zeros());
    if high <= low {
        words.sort_unstable();
        return;
    }
    let bits = high - low;
    let digits = if words.len() <= 1 << 17 { 2 } else { 3 }.min(bits.div_ceil(DIGIT));
    // Digits of equal width: no pass is for a bit or two.
    let width = bits.div_ceil(digits).min(DIGIT);
    let from = high.saturating_sub(digits * width).max(low);
    // Whatever is in it is overwritten.
    scratch.resize(words.len(), 0);
    match digits {
        1 => passes::<1>(words, scratch, from, width),
        2 => passes::<2>(words, scratch, from, width),
        _ => passes::<3>(words, scratch, from, width),
    }
    if from > low && !sort_neighbours(words) {
        sort_groups(words, scratch, low, from);
    }
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

/// `N` stable passes over digits of `width` bits, the lowest at `from`.
fn passes<const N: usize>(words: &mut Vec<u64>, scratch: &mut Vec<u64>, from: u32, width: u32) {
    let mask = (1usize << width) - 1;
    let mut counts = [[0u32; DIGITS]; N];
    for word in &*words {
        for (digit, counts) in counts.iter_mut().enumerate() {
            counts[(word >> (from + digit as u32 * width)) as usize & mask & (DIGITS - 1)] += 1;
        }
    }
    for (digit, ends) in counts.iter_mut().enumerate() {
        let shift = from + digit as u32 * width;
        let same = (words[0] >> shift) as usize & mask;
        if ends[same] as usize == words.len() {
            continue;
        }
        let mut start = 0;
        for end in &mut ends[..] {
            start += std::mem::replace(end, start);
        }
        for &word in &*words {
            let at = &mut ends[(word >> shift) as usize & mask & (DIGITS - 1)];
            scratch[*at as usize] = word;
            *at += 1;
        }
        std::mem::swap(words, scratch);
    }
}

/// Sorts groups of words that agree in the bits from `from` on.
fn sort_groups(words: &mut [u64], scratch: &mut Vec<u64>, low: u32, from: u32) {
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
                let mut large = words[start..end].to_vec();
                sort(&mut large, scratch, low, from);
                words[start..end].copy_from_slice(&large);
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
}
