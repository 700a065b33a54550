//! The batcher: takes record batches in any order, returns sorted batches.
//!
//! ```text
//! push --> pusher 0: chunker --> ladder: runs in memory --share full: merged, spilled--> run
//!          pusher 1: ...                                                                  |
//! finish, seal ---------------------------------------------------------------------------+
//!    finish   chunks and runs, few enough to be merged at once  -->  Batch
//!    seal     merged; changes before the frontier --> Batch, all others stay, in buckets by time
//! ```
//!
//! A pusher belongs to one thread and shares nothing but the budget with other pushers. The pushers
//! of all batchers of a budget have equal parts of it. Results do not depend on which pusher a row
//! went through: rows carry their position in the input.
//!
//! Invariant: every pushed row is in exactly one place: a run, a bucket, or the write buffers or
//! pending record batches of one pusher.

mod accounting;
mod ladder;
mod later;
mod pile;
mod pusher;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;

pub use accounting::Accounting;
pub use pusher::Pusher;

use crate::batch::{Batch, check_times, merger, settle};
use crate::chunk::{Wraps, time_of};
use crate::merge::{Extract, Run, merge_ranges};
use accounting::{Held, Sink};
use ladder::Means;
use later::Later;
use windrow_pool::{Pool, lock};
use windrow_rows::{Antichain, Error, Layout, Result, Time};

/// Bytes of recycled buffers that a seal leaves to the next seal: as many as it sealed, between these
/// two. A small batch is sealed without mapping memory, which costs more than sorting the batch.
const STASH: [usize; 2] = [1 << 20, 16 << 20];

/// State that the pushers of a batcher share.
#[derive(Default)]
struct Shared {
    runs: Mutex<Vec<Held>>,
    /// Sums that overflowed their stored diffs so far.
    wraps: Wraps,
    sink: Sink,
    /// Number of pushers with rows that are not in `runs` yet.
    open: AtomicUsize,
    /// True if rows were lost to an error.
    lost: AtomicBool,
}

impl Shared {
    /// Returns `result`; an error marks the batcher's rows as lost.
    fn noting<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.lost.store(true, Ordering::Release);
        }
        result
    }
}

/// Sorts and compacts record batches in the memory of its pool.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use windrow::{Batcher, Order, Pool, desc};
///
/// # let amounts: ArrayRef = Arc::new(Int64Array::from(vec![5, 9, 7]));
/// # let batch = RecordBatch::try_from_iter([("amount", amounts)])?;
/// let layout = Order::by(desc("amount")).bind(&batch.schema())?;
/// let mut batcher = Batcher::new(&layout, &Pool::unlimited());
/// batcher.push(&batch)?;
/// let sorted: Vec<_> = batcher.finish()?.record_batches(8192)?.collect::<Result<_, _>>()?;
/// # assert_eq!(sorted[0].column(0).as_ref(), &Int64Array::from(vec![9, 7, 5]));
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// Changes are sealed by a frontier:
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
/// use windrow::{Antichain, Batcher, Order, Pool};
///
/// # let changes = RecordBatch::try_from_iter([
/// #     ("item", Arc::new(UInt64Array::from(vec![1, 1, 2])) as ArrayRef),
/// #     ("time", Arc::new(UInt64Array::from(vec![3, 4, 3])) as ArrayRef),
/// #     ("diff", Arc::new(Int64Array::from(vec![1, -1, 1])) as ArrayRef),
/// # ])?;
/// let layout = Order::by("item").time("time").diff("diff").bind(&changes.schema())?;
/// let mut batcher = Batcher::new(&layout, &Pool::unlimited());
/// batcher.push(&changes)?;
/// let batch = batcher.seal(&Antichain::at(4))?;
/// assert_eq!(batch.rows(), Some(2));
/// assert_eq!(batcher.frontier(), &Antichain::at(4));
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Batcher<T = u64> {
    shared: Arc<Shared>,
    own: Pusher,
    pushed: u64,
    /// Number of threads that a seal merges on.
    threads: usize,
    /// Frontier of the last seal: all earlier changes were sealed.
    lower: Antichain<T>,
    /// Changes that the last seal kept, and the lower bounds of their times.
    later: Later<T>,
    frontier: Antichain<T>,
}

