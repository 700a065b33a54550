//! Splits more words than a cache holds by their top bits, into parts that fit into a cache.
//!
//! ```text
//! words    read twice: to be counted, then moved
//! parts    | 00.. | 01.. | 10.. | 11.. |     sorted one after another
//! ```

use super::sort_spread;
use crate::prefetch::{Ahead, LINE, prefetch_written};

/// Most bits to split by: as many streams as can be written without TLB misses.
const SPLIT: u32 = 8;
const PARTS: usize = 1 << SPLIT;
/// Logarithm of the words of a part: with their scratch they stay in the caches of a core.
const PART: u32 = 12;

/// Sorts `words`, which differ between the bits `low` and `high`, into `target`; overwrites
/// `words`. The words of a part are greater than the words of earlier parts.
///
/// # Panics
/// If there are no words or more than 32 bits can number, or if `target` is shorter.
pub(super) fn sort_parts(words: &mut [u64], target: &mut [u64], low: u32, high: u32) {
    assert!(u32::try_from(words.len()).is_ok(), "as many words as 32 bits can number");
    let width = words.len().ilog2().saturating_sub(PART).min(SPLIT).min(high - low);
    let from = high - width;
    let part_of = |word: u64| (word >> from) as usize & ((1 << width) - 1) & (PARTS - 1);
    let mut ends = [0u32; PARTS];
    words.iter().for_each(|&word| ends[part_of(word)] += 1);
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    for &word in &*words {
        let end = &mut ends[part_of(word)];
        target[*end as usize] = word;
        let next = target.as_ptr().wrapping_add(*end as usize).cast::<u8>().wrapping_add(LINE);
        prefetch_written(next);
        *end += 1;
    }
    let mut start = 0;
    for end in ends.map(|end| end as usize) {
        let (sorted, behind) = target.split_at_mut(end);
        let next = [bytes(&behind[..behind.len().min(end - start)])];
        let (part, other) = (&mut sorted[start..], &mut words[start..end]);
        if !part.is_empty() && sort_spread(part, other, low, from, &mut Ahead::new(&next)) {
            part.copy_from_slice(other);
        }
        start = end;
    }
}

#[inline]
fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: every byte of a number is initialised and valid as a byte.
    unsafe { words.align_to().1 }
}
