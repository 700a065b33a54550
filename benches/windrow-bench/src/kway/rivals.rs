//! Textbook merges: a binary heap of heads, and a loser tree (Knuth, volume 3, 5.4.1), over records
//! of fixed length.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A mergeable record: ordered, with a summable diff.
pub(super) trait Merged: Ord + Copy {
    fn same(&self, other: &Self) -> bool;
    fn diff(&self) -> i64;
    fn add(&mut self, diff: i64);
}

/// Eleven compared words, and a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record(pub(super) [u64; 12]);

impl Record {
    /// Formats the first three words as 24 characters.
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

/// Sorted runs, each read from front to back.
pub(super) trait Runs<R> {
    fn count(&self) -> usize;
    /// Returns the next record of a run.
    fn head(&self, run: usize) -> Option<&R>;
    fn advance(&mut self, run: usize);
}

/// The output of a merge.
pub(super) trait Sink<R> {
    /// Appends `record`, or adds its diff to an equal last record.
    fn put(&mut self, record: &R);
}

/// Runs in memory.
pub(super) struct Slices<'a, R> {
    runs: &'a [Vec<R>],
    at: Vec<usize>,
}

impl<'a, R> Slices<'a, R> {
    pub(super) fn new(runs: &'a [Vec<R>]) -> Self {
        Self { runs, at: vec![0; runs.len()] }
    }
}

impl<R> Runs<R> for Slices<'_, R> {
    fn count(&self) -> usize {
        self.runs.len()
    }

    #[inline(always)]
    fn head(&self, run: usize) -> Option<&R> {
        self.runs.get(run).and_then(|records| records.get(self.at[run]))
    }

    #[inline(always)]
    fn advance(&mut self, run: usize) {
        self.at[run] += 1;
    }
}

/// Memory for all records, and the number of records.
pub(super) struct Filled<'a, R> {
    pub(super) out: &'a mut [R],
    pub(super) len: usize,
}

impl<R: Merged> Sink<R> for Filled<'_, R> {
    #[inline(always)]
    fn put(&mut self, record: &R) {
        let Self { out, len } = self;
        if *len > 0 && out[*len - 1].same(record) {
            out[*len - 1].add(record.diff());
            *len -= usize::from(out[*len - 1].diff() == 0);
        } else {
            out[*len] = *record;
            *len += 1;
        }
    }
}

/// Merges with a binary heap.
pub(super) fn heap<R: Merged>(runs: &mut impl Runs<R>, out: &mut impl Sink<R>) {
    let head = |run| Some(Reverse((*runs.head(run)?, run)));
    let mut heads: BinaryHeap<_> = (0..runs.count()).filter_map(head).collect();
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((record, run)) = *head;
        out.put(&record);
        runs.advance(run);
        match runs.head(run) {
            Some(next) => *head = Reverse((*next, run)),
            None => {
                PeekMut::pop(head);
            }
        }
    }
}

/// Returns true if the head of run `a` comes before the head of run `b`. Ties go to the earlier
/// run, and an exhausted run loses.
#[inline(always)]
fn before<R: Ord>(runs: &impl Runs<R>, a: usize, b: usize) -> bool {
    match (runs.head(a), runs.head(b)) {
        (Some(x), Some(y)) => match x.cmp(y) {
            Ordering::Less => true,
            Ordering::Equal => a < b,
            Ordering::Greater => false,
        },
        (head, _) => head.is_some(),
    }
}

/// Merges with a loser tree.
pub(super) fn loser_tree<R: Merged>(runs: &mut impl Runs<R>, out: &mut impl Sink<R>) {
    let leaves = runs.count().next_power_of_two();
    let mut winners = vec![0; 2 * leaves];
    let mut losers = vec![0; leaves];
    for (leaf, winner) in winners[leaves..].iter_mut().enumerate() {
        *winner = leaf;
    }
    for node in (1..leaves).rev() {
        let (a, b) = (winners[2 * node], winners[2 * node + 1]);
        (winners[node], losers[node]) = if before(runs, a, b) { (a, b) } else { (b, a) };
    }
    let mut winner = winners[1];
    while let Some(record) = runs.head(winner) {
        out.put(record);
        runs.advance(winner);
        let mut node = (leaves + winner) / 2;
        while node > 0 {
            if before(runs, losers[node], winner) {
                std::mem::swap(&mut losers[node], &mut winner);
            }
            node /= 2;
        }
    }
}
