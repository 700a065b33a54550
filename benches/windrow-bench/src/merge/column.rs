//! The column merger and batcher of Materialize's pull request 36408, made from its description. Changes
//! are columns of the crate `columnar`, before the push as well.
//!
//! ```text
//! chunker  columns sorted by references, equal changes added up, zeros dropped: a chunk
//! merge    runs found by doubling steps and copied column by column, single changes without; whole
//!          chunks passed on where one ends before the other begins; a look at the size of the output
//!          every 1,024 steps; memory of the output reserved for both inputs
//! batcher  chains, merged while the last has half as many chunks as the one before; a seal merges
//!          all, and copies change by change what is before the frontier
//! ```

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::hint::black_box;
use std::mem::{replace, take};

use columnar::{AsBytes, Borrow, BorrowedOf, Clear, Columnar, Container, ContainerOf};
use columnar::{Index, Push, Ref};

use super::Work;
use crate::harness::elapsed;

/// Columns of data, times and diffs.
type Column<D> = ContainerOf<(D, u64, i64)>;
type Columns<'a, D> = BorrowedOf<'a, (D, u64, i64)>;
type Chain<D> = VecDeque<Column<D>>;

/// Number of steps between two looks at the size of the output.
const STEPS: usize = 1024;
/// Number of changes above which no memory is reserved.
const RESERVED: usize = 1_000_000;
/// Bytes of chunks.
const CHUNK: usize = 2 << 20;

fn key<'a, D: Columnar>(of: Columns<'a, D>, at: usize) -> (Ref<'a, D>, u64) {
    (of.0.get(at), of.1[at])
}

/// Finished chunks, the chunk in progress, and the memory of at most two consumed chunks.
struct Output<D: Columnar> {
    done: Chain<D>,
    filled: Column<D>,
    stash: Vec<Column<D>>,
}

