//! Sorting without rows: the permutation that puts a record batch in order.
//!
//! ```text
//! rows in order already, or in reverse: done. A first key of few distinct strings: their ranks instead
//! sort(group, keys from here on)
//! 1. plan    of each key what tells the group's rows apart: numbers less their minimum, bytes behind
//!            the common prefix; as many keys as fit beside the row's index in one word
//! 2. pack    word = | key bits | index |
//! 3. sort    words: in order already, few runs (merged), or spread (radix)
//! 4. ties    groups of equal key bits, if keys are left: sort(group, the rest)
//! ```
//!
//! Invariant: stable. A word's low bits are the row's index within its group, so that no two words
//! are equal and any sort of them is stable.

mod key;
mod plan;
mod ranks;
mod run;
#[cfg(test)]
mod tests;
mod ties;

use std::cmp::Ordering;
use std::ops::Range;

use arrow_array::{RecordBatch, UInt32Array};

use self::key::Key;
use self::plan::{All, Picked, Place, Plan};
use self::run::{Run, run};
use self::ties::{Tail, Tails, groups};
use crate::error::{Error, Result};
use crate::kernel::radix;
use crate::order::Layout;

/// Groups up to this size are sorted by comparing whole keys.
const SMALL: usize = 20;
/// Words that are looked at twice in turn.
const BLOCK: usize = 1024;
/// Groups whose tails are read at once: most are of two or three rows, of 32 bytes each.
const GROUPS: usize = 256;

/// The order of the rows of `batch` by the columns of the layout's order: entry `i` is the position
/// of the row that comes `i`th. Stable: equal rows keep the order they have.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow::{Order, argsort, desc};
///
/// # let amounts: ArrayRef = Arc::new(Int64Array::from(vec![5, 9, 7]));
/// # let batch = RecordBatch::try_from_iter([("amount", amounts)])?;
/// let layout = Order::by(desc("amount")).bind(&batch.schema())?;
/// assert_eq!(argsort(&layout, &batch)?.values(), &[1, 2, 0]);
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Cost
/// O(n) if the rows are in order, in reverse, or a few runs; else about a radix sort of one word a
/// row, and again for what a word could not decide. 20 bytes of scratch a row.
///
/// # Errors
/// [`Error::SchemaMismatch`] if the record batch is not of the layout's schema; [`Error::Value`] if
/// it has a null where the schema has none, or more than 2^32 rows.
pub fn argsort(layout: &Layout, batch: &RecordBatch) -> Result<UInt32Array> {
    Argsorter::default().sort(layout, batch)
}

/// Sorts one record batch after the other as [`argsort`] does, in the same scratch memory.
#[derive(Debug, Default)]
pub struct Argsorter {
    words: Vec<u64>,
    scratch: Vec<u64>,
}

impl Argsorter {
    /// The order of the rows of `batch` by the columns of the layout's order.
    ///
    /// # Errors
    /// As [`argsort`].
    pub fn sort(&mut self, layout: &Layout, batch: &RecordBatch) -> Result<UInt32Array> {
        layout.check_schema(batch.schema_ref())?;
        let Ok(count) = u32::try_from(batch.num_rows()) else {
            return Err(Error::Value {
                column: "(row)".into(),
                message: format!("{} rows are more than 32 bits can number", batch.num_rows()),
            });
        };
        let mut keys = key::keys(layout, batch)?;
        if count as usize > SMALL {
            match run(&keys, count as usize) {
                Some(Run::Up) => return Ok((0..count).collect::<Vec<_>>().into()),
                Some(Run::Down) => return Ok((0..count).rev().collect::<Vec<_>>().into()),
                None => {}
            }
        }
        // Only the first key is sure to be looked at in every row.
        if let Some(first) = keys.first_mut() {
            first.rank(count as usize);
        }
        let words = std::mem::take(&mut self.words);
        let scratch = std::mem::take(&mut self.scratch);
        let mut sorter = Sorter { keys: &keys, words, scratch };
        let order = sorter.order(count);
        (self.words, self.scratch) = (sorter.words, sorter.scratch);
        Ok(UInt32Array::from(order))
    }
}

struct Sorter<'a> {
    keys: &'a [Key],
    words: Vec<u64>,
    scratch: Vec<u64>,
}

/// The places in the low bits of `words`, and whether two neighbours among those in `open` agree in
/// all bits above.
fn places(words: &[u64], index_bits: u32, open: Range<usize>) -> (Vec<u32>, bool) {
    let mask = (1 << index_bits) - 1;
    let mut order = Vec::with_capacity(words.len());
    let mut ties = 0;
    // In blocks that stay in a cache for both loops, each of which is a few instructions for many words.
    for (number, block) in words.chunks(BLOCK).enumerate() {
        order.extend(block.iter().map(|word| (word & mask) as u32));
        let start = (number * BLOCK).max(open.start);
        let end = (number * BLOCK + block.len() + 1).min(open.end);
        for pair in words.get(start..end).unwrap_or(&[]).windows(2) {
            // The top bit, if what is above the places is equal: 0 less 1.
            ties |= ((pair[0] ^ pair[1]) >> index_bits).wrapping_sub(1);
        }
    }
    (order, ties >> 63 == 1)
}

