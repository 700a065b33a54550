//! The batcher: record batches in, in any order; one sorted batch out.
//!
//! ```text
//! push --> pusher 0: chunker --> chunks, in memory up to its share --full: merged, spilled--> run
//!          pusher 1: ...                                                                       |
//! finish --------------------------------------------------------------------------------------+
//!                            chunks and runs, few enough to be merged at once  -->  Batch
//! ```
//!
//! A pusher belongs to one thread and shares nothing with the others but the budget, of which each
//! has an equal part. Which pusher a row went through never shows: rows carry their place in the
//! input.
//!
//! Invariant: all rows pushed are in a run of exactly one pusher, or in its chunker.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;

use crate::batch::Batch;
use crate::chunk::{Chunk, Chunker, Finish};
use crate::error::{Error, Result};
use crate::merge::{ChunkSource, Merger, Run};
use crate::order::Layout;
use crate::pool::Pool;
use crate::rows::Prepared;

/// Runs that one merge takes at the most: their windows' heads stay in the cache.
const MOST_RUNS: usize = 512;
/// Chunks in memory that are merged into one run, when there is no end of memory.
const LADDER: usize = 256;
/// Chunks of a pusher's share that it needs itself: what is staged, what is being built, and the
/// output of a merge.
const OWN_CHUNKS: usize = 4;

/// Bytes that a chunk takes at the most: its buffer, and the offsets of rows of 16 bytes or more.
fn held_by_chunk(pool: &Pool) -> usize {
    pool.chunk_bytes() / 4 * 5
}

/// What the pushers of a batcher hand over.
#[derive(Debug, Default)]
struct Shared {
    runs: Mutex<Vec<Run>>,
    /// Pushers with rows that are not in `runs`: not flushed yet, or lost to an error.
    open: AtomicUsize,
}

impl Shared {
    fn runs(&self) -> MutexGuard<'_, Vec<Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
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
pub struct Batcher {
    layout: Layout,
    pool: Pool,
    shared: Arc<Shared>,
    own: Pusher,
    pushed: u64,
}

impl Batcher {
    /// A batcher for rows of `layout`, in the memory of `pool`.
    pub fn new(layout: &Layout, pool: &Pool) -> Self {
        let shared = Arc::default();
        Self {
            layout: layout.clone(),
            pool: pool.clone(),
            own: Pusher::new(layout, pool, &shared, 1),
            shared,
            pushed: 0,
        }
    }

    /// Takes the rows of `batch` in, behind all those pushed before.
    ///
    /// # Errors
    /// What encoding and spilling report: [`crate::Error::SchemaMismatch`],
    /// [`crate::Error::Value`], [`crate::Error::TempSpace`], ...
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.own.push(batch, self.pushed)?;
        self.pushed += batch.num_rows() as u64;
        Ok(())
    }

    /// `count` ways in for as many threads, which share the budget equally. Each is to be flushed
    /// before [`Batcher::finish`].
    pub fn pushers(&self, count: usize) -> Vec<Pusher> {
        (0..count).map(|_| Pusher::new(&self.layout, &self.pool, &self.shared, count)).collect()
    }

    /// Everything that was pushed, sorted and compacted. The last merge happens as it is read.
    ///
    /// # Errors
    /// What merging and spilling report; [`Error::Unflushed`] if rows would be missing.
    pub fn finish(mut self) -> Result<Batch> {
        self.own.flush()?;
        let pushers = self.shared.open.load(Ordering::Acquire);
        if pushers > 0 {
            return Err(Error::Unflushed { pushers });
        }
        let runs = std::mem::take(&mut *self.shared.runs());
        let runs = settle(&self.layout, &self.pool, runs)?;
        Ok(Batch::new(&self.layout, &self.pool, runs))
    }
}

/// Brings the runs down to as many as can be merged at once within the budget.
fn settle(layout: &Layout, pool: &Pool, mut runs: Vec<Run>) -> Result<Vec<Run>> {
    let limit = pool.budget().limit();
    let chunk = held_by_chunk(pool);
    let resident: usize = runs.iter().map(Run::resident_bytes).sum();
    let windows = runs.iter().filter(|run| run.resident_bytes() == 0).count() * chunk;
    let own = OWN_CHUNKS * chunk;
    if resident > 0 && resident.saturating_add(windows).saturating_add(own) > limit {
        let (held, mut spilled): (Vec<_>, Vec<_>) =
            runs.into_iter().partition(|run| run.resident_bytes() > 0);
        spilled.push(spill(layout, pool, held)?);
        runs = spilled;
    }
    pool.release_recycled();
    let most = (limit / chunk).saturating_sub(OWN_CHUNKS).clamp(2, MOST_RUNS);
    while runs.len() > most {
        // The shortest first, so that few bytes are written twice; just enough of them.
        runs.sort_by_key(Run::rows);
        let group = (runs.len() - most + 1).clamp(2, most);
        let merged: Vec<Run> = runs.drain(..group).collect();
        let in_memory = merged.iter().all(|run| run.resident_bytes() > 0);
        runs.push(if in_memory {
            ladder(layout, pool, merged)?
        } else {
            spill(layout, pool, merged)?
        });
    }
    runs.retain(|run| !run.is_empty());
    Ok(runs)
}

