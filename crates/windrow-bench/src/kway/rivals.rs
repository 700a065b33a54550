//! The merges of textbooks: a binary heap of heads, and a tree of losers (Knuth, volume 3, 5.4.1), over
//! records of one length.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A record that can be merged: ordered, with a diff that adds up.
pub(super) trait Merged: Ord + Copy {
    fn same(&self, other: &Self) -> bool;
    fn diff(&self) -> i64;
    fn add(&mut self, diff: i64);
}

/// Eleven words that are compared, and a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record(pub(super) [u64; 12]);

impl Record {
    /// The first three words as 24 characters.
    pub(super) fn text(&self) -> String {
        let [a, b, c, ..] = self.0;
        format!("{a:08x}{b:08x}{c:08x}")
    }
}

impl Merged for Record {
    fn same(&self, other: &Self) -> bool {
        self.0[..11] == other.0[..11]
    }

    fn diff(&self) -> i64 {
        self.0[11] as i64
    }

    fn add(&mut self, diff: i64) {
        self.0[11] = (self.0[11] as i64 + diff) as u64;
    }
}

/// A text of 24 bytes, five values, a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text([u8; 24], [u64; 5], i64);

impl Text {
    pub(super) fn of(record: &Record) -> Self {
        let mut bytes = [0; 24];
        bytes.copy_from_slice(record.text().as_bytes());
        let [_, _, _, a, b, c, d, e, ..] = record.0;
        Self(bytes, [a, b, c, d, e], record.diff())
    }
}

impl Merged for Text {
    fn same(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }

    fn diff(&self) -> i64 {
        self.2
    }

    fn add(&mut self, diff: i64) {
        self.2 += diff;
    }
}

/// Puts `record` behind the others, or adds it to the last one; returns their number.
#[inline(always)]
fn put<R: Merged>(out: &mut [R], len: usize, record: &R) -> usize {
    if len > 0 && out[len - 1].same(record) {
        out[len - 1].add(record.diff());
        return if out[len - 1].diff() == 0 { len - 1 } else { len };
    }
    out[len] = *record;
    len + 1
}

/// Merges with a binary heap; returns the number of records.
pub(super) fn heap<R: Merged>(runs: &[Vec<R>], out: &mut [R]) -> usize {
    let mut at = vec![0; runs.len()];
    let head = |(run, records): (usize, &Vec<R>)| Some(Reverse((*records.first()?, run)));
    let mut heads: BinaryHeap<_> = runs.iter().enumerate().filter_map(head).collect();
    let mut len = 0;
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((record, run)) = *head;
        len = put(out, len, &record);
        at[run] += 1;
        match runs[run].get(at[run]) {
            Some(next) => *head = Reverse((*next, run)),
            None => {
                PeekMut::pop(head);
            }
        }
    }
    len
}

/// True if the head of run `a` comes before that of `b`: of equals the first run wins, and a run that
/// is used up loses.
#[inline(always)]
fn before<R: Ord>(runs: &[Vec<R>], at: &[usize], a: usize, b: usize) -> bool {
    let head = |run: usize| runs.get(run).and_then(|records| records.get(at[run]));
    match (head(a), head(b)) {
        (Some(x), Some(y)) => match x.cmp(y) {
            Ordering::Less => true,
            Ordering::Equal => a < b,
            Ordering::Greater => false,
        },
        (head, _) => head.is_some(),
    }
}

/// Merges with a tree of losers; returns the number of records.
pub(super) fn loser_tree<R: Merged>(runs: &[Vec<R>], out: &mut [R]) -> usize {
    let leaves = runs.len().next_power_of_two();
    let mut at = vec![0; leaves];
    let mut winners = vec![0; 2 * leaves];
    let mut losers = vec![0; leaves];
    for (leaf, winner) in winners[leaves..].iter_mut().enumerate() {
        *winner = leaf;
    }
    for node in (1..leaves).rev() {
        let (a, b) = (winners[2 * node], winners[2 * node + 1]);
        (winners[node], losers[node]) = if before(runs, &at, a, b) { (a, b) } else { (b, a) };
    }
    let mut winner = winners[1];
    let mut len = 0;
    while let Some(record) = runs.get(winner).and_then(|records| records.get(at[winner])) {
        len = put(out, len, record);
        at[winner] += 1;
        let mut node = (leaves + winner) / 2;
        while node > 0 {
            if before(runs, &at, losers[node], winner) {
                std::mem::swap(&mut losers[node], &mut winner);
            }
            node /= 2;
        }
    }
    len
}
