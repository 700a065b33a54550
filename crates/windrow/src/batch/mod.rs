//! Batches: sorted rows, and the ways to read them.
//!
//! ```text
//! runs --merged while reading--> slabs (references to some thousand rows) --decode--> RecordBatch
//! ```
//!
//! The last merge writes nothing: its rows are decoded where they are. Block boundaries depend on
//! the rows and on the reader's requests, never on chunks, memory or threads.
//!
//! Invariant: rows ascend over all blocks, and the rule of the layout holds over all of them. The
//! times of a sealed batch are at or after `lower` and not at or after `upper`.

mod chunks;
mod merging;
mod settle;
mod slabs;
mod sources;

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;

pub use chunks::{ChunkReader, ChunkRows};
pub(crate) use merging::MergedPart;
pub use merging::Merging;
pub(crate) use merging::check_times;
use merging::merged;
pub use settle::fan_in;
pub(crate) use settle::{held_by_chunk, merger, own_bytes, settle};
pub use slabs::{Decoder, MergeHelper, RecordBatches, Slab, Slabs};
use sources::Refused;
pub(crate) use sources::Sources;

use crate::chunk::{Finish, Wraps};
#[cfg(feature = "ipc")]
use crate::merge::SortedInput;
use crate::merge::{FencedRun, Merger, Run, Source, merge_ranges};
use windrow_pool::Pool;
use windrow_rows::engine;
use windrow_rows::{Antichain, Error, Layout, Result, Rule, Time};

/// Sorted rows, to be read once.
#[must_use = "its rows are nowhere else"]
pub struct Batch<T = u64> {
    // Boxed: batches move from call to call, and moving the body would take longer than chaining
    // two runs.
    body: Box<Body<T>>,
}

struct Body<T> {
    layout: Layout,
    pool: Pool,
    sources: Sources,
    /// The run of a batch of one run, created by the first reader and shared by all.
    shared: OnceLock<Arc<FencedRun>>,
    /// Overflow notes, if there may be any.
    wraps: Option<Wraps>,
    lower: Antichain<T>,
    upper: Antichain<T>,
    since: Antichain<T>,
}

impl<T: Time> Batch<T> {
    /// Returns a batch of `runs`, which are all changes. Their memory becomes evictable.
    pub(crate) fn new(layout: &Layout, pool: &Pool, wraps: &Wraps, runs: Vec<Run>) -> Self {
        let rested = |run| Source::Run(rested(pool, run));
        let wraps = wraps.any().then(|| wraps.clone());
        Self::of_sources(layout, pool, wraps, runs.into_iter().map(rested).collect())
    }

    /// Does the same as [`Batch::new`] for one run without overflow notes.
    pub(crate) fn of_run(layout: &Layout, pool: &Pool, run: Run) -> Self {
        Self::of_sources(layout, pool, None, Sources::from(rested(pool, run)))
    }

    pub(crate) fn of_sources(
        layout: &Layout,
        pool: &Pool,
        wraps: Option<Wraps>,
        sources: Sources,
    ) -> Self {
        Self {
            body: Box::new(Body {
                layout: layout.clone(),
                pool: pool.clone(),
                sources,
                shared: OnceLock::new(),
                wraps,
                lower: Antichain::least(),
                upper: Antichain::new(),
                since: Antichain::least(),
            }),
        }
    }

    /// Returns the rows of `record_batches`, which must be sorted as a batch of the layout is.
    #[cfg(feature = "ipc")]
    pub(crate) fn sorted(
        layout: &Layout,
        pool: &Pool,
        record_batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    ) -> Self {
        let wraps = Wraps::default();
        let input = SortedInput::new(layout, pool, 0, &wraps, record_batches);
        let source = Source::Stream(Box::new(input));
        Self::of_sources(layout, pool, Some(wraps), Sources::from_iter([source]))
    }

    /// Sets the frontier from which on the changes add up to the input.
    #[cfg(feature = "ipc")]
    pub(crate) fn readable_from(mut self, since: &Antichain<T>) -> Self {
        self.body.since = since.clone();
        self
    }

    pub(crate) fn between(mut self, lower: &Antichain<T>, upper: &Antichain<T>) -> Self {
        (self.body.lower, self.body.upper) = (lower.clone(), upper.clone());
        self
    }

