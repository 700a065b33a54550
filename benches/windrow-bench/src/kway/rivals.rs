//! Textbook merges: a binary heap of heads, and a loser tree (Knuth, volume 3, 5.4.1), over records
//! of fixed length.

use std::borrow::Borrow;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::data::Record;

/// Sorted runs, each read from front to back.
pub(super) struct Runs<I: Iterator> {
    runs: Vec<I>,
    heads: Vec<Option<I::Item>>,
}

impl<I: Iterator> Runs<I> {
    pub(super) fn new(runs: impl Iterator<Item = I>) -> Self {
        let mut runs: Vec<I> = runs.collect();
        Self { heads: runs.iter_mut().map(Iterator::next).collect(), runs }
    }

    #[inline(always)]
    fn advance(&mut self, run: usize) {
        self.heads[run] = self.runs[run].next();
    }

    /// Returns true if the head of run `a` comes before the head of run `b`. Ties go to the earlier
    /// run, and an exhausted run loses.
    #[inline(always)]
    fn before<T: Ord>(&self, a: usize, b: usize) -> bool
    where
        I::Item: Borrow<Record<T>>,
    {
        let head = |run: usize| self.heads.get(run).and_then(Option::as_ref);
        match (head(a), head(b)) {
            (Some(x), Some(y)) => match x.borrow().cmp(y.borrow()) {
                Ordering::Less => true,
                Ordering::Equal => a < b,
                Ordering::Greater => false,
            },
            (head, _) => head.is_some(),
        }
    }
}

/// Merges with a binary heap.
pub(super) fn heap<T: Ord + Copy, I: Iterator<Item: Borrow<Record<T>>>>(
    mut runs: Runs<I>,
    mut put: impl FnMut(&Record<T>),
) {
    let first = runs.heads.iter().enumerate();
    let first = first.filter_map(|(run, head)| Some(Reverse((*head.as_ref()?.borrow(), run))));
    let mut heads: BinaryHeap<Reverse<(Record<T>, usize)>> = first.collect();
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((record, run)) = *head;
        put(&record);
        runs.advance(run);
        match &runs.heads[run] {
            Some(next) => *head = Reverse((*next.borrow(), run)),
            None => drop(PeekMut::pop(head)),
        }
    }
}

/// Merges with a loser tree.
pub(super) fn loser_tree<T: Ord + Copy, I: Iterator<Item: Borrow<Record<T>>>>(
    mut runs: Runs<I>,
    mut put: impl FnMut(&Record<T>),
) {
    let leaves = runs.runs.len().next_power_of_two();
    let mut losers = vec![0; leaves];
    // The leaves are at the end.
    let mut winners: Vec<usize> = (0..leaves).chain(0..leaves).collect();
    for node in (1..leaves).rev() {
        let (a, b) = (winners[2 * node], winners[2 * node + 1]);
        (winners[node], losers[node]) = if runs.before(a, b) { (a, b) } else { (b, a) };
    }
    let mut winner = winners[1];
    while let Some(record) = runs.heads.get(winner).and_then(Option::as_ref) {
        put(record.borrow());
        runs.advance(winner);
        let mut node = (leaves + winner) / 2;
        while node > 0 {
            if runs.before(losers[node], winner) {
                std::mem::swap(&mut losers[node], &mut winner);
            }
            node /= 2;
        }
    }
}
