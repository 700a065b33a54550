//! Sorts the rows of one block.
//!
//! ```text
//! 1. pack   the bits that vary, above the row's index, in one word      (kernel::prefix)
//! 2. sort   the words                                                   (kernel::radix)
//! 3. mend   runs of equal prefixes, by comparing the remaining bytes; record which rows are equal
//! ```
//!
//! The sort is stable: rows that are equal without their tails keep their order.

use std::ops::Range;

use super::block::Block;
use windrow_kernel::prefetch::Ahead;
use windrow_kernel::prefix::Plan;
use windrow_kernel::radix;

/// Sorts rows; owns the workspace.
#[derive(Debug, Default)]
pub(crate) struct Arranger {
    words: Vec<u64>,
    scratch: Vec<u64>,
    order: Vec<Place>,
}

/// A row of a permutation: its index, and whether it equals the previous row, tails ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    const EQUAL: u32 = 1 << 31;

    /// Returns row `index`, marked as different from the previous row.
    pub(crate) fn of(index: usize) -> Self {
        debug_assert!(index < Self::EQUAL as usize);
        Self(index as u32)
    }

    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        (self.0 & !Self::EQUAL) as usize
    }

    #[inline(always)]
    pub(crate) fn repeats(self) -> bool {
        self.0 & Self::EQUAL != 0
    }
}

impl Arranger {
    /// Returns the permutation that sorts the rows of `block` with indexes in `ranges`, which
    /// ascend. Ignores the last `tail` bytes of each row. Prefetches memory `ahead`.
    #[inline]
    pub(crate) fn order<'a>(
        &mut self,
        ranges: &[Range<usize>],
        block: impl Block<'a>,
        tail: usize,
        ahead: &mut Ahead<'_>,
    ) -> &[Place] {
        let greatest = ranges.last().map_or(0, |range| range.end.saturating_sub(1));
        let index_bits = usize::BITS - greatest.leading_zeros();
        let index_bits = index_bits.max(1);
        let row = |index| block.row(index);
        let mut plan = Plan::sampled(ranges, row, tail, 64 - index_bits);
        if !self.pack(&plan, ranges, block, index_bits) {
            plan = Plan::new(ranges, row, tail, 64 - index_bits);
            let packed = self.pack(&plan, ranges, block, index_bits);
            debug_assert!(packed, "a plan of all rows is one for each");
        }
        let bits = (index_bits, index_bits + plan.bits());
        radix::sort(&mut self.words, &mut self.scratch, bits, ahead);
        let words = &self.words[..];
        let mask = (1u64 << index_bits) - 1;
        let (mut before, mut alike) = (!words.first().copied().unwrap_or(0), false);
        self.order.clear();
        self.order.extend(words.iter().map(|&word| {
            alike |= (word ^ before) >> index_bits == 0;
            before = word;
            Place((word & mask) as u32)
        }));
        // Nearly always all prefixes differ.
        if alike {
            mend(words, &mut self.order, index_bits, block, plan.start(), tail);
        }
        &self.order
    }

    /// Packs the words of all rows. Returns false if a row does not fit the plan.
    #[inline(always)]
    fn pack<'a>(
        &mut self,
        plan: &Plan,
        ranges: &[Range<usize>],
        block: impl Block<'a>,
        index_bits: u32,
    ) -> bool {
        self.words.clear();
        self.words.reserve(ranges.iter().map(ExactSizeIterator::len).sum());
        ranges.iter().filter(|range| !range.is_empty()).all(|range| {
            plan.pack(range.start, block.rows(range.clone()), index_bits, &mut self.words)
        })
    }
}

/// Sorts rows with equal prefixes by their bytes from `start` on, and marks equal rows.
fn mend<'a>(
    words: &[u64],
    order: &mut [Place],
    index_bits: u32,
    block: impl Block<'a>,
    start: usize,
    tail: usize,
) {
    let rest = |place: Place| {
        let row = block.row(place.index());
        &row[start.min(row.len() - tail)..row.len() - tail]
    };
    let mut first = 0;
    // Most prefixes differ.
    let alike = |pair: &[u64]| (pair[0] ^ pair[1]) >> index_bits == 0;
    while let Some(alone) = words[first..].windows(2).position(alike) {
        first += alone;
        let prefix = words[first] >> index_bits;
        let head = rest(order[first]);
        let (mut end, mut all_equal) = (first + 1, true);
        while words.get(end).is_some_and(|word| word >> index_bits == prefix) {
            all_equal = all_equal && rest(order[end]) == head;
            order[end].0 |= Place::EQUAL;
            end += 1;
        }
        if !all_equal {
            let run = &mut order[first..end];
            run.iter_mut().for_each(|place| *place = Place::of(place.index()));
            // Stable: equal prefixes stand in index order already.
            run.sort_by(|&a, &b| rest(a).cmp(rest(b)));
            for at in 1..run.len() {
                if rest(run[at - 1]) == rest(run[at]) {
                    run[at].0 |= Place::EQUAL;
                }
            }
        }
        first = end;
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn orders_as_a_stable_sort_does(
            mut rows in prop::collection::vec(prop::collection::vec(0u8..3, 0..60), 1..400),
            common in 0usize..40,
            tail in 0usize..3,
        ) {
            // Rows are prefix-free: an end marker below every other byte, then the tail.
            for (index, row) in rows.iter_mut().enumerate() {
                let body: Vec<u8> = row.iter().map(|byte| byte + 1).collect();
                *row = [vec![7; common], body, vec![0], vec![index as u8; tail]].concat();
            }
            let rows: Vec<&[u8]> = rows.iter().map(|row| &row[..]).collect();
            let mut expected: Vec<usize> = (0..rows.len()).collect();
            let key = |&i: &usize| &rows[i][..rows[i].len() - tail];
            expected.sort_by(|a, b| key(a).cmp(key(b)));
            let mut arranger = Arranger::default();
            let (all, mut none) = (0..rows.len(), Ahead::default());
            let places = arranger.order(from_ref(&all), &rows[..], tail, &mut none).to_vec();
            let got: Vec<usize> = places.iter().map(|place| place.index()).collect();
            for at in 0..got.len() {
                let repeats = at > 0 && key(&got[at - 1]) == key(&got[at]);
                prop_assert_eq!(places[at].repeats(), repeats);
            }
            prop_assert_eq!(got, expected);
        }
    }
}