    /// Extends the batch to `upper`: no other changes lie before `upper`.
    pub(crate) fn reach(&mut self, upper: &Antichain<T>) {
        self.body.upper = upper.clone();
    }

    /// Combines `batches`, all of one layout, into one: from the least `lower` to the greatest
    /// `upper`, readable from the greatest `since` on. If a layout differs, reading or merging the
    /// union fails with [`crate::Error::SchemaMismatch`].
    pub fn union(layout: &Layout, pool: &Pool, batches: impl IntoIterator<Item = Self>) -> Self {
        let mut union: Option<Self> = None;
        for batch in batches {
            if let Err(error) = layout.check_same(&batch.body.layout) {
                let source = Source::Stream(Box::new(Refused(Some(error))));
                return Self::of_sources(layout, pool, None, Sources::from_iter([source]));
            }
            match &mut union {
                Some(union) => union.absorb(batch),
                None => union = Some(batch.with(layout, pool)),
            }
        }
        union.unwrap_or_else(|| Self::of_sources(layout, pool, None, Sources::default()))
    }

    /// Replaces the layout by an equal one, and the pool.
    fn with(mut self, layout: &Layout, pool: &Pool) -> Self {
        if !self.body.layout.is(layout) || !self.body.pool.is(pool) {
            (self.body.layout, self.body.pool) = (layout.clone(), pool.clone());
        }
        self
    }

    /// Adds another batch of the same layout.
    fn absorb(&mut self, mut batch: Self) {
        let (body, other) = (&mut *self.body, &mut *batch.body);
        body.shared.take();
        match (&mut body.wraps, other.wraps.take()) {
            (_, None) => {}
            (Some(all), Some(wraps)) => all.absorb(&body.pool, &wraps),
            (none, wraps) => *none = wraps,
        }
        if body.lower != other.lower {
            body.lower = body.lower.meet(&other.lower);
        }
        if body.upper != other.upper {
            body.upper = body.upper.join(&other.upper);
        }
        if body.since != other.since {
            body.since = body.since.join(&other.since);
        }
        body.sources.join(&body.layout, &mut other.sources);
    }

    /// Returns the layout of the rows.
    pub fn layout(&self) -> &Layout {
        &self.body.layout
    }

    /// Returns the same rows again, if the batch has at most one run; both share the chunks. Reads
    /// the metadata of every chunk.
    pub fn try_clone(&self) -> Option<Self> {
        let run = self.whole()?.cloned();
        let Body { layout, pool, wraps, lower, upper, since, .. } = &*self.body;
        Some(Self {
            body: Box::new(Body {
                layout: layout.clone(),
                pool: pool.clone(),
                sources: run.map(Sources::from).unwrap_or_default(),
                shared: self.body.shared.clone(),
                wraps: wraps.clone(),
                lower: lower.clone(),
                upper: upper.clone(),
                since: since.clone(),
            }),
        })
    }

    /// Returns the batch's run, or `None` if the batch is empty. The first call reads the metadata
    /// of every chunk.
    ///
    /// # Errors
    /// [`crate::Error::InvalidOrder`] if the batch has several runs.
    pub(crate) fn settled_run(&self) -> Result<Option<Arc<FencedRun>>> {
        let Some(run) = self.whole() else {
            let message = "the batch is several runs: settle it first";
            return Err(Error::InvalidOrder(message.into()));
        };
        let fenced = |run: &Run| Arc::new(FencedRun::new(run.clone()));
        let shared = |run: &Run| Arc::clone(self.body.shared.get_or_init(|| fenced(run)));
        Ok(run.filter(|run| !run.is_empty()).map(shared))
    }

    /// Returns the lower frontier: times of changes are at or beyond it.
    pub fn lower(&self) -> &Antichain<T> {
        &self.body.lower
    }

    /// Returns the upper frontier: no time of a change is at or beyond it.
    pub fn upper(&self) -> &Antichain<T> {
        &self.body.upper
    }

    /// Returns the frontier from which on the changes add up to the input at any time.
    pub fn since(&self) -> &Antichain<T> {
        &self.body.since
    }

    /// Returns the number of rows the batch yields, if it has at most one run. Reads no row, so the
    /// number is unknown under [`Rule::LastKnown`].
    pub fn rows(&self) -> Option<u64> {
        let whole = self.whole().filter(|_| self.body.layout.rule() != Rule::LastKnown);
        whole.map(|run| run.map_or(0, |run| run.rows() as u64))
    }

