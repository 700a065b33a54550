//! Words of one group of rows: packed, sorted, and read as a permutation.
//!
//! ```text
//! word     | key bits          51 | index 13 |       what fits beside the index
//! ```
//!
//! Invariant: between two calls of [`Words::sort`], the words are the sorted words of the last
//! plan.

use std::ops::Range;

use super::key::Key;
use super::plan::Plan;
use super::rows::Rows;
use windrow_kernel::places::{groups, places};
use windrow_kernel::prefetch::Ahead;
use windrow_kernel::radix;

/// Reused memory.
#[derive(Debug, Default)]
pub(super) struct Words {
    words: Vec<u64>,
    /// The second buffer of the sort, as many words.
    other: Vec<u64>,
    /// Bit for each word: set if the word agrees with the next one in all sorted bits.
    same: Vec<u64>,
}

impl Words {
    /// Returns the permutation of `rows` by the bits of `plan`, as positions within the group.
    pub(super) fn sort<R: Rows>(&mut self, plan: &Plan, keys: &[Key], rows: &R) -> Vec<u32> {
        let Self { words, other, same } = self;
        let low = plan.index_bits;
        // Old values are overwritten.
        words.resize(rows.len(), 0);
        plan.pack(keys, rows, words);
        radix::sort(words, other, (low, low + plan.bits), &mut Ahead::default());
        places(words, low, same)
    }

    /// Returns the groups of words with equal key bits within `open`, as alternating starts and
    /// ends.
    pub(super) fn groups(&self, open: Range<usize>) -> Vec<u32> {
        groups(&self.same, open)
    }

    /// Counts the words whose bits are below `code`. `plan` is the last sorted plan and has a
    /// window.
    pub(super) fn below(&self, plan: &Plan, code: u64) -> u32 {
        self.words.partition_point(|&word| word >> plan.index_bits < code) as u32
    }
}