impl Batcher {
    /// Creates a batcher for rows of `layout`, in the memory of `pool`. Times, if any, are `u64`.
    pub fn new(layout: &Layout, pool: &Pool) -> Self {
        Self::timed(layout, pool)
    }
}

impl<T: Time> Batcher<T> {
    /// Creates a batcher for rows of `layout` with times of type `T`, in the memory of `pool`.
    pub fn timed(layout: &Layout, pool: &Pool) -> Self {
        Self::with(layout, pool, None)
    }

    /// Does the same as [`Batcher::timed`], and reports every change of the held memory to `sink`.
    pub fn accounted(
        layout: &Layout,
        pool: &Pool,
        sink: impl Fn(Accounting) + Send + Sync + 'static,
    ) -> Self {
        Self::with(layout, pool, Some(Arc::new(sink)))
    }

    fn with(layout: &Layout, pool: &Pool, sink: Sink) -> Self {
        let shared = Arc::new(Shared { sink, ..Shared::default() });
        Self {
            own: Pusher::new(layout, pool, &shared, 1),
            shared,
            pushed: 0,
            threads: 1,
            lower: Antichain::least(),
            later: Later::new(),
            frontier: Antichain::new(),
        }
    }

    /// Returns the pool that provides the batcher's memory.
    pub(crate) fn pool(&self) -> &Pool {
        self.own.pool()
    }

