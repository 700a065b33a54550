//! Batches: what is sorted, and the ways to read it.
//!
//! ```text
//! runs --merged as it is read--> slabs (some thousand rows, wherever they lie) --decode--> RecordBatch
//! ```
//!
//! The last merge is not written down: its rows are decoded from where they are. Where slabs end
//! depends on the rows and on what the reader asks for, never on chunks, memory or threads.
//!
//! Invariant: rows ascend over all slabs, and the rule of the layout holds over all of them; the times
//! of a batch that was sealed lie at or after `lower` and not at or after `upper`.

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
use merging::{IN_CACHES, merged};
pub use settle::fan_in;
pub(crate) use settle::{held_by_chunk, merger, own_bytes, settle};
pub use slabs::{Decoder, MergeHelper, RecordBatches, Slab, Slabs};
use sources::Refused;
pub(crate) use sources::Sources;

use crate::chunk::{Finish, Wraps};
use crate::error::{Error, Result};
#[cfg(feature = "ipc")]
use crate::merge::SortedInput;
use crate::merge::{FencedRun, Merger, Run, Source, merge_ranges};
use crate::order::{Layout, Rule};
use crate::pool::Pool;
use crate::rows;
use crate::time::{Antichain, Time};

/// Sorted rows, to be read once.
#[must_use = "its rows are nowhere else"]
pub struct Batch<T = u64> {
    // In one place: a batch is handed on from call to call, and to move all this takes longer than to put two
    // runs one behind the other.
    body: Box<Body<T>>,
}

struct Body<T> {
    layout: Layout,
    pool: Pool,
    sources: Sources,
    /// The run of a settled batch, once there was a reader of it; all readers have the same.
    shared: OnceLock<Arc<FencedRun>>,
    /// Notes of sums that do not fit, if there may be any.
    wraps: Option<Wraps>,
    lower: Antichain<T>,
    upper: Antichain<T>,
    since: Antichain<T>,
}

impl<T: Time> Batch<T> {
    /// All changes that there are, in `runs`. What of them is in memory may leave it from now on.
    pub(crate) fn new(layout: &Layout, pool: &Pool, wraps: &Wraps, runs: Vec<Run>) -> Self {
        let rested = |run| Source::Run(rested(pool, run));
        let wraps = wraps.any().then(|| wraps.clone());
        Self::of_sources(layout, pool, wraps, runs.into_iter().map(rested).collect())
    }

    /// As [`Batch::new`], of one run with all its sums.
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

    /// The rows of `record_batches`, which ascend as those of a batch of the layout do.
    #[cfg(feature = "ipc")]
    pub(crate) fn sorted(
        layout: &Layout,
        pool: &Pool,
        record_batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    ) -> Self {
        let wraps = Wraps::default();
        let input = SortedInput::new(layout, pool, 0, &wraps, record_batches);
        Self::of_sources(layout, pool, Some(wraps), Sources::from(Source::Stream(Box::new(input))))
    }

    /// Says from where on the changes add up to what was pushed.
    #[cfg(feature = "ipc")]
    pub(crate) fn readable_from(mut self, since: &Antichain<T>) -> Self {
        self.body.since = since.clone();
        self
    }

    pub(crate) fn between(mut self, lower: &Antichain<T>, upper: &Antichain<T>) -> Self {
        (self.body.lower, self.body.upper) = (lower.clone(), upper.clone());
        self
    }

    /// Says that there are no changes up to `upper` but those that the batch has.
    pub(crate) fn reach(&mut self, upper: &Antichain<T>) {
        self.body.upper = upper.clone();
    }

    /// All of `batches`, which are of one layout, as one: from the least `lower` to the greatest
    /// `upper`, readable from the greatest `since` on. If one is of another layout, whoever reads or
    /// merges the whole gets [`crate::Error::SchemaMismatch`].
    pub fn union(layout: &Layout, pool: &Pool, batches: impl IntoIterator<Item = Self>) -> Self {
        let mut union: Option<Self> = None;
        for batch in batches {
            if let Err(error) = layout.check_same(&batch.body.layout) {
                let source = Source::Stream(Box::new(Refused(Some(error))));
                return Self::of_sources(layout, pool, None, Sources::from(source));
            }
            match &mut union {
                Some(union) => union.absorb(batch),
                None => union = Some(batch.with(layout, pool)),
            }
        }
        union.unwrap_or_else(|| Self::of_sources(layout, pool, None, Sources::default()))
    }

