//! Words of one group of rows: packed, sorted, and read as a permutation.
//!
//! ```text
//! wide     | key bits          51 | index 13 |       what fits beside the index
//! narrow   | bits 19 | index 13 |                    the first bits, if they distinguish most rows
//! ```
//!
//! Narrow words touch half as many cache lines: the passes over 8,192 narrow words take 16 instead
//! of 26 us. Wide words decide among the few rows with equal narrow words.
//!
//! Invariant: between two calls of [`Words::sort`], the words are the sorted words of the last
//! plan. The only exception are few rows of a plan without a window, sorted by narrow words.

use std::ops::Range;

use super::key::Key;
use super::plan::Plan;
use super::rows::Rows;
use windrow_kernel::places::{Places, groups};
use windrow_kernel::prefetch::Ahead;
use windrow_kernel::radix::{self, Word};
use windrow_kernel::rows::narrow as narrow_words;

/// Maximum number of rows whose narrow words have six bits besides the index.
const FEW: usize = 8192;
/// Words that are packed as wide and narrow words at once.
const BLOCK: usize = 1024;
/// Rows sampled before a sort of narrow words.
const SAMPLE: usize = 256;
/// Sampled words in a collision at which narrow words stop paying. Evenly spread words have no
/// equal bits, and about two hash collisions.
const ALIKE: usize = 8;
/// Logarithm of the number of hash marks for the sample.
const MARKS: u32 = 14;

/// Reused memory.
#[derive(Debug, Default)]
pub(super) struct Words {
    wide: Pair<u64>,
    narrow: Pair<u32>,
    /// Bit for each word: set if the word agrees with the next one in all sorted bits.
    same: Vec<u64>,
    /// Groups with equal bits in all keys, if narrow words were sorted and wide words decided among
    /// equal ones.
    settled: Option<Vec<u32>>,
}

/// Words, and the second buffer of their sort: as many words, or the words of a part.
#[derive(Debug, Default)]
struct Pair<W> {
    words: Vec<W>,
    other: Vec<W>,
}

impl<W: Word> Pair<W> {
    /// Returns the permutation of the rows of the stored words, which differ in bits `low` to
    /// `high`.
    fn sort(&mut self, (low, high): (u32, u32), same: &mut Vec<u64>) -> Vec<u32> {
        radix::sort(&mut self.words, &mut self.other, (low, high), &mut Ahead::default());
        Places::new(self.words.len(), low, same).finish(&self.words)
    }

    /// Returns the permutation of `count` rows like `sort`. `make` generates the words from a
    /// position on.
    fn sort_made(
        &mut self,
        make: impl Fn(usize, &mut [W]),
        count: usize,
        (low, high): (u32, u32),
        same: &mut Vec<u64>,
    ) -> Vec<u32> {
        let mut read = Places::new(count, low, same);
        let memory = (&mut self.words, &mut self.other);
        radix::sort_made(make, count, memory, (low, high), |words| read.read(words));
        read.finish(&self.words)
    }

    fn below(&self, shift: u32, code: u64) -> usize {
        self.words.partition_point(|&word| word.into() >> shift < code)
    }
}

/// Returns true if words of 32 bits hold all bits of `plan`.
fn is_narrow(plan: &Plan) -> bool {
    plan.index_bits + plan.bits <= u32::BITS
}

