//! The pool itself: settings, and the size of chunks. Memory is in `memory`, pages in `paging`.

mod memory;
mod paging;
mod scratch;

use std::any::Any;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::lock::lock;
use windrow_rows::Result;

use self::scratch::Kept;
use crate::budget::Budget;
use crate::codec::{self, Codec};
use crate::metrics::{Metrics, PoolStats};
use crate::options::PoolOptions;
use crate::policy::{SpillPolicy, SpillTo, Tiered};
use crate::recycled::Recycled;
use crate::residents::Residents;
use crate::spiller::Spiller;
use crate::store::Store;

/// Bytes of rows in a chunk, about: few enough to be sorted in and around the second-level cache,
/// many enough for an in-memory directory of the chunks of 64 GiB.
const CHUNK_BYTES: usize = 2 << 20;
/// Bytes of a chunk if nothing is ever spilled: small enough for a merge to write its output over
/// just consumed chunks, still in a fast cache.
const UNSPILLED_CHUNK: usize = 256 << 10;
/// Least bytes of a chunk, whatever the budget: smaller transfers would not saturate a disk.
const SMALLEST_CHUNK: usize = 64 << 10;
/// Least number of chunks per budget: enough for runs to be merged in few passes.
const CHUNKS_PER_BUDGET: usize = 96;
/// Chunks per budget of an index, and the largest such chunk. Indexes are read one key at a time,
/// so their chunks are smaller: at 32 MiB, a look-up reads 64 KiB instead of 341 KiB, and a paused
/// merge holds accordingly less.
const FINE_CHUNKS_PER_BUDGET: usize = 512;
const LARGEST_FINE_CHUNK: usize = 256 << 10;

/// Memory under a budget, and temporary files for the overflow. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: Arc<Inner>,
    /// Whether chunks are those of an index.
    fine: bool,
}

#[derive(Debug)]
struct Inner {
    budget: Budget,
    store: Store,
    chunk_bytes: usize,
    stage_bytes: usize,
    /// Bytes of a chunk of an index.
    fine_bytes: usize,
    /// Buffers of both sizes for reuse. They keep their leases.
    recycled: Mutex<Recycled>,
    kept: Mutex<Kept>,
    residents: Mutex<Residents>,
    spiller: Spiller,
    /// Bytes leased for the metadata of pages, wherever the rows are; indexes are excluded.
    pages: AtomicUsize,
    settings: Mutex<Settings>,
    /// Whether the policy is [`Tiered`]: without a limit, it keeps every chunk and is not
    /// consulted.
    usual: AtomicBool,
    metrics: Metrics,
}

/// How chunks are spilled; may change at any time.
#[derive(Clone, Debug)]
struct Settings {
    codec: Codec,
    to: SpillTo,
    policy: Arc<dyn SpillPolicy>,
}

impl Pool {
    /// Returns a pool that spills into files under `directory`. The files are unlinked from the
    /// start and created on the first spill.
    ///
    /// # Errors
    /// [`Error::TempSpace`](windrow_rows::Error::TempSpace) if `directory` is not a directory. A
    /// failure to create files in it surfaces on the first spill, as the same error.
    pub fn in_dir(directory: impl AsRef<Path>, budget: Budget) -> Result<Self> {
        Self::new(budget, PoolOptions::new().directories([directory.as_ref()]))
    }

    /// Returns a pool without a limit, which never spills. The pool keeps used memory for reuse:
    /// some ten megabytes after a seal, everything once batchers or batches are dropped.
    /// [`Pool::release`] or dropping the pool frees the memory.
    pub fn unlimited() -> Self {
        Self::new(Budget::unlimited(), PoolOptions::default())
            .expect("no directory was named that may be missing")
    }

    /// Returns a pool with the given options.
    ///
    /// # Errors
    /// As for [`Pool::in_dir`], for the directories of the options.
    pub fn new(budget: Budget, options: PoolOptions) -> Result<Self> {
        let share = (budget.limit() / CHUNKS_PER_BUDGET).clamp(SMALLEST_CHUNK, CHUNK_BYTES) & !4095;
        let (chunk, stage) = match options.chunk_bytes {
            Some(bytes) => (bytes, bytes),
            None if budget.is_limited() => (share, share),
            None => (UNSPILLED_CHUNK, share),
        };
        Self::with_chunks(budget, options, chunk, stage)
    }

    /// Returns the budget of all leases of this pool.
    pub fn budget(&self) -> &Budget {
        &self.inner.budget
    }

