//! Sorting without rows: computes the permutation that sorts a record batch.
//!
//! ```text
//! rows sorted already, or in reverse: done
//! strings: offsets become 32-bit offsets, dictionaries become ranks
//! sort(group, keys from here on)
//! 1. plan    bits of each key that distinguish the group's rows: numbers less their minimum, bytes
//!            after the common prefix; as many keys as fit beside the row's index in one word
//! 2. pack    word = | key bits | index |, 64 bits
//! 3. sort    words: sorted already, few runs (merged), or mixed (radix)
//!            few key bits: no words; rows are counted by them and moved to their positions
//! 4. ties    groups of equal key bits, if keys are left: sort(group, remaining keys)
//! ```
//!
//! Invariant: the sort is stable. A word's low bits are the row's index within its group, so that
//! no two words are equal and any sort of words is stable.

mod key;
mod plan;
mod rows;
mod run;
mod sample;
#[cfg(test)]
mod tests;
mod together;
mod words;

use std::cmp::Ordering;
use std::ops::Range;

use arrow_array::{RecordBatch, UInt32Array};

use self::key::Key;
use self::plan::{Place, Plan};
use self::rows::{All, Picked, Rows};
use self::run::{Run, run};
use self::together::put_together;
use self::words::Words;
use crate::error::{Error, Result};
use crate::order::Layout;
use windrow_kernel::counting;

/// Groups up to this size are sorted by comparisons of whole keys.
const SMALL: usize = 20;
/// Maximum number of codes for each row in a counting sort, which visits every code once.
const CODES_PER_ROW: usize = 4;

/// Returns the permutation that sorts `batch` by the columns of the layout's order: entry `i` is
/// the position of the row with rank `i`. Stable: equal rows keep their order.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow_rows::{Order, argsort, desc};
///
/// # let amounts: ArrayRef = Arc::new(Int64Array::from(vec![5, 9, 7]));
/// # let batch = RecordBatch::try_from_iter([("amount", amounts)])?;
/// let layout = Order::by(desc("amount")).bind(&batch.schema())?;
/// assert_eq!(argsort(&layout, &batch)?.values(), &[1, 2, 0]);
/// # Ok::<(), windrow_rows::Error>(())
/// ```
///
/// # Cost
/// O(n) if the rows are in order, in reverse, or a few runs. Otherwise about a radix sort of one
/// word a row, and further sorts of groups that a word leaves undecided. Workspace: up to 24 bytes
/// a row.
///
/// # Errors
/// [`Error::SchemaMismatch`] if the record batch does not have the layout's schema;
/// [`Error::Value`] for a null where the schema has none, or more than 2^32 rows.
pub fn argsort(layout: &Layout, batch: &RecordBatch) -> Result<UInt32Array> {
    Argsorter::default().sort(layout, batch)
}

/// Sorts record batches like [`argsort`], one after the other, in a reused workspace.
#[derive(Debug, Default)]
pub struct Argsorter {
    scratch: Scratch,
}

/// Reused memory.
#[derive(Debug, Default)]
struct Scratch {
    words: Words,
    /// Codes of rows by keys of few bits, and for each code the end of its rows.
    codes: Vec<u16>,
    ends: Vec<u32>,
}

impl Argsorter {
    /// Returns the permutation that sorts `batch` by the columns of the layout's order.
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
        put_together(&mut keys, count as usize);
        let mut sorter = Sorter { keys: &keys, scratch: &mut self.scratch };
        Ok(UInt32Array::from(sorter.order(count)))
    }
}

struct Sorter<'a> {
    keys: &'a [Key],
    scratch: &'a mut Scratch,
}

impl Sorter<'_> {
    /// Returns the permutation of rows `0..count`, which are not a run.
    fn order(&mut self, count: u32) -> Vec<u32> {
        let start = Place { key: 0, depth: 0 };
        let all = All(count as usize);
        if count as usize <= SMALL {
            let mut order = (0..count).collect::<Vec<_>>();
            self.sort_small(&mut order, start);
            return order;
        }
        let plan = Plan::new(self.keys, &all, start);
        if plan.bits == 0 {
            let mut order = (0..count).collect::<Vec<_>>();
            if !plan.complete {
                self.sort_small(&mut order, start);
            }
            return order;
        }
        if plan.bits <= counting::BITS && 1 << plan.bits <= CODES_PER_ROW * all.len() {
            return self.order_by_codes(&plan, &all);
        }
        let mut order = self.scratch.words.sort(&plan, self.keys, &all);
        self.sort_ties(&mut order, &plan, plan.open(self.keys, &all));
        order
    }

    /// Returns the permutation of all rows by a plan of few bits.
    fn order_by_codes(&mut self, plan: &Plan, all: &All) -> Vec<u32> {
        let Scratch { codes, ends, .. } = &mut *self.scratch;
        plan.pack_codes(self.keys, all, codes);
        let mut order = counting::order(codes, plan.bits, ends);
        if plan.complete {
            return order;
        }
        let group = |code: usize| [if code == 0 { 0 } else { ends[code - 1] }, ends[code]];
        let groups: Vec<[u32; 2]> = match plan.left_out(self.keys) {
            Some(codes) => codes.into_iter().map(|code| group(code as usize)).collect(),
            None => (0..ends.len()).map(group).collect(),
        };
        self.sort_groups(&mut order, &groups, plan.rest);
        order
    }

    /// Sorts groups with equal bits in `plan` by the undecided keys. `rows` is in the order of the
    /// words; `open` is the range of words that may leave rows undecided.
    fn sort_ties(&mut self, rows: &mut [u32], plan: &Plan, open: Range<usize>) {
        if plan.complete {
            return;
        }
        if let Some(codes) = plan.left_out(self.keys) {
            // All other codes stand for one number each, and no key follows.
            let words = &self.scratch.words;
            let group = |&code: &u64| [words.below(plan, code), words.below(plan, code + 1)];
            let groups: Vec<_> = codes.iter().map(group).collect();
            return self.sort_groups(rows, &groups, plan.rest);
        }
        let ends = self.scratch.words.groups(open);
        let groups = ends.as_chunks::<2>().0;
        self.sort_groups(rows, groups, plan.rest);
    }

    /// Sorts groups of rows by their keys from `from` on. Each group starts in input order.
    fn sort_groups(&mut self, rows: &mut [u32], groups: &[[u32; 2]], from: Place) {
        for &[start, end] in groups {
            self.sort_group(&mut rows[start as usize..end as usize], from);
        }
    }

    /// Sorts rows by their keys from `from` on. The rows start in input order. Overwrites the words
    /// of earlier sorts.
    fn sort_group(&mut self, rows: &mut [u32], from: Place) {
        if rows.len() <= SMALL {
            return self.sort_small(rows, from);
        }
        let plan = Plan::new(self.keys, &Picked(rows), from);
        if plan.bits == 0 {
            if !plan.complete {
                self.sort_small(rows, from);
            }
            return;
        }
        let places = self.scratch.words.sort(&plan, self.keys, &Picked(rows));
        let before = rows.to_vec();
        for (row, place) in rows.iter_mut().zip(places) {
            *row = before[place as usize];
        }
        let open = 0..rows.len();
        self.sort_ties(rows, &plan, open);
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
