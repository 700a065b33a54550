//! The pool: memory under one budget, and a store on disk for the overflow.
//!
//! ```text
//! Budget   a number of bytes; leases take from it and give back on drop
//! Buffer   memory with its lease, recycled through the pool
//! Kept     unused working memory, if there is no limit
//! Store    a few unlinked files, or memory outside the process; extents of them, checksummed
//! Spiller  threads that write pages out and read them ahead
//! ```
//! If the budget is exhausted, a caller gets memory in this order: a recycled buffer, the memory of
//! a write in progress, the memory of the coldest page at rest, and only then memory beyond the
//! limit. Limit, policy, codec and spill target may change while leases and extents exist.
//!
//! Invariants: leases exceed the limit only by memory without which a job could not go on. A store
//! returns the bytes as written, or an error.

mod budget;
mod codec;
mod metrics;
mod options;
mod policy;
mod recycled;
mod residents;
mod scratch;
mod spiller;
mod store;

/// The synchronization primitives of the budget. `tests/budget_under_every_interleaving.rs`
/// replaces them by loom's.
mod sync {
    pub(super) use std::sync::Arc;
    pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
}

use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use budget::{Budget, Memory};
pub(crate) use budget::{Lease, Share};
pub use codec::Codec;
use metrics::Metrics;
pub use metrics::PoolStats;
pub use options::{PoolOptions, SpillTo};
pub use policy::{Decision, ForceSpill, Offer, SpillEvent, SpillPolicy, Tiered};
use recycled::Recycled;
use residents::Residents;
use scratch::Kept;
use spiller::Spiller;
pub(crate) use spiller::{Leave, Paged};
use store::Store;
pub(crate) use store::{Extent, Part};

use crate::error::{Error, Result};
use crate::kernel::cpu::has_wide_caches;
use crate::kernel::region::Region;

/// Bytes of rows in a chunk, about: few enough to be sorted in and around the second-level cache,
/// many enough for an in-memory directory of the chunks of 64 GiB.
const CHUNK_BYTES: usize = 2 << 20;
/// Bytes of a chunk if nothing is ever spilled: small enough for a merge to write its output over
/// just consumed chunks, still in a fast cache. Behind a slow third level, this is the second
/// level: interleaved rows of 96 bytes, 512 KiB a side, take 3.0 ns a row instead of 4.1 with twice
/// the size; half the size slows merges beyond the caches by a tenth. On machines without a slow
/// third level, twice the size is faster: 5.5 instead of 6.6 ns with 8 MiB a side.
const UNSPILLED_CHUNK: usize = 256 << 10;
const UNSPILLED_CHUNK_OF_SECOND_LEVEL: usize = 128 << 10;
/// Least bytes of a chunk, whatever the budget: smaller transfers would not saturate a disk.
const SMALLEST_CHUNK: usize = 64 << 10;
/// Least number of chunks per budget: enough for runs to be merged in few passes.
const CHUNKS_PER_BUDGET: usize = 96;
/// Chunks per budget of an index, and the largest such chunk. Indexes are read one key at a time,
/// so their chunks are smaller: at 32 MiB, a look-up reads 64 KiB instead of 341 KiB, and a paused
/// merge holds accordingly less.
const FINE_CHUNKS_PER_BUDGET: usize = 512;
const LARGEST_FINE_CHUNK: usize = 256 << 10;
/// Chunks of the budget that stay free for running operations.
const SPARE_CHUNKS: usize = 4;
/// Smaller exact buffers come from the allocator (glibc serves such sizes quickly), larger ones are
/// mappings.
const MOST_OF_ALLOCATOR: usize = 64 << 10;

