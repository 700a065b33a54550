//! Words whose digits are counted while they are made.
//!
//! Invariant: between [`Tally::start`] and [`Tally::sort`] the counts are those of all words that were added.

use super::digits::{Counts, Digits};
use super::{FEW_RUNS, NEAR, sort, sort_rest};
use crate::kernel::prefetch::Ahead;

/// Below this many words a comparison sort wins over clearing the counters.
const FEW: usize = 96;

/// Words whose digits are counted while they are made, and that are sorted then.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    words: Vec<u64>,
    scratch: Vec<u64>,
    /// Words that are not counted yet.
    fresh: Vec<u64>,
    low: u32,
    high: u32,
    /// None if counting does not pay for so many words.
    digits: Option<Digits>,
    /// Not there before there are words to be counted: to clear them takes as long as to merge a hundred
    /// rows.
    counts: Option<Box<Counts<2>>>,
    /// Words that are less than the one before.
    descents: usize,
}

impl Tally {
    /// Starts again, for about `count` words as [`sort`] takes them, some of which differ in the bit below
    /// `high`.
    pub(crate) fn start(&mut self, count: usize, low: u32, high: u32) {
        self.words.clear();
        self.words.reserve(count);
        (self.low, self.high, self.descents) = (low, high, 0);
        let counted = (FEW..=NEAR).contains(&count) && high > low;
        self.digits = if counted { Digits::two_of(count, low, high) } else { None };
        if let Some(digits) = self.digits {
            let counts = self.counts.get_or_insert_with(|| Box::new(Counts::new()));
            counts.clear(digits);
        }
    }

    /// Adds the words, some hundreds, that `make` appends to what it is given; returns what it does.
    #[inline(always)]
    pub(crate) fn add<R>(&mut self, make: impl FnOnce(&mut Vec<u64>) -> R) -> R {
        self.fresh.clear();
        let made = make(&mut self.fresh);
        if let (Some(digits), Some(counts)) = (self.digits, &mut self.counts) {
            counts.add(digits, &self.fresh);
        }
        let mut last = self.words.last().copied().unwrap_or(0);
        for &word in &self.fresh {
            self.descents += usize::from(word < last);
            last = word;
        }
        self.words.extend_from_slice(&self.fresh);
        made
    }

    /// All words, sorted. Memory `ahead` is asked for on the way.
    pub(crate) fn sort(&mut self, ahead: &mut Ahead<'_>) -> &[u64] {
        let (words, scratch) = (&mut self.words, &mut self.scratch);
        let few = |turns: usize| turns < FEW_RUNS;
        match (self.digits, &mut self.counts) {
            _ if self.descents == 0 => {}
            (Some(digits), Some(counts))
                if !few(self.descents) && !few(words.len() - self.descents) =>
            {
                // Whatever is in it is overwritten.
                scratch.resize(words.len(), 0);
                if counts.spread(digits, words, scratch, ahead) {
                    std::mem::swap(words, scratch);
                }
                sort_rest(words, scratch, self.low, digits.from);
            }
            _ => sort(words, scratch, self.low, self.high),
        }
        words
    }
}