    /// Returns the uncompressed bytes of the rows, if the batch has at most one run.
    pub fn bytes(&self) -> Option<u64> {
        self.whole().map(|run| run.map_or(0, |run| run.bytes() as u64))
    }

    /// Returns the number of chunks, if the batch has at most one run.
    pub fn chunks(&self) -> Option<usize> {
        self.whole().map(|run| run.map_or(0, Run::chunks))
    }

    /// Returns the run of a batch of one run, or an inner `None` if the batch is empty.
    fn whole(&self) -> Option<Option<&Run>> {
        self.body.sources.are_settled().then(|| self.body.sources.run())
    }

    /// Returns the bytes of memory that the chunks hold now.
    pub fn resident_bytes(&self) -> usize {
        self.body.sources.resident_bytes()
    }

    /// Returns the least and the greatest row, if the batch is one nonempty run and neither row is
    /// longer than 1 KiB where chunks may be spilled. Reads no row. Under [`Rule::LastKnown`] these
    /// rows are not folded, and the greatest may be an older row of its key.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if the rows do not match the layout.
    pub fn bounds(&self) -> Result<Option<RecordBatch>> {
        let Some(ends) = self.body.sources.run().and_then(Run::ends) else { return Ok(None) };
        Ok(Some(engine::Decoder::of_all(&self.body.layout)?.decode(&ends)?))
    }

    /// Returns up to `most` rows, evenly spread, if the batch is one run: to cut keys into ranges, or
    /// to estimate. Reads nothing: of a chunk that is not in memory, at most the first row is taken.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if the rows do not match the layout.
    pub fn sample(&self, most: usize) -> Result<Option<RecordBatch>> {
        let Some(run) = self.whole() else { return Ok(None) };
        let rows = run.map_or_else(Vec::new, |run| run.sample(most));
        let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        Ok(Some(engine::Decoder::of_all(&self.body.layout)?.decode(&rows)?))
    }

    /// Merges all runs into one, in memory as far as the budget allows.
    ///
    /// # Errors
    /// Errors of merging and spilling.
    #[inline]
    pub fn settle(self) -> Result<Self> {
        self.settle_on(1)
    }

    /// Does the same as [`Batch::settle`] on up to `threads` threads, each merging a key range, if
    /// all rows are in memory without a limit. The rows do not depend on the number of threads.
    ///
    /// # Errors
    /// Errors of merging and spilling.
    #[inline]
    pub fn settle_on(mut self, threads: usize) -> Result<Self> {
        if self.is_chained() { Ok(self) } else { self.merged_on(threads) }
    }

    /// Returns true if there is nothing to merge, after chaining runs without overlap.
    fn is_chained(&mut self) -> bool {
        self.body.sources.are_settled()
            || self.body.sources.chain(&self.body.layout, &self.body.pool)
    }

    #[inline(never)]
    fn merged_on(mut self, threads: usize) -> Result<Self> {
        let in_memory = |source: &Source| matches!(source, Source::Run(_));
        if threads > 1
            && !self.body.pool.budget().is_limited()
            && self.body.sources.iter().all(in_memory)
        {
            let sources = std::mem::take(&mut self.body.sources);
            let runs = sources.into_iter().filter_map(Source::into_run).collect();
            let (layout, pool) = (&self.body.layout, &self.body.pool);
            let wraps = self.body.wraps.get_or_insert_default();
            let merged = merge_ranges(layout, pool, wraps, runs, threads)?;
            self.body.sources = Sources::from(merged);
            return Ok(self);
        }
        let sources = std::mem::take(&mut self.body.sources);
        let run = merged(&self.body.layout, &self.body.pool, &mut self.body.wraps, sources)?;
        self.body.sources = Sources::from(rested(&self.body.pool, run));
        self.body.wraps.take_if(|wraps| !wraps.any());
        Ok(self)
    }

    /// Merges all runs into one and adds a filter of the keys to each chunk: ten bits per key, in
    /// memory and in the budget. A [`Cursor`](crate::Cursor) then detects most absent keys from the
    /// filters and the ends of chunks, without reading rows. Reads the chunks without a filter.
    ///
    /// # Errors
    /// Errors of merging, spilling and reading chunks.
    pub fn filtered(self) -> Result<Self> {
        let mut batch = self.settle()?;
        batch.make_filters(true)?;
        // Later readers must see the filters.
        batch.body.shared.take();
        Ok(batch)
    }