impl Sorter<'_> {
    /// The order of rows `0..count`, which are no run.
    fn order(&mut self, count: u32) -> Vec<u32> {
        let start = Place { key: 0, depth: 0 };
        let all = All(count as usize);
        if count as usize <= SMALL {
            let mut order = (0..count).collect::<Vec<_>>();
            self.sort_small(&mut order, start);
            return order;
        }
        let plan = Plan::new(self.keys, &all, start);
        if plan.bits() == 0 {
            let mut order = (0..count).collect::<Vec<_>>();
            if !plan.is_complete() {
                self.sort_small(&mut order, start);
            }
            return order;
        }
        plan.pack(self.keys, &all, &mut self.words);
        let index_bits = plan.index_bits();
        radix::sort(&mut self.words, &mut self.scratch, index_bits, index_bits + plan.bits());
        let open = plan.open(self.keys, count as usize);
        let (mut order, ties) = places(&self.words, index_bits, open.clone());
        if ties && !plan.is_complete() {
            self.sort_ties(&mut order, &plan, open);
        }
        order
    }

    /// Sorts groups that agree in the bits of `plan` by what it left out, as far as they are
    /// `open`. `rows` is in the order of the words, which say where groups end.
    fn sort_ties(&mut self, rows: &mut [u32], plan: &Plan, open: Range<usize>) {
        let shift = plan.index_bits();
        let words = std::mem::take(&mut self.words);
        if let Some((below, above)) = plan.left_out(self.keys) {
            // The two groups at the ends; all others are of one number each, and there is no other key.
            let below = words.partition_point(|word| word >> shift <= below);
            let above = words.partition_point(|word| word >> shift < above);
            for group in [0..below, above..words.len()] {
                if group.len() > 1 {
                    self.sort_group(&mut rows[group], plan.rest());
                }
            }
            self.words = words;
            return;
        }
        let rows = &mut rows[open.clone()];
        let mut tails = Vec::new();
        for groups in groups(&words[open], shift).chunks(GROUPS) {
            self.sort_groups(rows, groups, plan.rest(), &mut tails);
        }
        self.words = words;
    }

    /// Sorts groups of rows, which stand in their own order, by their keys from `from` on.
    fn sort_groups(
        &mut self,
        rows: &mut [u32],
        groups: &[Range<usize>],
        from: Place,
        tails: &mut Vec<Tail>,
    ) {
        let Some(with) = Tails::new(self.keys, from) else {
            return groups.iter().for_each(|group| self.sort_group(&mut rows[group.clone()], from));
        };
        let is_small = |group: &Range<usize>| group.len() <= SMALL;
        tails.clear();
        for group in groups.iter().filter(|group| is_small(group)) {
            with.add(&rows[group.clone()], tails);
        }
        let mut rest = &mut tails[..];
        for group in groups {
            let rows = &mut rows[group.clone()];
            if is_small(group) {
                let (own, behind) = rest.split_at_mut(rows.len());
                with.sort(rows, own, |rows, from| self.sort_small(rows, from));
                rest = behind;
            } else {
                self.sort_group(rows, from);
            }
        }
    }

    /// Sorts rows, which stand in their own order, by their keys from `from` on.
    fn sort_group(&mut self, rows: &mut [u32], from: Place) {
        if rows.len() <= SMALL {
            return self.sort_small(rows, from);
        }
        let plan = Plan::new(self.keys, &Picked(rows), from);
        if plan.bits() == 0 {
            if !plan.is_complete() {
                self.sort_small(rows, from);
            }
            return;
        }
        let mut words = std::mem::take(&mut self.scratch);
        plan.pack(self.keys, &Picked(rows), &mut words);
        let mut scratch = Vec::new();
        let index_bits = plan.index_bits();
        radix::sort(&mut words, &mut scratch, index_bits, index_bits + plan.bits());
        let mask = (1 << index_bits) - 1;
        let before = rows.to_vec();
        for (row, word) in rows.iter_mut().zip(&words) {
            *row = before[(word & mask) as usize];
        }
        if plan.is_complete() {
            self.scratch = words;
            return;
        }
        let outer = std::mem::replace(&mut self.words, words);
        let open = 0..rows.len();
        self.sort_ties(rows, &plan, open);
        self.scratch = std::mem::replace(&mut self.words, outer);
    }

    fn sort_small(&self, rows: &mut [u32], from: Place) {
        let Some(keys) = self.keys.get(from.key..) else { return };
        let compare = |a: u32, b: u32| {
            let orders = keys.iter().map(|key| key.compare(a as usize, b as usize));
            orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        if let [a, b] = rows {
            if compare(*a, *b) == Ordering::Greater {
                std::mem::swap(a, b);
            }
            return;
        }
        rows.sort_by(|&a, &b| compare(a, b));
    }
}
