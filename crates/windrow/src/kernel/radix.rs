//! Sorting of packed words by their most significant bits: radix where keys are spread, comparison
//! where they are not.
//!
//! ```text
//! 1. in order already (words are unique, their low bits an index): done, one pass
//! 2. least-significant-digit radix over the top 11, 22 or 33 of the bits that vary
//! 3. groups that agree in those bits: sorted by comparison, small ones by insertion
//! ```
//!
//! The words carry a row index in their low bits, so that the order of equal prefixes is that of
//! the rows: the sort is stable without having to be.

/// Bits of one digit: 2,048 counters stay in the first-level cache beside the streams.
const DIGIT: u32 = 11;
/// Below this many words a comparison sort wins over clearing the counters.
const SMALL: usize = 256;

/// Sorts `words`, of which the lowest `low` bits and those from `high` on need not be looked at by
/// the radix passes. `scratch` is overwritten.
pub(crate) fn sort(words: &mut Vec<u64>, scratch: &mut Vec<u64>, low: u32, high: u32) {
    if words.is_sorted() {
        return;
    }
    if words.len() < SMALL || high <= low {
        words.sort_unstable();
        return;
    }
    let passes = if words.len() <= 1 << 17 { 2 } else { 3 };
    let passes = passes.min((high - low).div_ceil(DIGIT));
    let from = high.saturating_sub(passes * DIGIT).max(low);
    scratch.clear();
    scratch.resize(words.len(), 0);
    for pass in 0..passes {
        if scatter(words, scratch, from + pass * DIGIT) {
            std::mem::swap(words, scratch);
        }
    }
    if from > low {
        order_groups(words, from);
    }
}

/// One stable pass by the digit at `shift`; false if all words have the same one.
fn scatter(words: &[u64], out: &mut [u64], shift: u32) -> bool {
    const MASK: usize = (1 << DIGIT) - 1;
    let mut ends = [0u32; 1 << DIGIT];
    for word in words {
        ends[(word >> shift) as usize & MASK] += 1;
    }
    if ends[(words[0] >> shift) as usize & MASK] as usize == words.len() {
        return false;
    }
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    for &word in words {
        let at = &mut ends[(word >> shift) as usize & MASK];
        out[*at as usize] = word;
        *at += 1;
    }
    true
}

/// Orders the groups of words that agree in the bits from `from` on.
fn order_groups(words: &mut [u64], from: u32) {
    let mut start = 0;
    while start + 1 < words.len() {
        let group = words[start] >> from;
        let mut end = start + 1;
        while end < words.len() && words[end] >> from == group {
            end += 1;
        }
        if end - start > 1 {
            words[start..end].sort_unstable();
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
            keys in prop::collection::vec(0u64..1 << 40, 0..3000),
            shift in 0u32..40,
        ) {
            let mut words: Vec<u64> = keys.iter().zip(0u64..).map(|(k, i)| k >> shift << 12 | i).collect();
            let mut expected = words.clone();
            expected.sort_unstable();
            let high = 64 - words.iter().fold(0, |a, b| a | b).leading_zeros();
            sort(&mut words, &mut Vec::new(), 12, high);
            prop_assert_eq!(words, expected);
        }
    }
}