    /// Stores the times and diffs of a settled batch of changes once for each chunk in memory that
    /// has at most 256 different ones. A row of two numbers with a time then takes half of the
    /// memory. Merged batches are stored so already. Copies the rows; reading them other than by a
    /// [`Cursor`](crate::Cursor) or a [`ChunkReader`] costs another copy.
    ///
    /// # Errors
    /// Errors of spilling.
    pub fn shortened(mut self) -> Result<Self> {
        let Body { layout, pool, .. } = &*self.body;
        let (layout, pool) = (layout.clone(), pool.clone());
        if layout.rule() == Rule::Sum
            && let Some(run) = self.body.sources.run_mut()
        {
            run.shorten(&layout, &pool)?;
            self.body.shared.take();
        }
        Ok(self)
    }

    /// Makes missing filters of a batch of one run. Reads chunks that are not in memory only with
    /// `reading`.
    pub(crate) fn make_filters(&self, reading: bool) -> Result<()> {
        let Some(run) = self.body.sources.run() else { return Ok(()) };
        run.make_filters(&self.body.layout, reading)
    }

    /// Advances all times to `since` and consolidates changes at equal times. Readers of times at
    /// or beyond `since` cannot tell the difference.
    ///
    /// # Errors
    /// Errors of merging and spilling; [`crate::Error::InvalidOrder`] if the layout has no such
    /// times.
    pub fn advance(self, since: &Antichain<T>) -> Result<Self> {
        let (layout, pool) = (self.body.layout.clone(), self.body.pool.clone());
        let mut merging = Merging::new(&layout, &pool, vec![self]).advancing(since)?;
        merging.work(&mut i64::MAX.clone())?;
        merging.finish()
    }

    /// Merges all runs into one in temporary files.
    ///
    /// # Errors
    /// Errors of merging and spilling.
    pub fn spill(mut self) -> Result<Self> {
        self.body.shared.take();
        let sources = std::mem::take(&mut self.body.sources);
        let out = sources.after();
        let (layout, pool) = (&self.body.layout, &self.body.pool);
        let wraps = self.body.wraps.get_or_insert_default();
        let sources = sources.into_iter().collect();
        let mut merger = Merger::new(layout, pool, Finish::Log, wraps, sources);
        self.body.sources = Sources::from(out.spilled(pool, &mut merger)?);
        Ok(self)
    }

    /// Returns the number of runs still to be merged.
    pub fn runs(&self) -> usize {
        self.body.sources.len()
    }

    /// Returns an iterator over all rows with all columns, deletions and diffs included, `rows` at
    /// a time. A record batch is shorter if its rows take 1 GiB. Its rows and its columns are in
    /// memory together, whatever the budget: choose `rows` to fit twice.
    ///
    /// # Errors
    /// Errors of merging and decoding, here and from the iterator.
    pub fn record_batches(self, rows: usize) -> Result<RecordBatches> {
        RecordBatches::new(self.slabs(Finish::Log), rows)
    }

    /// Returns an iterator over the current state, with all columns: deleted keys are omitted, and
    /// a row with diff n is repeated n times with diff 1. After the last row, any negative diff is
    /// [`crate::Error::NegativeDiff`]. Changes at different times do not cancel, so an order for a
    /// single state must have no time column.
    ///
    /// # Errors
    /// Errors of merging and decoding, here and from the iterator.
    pub fn snapshot(self, rows: usize) -> Result<RecordBatches> {
        RecordBatches::new(self.slabs(Finish::Snapshot), rows)
    }

    /// Returns the rows in blocks, for readers that decode on several threads.
    pub fn slabs(self, finish: Finish) -> Slabs {
        let sources = self.body.sources.into_iter().collect();
        Slabs::new(
            &self.body.layout,
            &self.body.pool,
            self.body.wraps.unwrap_or_default(),
            finish,
            sources,
        )
    }
}

shown!(
    Batch<T: Time>,
    it => order: it.body.layout.order(), runs: it.runs(), lower: it.body.lower,
    upper: it.body.upper, since: it.body.since
);

/// Prepares a run for keeping: with a memory limit, its chunks become evictable.
pub(crate) fn rested(pool: &Pool, mut run: Run) -> Run {
    run.trim();
    if pool.budget().is_limited() {
        run.rest(pool);
    }
    run
}
