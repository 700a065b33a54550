//! The order of the rows of one block.
//!
//! ```text
//! 1. pack   the bits that vary, above the row's index, in one word      (kernel::prefix)
//! 2. sort   the words                                                   (kernel::radix)
//! 3. mend   runs of equal prefixes, by comparing what follows them
//! ```
//!
//! Stable: rows that are equal without their tails keep the order they came in.

use std::cmp::Ordering;

use crate::kernel::prefix::Plan;
use crate::kernel::radix;

/// Finds orders; holds the scratch memory for it.
#[derive(Debug, Default)]
pub(crate) struct Arranger {
    words: Vec<u64>,
    scratch: Vec<u64>,
    order: Vec<u32>,
}

impl Arranger {
    /// Indexes of `rows` in ascending order; the last `tail` bytes of each row do not count.
    pub(crate) fn order(&mut self, rows: &[&[u8]], tail: usize) -> &[u32] {
        let index_bits = usize::BITS - rows.len().saturating_sub(1).leading_zeros();
        let index_bits = index_bits.max(1);
        let plan = Plan::new(rows, 64 - index_bits);
        self.words.clear();
        plan.pack(rows, index_bits, &mut self.words);
        radix::sort(&mut self.words, &mut self.scratch, index_bits, index_bits + plan.bits());
        if !plan.is_exact() || tail > 0 {
            mend(&mut self.words, index_bits, rows, plan.start(), tail);
        }
        let mask = (1u64 << index_bits) - 1;
        self.order.clear();
        self.order.extend(self.words.iter().map(|word| (word & mask) as u32));
        &self.order
    }
}

/// Sorts runs of equal prefixes by the rows from byte `start` on.
fn mend(words: &mut [u64], index_bits: u32, rows: &[&[u8]], start: usize, tail: usize) {
    let mask = (1u64 << index_bits) - 1;
    let rest = |word: u64| {
        let row = rows[(word & mask) as usize];
        &row[start.min(row.len() - tail)..row.len() - tail]
    };
    let mut first = 0;
    while first + 1 < words.len() {
        let prefix = words[first] >> index_bits;
        let run = words[first..].iter().take_while(|&&word| word >> index_bits == prefix).count();
        if run == 2 {
            if rest(words[first]).cmp(rest(words[first + 1])) == Ordering::Greater {
                words.swap(first, first + 1);
            }
        } else if run > 2 {
            // Stable: equal prefixes stand in index order already.
            words[first..first + run].sort_by(|&a, &b| rest(a).cmp(rest(b)));
        }
        first += run;
    }
}

#[cfg(test)]
mod tests {
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
            let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
            let key = |&i: &u32| &rows[i as usize][..rows[i as usize].len() - tail];
            expected.sort_by(|a, b| key(a).cmp(key(b)));
            let mut arranger = Arranger::default();
            let got = arranger.order(&rows, tail).to_vec();
            if tail == 0 {
                prop_assert_eq!(got, expected);
            } else {
                // Equal rows may come in the order of their tails; the rules add those up.
                prop_assert!(got.iter().zip(&expected).all(|(a, b)| key(a) == key(b)));
            }
        }
    }
}