    /// The same as a batch of this layout, which it is of, and this pool.
    fn with(mut self, layout: &Layout, pool: &Pool) -> Self {
        if !self.body.layout.is(layout) || !self.body.pool.is(pool) {
            (self.body.layout, self.body.pool) = (layout.clone(), pool.clone());
        }
        self
    }

    /// Takes in another batch of its layout.
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

    /// The layout of the rows.
    pub fn layout(&self) -> &Layout {
        &self.body.layout
    }

    /// The same rows once more, if the batch is settled: both share the chunks. Costs a look at every chunk.
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

    /// The run that the batch is, or none if it is empty. Costs a look at every chunk the first time.
    ///
    /// # Errors
    /// [`crate::Error::InvalidOrder`] if it is several.
    pub(crate) fn settled_run(&self) -> Result<Option<Arc<FencedRun>>> {
        let Some(run) = self.whole() else {
            let message = "the batch is several runs: settle it first";
            return Err(Error::InvalidOrder(message.into()));
        };
        let fenced = |run: &Run| Arc::new(FencedRun::new(run.clone()));
        let shared = |run: &Run| Arc::clone(self.body.shared.get_or_init(|| fenced(run)));
        Ok(run.filter(|run| !run.is_empty()).map(shared))
    }

    /// The times of the changes are at or beyond this frontier.
    pub fn lower(&self) -> &Antichain<T> {
        &self.body.lower
    }

    /// The times of the changes are not at or beyond this frontier.
    pub fn upper(&self) -> &Antichain<T> {
        &self.body.upper
    }

    /// The changes add up to what was pushed at any time at or beyond this frontier.
    pub fn since(&self) -> &Antichain<T> {
        &self.body.since
    }

    /// Number of rows, if the batch is one run: as many as it yields. No row is read for it, so that it is not known under
    /// [`Rule::LastKnown`].
    pub fn rows(&self) -> Option<u64> {
        let whole = self.whole().filter(|_| self.body.layout.rule() != Rule::LastKnown);
        whole.map(|run| run.map_or(0, |run| run.rows() as u64))
    }

    /// Bytes that the rows take in memory or before compression, if the batch is one run.
    pub fn bytes(&self) -> Option<u64> {
        self.whole().map(|run| run.map_or(0, |run| run.bytes() as u64))
    }

    /// Number of chunks, if the batch is one run.
    pub fn chunks(&self) -> Option<usize> {
        self.whole().map(|run| run.map_or(0, Run::chunks))
    }

    /// The run that the batch is, if it is one, or none if it is empty.
    fn whole(&self) -> Option<Option<&Run>> {
        self.body.sources.are_settled().then(|| self.body.sources.run())
    }

    /// Bytes of memory that the chunks hold now.
    pub fn resident_bytes(&self) -> usize {
        self.body.sources.resident_bytes()
    }

    /// The least row and the greatest, if the batch is one run and not empty, and neither is longer than
    /// 1 KiB where chunks may leave memory. No row is read for it: under [`Rule::LastKnown`] they are not filled, and the
    /// greatest may be an earlier one of its key.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if they are not of the layout.
    pub fn bounds(&self) -> Result<Option<RecordBatch>> {
        let Some(ends) = self.body.sources.run().and_then(Run::ends) else { return Ok(None) };
        Ok(Some(rows::Decoder::of_all(&self.body.layout)?.decode(&ends)?))
    }

    /// Merges all runs into one, now, in memory as far as the budget goes.
    ///
    /// # Errors
    /// What merging and spilling report.
    #[inline]
    pub fn settle(self) -> Result<Self> {
        self.settle_on(1)
    }

    /// As [`Batch::settle`], on up to `threads` threads if all rows are in memory that has no limit: each
    /// merges a range of the key. The rows are the same whatever their number.
    ///
    /// # Errors
    /// What merging and spilling report.
    #[inline]
    pub fn settle_on(mut self, threads: usize) -> Result<Self> {
        if self.is_chained() { Ok(self) } else { self.merged_on(threads) }
    }