impl<D: Columnar> Output<D>
where
    for<'a> Ref<'a, D>: Ord,
{
    /// Returns true if the bytes are at most a tenth below a number of chunks.
    fn is_full(&self) -> bool {
        let columns = self.filled.borrow();
        let bytes: usize = columns.as_bytes().map(|(_, bytes)| bytes.len()).sum();
        let next = bytes.next_multiple_of(CHUNK);
        next - bytes < next / 10
    }

    fn ship(&mut self) {
        if !self.filled.1.is_empty() {
            let next = self.stash.pop().unwrap_or_default();
            self.done.push_back(replace(&mut self.filled, next));
        }
    }

    /// Returns the chunks.
    fn finish(&mut self) -> Chain<D> {
        self.ship();
        take(&mut self.done)
    }

    /// Passes a chunk on, or copies what is left of it.
    fn pass(&mut self, chunk: Column<D>, at: usize) {
        if at == 0 {
            self.ship();
            return self.done.push_back(chunk);
        }
        self.filled.extend_from_self(chunk.borrow(), at..chunk.1.len());
        self.recycle(chunk);
    }

    fn recycle(&mut self, mut chunk: Column<D>) {
        if self.stash.len() < 2 {
            chunk.clear();
            self.stash.push(chunk);
        }
    }

    /// Sorts columns into a chunk, if anything is left.
    fn chunk(&mut self, input: &Column<D>) -> Chain<D> {
        let columns: Columns<'_, D> = input.borrow();
        let mut all: Vec<_> = (0..input.1.len()).map(|at| columns.get(at)).collect();
        all.sort_unstable();
        for equal in all.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let sum: i64 = equal.iter().map(|change| change.2).sum();
            if sum != 0 {
                self.filled.push((equal[0].0, equal[0].1, &sum));
            }
        }
        self.finish()
    }

    /// Copies the change at `at`, and its successors before `other`.
    fn copy_run<'a>(&mut self, of: Columns<'a, D>, at: &mut usize, other: (Ref<'a, D>, u64)) {
        self.filled.push(of.get(*at));
        *at += 1;
        let is_before = |at: usize| at < of.1.len() && key::<D>(of, at) < other;
        if is_before(*at) {
            let (start, mut step) = (*at, 1);
            while is_before(*at + step) {
                *at += step;
                step *= 2;
            }
            while step > 0 {
                *at += if is_before(*at + step) { step } else { 0 };
                step /= 2;
            }
            *at += 1;
            self.filled.extend_from_self(of, start..*at);
        }
    }

    /// Merges until an input ends, or the output is full.
    fn merge_from<'a>(&mut self, [a, b]: [Columns<'a, D>; 2], [i, j]: [&mut usize; 2]) {
        if a.1.len() + b.1.len() <= RESERVED {
            self.filled.reserve_for([a, b].into_iter());
        }
        let mut steps = 0;
        while *i < a.1.len() && *j < b.1.len() && (steps % STEPS > 0 || !self.is_full()) {
            let (x, y) = (key::<D>(a, *i), key::<D>(b, *j));
            match x.cmp(&y) {
                Ordering::Less => self.copy_run(a, i, y),
                Ordering::Greater => self.copy_run(b, j, x),
                Ordering::Equal => {
                    let sum = a.2[*i] + b.2[*j];
                    if sum != 0 {
                        self.filled.push((x.0, &x.1, &sum));
                    }
                    (*i, *j) = (*i + 1, *j + 1);
                }
            }
            steps += 1;
        }
    }

    fn merge(&mut self, mut chains: [Chain<D>; 2]) -> Chain<D> {
        let mut heads = [0, 1].map(|side: usize| chains[side].pop_front().map(|of| (of, 0)));
        while let [Some((a, i)), Some((b, j))] = &mut heads {
            let both: [Columns<'_, D>; 2] = [a.borrow(), b.borrow()];
            let last = both.map(|of| key::<D>(of, of.1.len() - 1));
            let passes = [last[0] < key::<D>(both[1], *j), last[1] < key::<D>(both[0], *i)];
            if passes == [false; 2] {
                self.merge_from(both, [i, j]);
                if self.is_full() {
                    self.ship();
                }
            }
            for (side, head) in heads.iter_mut().enumerate() {
                if let Some((of, at)) = head.take_if(|(of, at)| passes[side] || *at == of.1.len()) {
                    if passes[side] {
                        self.pass(of, at)
                    } else {
                        self.recycle(of)
                    }
                    *head = chains[side].pop_front().map(|of| (of, 0));
                }
            }
        }
        heads.into_iter().flatten().for_each(|(of, at)| self.pass(of, at));
        self.ship();
        self.done.extend(chains.into_iter().flatten());
        take(&mut self.done)
    }

    /// Merges the last two chains as long as their numbers of chunks fulfil `merges`.
    fn merge_last(&mut self, chains: &mut Vec<Chain<D>>, merges: fn(usize, usize) -> bool) {
        while let [.., before, last] = &mut chains[..]
            && merges(before.len(), last.len())
        {
            let both = [take(before), take(last)];
            chains.truncate(chains.len() - 2);
            chains.push(self.merge(both));
        }
    }

    /// Copies the changes before `upper`, and drops the rest.
    fn extract(&mut self, chain: &Chain<D>, upper: Option<u64>) -> Chain<D> {
        for chunk in chain {
            let of: Columns<'_, D> = chunk.borrow();
            let ships = |at: &usize| upper.is_none_or(|upper| of.1[*at] < upper);
            for at in (0..of.1.len()).filter(ships) {
                self.filled.push(of.get(at));
                if at % STEPS == 0 && self.is_full() {
                    self.ship();
                }
            }
        }
        self.finish()
    }
}

/// Runs the merger, or the batcher, and returns the seconds and the number of records.
pub(super) fn columns<D: Columnar>(work: Work, inputs: Vec<Vec<(D, u64, i64)>>) -> (f64, u64)
where
    for<'a> Ref<'a, D>: Ord,
{
    let (done, filled, stash) = Default::default();
    let mut out = Output::<D> { done, filled, stash };
    let built = |changes: &Vec<(D, u64, i64)>| {
        let chunks = changes.chunks(CHUNK / size_of::<(D, u64, i64)>());
        chunks.map(<(D, u64, i64)>::as_columns).collect()
    };
    let inputs: Vec<Chain<D>> = inputs.iter().map(built).collect();
    let (seconds, sealed) = if work == Work::Merge {
        let mut side = |at: usize| inputs[at].iter().flat_map(|of| out.chunk(of)).collect();
        let sides = [side(0), side(1)];
        elapsed(|| out.merge(sides))
    } else {
        elapsed(|| {
            let mut chains: Vec<Chain<D>> = Vec::new();
            for input in inputs.iter().flatten() {
                chains.push(out.chunk(input));
                out.merge_last(&mut chains, |before, last| last >= before / 2);
            }
            out.merge_last(&mut chains, |_, _| true);
            out.extract(&chains.pop().unwrap_or_default(), black_box(None))
        })
    };
    (seconds, sealed.iter().map(|of| of.1.len() as u64).sum())
}