fn merger(layout: &Layout, pool: &Pool, runs: Vec<Run>) -> Merger {
    let sources = runs.into_iter().map(|run| Box::new(run) as Box<dyn ChunkSource>).collect();
    Merger::new(layout, pool, Finish::Log, sources)
}

/// Merges runs into one on disk; their memory is free as soon as it is read.
fn spill(layout: &Layout, pool: &Pool, runs: Vec<Run>) -> Result<Run> {
    Run::spilled(pool, &mut merger(layout, pool, runs))
}

/// Merges runs into one in memory.
fn ladder(layout: &Layout, pool: &Pool, runs: Vec<Run>) -> Result<Run> {
    Run::merged(pool, &mut merger(layout, pool, runs))
}

/// One thread's way into a [`Batcher`].
pub struct Pusher {
    layout: Layout,
    pool: Pool,
    shared: Arc<Shared>,
    /// Whether this pusher counts as open.
    open: bool,
    /// Rows were lost to an error: open for ever.
    failed: bool,
    chunker: Chunker,
    chunks: Vec<Chunk>,
    /// Bytes that `chunks` hold.
    held: usize,
    pushers: usize,
}

impl Pusher {
    fn new(layout: &Layout, pool: &Pool, shared: &Arc<Shared>, pushers: usize) -> Self {
        Self {
            layout: layout.clone(),
            pool: pool.clone(),
            shared: Arc::clone(shared),
            open: false,
            failed: false,
            chunker: Chunker::new(layout, pool),
            chunks: Vec::new(),
            held: 0,
            pushers,
        }
    }

    /// Takes the rows of `batch` in. `sequence` is the place in the whole input of its first row,
    /// which decides between equals; those after it follow on.
    ///
    /// # Errors
    /// As [`Batcher::push`]. A record batch that cannot be encoded is refused as a whole; after any
    /// other error rows are missing, and the batcher does not finish.
    pub fn push(&mut self, batch: &RecordBatch, sequence: u64) -> Result<()> {
        let prepared = self.chunker.prepare(batch, sequence)?;
        if !std::mem::replace(&mut self.open, true) {
            self.shared.open.fetch_add(1, Ordering::Release);
        }
        let pushed = self.stage(&prepared);
        self.failed |= pushed.is_err();
        pushed
    }

    /// Stages rows and collects chunks in turn, so that no more of them pile up than fit.
    fn stage(&mut self, prepared: &Prepared) -> Result<()> {
        let mut next = 0;
        while next < prepared.len() {
            next = self.chunker.push(prepared, next)?;
            self.collect()?;
        }
        Ok(())
    }

    /// Hands everything over to the batcher.
    ///
    /// # Errors
    /// As [`Batcher::push`].
    pub fn flush(&mut self) -> Result<()> {
        let flushed = self.chunker.flush().and_then(|()| self.collect());
        self.failed |= flushed.is_err();
        flushed?;
        let runs = self.chunks.drain(..).map(|chunk| Run::of(&self.pool, chunk));
        self.shared.runs().extend(runs);
        self.held = 0;
        if !self.failed && std::mem::replace(&mut self.open, false) {
            self.shared.open.fetch_sub(1, Ordering::Release);
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<()> {
        while let Some(chunk) = self.chunker.take() {
            self.held += chunk.leased_bytes();
            self.chunks.push(chunk);
            let share = self.pool.budget().limit() / self.pushers;
            let full = self.held + OWN_CHUNKS * held_by_chunk(&self.pool) > share;
            if full || self.chunks.len() >= LADDER {
                let runs = self.chunks.drain(..).map(|c| Run::of(&self.pool, c)).collect();
                self.held = 0;
                let run = if full {
                    spill(&self.layout, &self.pool, runs)?
                } else {
                    ladder(&self.layout, &self.pool, runs)?
                };
                self.shared.runs().push(run);
            }
        }
        Ok(())
    }
}
