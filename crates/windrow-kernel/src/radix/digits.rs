//! Radix digits of words: their choice, their counts, and a stable pass for each.
//!
//! ```text
//! word     | top bits: alike | digit 1 | digit 0 | the rest | index |
//!                                                ^ from
//! counts   both digits in one sweep; then a stable pass over digit 0 and one over digit 1
//! ```

use crate::prefetch::Ahead;

/// Bits of one digit: 2,048 counters of four bytes take a quarter of a first-level cache.
pub(super) const DIGIT: u32 = 11;
const DIGITS: usize = 1 << DIGIT;
/// Bits sorted by in addition to the logarithm of the number of words: together they distinguish
/// most words of text, where half of the bits are always the same.
const SPARE: u32 = 9;
/// Words moved between two prefetches of memory ahead.
const SOME: usize = 32;

/// The digits that words are sorted by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digits {
    /// Number of digits.
    pub(super) many: u32,
    /// The lowest bit.
    pub(super) from: u32,
    /// Bits of each digit.
    width: u32,
}

impl Digits {
    /// Chooses digits that distinguish most of `count` words, which differ between the bits `low`
    /// and `high`.
    pub(super) fn of(count: usize, low: u32, high: u32) -> Self {
        let bits = (high - low).min(count.ilog2() + SPARE).min(2 * DIGIT);
        let many = bits.div_ceil(DIGIT);
        // Equal widths avoid a pass over a bit or two.
        let width = bits.div_ceil(many);
        Self { many, from: high.saturating_sub(many * width).max(low), width }
    }

    /// Returns the value of digit number `at`.
    #[inline(always)]
    fn digit(self, word: u64, at: usize) -> usize {
        (word >> (self.from + at as u32 * self.width)) as usize & self.mask()
    }

    #[inline(always)]
    fn mask(self) -> usize {
        ((1 << self.width) - 1) & (DIGITS - 1)
    }
}

/// Occurrences of each value of each of `N` digits.
#[derive(Debug)]
pub(super) struct Counts<const N: usize>([[u32; DIGITS]; N]);

impl<const N: usize> Counts<N> {
    pub(super) fn new() -> Self {
        Self([[0; DIGITS]; N])
    }

    #[inline(always)]
    pub(super) fn add(&mut self, digits: Digits, words: &[u64]) {
        for &word in words {
            for (at, counts) in self.0.iter_mut().enumerate() {
                counts[digits.digit(word, at)] += 1;
            }
        }
    }

    /// Sorts the counted words by a stable pass over each digit, the lowest first. Returns true if
    /// the result is in `scratch`.
    ///
    /// Benefit of unchecked stores: 8 % of a sort of 8,192 numbers.
    ///
    /// # Panics
    /// If `scratch` is shorter than `words`, or if `words` are not as many as were counted.
    #[must_use]
    pub(super) fn spread(
        &mut self,
        digits: Digits,
        words: &mut [u64],
        scratch: &mut [u64],
        ahead: &mut Ahead<'_>,
    ) -> bool {
        let count = words.len();
        assert!(scratch.len() >= count, "scratch for all words");
        let (mut source, mut target, mut is_home) = (words, scratch, true);
        for (digit, ends) in self.0.iter_mut().enumerate() {
            if ends[digits.digit(source[0], digit)] as usize == count {
                continue;
            }
            let mut start = 0;
            for end in &mut ends[..=digits.mask()] {
                start += std::mem::replace(end, start);
            }
            assert_eq!(start as usize, count, "the words that were counted");
            let (shift, mask) = (digits.from + digit as u32 * digits.width, digits.mask());
            for some in source[..count].chunks(SOME) {
                for &word in some {
                    let at = &mut ends[(word >> shift) as usize & mask];
                    // SAFETY: the counted words are `words`, so the words of each value have places
                    // of their own below the number of words. `target` is at least as long.
                    unsafe { *target.get_unchecked_mut(*at as usize) = word };
                    *at += 1;
                }
                ahead.ask(some.len() / 2);
            }
            (source, target, is_home) = (target, source, !is_home);
        }
        !is_home
    }
}
