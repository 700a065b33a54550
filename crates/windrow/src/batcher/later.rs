//! Changes that a seal keeps, in buckets by time, so that the next seal touches few of them.
//!
//! ```text
//! time ----------|---------|---------|---------|--------- ...
//!   sealed     upper       | bucket  | bucket  | bucket        ascending; each has a least time
//!                bucket    |         |         |
//!                one run     runs, the longest first: merged when their bytes are alike
//!
//! seal    opens the buckets with times before `upper`, merges them with new changes, and cuts what
//!         it keeps of them into buckets of about as many rows each
//! ```
//! A change is thus merged again once for each level of cuts, and not once for each seal. Partially
//! ordered times have one bucket, which every seal opens.
//!
//! Invariants: all times of a bucket are at or beyond its least time, and before that of the next
//! bucket. The first bucket is one run with rows, so the frontier is exact.

use std::collections::VecDeque;

use super::accounting::Held;
use super::ladder::Means;
use crate::batch::{merger, rested, settle};
use crate::merge::{Extract, KeptRun, Run};
use windrow_pool::Pool;
use windrow_rows::{Antichain, Layout, Result, Time};

/// Rows from which kept changes are cut into buckets, and least rows of a bucket, about.
const LEAST_ROWS: usize = if cfg!(test) { 40 } else { 16 << 10 };
/// Buckets that one seal makes.
const CUTS: usize = 16;
/// Buckets altogether.
const MOST: usize = 64;
/// Chunks of the memory limit for each bucket: a seal builds a chunk of every bucket.
const CHUNKS: usize = 32;
/// A run is merged with the one before, unless that one has more than so many times its bytes.
const TIMES: usize = if cfg!(test) { usize::MAX } else { 2 };

/// The kept changes.
pub(super) struct Later<T> {
    buckets: VecDeque<Bucket<T>>,
}

struct Bucket<T> {
    least: T,
    runs: Vec<Held>,
    /// The lower bounds of the times, if there is one run.
    frontier: Antichain<T>,
}

impl<T: Time> Later<T> {
    pub(super) fn new() -> Self {
        Self { buckets: VecDeque::new() }
    }

    /// Takes the runs of all buckets with changes that may be before `upper`.
    pub(super) fn open(&mut self, upper: &Antichain<T>) -> Vec<Run> {
        let mut runs = Vec::new();
        let opens = |bucket: &Bucket<T>| !T::TOTAL || !upper.less_equal(bucket.least);
        while self.buckets.front().is_some_and(opens)
            && let Some(bucket) = self.buckets.pop_front()
        {
            runs.extend(bucket.runs.into_iter().filter_map(Held::take));
        }
        runs
    }

    /// Returns the times at which the kept rows of `runs` are to be cut: the least times of the
    /// buckets, and before them times that leave about as many rows between two of them.
    pub(super) fn cuts(
        &mut self,
        layout: &Layout,
        pool: &Pool,
        runs: &[Run],
        upper: &Antichain<T>,
    ) -> Vec<T> {
        let most = match pool.budget().is_limited() {
            true => (pool.budget().limit() / CHUNKS / pool.chunk_bytes()).clamp(1, MOST),
            false => MOST,
        };
        // Buckets may be too many for a limit that became lower.
        while self.buckets.len() > most
            && let Some(last) = self.buckets.pop_back()
            && let Some(before) = self.buckets.back_mut()
        {
            before.runs.extend(last.runs);
        }
        let mut cuts = Vec::new();
        let rows: usize = runs.iter().map(Run::rows).sum();
        let room = CUTS.min(rows / LEAST_ROWS).min(most - self.buckets.len());
        if T::TOTAL && room > 1 {
            let mut times: Vec<T> = Vec::new();
            runs.iter().for_each(|run| run.sample_times(layout, &mut times));
            let sampled = times.len().max(1);
            let next = self.buckets.front().map(|bucket| bucket.least);
            times.retain(|&time| {
                upper.less_equal(time) && next.is_none_or(|next| !next.less_equal(time))
            });
            times.sort_unstable();
            let kept = (rows as u128 * times.len() as u128 / sampled as u128) as usize;
            let parts = room.min(kept / LEAST_ROWS);
            cuts.extend((1..parts).map(|part| times[part * times.len() / parts]));
            cuts.dedup();
        }
        cuts.extend(self.buckets.iter().map(|bucket| bucket.least));
        cuts
    }

    /// Adds rows cut at [`Later::cuts`].
    pub(super) fn put(&mut self, means: Means<'_>, kept: Vec<KeptRun<T>>) -> Result<()> {
        let made = kept.len() - self.buckets.len();
        let mut kept = kept.into_iter();
        let new: Vec<KeptRun<T>> = kept.by_ref().take(made).collect();
        for (bucket, (run, _)) in self.buckets.iter_mut().zip(kept) {
            if !run.is_empty() {
                bucket.runs.push(held::<T>(means, run));
                while let [.., before, last] = &bucket.runs[..]
                    && before.bytes / TIMES <= last.bytes
                {
                    bucket.merge(means, 2)?;
                }
            }
        }
        for (run, frontier) in new.into_iter().rev() {
            if let Some(&least) = frontier.elements().first() {
                self.buckets.push_front(Bucket {
                    least,
                    runs: vec![held::<T>(means, run)],
                    frontier,
                });
            }
        }
        self.merge_first(means)?;
        self.buckets.iter_mut().flat_map(|bucket| &mut bucket.runs).for_each(Held::report);
        Ok(())
    }

    /// Merges the first bucket into one run, which has rows.
    fn merge_first(&mut self, means: Means<'_>) -> Result<()> {
        while let Some(first) = self.buckets.front_mut() {
            if let runs @ 2.. = first.runs.len() {
                first.merge(means, runs)?;
            }
            if !first.runs.is_empty() {
                break;
            }
            self.buckets.pop_front();
        }
        Ok(())
    }

    /// Returns the lower bounds of all times.
    pub(super) fn frontier(&self) -> Antichain<T> {
        self.buckets.front().map(|first| first.frontier.clone()).unwrap_or_default()
    }
}

impl<T: Time> Bucket<T> {
    /// Merges the last `count` runs; no run is left of them if all rows cancel.
    fn merge(&mut self, means: Means<'_>, count: usize) -> Result<()> {
        let Means { layout, pool, wraps, .. } = means;
        let last = self.runs.split_off(self.runs.len() - count);
        let runs = last.into_iter().filter_map(Held::take).collect();
        let runs = settle(layout, pool, wraps, runs)?;
        let (lower, all) = (Antichain::least(), Antichain::least());
        let mut extract = Extract::new(layout, pool, (&lower, &all), &[]);
        let mut merger = merger(layout, pool, wraps, runs);
        while let Some(chunk) = merger.next_chunk()? {
            extract.push_chunk(chunk)?;
        }
        for (run, frontier) in extract.finish()?.1 {
            self.frontier = frontier;
            if !run.is_empty() {
                self.runs.push(held::<T>(means, run));
            }
        }
        Ok(())
    }
}

/// Prepares a run for a later seal: with a limit, its chunks may be evicted in favour of pushed
/// rows. The least and greatest time of each chunk are computed first, so that a seal before all of
/// them reads nothing back.
fn held<T: Time>(means: Means<'_>, run: Run) -> Held {
    let Means { layout, pool, sink, .. } = means;
    if T::TOTAL && pool.budget().is_limited() {
        run.find_times(layout, T::WIDTH);
    }
    Held::new(rested(pool, run), sink)
}