/// Bytes of a page of a mapping; pages may be larger.
const PAGE: usize = 4 << 10;

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
    /// [`Error::TempSpace`] if `directory` is not a directory. A failure to create files in it
    /// surfaces on the first spill, as the same error.
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
            None if has_wide_caches() => (UNSPILLED_CHUNK_OF_SECOND_LEVEL, share),
            None => (UNSPILLED_CHUNK, share),
        };
        Self::with_chunks(budget, options, chunk, stage)
    }

    /// Returns a pool without a limit, with chunks of about `chunk_bytes`, for tests of many
    /// chunks.
    #[cfg(test)]
    pub(crate) fn tiny(chunk_bytes: usize) -> Self {
        Self::staging(chunk_bytes, chunk_bytes)
    }

    /// The same as [`Pool::tiny`], with rows sorted `stage_bytes` at a time.
    #[cfg(test)]
    pub(crate) fn staging(chunk_bytes: usize, stage_bytes: usize) -> Self {
        Self::with_chunks(Budget::unlimited(), PoolOptions::default(), chunk_bytes, stage_bytes)
            .expect("the system's directory")
    }

    fn with_chunks(
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
    pub(crate) fn for_index(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), fine: true }
    }

    /// Returns true if the pool is that of an index.
    pub(crate) fn is_for_index(&self) -> bool {
        self.fine
    }

    /// Returns the budget of all leases of this pool.
    pub fn budget(&self) -> &Budget {
        &self.inner.budget
    }

    /// Returns the counters of the pool.
    pub fn stats(&self) -> PoolStats {
        let reused = self.recycled().reused();
        self.inner.metrics.snapshot(&self.inner.budget, self.inner.store.size(), reused)
    }

    /// Compresses chunks spilled from now on with `codec`.
    pub fn set_codec(&self, codec: Codec) {
        self.settings().codec = codec;
    }

    /// Spills to `to` from now on.
    pub fn set_spill_to(&self, to: SpillTo) {
        self.settings().to = to;
    }

    /// Lets `policy` decide from now on.
    pub fn set_policy(&self, policy: Arc<dyn SpillPolicy>) {
        let mut settings = self.settings();
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

    /// Returns true if `other` is this pool or a clone of it.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) && self.fine == other.fine
    }

    /// Returns the bytes of a chunk.
    pub(crate) fn chunk_bytes(&self) -> usize {
        if self.fine { self.inner.fine_bytes } else { self.inner.chunk_bytes }
    }

    /// Returns the size of the buffer for `len` bytes: a chunk of either size, or `len` if that is
    /// more.
    fn buffer_bytes(&self, len: usize) -> usize {
        if len <= self.chunk_bytes() { self.chunk_bytes() } else { len.max(self.inner.chunk_bytes) }
    }

    /// Returns the bytes of the budget for rows: the limit without the metadata of pages, which
    /// stays in memory when rows leave.
    pub(crate) fn limit_of_rows(&self) -> usize {
        self.inner.budget.limit().saturating_sub(self.inner.pages.load(Ordering::Relaxed))
    }

    /// Leases `bytes` for the metadata of a page. May exceed the budget.
    pub(crate) fn lease_page(&self, bytes: usize) -> Lease {
        if !self.fine {
            self.inner.pages.fetch_add(bytes, Ordering::Relaxed);
        }
        self.inner.budget.lease(bytes)
    }

    /// Records that a page was dropped and its lease is about to end.
    pub(crate) fn page_is_gone(&self, lease: &Lease) {
        if !self.fine {
            self.inner.pages.fetch_sub(lease.bytes(), Ordering::Relaxed);
        }
    }

    /// Returns true if spilled chunks are compressed.
    pub(crate) fn compresses(&self) -> bool {
        self.settings().codec != Codec::None
    }

    /// Returns the bytes of compression workspace of a worker and the spill threads.
    pub(crate) fn scratch_bytes(&self) -> usize {
        let each = codec::scratch_bytes(self.settings().codec, self.inner.chunk_bytes);
        each.saturating_mul(1 + self.inner.spiller.threads())
    }

    /// Returns the bytes of rows that are sorted at once: one chunk or several.
    pub(crate) fn stage_bytes(&self) -> usize {
        self.inner.stage_bytes
    }

    /// Returns a buffer of at least `len` bytes. May exceed the budget: the caller must spill as
    /// much as possible *before* the call, and may request only memory without which the job cannot
    /// go on.
    pub(crate) fn buffer(&self, len: usize) -> Result<Buffer> {
        let len = self.buffer_bytes(len);
        let lease = loop {
            if let Some(buffer) = self.reused(len) {
                return Ok(buffer);
            }
            if let Some(lease) = self.inner.budget.try_lease(len) {
                break lease;
            }
            if self.release_recycled_beyond(0) == 0 && !self.wait_or_evict()? {
                break self.inner.budget.lease(len);
            }
        };
        self.mapped(len, lease)
    }

    /// Copies a few bytes into an exactly sized buffer for long-lived data. May exceed the budget,
    /// if the caller is about to free more.
    pub(crate) fn small_buffer(&self, bytes: &[u8]) -> Buffer {
        Buffer { region: Region::of_allocator(bytes), _lease: self.inner.budget.lease(bytes.len()) }
    }

    /// Returns a buffer of `len` bytes, rounded up to at most a page, for long-lived data of a
    /// caller that is about to free more. Returns `None` if the buffer is large and the budget has
    /// no memory to spare.
    pub(crate) fn exact_buffer(&self, len: usize) -> Option<Buffer> {
        if len < MOST_OF_ALLOCATOR {
            return Some(self.small_buffer(&vec![0; len]));
        }
        let len = len.next_multiple_of(PAGE);
        if self.spare() < len {
            return None;
        }
        let lease = self.inner.budget.try_lease(len)?;
        self.mapped(len, lease).ok()
    }

    /// Returns a buffer of `len` bytes, rounded up to a page, that is not recycled. May exceed the
    /// budget.
    pub(crate) fn page_buffer(&self, len: usize) -> Result<Buffer> {
        let len = len.next_multiple_of(PAGE);
        let lease = self.inner.budget.lease(len);
        self.mapped(len, lease)
    }

    /// Returns a buffer as [`Pool::buffer`] does, if the budget has memory to spare.
    fn spare_buffer(&self, len: usize) -> Option<Buffer> {
        let len = self.buffer_bytes(len);
        if self.spare() < len {
            return None;
        }
        if let Some(buffer) = self.reused(len) {
            return Some(buffer);
        }
        let lease = self.inner.budget.try_lease(len)?;
        self.mapped(len, lease).ok()
    }

    /// Returns the free bytes of the budget, recycled buffers included, beyond the reserve for
    /// running operations.
    fn spare(&self) -> usize {
        if !self.inner.budget.is_limited() {
            return usize::MAX;
        }
        let recycled = self.recycled().bytes();
        let used = self.inner.budget.used() + SPARE_CHUNKS * self.chunk_bytes();
        self.inner.budget.limit().saturating_sub(used.saturating_sub(recycled))
    }

    /// Returns true if the budget has `bytes` to spare.
    pub(crate) fn has_to_spare(&self, bytes: usize) -> bool {
        self.spare() >= bytes
    }

    /// Returns a recycled buffer.
    fn reused(&self, len: usize) -> Option<Buffer> {
        self.recycled().take(len)
    }

    fn mapped(&self, len: usize, lease: Lease) -> Result<Buffer> {
        let region = Region::new(len).map_err(|source| Error::Io {
            context: format!("cannot map {len} bytes of memory"),
            source,
        })?;
        self.inner.metrics.mapped();
        Ok(Buffer { region, _lease: lease })
    }

    /// Waits for a write that frees memory, or evicts the coldest page. Returns false if neither
    /// exists.
    fn wait_or_evict(&self) -> Result<bool> {
        if self.inner.spiller.wait_for_one()? {
            return Ok(true);
        }
        let coldest = self.residents().coldest();
        let Some((left, page, generation)) = coldest else { return Ok(false) };
        self.inner.metrics.evicted(generation, left == Leave::Left);
        if left == Leave::Write {
            self.inner.spiller.write(page)?;
        }
        Ok(true)
    }

    /// Takes a buffer for reuse.
    pub(crate) fn recycle(&self, buffer: Buffer) {
        let within = self.inner.budget.used() <= self.inner.budget.limit();
        let len = buffer.region.len();
        if within && (len == self.inner.chunk_bytes || len == self.inner.fine_bytes) {
            self.recycled().put(buffer);
        }
    }

    /// Returns recycled buffers and the compression workspace to the system. Returns the bytes of
    /// the buffers.
    pub(crate) fn release_recycled(&self) -> usize {
        self.inner.store.release_scratch();
        self.release_recycled_beyond(0)
    }

    /// Returns all but `kept` bytes of recycled buffers to the system. Returns the bytes released.
    pub(crate) fn release_recycled_beyond(&self, kept: usize) -> usize {
        let buffers = self.recycled().take_beyond(kept);
        let bytes = buffers.iter().map(|buffer| buffer.len()).sum();
        if bytes > 0 {
            self.inner.metrics.released(bytes);
        }
        bytes
    }

    /// Returns the decision of the policy on `bytes` of rows that went through `generation` merges.
    pub(crate) fn decide(&self, bytes: usize, generation: u8, may_stay: bool) -> Decision {
        if may_stay && !self.inner.budget.is_limited() && self.inner.usual.load(Ordering::Relaxed) {
            self.inner.metrics.kept(bytes);
            return Decision::Keep;
        }
        let Settings { codec, to, policy } = self.settings().clone();
        let free = self.spare();
        let offer = Offer { bytes, generation, free, may_stay, to, codec };
        match policy.decide(&offer) {
            Decision::Keep if may_stay => {
                self.inner.metrics.kept(bytes);
                Decision::Keep
            }
            Decision::Keep => Decision::Spill { to, codec },
            spill => spill,
        }
    }

    /// Writes `page` out, on a spill thread if there is one.
    ///
    /// # Errors Errors of this write, or of an earlier write without a waiting caller.
    pub(crate) fn page_out(&self, page: Arc<dyn Paged>) -> Result<()> {
        self.inner.spiller.write(page)
    }

    /// Reads `page` ahead, if there is a spill thread.
    pub(crate) fn read_ahead(&self, page: Arc<dyn Paged>) {
        self.inner.spiller.read(&page);
    }

    /// Registers a page that may be evicted.
    pub(crate) fn at_rest(&self, page: Arc<dyn Paged>, generation: u8) {
        self.residents().push(Arc::downgrade(&page), generation);
    }

    /// Returns the error of a failed write, if it was not reported yet.
    pub(crate) fn spill_failure(&self) -> Result<()> {
        self.inner.spiller.failure().map_or(Ok(()), Err)
    }

    /// Writes `bytes` to the store; pages of an index so that parts can be read.
    pub(crate) fn store(&self, bytes: &[u8], how: (SpillTo, Codec)) -> Result<Extent> {
        let written = self.inner.store.write(bytes, how, self.fine);
        match &written {
            Ok(extent) => {
                let stored = extent.stored_len();
                self.inner.metrics.spilled(bytes.len(), stored);
                self.tell(SpillEvent::PagedOut { bytes: bytes.len(), stored });
            }
            Err(_) => {
                self.inner.metrics.failed();
                self.tell(SpillEvent::Failed);
            }
        }
        written
    }

    /// Reads an extent into a buffer of at least `room` bytes.
    pub(crate) fn load(&self, extent: &Extent, room: usize) -> Result<Buffer> {
        let buffer = self.buffer(room.max(extent.len()))?;
        self.load_into(extent, buffer)
    }

    /// Reads an extent as [`Pool::load`] does, if the budget has memory to spare.
    pub(crate) fn load_ahead(&self, extent: &Extent, room: usize) -> Option<Result<Buffer>> {
        let buffer = self.spare_buffer(room.max(extent.len()))?;
        self.inner.metrics.read_ahead();
        Some(self.load_into(extent, buffer))
    }

    fn load_into(&self, extent: &Extent, mut buffer: Buffer) -> Result<Buffer> {
        self.inner.store.read(extent, &mut buffer.region[..extent.len()])?;
        self.inner.metrics.loaded(extent.len());
        self.tell(SpillEvent::PagedIn { bytes: extent.len() });
        Ok(buffer)
    }

    /// Hints to the system that `extent` is read soon.
    pub(crate) fn prefetch(&self, extent: &Extent) {
        self.inner.store.prefetch(extent);
    }

    /// Reads bytes `range` of an extent that [has parts](Extent::has_parts). May exceed the budget.
    pub(crate) fn load_part(&self, extent: &Extent, range: Range<usize>) -> Result<Part> {
        let part = self.inner.store.read_part(extent, range)?;
        self.inner.metrics.loaded(part.len());
        self.tell(SpillEvent::PagedIn { bytes: part.len() });
        Ok(part)
    }

    /// Hints to the system that bytes `range` of `extent` are read soon.
    pub(crate) fn prefetch_part(&self, extent: &Extent, range: &Range<usize>) {
        self.inner.store.prefetch_part(extent, range);
    }

    /// Records an unnecessary write, and whether the write had begun.
    pub(crate) fn write_spared(&self, bytes: usize, begun: bool) {
        if begun {
            self.inner.metrics.cancelled();
        } else {
            self.inner.metrics.elided();
        }
        self.tell(SpillEvent::Released { bytes });
    }

    /// Records a page in memory when needed, thanks to read-ahead.
    pub(crate) fn read_ahead_hit(&self) {
        self.inner.metrics.read_ahead_hit();
    }

    fn tell(&self, event: SpillEvent) {
        let policy = Arc::clone(&self.settings().policy);
        policy.record(event);
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.inner.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn residents(&self) -> MutexGuard<'_, Residents> {
        self.inner.residents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recycled(&self) -> MutexGuard<'_, Recycled> {
        self.inner.recycled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if `policy` is [`Tiered`].
fn is_usual(policy: &dyn SpillPolicy) -> bool {
    (policy as &dyn Any).is::<Tiered>()
}

/// Memory and its lease.
#[derive(Debug)]
pub(crate) struct Buffer {
    region: Region,
    _lease: Lease,
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.region
    }
}

/// Allows sharing a buffer as `Bytes`.
impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.region
    }
}