    /// Lets a seal merge on up to `threads` threads, each a range of the key, if memory has no
    /// limit. The sealed rows do not depend on the number of threads.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Adds the rows of `batch` after all rows pushed before.
    ///
    /// # Errors
    /// Errors of encoding and spilling: [`crate::Error::SchemaMismatch`], [`crate::Error::Value`],
    /// [`crate::Error::TempSpace`], ... A record batch that cannot be encoded is refused as a
    /// whole. After any other error rows are missing, and the batcher does not finish.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.own.push(batch, self.pushed)?;
        self.pushed += batch.num_rows() as u64;
        Ok(())
    }

    /// Adds encoded rows, one after another in `bytes`, as [`RowEncoder`](crate::RowEncoder)
    /// encodes rows of columns without nulls. If rows of the layout have no
    /// [stride](Layout::stride), `ends` holds the end of each row. Costs a copy, and a check of
    /// each row of variable length.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if rows of the layout carry a position in the input (every layout
    /// without a diff) or values that are not part of its order; [`Error::Corrupt`] if `bytes` are
    /// not such rows. Neither changes the batcher. Errors of spilling: afterwards rows are missing,
    /// and the batcher does not finish.
    pub fn push_rows(&mut self, bytes: &[u8], ends: &[u32]) -> Result<()> {
        self.own.push_rows(bytes, ends)
    }

    /// Creates `count` pushers for as many threads, which share the budget equally. Flush each
    /// pusher before [`Batcher::finish`] and [`Batcher::seal`]. A pusher dropped without
    /// [`Pusher::flush`] loses its rows, and the batcher does not finish.
    pub fn pushers(&self, count: usize) -> Vec<Pusher> {
        (0..count)
            .map(|_| Pusher::new(self.own.layout(), self.own.pool(), &self.shared, count))
            .collect()
    }

    /// Returns all rows that were pushed and not sealed, sorted and compacted. The last merge
    /// happens during reading.
    ///
    /// # Errors
    /// Errors of merging and spilling; [`Error::Unflushed`] and [`Error::Lost`] if rows would be
    /// missing.
    pub fn finish(mut self) -> Result<Batch<T>> {
        let mut runs = self.collected()?;
        runs.extend(self.later.open(&Antichain::new()));
        let wraps = &self.shared.wraps;
        let runs = settle(self.own.layout(), self.own.pool(), wraps, runs)?;
        let batch = Batch::new(self.own.layout(), self.own.pool(), wraps, runs);
        Ok(batch.between(&self.lower, &Antichain::new()))
    }

    /// Seals the changes whose times are not at or beyond `upper`, merged into one run, and keeps
    /// all other changes. The caller promises to push no further changes before `upper`. Costs a
    /// merge of the rows pushed since the last seal with held rows of near times: over many seals,
    /// each row is merged a few times. Partially ordered times cost a merge of all held rows.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if `upper` goes back or the layout has no times,
    /// [`Error::UnsupportedColumn`] if the times are not of type `T`, and [`Error::Unflushed`]
    /// leave the batcher as it was. After errors of merging and spilling, [`Error::Value`] for a
    /// change that came too late, and [`Error::DiffOverflow`], rows are lost, and any later call is
    /// [`Error::Lost`].
    pub fn seal(&mut self, upper: &Antichain<T>) -> Result<Batch<T>> {
        if !self.lower.before(upper) {
            let (lower, upper) = (self.lower.elements(), upper.elements());
            return Err(Error::InvalidOrder(format!("sealed up to {lower:?} before {upper:?}")));
        }
        let all = upper.is_empty() && self.lower == Antichain::least();
        if !all {
            check_times::<T>(self.own.layout())?;
        }
        let runs = self.collected()?;
        let sealed = self.cut(runs, upper, all);
        self.shared.noting(sealed)
    }

    /// Splits `runs` and the kept changes: returns the changes before `upper`, or all of them, and
    /// keeps the rest.
    fn cut(&mut self, mut runs: Vec<Run>, upper: &Antichain<T>, all: bool) -> Result<Batch<T>> {
        runs.extend(self.later.open(upper));
        let (layout, pool, wraps) = (self.own.layout(), self.own.pool(), &self.shared.wraps);
        let cuts = self.later.cuts(layout, pool, &runs, upper);
        let runs = settle(layout, pool, wraps, runs)?;
        let (ship, kept) = match <[Run; 1]>::try_from(runs) {
            // Nothing to merge or to split.
            Ok([run]) if all => (run, Vec::new()),
            runs => {
                let mut extract = Extract::new(layout, pool, (&self.lower, upper), &cuts);
                self.merge_into(&mut extract, runs.map_or_else(|runs| runs, Vec::from))?;
                extract.finish()?
            }
        };
        self.later.put(Means { layout, pool, wraps, sink: &self.shared.sink }, kept)?;
        let mut frontier = self.later.frontier();
        let time = |body: &[u8]| T::decode(time_of(body, T::WIDTH, 0));
        if wraps.any() {
            let sealed = wraps.split(pool, |body| all || !upper.less_equal(time(body)));
            sealed.check(layout)?;
            wraps.each(|body| {
                frontier.insert(time(body));
            });
        }
        pool.release_recycled_beyond(ship.bytes().clamp(STASH[0], STASH[1]));
        let batch = Batch::of_run(layout, pool, ship);
        let batch = batch.between(&self.lower, upper);
        (self.lower, self.frontier) = (upper.clone(), frontier);
        Ok(batch)
    }

    /// Merges `runs` and passes the rows to `extract`.
    fn merge_into(&self, extract: &mut Extract<'_, T>, mut runs: Vec<Run>) -> Result<()> {
        let (layout, pool, wraps) = (self.own.layout(), self.own.pool(), &self.shared.wraps);
        if self.threads > 1 && runs.len() > 1 && !pool.budget().is_limited() {
            let merged = merge_ranges(layout, pool, wraps, runs, self.threads)?;
            runs = vec![merged];
        }
        if runs.len() == 1 {
            return runs.into_iter().try_for_each(|run| extract.push_run(run));
        }
        let mut merger = merger(layout, pool, wraps, runs);
        while let Some(chunk) = merger.next_chunk()? {
            extract.push_chunk(chunk)?;
        }
        Ok(())
    }

    /// Returns the lower bounds of the times that the last seal kept: no held change is before
    /// them.
    pub fn frontier(&self) -> &Antichain<T> {
        &self.frontier
    }

    /// Takes all runs from the pushers.
    fn collected(&mut self) -> Result<Vec<Run>> {
        self.own.flush()?;
        if self.shared.lost.load(Ordering::Acquire) {
            return Err(Error::Lost);
        }
        let pushers = self.shared.open.load(Ordering::Acquire);
        if pushers > 0 {
            return Err(Error::Unflushed { pushers });
        }
        let held = std::mem::take(&mut *lock(&self.shared.runs));
        Ok(held.into_iter().filter_map(Held::take).collect())
    }
}

shown!(
    Batcher<T: Time>,
    it => order: it.own.layout().order(), pushed: it.pushed, lower: it.lower, frontier: it.frontier
);