    /// Returns the counters of the pool.
    pub fn stats(&self) -> PoolStats {
        let reused = lock(&self.inner.recycled).reused;
        let Inner { metrics, budget, store, spiller, .. } = &*self.inner;
        let in_flight = spiller.in_flight();
        PoolStats { in_flight, ..metrics.snapshot(budget, store.size(), reused) }
    }

    /// Compresses chunks spilled from now on with `codec`.
    pub fn set_codec(&self, codec: Codec) {
        lock(&self.inner.settings).codec = codec;
    }

    /// Spills to `to` from now on.
    pub fn set_spill_to(&self, to: SpillTo) {
        lock(&self.inner.settings).to = to;
    }

    /// Lets `policy` decide from now on.
    pub fn set_policy(&self, policy: Arc<dyn SpillPolicy>) {
        let mut settings = lock(&self.inner.settings);
        self.inner.usual.store(is_usual(&*policy), Ordering::Relaxed);
        settings.policy = policy;
    }

    /// Changes the limit of the budget. A lower limit releases unused memory to the system at once:
    /// recycled buffers, then pages at rest. Memory in use is released after its use.
    ///
    /// # Errors
    /// Errors of spilling.
    pub fn set_limit(&self, limit: usize) -> Result<()> {
        self.budget().set_limit(limit);
        if self.budget().is_limited() {
            self.release_scratch();
        }
        while self.budget().used() > limit {
            if self.release_recycled() == 0 && !self.wait_or_evict()? {
                break;
            }
        }
        Ok(())
    }

    /// Returns unused memory, kept for reuse, to the system. With a limit, such memory counts as
    /// leased until it is reused. Reading a batch to its end also releases it.
    pub fn release(&self) {
        self.release_scratch();
        self.release_recycled();
    }

    /// Waits until no page is being written out or read ahead.
    pub fn wait_for_spills(&self) {
        self.inner.spiller.wait_for_all();
    }
}

/// For the engine.
#[doc(hidden)]
impl Pool {
    /// Returns a pool with chunks of `chunk_bytes`, and rows sorted `stage_bytes` at a time.
    ///
    /// # Errors
    /// As for [`Pool::in_dir`].
    pub fn with_chunks(
        budget: Budget,
        options: PoolOptions,
        chunk_bytes: usize,
        stage_bytes: usize,
    ) -> Result<Self> {
        let settings = Settings {
            codec: options.codec,
            to: options.spill_to,
            policy: Arc::clone(&options.policy),
        };
        let fine = (budget.limit() / FINE_CHUNKS_PER_BUDGET).max(SMALLEST_CHUNK) & !4095;
        let fine_bytes = fine.min(LARGEST_FINE_CHUNK).min(chunk_bytes);
        let inner = Inner {
            fine_bytes,
            spiller: Spiller::new(options.spill_threads),
            store: Store::new(options, &budget, chunk_bytes)?,
            budget,
            chunk_bytes,
            stage_bytes,
            recycled: Mutex::default(),
            kept: Mutex::default(),
            residents: Mutex::default(),
            pages: AtomicUsize::new(0),
            usual: AtomicBool::new(is_usual(&*settings.policy)),
            settings: Mutex::new(settings),
            metrics: Metrics::default(),
        };
        Ok(Self { inner: Arc::new(inner), fine: false })
    }

    /// Returns the pool as seen by an index: under a limit, its chunks are smaller.
    pub fn for_index(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), fine: true }
    }

    /// Returns true if the pool is that of an index.
    pub fn is_for_index(&self) -> bool {
        self.fine
    }

    /// Returns true if `other` is this pool or a clone of it.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) && self.fine == other.fine
    }

    /// Returns the bytes of a chunk.
    pub fn chunk_bytes(&self) -> usize {
        if self.fine { self.inner.fine_bytes } else { self.inner.chunk_bytes }
    }

    /// Returns the bytes of rows that are sorted at once: one chunk or several.
    pub fn stage_bytes(&self) -> usize {
        self.inner.stage_bytes
    }

    /// Returns the bytes of compression workspace of a worker and the spill threads.
    pub fn scratch_bytes(&self) -> usize {
        let each = codec::scratch_bytes(lock(&self.inner.settings).codec, self.inner.chunk_bytes);
        each.saturating_mul(1 + self.inner.spiller.most)
    }

    /// Returns true if spilled chunks are compressed.
    pub fn compresses(&self) -> bool {
        lock(&self.inner.settings).codec != Codec::None
    }
}

/// Returns true if `policy` is [`Tiered`].
fn is_usual(policy: &dyn SpillPolicy) -> bool {
    (policy as &dyn Any).is::<Tiered>()
}
