//! Splits more words than a cache holds by their top bits, into parts that fit into a cache.
//!
//! ```text
//! words    generated twice, a block at a time in the first-level cache: to be counted, then moved
//! parts    | 00.. | 01.. | 10.. | 11.. |     sorted one after another, with the same workspace:
//!           \_ sorted _/ \_ not yet __/      sorted parts can be read while they are in the cache
//! ```
//!
//! A word generated twice is written and read once less than a word that lies in memory before the
//! sort: sorting 2^20 numbers takes a fifth less time.
//!
//! Invariant: the words of a part are greater than the words of earlier parts.

use super::sort_spread;
use crate::prefetch::{Ahead, LINE, prefetch_written};

/// Most bits to split by: as many streams as can be written without TLB misses.
const SPLIT: u32 = 8;
const PARTS: usize = 1 << SPLIT;
/// Logarithm of the words of a part: with their scratch they stay in the caches of a core.
const PART: u32 = 12;
/// Words generated at once.
pub(super) const BLOCK: usize = 1024;

/// The ends of the parts.
#[derive(Debug)]
pub(super) struct Parts {
    ends: [u32; PARTS],
    /// The lowest bit in which all words of a part agree.
    from: u32,
}

/// A digit of `width` bits, the lowest of which is `from`.
#[derive(Clone, Copy)]
struct Digit {
    from: u32,
    width: u32,
}

impl Digit {
    #[inline(always)]
    fn of(self, word: u64) -> usize {
        (word >> self.from) as usize & ((1 << self.width) - 1) & (PARTS - 1)
    }
}

impl Parts {
    /// Writes as many generated words as fill `target`, sorted into parts; the words differ between
    /// the bits `low` and `high`. `make(first, block)` writes the words from number `first` on and
    /// must be deterministic: each block is generated at least twice.
    ///
    /// # Panics
    /// If `target` is empty or longer than 32 bits can number, or if words of a later generation
    /// exceed the bounds of `target`.
    pub(super) fn of(
        make: impl Fn(usize, &mut [u64]),
        target: &mut [u64],
        low: u32,
        high: u32,
    ) -> Self {
        let count = target.len();
        assert!(u32::try_from(count).is_ok(), "as many words as 32 bits can number");
        let mut block = [0; BLOCK];
        make(0, &mut block[..count.min(BLOCK)]);
        let first: u64 = block[0];
        let differ = |words: &[u64]| words.iter().fold(0, |bits, &word| bits | (word ^ first));
        let top = |bits: u64| high.min(u64::BITS - bits.leading_zeros()).max(low);
        // The first block usually shows which of the top bits differ.
        let mut bits = differ(&block[..count.min(BLOCK)]);
        let (digit, mut ends) = loop {
            let width = (count.ilog2().saturating_sub(PART)).min(SPLIT).min(top(bits) - low);
            let digit = Digit { from: top(bits) - width, width };
            let (mut counts, mut all) = ([0; PARTS], 0);
            for at in (0..count).step_by(BLOCK) {
                let words = &mut block[..BLOCK.min(count - at)];
                make(at, words);
                all |= differ(words);
                words.iter().for_each(|&word| counts[digit.of(word)] += 1);
            }
            if top(all) == top(bits) {
                break (digit, counts);
            }
            bits = all;
        };
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        for at in (0..count).step_by(BLOCK) {
            let words = &mut block[..BLOCK.min(count - at)];
            make(at, words);
            for &word in &*words {
                let end = &mut ends[digit.of(word)];
                target[*end as usize] = word;
                prefetch_written(
                    target.as_ptr().wrapping_add(*end as usize).cast::<u8>().wrapping_add(LINE),
                );
                *end += 1;
            }
        }
        Self { ends, from: digit.from }
    }

    /// Returns the number of words of the largest part.
    pub(super) fn largest(&self) -> usize {
        let lens = self.ends.windows(2).map(|ends| ends[1] - ends[0]);
        lens.fold(self.ends[0], u32::max) as usize
    }

    /// Sorts the words part by part and calls `done` with each sorted prefix. `scratch` has at
    /// least as many words as the largest part.
    pub(super) fn sort(
        &self,
        words: &mut [u64],
        scratch: &mut [u64],
        low: u32,
        mut done: impl FnMut(&[u64]),
    ) {
        let mut start = 0;
        for &end in &self.ends {
            let end = end as usize;
            if start == end {
                continue;
            }
            let (sorted, behind) = words.split_at_mut(end);
            let next = [bytes(&behind[..behind.len().min(end - start)])];
            let (part, other) = (&mut sorted[start..], &mut scratch[..end - start]);
            if sort_spread(part, other, low, self.from, &mut Ahead::new(&next)) {
                part.copy_from_slice(other);
            }
            done(sorted);
            start = end;
        }
    }
}

#[inline]
fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: every byte of a number is initialised and valid as a byte.
    unsafe { words.align_to().1 }
}