impl Words {
    /// Returns the permutation of `rows` by the bits of `plan`, as positions within the group.
    pub(super) fn sort<R: Rows>(&mut self, plan: &Plan, keys: &[Key], rows: &R) -> Vec<u32> {
        let Self { wide, narrow, same, settled } = self;
        *settled = None;
        let (count, low) = (rows.len(), plan.index_bits);
        let high = low + plan.bits;
        let shift = high.saturating_sub(u32::BITS);
        let pack = |first: usize, words: &mut [u64]| plan.pack(keys, rows, first, words);
        let pack_both = |first: usize, words: &mut [u64], narrow: &mut [u32]| {
            let blocks = words.chunks_mut(BLOCK).zip(narrow.chunks_mut(BLOCK));
            for ((words, narrow), first) in blocks.zip((first..).step_by(BLOCK)) {
                pack(first, words);
                narrow_words(words, shift, low, narrow);
            }
        };
        // Selected rows would be gathered twice, so only consecutive rows are sorted as they are
        // made.
        if count > FEW && rows.first().is_some() {
            if !is_narrow(plan) {
                return wide.sort_made(pack, count, (low, high), same);
            }
            let make = |first: usize, narrow: &mut [u32]| {
                for (narrow, first) in narrow.chunks_mut(BLOCK).zip((first..).step_by(BLOCK)) {
                    pack_both(first, &mut [0; BLOCK][..narrow.len()], narrow);
                }
            };
            return narrow.sort_made(make, count, (low, high), same);
        }
        // Old values are overwritten.
        wide.words.resize(count, 0);
        let is_few = (SAMPLE..=FEW).contains(&count) && !plan.has_window();
        if is_narrow(plan) || is_few {
            narrow.words.resize(count, 0);
            pack_both(0, &mut wide.words, &mut narrow.words);
            if is_narrow(plan) || are_apart(&wide.words, shift, low) {
                let mut order = narrow.sort((low, high - shift), same);
                if shift > 0 {
                    let ends = groups(same, plan.open(keys, rows));
                    *settled = Some(settle(&mut order, ends, &wide.words, low));
                }
                return order;
            }
        } else {
            pack(0, &mut wide.words);
        }
        wide.sort((low, high), same)
    }

    /// Returns the groups of words with equal key bits within `open`, as alternating starts and
    /// ends.
    pub(super) fn groups(&mut self, open: Range<usize>) -> Vec<u32> {
        self.settled.take().unwrap_or_else(|| groups(&self.same, open))
    }

    /// Counts the words whose bits are below `code`. `plan` is the last sorted plan and has a
    /// window.
    pub(super) fn below(&self, plan: &Plan, code: u64) -> u32 {
        let shift = plan.index_bits;
        let count = match is_narrow(plan) {
            true => self.narrow.below(shift, code),
            false => self.wide.below(shift, code),
        };
        count as u32
    }
}

/// Returns true if few of the words collide without the `shift` bits above the lowest `low`. A
/// collision counts only if the word has one of these bits set: otherwise narrow words lose
/// nothing.
fn are_apart(words: &[u64], shift: u32, low: u32) -> bool {
    let lost = ((1u64 << shift) - 1) << low;
    let mut marks = [0u64; 1 << MARKS >> u64::BITS.ilog2()];
    let mut alike = 0;
    for word in words.iter().step_by(words.len().div_ceil(SAMPLE)) {
        let mark =
            (word >> low >> shift).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - MARKS);
        let (marks, bit) = (&mut marks[(mark >> 6) as usize], mark & 63);
        alike += usize::from(*marks >> bit & 1 != 0 && word & lost != 0);
        *marks |= 1 << bit;
    }
    alike < ALIKE
}

/// Sorts the rows of each group by their words. `groups` are alternating starts and ends. Returns
/// the groups that agree in all bits from bit `low` on.
fn settle(order: &mut [u32], groups: Vec<u32>, words: &[u64], low: u32) -> Vec<u32> {
    let word = |row: u32| words[row as usize];
    let differ = |a: u32, b: u32| (word(a) ^ word(b)) >> low != 0;
    let mut left = Vec::with_capacity(groups.len());
    for &[start, end] in groups.as_chunks::<2>().0 {
        let rows = &mut order[start as usize..end as usize];
        if let [a, b] = rows {
            // No branch: the order of a pair and its equality are unpredictable.
            let is_swapped = word(*a) > word(*b);
            (*a, *b) = if is_swapped { (*b, *a) } else { (*a, *b) };
            left.extend_from_slice(&[start, end]);
            left.truncate(left.len() - 2 * usize::from(differ(*a, *b)));
            continue;
        }
        rows.sort_unstable_by_key(|&row| word(row));
        let mut first = start;
        for own in rows.chunk_by(|&a, &b| !differ(a, b)) {
            let next = first + own.len() as u32;
            if own.len() > 1 {
                left.extend_from_slice(&[first, next]);
            }
            first = next;
        }
    }
    left
}