    /// True if there is nothing to merge, or nothing any more.
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
            let past_caches = self.resident_bytes() > IN_CACHES;
            let sources = std::mem::take(&mut self.body.sources);
            let runs = sources.into_iter().filter_map(Source::into_run).collect();
            let (layout, pool) = (&self.body.layout, &self.body.pool);
            let wraps = self.body.wraps.get_or_insert_default();
            let merged = merge_ranges(layout, pool, wraps, runs, threads, past_caches)?;
            self.body.sources = Sources::from(merged);
            return Ok(self);
        }
        let sources = std::mem::take(&mut self.body.sources);
        let run = merged(&self.body.layout, &self.body.pool, &mut self.body.wraps, sources)?;
        self.body.sources = Sources::from(rested(&self.body.pool, run));
        self.body.wraps.take_if(|wraps| !wraps.any());
        Ok(self)
    }

    /// The same rows, settled, with a filter of the keys of each chunk: ten bits a key, in memory and in the budget. A
    /// [`Cursor`](crate::Cursor) that looks for a key which is not there finds that out by the filters, mostly, and by
    /// the ends of chunks, without their rows. Reads the chunks that have none yet.
    ///
    /// # Errors
    /// What merging, spilling and reading chunks report.
    pub fn filtered(self) -> Result<Self> {
        let mut batch = self.settle()?;
        batch.make_filters(true)?;
        // Its readers are to know of them.
        batch.body.shared.take();
        Ok(batch)
    }

    /// Makes filters of a settled batch; of chunks that are not in memory only if they may be read for it.
    pub(crate) fn make_filters(&self, reading: bool) -> Result<()> {
        let Some(run) = self.body.sources.run() else { return Ok(()) };
        run.make_filters(&self.body.layout, reading)
    }

    /// Moves all times up to `since`, and adds up the changes that it makes equal: readers at times
    /// at or beyond `since` cannot tell the difference.
    ///
    /// # Errors
    /// What merging and spilling report; [`crate::Error::InvalidOrder`] if the layout has no such times.
    pub fn advance(self, since: &Antichain<T>) -> Result<Self> {
        let (layout, pool) = (self.body.layout.clone(), self.body.pool.clone());
        let mut merging = Merging::new(&layout, &pool, vec![self]).advancing(since)?;
        merging.work(&mut i64::MAX.clone())?;
        merging.finish()
    }

    /// The same rows, merged into one run in temporary files.
    ///
    /// # Errors
    /// What merging and spilling report.
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

    /// Runs that are still to be merged.
    pub fn runs(&self) -> usize {
        self.body.sources.len()
    }

    /// All columns of all rows, `rows` at a time; deletions and diffs as they are. A record batch ends
    /// before that where its rows take 1 GiB. Its rows and the columns made of them are in memory together,
    /// whatever the budget: ask for as many rows as fit twice.
    ///
    /// # Errors
    /// What merging and decoding report, here and from the iterator.
    pub fn record_batches(self, rows: usize) -> Result<RecordBatches> {
        RecordBatches::new(self, Finish::Log, rows)
    }

    /// All columns of the rows that are there: deleted keys are left out, a row with diff n comes n
    /// times with diff 1. After the last row, a negative diff anywhere is [`crate::Error::NegativeDiff`];
    /// changes at different times do not cancel, so order without a time what is to be one state.
    ///
    /// # Errors
    /// What merging and decoding report, here and from the iterator.
    pub fn snapshot(self, rows: usize) -> Result<RecordBatches> {
        RecordBatches::new(self, Finish::Snapshot, rows)
    }

    /// The rows in slabs, for readers that decode on several threads.
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

impl<T: Time> std::fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Batch");
        out.field("order", &self.body.layout.order()).field("runs", &self.runs());
        out.field("lower", &self.body.lower)
            .field("upper", &self.body.upper)
            .field("since", &self.body.since);
        out.finish_non_exhaustive()
    }
}

/// A run that is kept: its chunks may leave memory from now on, where that has a limit.
pub(crate) fn rested(pool: &Pool, mut run: Run) -> Run {
    run.trim();
    if pool.budget().is_limited() {
        run.rest(pool);
    }
    run
}
