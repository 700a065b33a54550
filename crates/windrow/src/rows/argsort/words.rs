//! The words of one group of rows: packed, sorted, and read as places.
//!
//! ```text
//! wide     | key bits          51 | index 13 |       what fits beside the index
//! narrow             | bits 19 | index 13 |          a plan that makes do with 32 bits
//! ```
//!
//! Narrow words go through half as many cache lines: 8,192 numbers of 64 bits are sorted in 26 to 28 instead of 33
//! us, and those few that 19 bits leave together are told apart by their columns.
//!
//! Invariant: between two calls of [`Words::sort`] the words are those of the last plan, in order.

use super::key::Key;
use super::plan::{Plan, Rows};
use crate::kernel::places::{Vector, places};
use crate::kernel::radix;

/// Memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Words {
    wide: Pair<u64>,
    narrow: Pair<u32>,
    /// Which words agree with the next one in all bits of the keys.
    same: Vec<u64>,
}

/// Words, and as many to sort them with.
#[derive(Debug, Default)]
struct Pair<W> {
    words: Vec<W>,
    other: Vec<W>,
}

impl<W: Vector> Pair<W> {
    fn sort(&mut self, plan: &Plan, same: &mut Vec<u64>) -> Vec<u32> {
        let low = plan.index_bits();
        radix::sort(&mut self.words, &mut self.other, low, low + plan.bits());
        places(&self.words, low, same)
    }

    fn below(&self, plan: &Plan, code: u64) -> usize {
        self.words.partition_point(|&word| word.into() >> plan.index_bits() < code)
    }
}

impl Words {
    /// The order of `rows` by the bits of `plan`: places among them.
    pub(super) fn sort<R: Rows>(&mut self, plan: &Plan, keys: &[Key], rows: &R) -> Vec<u32> {
        let Self { wide, narrow, same } = self;
        plan.pack(keys, rows, &mut wide.words);
        if !plan.is_narrow() {
            return wide.sort(plan, same);
        }
        narrow.words.clear();
        narrow.words.extend(wide.words.iter().map(|&word| word as u32));
        narrow.sort(plan, same)
    }

    /// A bit for each word, 64 a number, that is set if it agrees with the next one.
    pub(super) fn same(&self) -> &[u64] {
        &self.same
    }

    /// Words whose bits of `plan`, the last that was sorted by, are below `code`.
    pub(super) fn below(&self, plan: &Plan, code: u64) -> u32 {
        let count = match plan.is_narrow() {
            true => self.narrow.below(plan, code),
            false => self.wide.below(plan, code),
        };
        count as u32
    }
}
