//! The pool: bytes under one budget, and a place on disk for what does not fit.
//!
//! ```text
//! Budget   a number of bytes; leases take from it and give back on drop
//! Buffer   memory with its lease, recycled through the pool
//! Kept     working memory that nobody works with, where there is no limit
//! Store    a few unlinked files, or memory outside of the process; extents of them, checksummed
//! Spiller  threads that write pages out and read them ahead
//! ```
//! Who needs memory that the budget does not have takes, in this order: a recycled buffer, what is being
//! written out and will be free in a moment, the coldest page at rest; and only then more than the limit.
//! Limit, policy, codec and place may change while leases and extents are out.
//!
//! Invariant: what is leased never passes the limit, except by one buffer where a job could not go
//! on otherwise; what is read back from a store is what was written, or an error.

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

/// What the budget is synchronised by; `tests/budget_under_every_interleaving.rs` puts loom's here.
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

/// A chunk holds about this many bytes of rows: few enough to be sorted in the second-level cache
/// and its neighbourhood, many enough that 64 GiB of them can be told apart in memory.
const CHUNK_BYTES: usize = 2 << 20;
/// What a chunk holds where nothing is ever spilled: few enough bytes that what comes out of a merge is written
/// where chunks lay that were used up a moment ago, and are in a fast cache still. Behind a slow third level that is
/// the second one: of rows of 96 bytes that take turns, 512 KiB a side, one takes 3.0 ns instead of 4.1 with twice as
/// many bytes; with half as many merges beyond the caches are slower by a tenth. Elsewhere twice as many are
/// faster, 6.6 to 5.5 ns of 8 MiB a side.
const UNSPILLED_CHUNK: usize = 256 << 10;
const UNSPILLED_CHUNK_OF_SECOND_LEVEL: usize = 128 << 10;
/// Chunks never get smaller than this, whatever the budget: transfers would no longer saturate a disk.
const SMALLEST_CHUNK: usize = 64 << 10;
/// A budget is divided into at least this many chunks, so that runs can meet in few merges.
const CHUNKS_PER_BUDGET: usize = 96;
/// Indexes are read a key at a time, so what they keep is in smaller chunks: as many to a budget, from the least to the
/// most bytes. At 32 MiB a look-up reads 64 KiB instead of 341, and a merge that waits holds as much less.
const FINE_CHUNKS_PER_BUDGET: usize = 512;
const LARGEST_FINE_CHUNK: usize = 256 << 10;
/// Chunks of the budget that are left free for whoever works.
const SPARE_CHUNKS: usize = 4;
/// Buffers of an exact size are the allocator's below so many bytes, which glibc has at hand, and mappings above.
const MOST_OF_ALLOCATOR: usize = 64 << 10;

/// Mappings are made of pages of so many bytes, or of larger ones.
const PAGE: usize = 4 << 10;

/// Memory under a budget, and temporary files for what does not fit. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: Arc<Inner>,
    /// Chunks are those of an index.
    fine: bool,
}

#[derive(Debug)]
struct Inner {
    budget: Budget,
    store: Store,
    chunk_bytes: usize,
    stage_bytes: usize,
    /// Bytes that a chunk of an index may hold.
    fine_bytes: usize,
    /// Buffers of either size for the next taker; they keep their leases.
    recycled: Mutex<Recycled>,
    kept: Mutex<Kept>,
    residents: Mutex<Residents>,
    spiller: Spiller,
    /// Bytes leased for pages themselves, wherever their rows are, but for those of indexes.
    pages: AtomicUsize,
    settings: Mutex<Settings>,
    /// The policy is the usual one: without a limit it keeps every chunk, and is not asked.
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
    /// A pool that spills into files under `directory`, unlinked from the start and made when the
    /// first rows are spilled.
    ///
    /// # Errors
    /// [`Error::TempSpace`] if it is not a directory. That no file can be made there shows when rows are
    /// spilled, as the same error.
    pub fn in_dir(directory: impl AsRef<Path>, budget: Budget) -> Result<Self> {
        Self::new(budget, PoolOptions::new().directories([directory.as_ref()]))
    }

    /// A pool without a limit, which never spills. It keeps memory that was used for whoever asks next:
    /// some ten megabytes after a seal, all that was held where batchers or batches are dropped. It goes
    /// with the pool, or by [`Pool::release`].
    pub fn unlimited() -> Self {
        Self::new(Budget::unlimited(), PoolOptions::default())
            .expect("no directory was named that may be missing")
    }

    /// A pool with every option.
    ///
    /// # Errors
    /// As [`Pool::in_dir`], for the directories that are named.
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

    /// A pool without a limit whose chunks hold about `chunk_bytes`, for tests of many chunks.
    #[cfg(test)]
    pub(crate) fn tiny(chunk_bytes: usize) -> Self {
        Self::staging(chunk_bytes, chunk_bytes)
    }

    /// The same, and rows are put in order so many bytes at a time.
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

    /// The same memory for an index, whose chunks are smaller where that has a limit.
    pub(crate) fn for_index(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), fine: true }
    }

    /// True if what it keeps is an index.
    pub(crate) fn is_for_index(&self) -> bool {
        self.fine
    }

    /// The budget that everything of this pool is leased from.
    pub fn budget(&self) -> &Budget {
        &self.inner.budget
    }

    /// What the pool did so far, and holds now.
    pub fn stats(&self) -> PoolStats {
        let reused = self.recycled().reused();
        self.inner.metrics.snapshot(&self.inner.budget, self.inner.store.size(), reused)
    }

    /// Compresses what is spilled from now on with `codec`.
    pub fn set_codec(&self, codec: Codec) {
        self.settings().codec = codec;
    }

    /// Spills to another place from now on.
    pub fn set_spill_to(&self, to: SpillTo) {
        self.settings().to = to;
    }

    /// Lets `policy` decide from now on.
    pub fn set_policy(&self, policy: Arc<dyn SpillPolicy>) {
        let mut settings = self.settings();
        self.inner.usual.store(is_usual(&*policy), Ordering::Relaxed);
        settings.policy = policy;
    }

    /// Changes the limit of the budget. If it shrinks, memory that nobody works with goes back to the
    /// system at once: recycled buffers, then pages at rest. What is worked with follows as it is done.
    ///
    /// # Errors
    /// What spilling reports.
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

    /// Gives the memory that nobody works with back to the system: what is kept for whoever asks next.
    /// With a limit that counts as leased until somebody needs it; reading a batch to its end does the same.
    pub fn release(&self) {
        self.release_scratch();
        self.release_recycled();
    }

    /// Waits until nothing is being written out or read ahead.
    pub fn wait_for_spills(&self) {
        self.inner.spiller.wait_for_all();
    }

    /// True if `other` is the same, or a clone of it.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) && self.fine == other.fine
    }

    /// Bytes that a chunk may hold.
    pub(crate) fn chunk_bytes(&self) -> usize {
        if self.fine { self.inner.fine_bytes } else { self.inner.chunk_bytes }
    }

    /// Bytes of the buffer that so many are asked for: those of a chunk, of either size, if they are not more.
    fn buffer_bytes(&self, len: usize) -> usize {
        if len <= self.chunk_bytes() { self.chunk_bytes() } else { len.max(self.inner.chunk_bytes) }
    }

    /// Bytes of the budget that rows may take together: pages, which stay when rows leave, have the others.
    pub(crate) fn limit_of_rows(&self) -> usize {
        self.inner.budget.limit().saturating_sub(self.inner.pages.load(Ordering::Relaxed))
    }

    /// Leases `bytes` for a page itself. The budget may be passed by it.
    pub(crate) fn lease_page(&self, bytes: usize) -> Lease {
        if !self.fine {
            self.inner.pages.fetch_add(bytes, Ordering::Relaxed);
        }
        self.inner.budget.lease(bytes)
    }

    /// Notes that a page is gone, and what was leased for it is about to go.
    pub(crate) fn page_is_gone(&self, lease: &Lease) {
        if !self.fine {
            self.inner.pages.fetch_sub(lease.bytes(), Ordering::Relaxed);
        }
    }

    /// True if what is spilled is compressed.
    pub(crate) fn compresses(&self) -> bool {
        self.settings().codec != Codec::None
    }

    /// Bytes that a worker and the spill threads take beside it to compress chunks into.
    pub(crate) fn scratch_bytes(&self) -> usize {
        let each = codec::scratch_bytes(self.settings().codec, self.inner.chunk_bytes);
        each.saturating_mul(1 + self.inner.spiller.threads())
    }

    /// Bytes of rows that are put in order at once: those of a chunk, or of some.
    pub(crate) fn stage_bytes(&self) -> usize {
        self.inner.stage_bytes
    }

    /// A buffer of at least `len` bytes. The budget may be passed by it: the caller spills what it
    /// holds *before* it asks, and asks only for what it needs to go on.
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

    /// A copy of a few bytes that are kept for long, in as much memory as they need. The budget may be passed by it,
    /// where the caller is about to give back more.
    pub(crate) fn small_buffer(&self, bytes: &[u8]) -> Buffer {
        Buffer { region: Region::of_allocator(bytes), _lease: self.inner.budget.lease(bytes.len()) }
    }

    /// A buffer of as many bytes as are asked for, and at most a page more, for what is kept for long, where the caller
    /// is about to give back more; none if it is large and nobody has that to spare.
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

    /// A buffer of `len` bytes and at most a page more, which is not recycled. The budget may be passed by it.
    pub(crate) fn page_buffer(&self, len: usize) -> Result<Buffer> {
        let len = len.next_multiple_of(PAGE);
        let lease = self.inner.budget.lease(len);
        self.mapped(len, lease)
    }

    /// As [`Pool::buffer`], if there is memory that nobody else will ask for.
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

    /// Bytes of the budget that are free, recycled ones too, beyond what whoever works needs.
    fn spare(&self) -> usize {
        if !self.inner.budget.is_limited() {
            return usize::MAX;
        }
        let recycled = self.recycled().bytes();
        let used = self.inner.budget.used() + SPARE_CHUNKS * self.chunk_bytes();
        self.inner.budget.limit().saturating_sub(used.saturating_sub(recycled))
    }

    /// True if there are so many bytes of memory that nobody else will ask for.
    pub(crate) fn has_to_spare(&self, bytes: usize) -> bool {
        self.spare() >= bytes
    }

    /// A recycled buffer.
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

    /// Waits for a write that will free memory, or makes the coldest page leave; false if there is
    /// neither.
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

    /// Takes a buffer back for the next taker.
    pub(crate) fn recycle(&self, buffer: Buffer) {
        let within = self.inner.budget.used() <= self.inner.budget.limit();
        let len = buffer.region.len();
        if within && (len == self.inner.chunk_bytes || len == self.inner.fine_bytes) {
            self.recycled().put(buffer);
        }
    }

    /// Gives the memory of recycled buffers back to the system, and what is there to compress into; how
    /// many bytes the buffers had.
    pub(crate) fn release_recycled(&self) -> usize {
        self.inner.store.release_scratch();
        self.release_recycled_beyond(0)
    }

    /// Gives the memory of recycled buffers back to the system, all but `kept` bytes of them; how many
    /// they had.
    pub(crate) fn release_recycled_beyond(&self, kept: usize) -> usize {
        let buffers = self.recycled().take_beyond(kept);
        let bytes = buffers.iter().map(|buffer| buffer.len()).sum();
        if bytes > 0 {
            self.inner.metrics.released(bytes);
        }
        bytes
    }

    /// What the policy makes of `bytes` of rows that went through `generation` merges.
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

    /// Has `page` written out, beside the workers if there is a thread for it.
    ///
    /// # Errors
    /// What writing it reports, or a write before it that nobody waited for.
    pub(crate) fn page_out(&self, page: Arc<dyn Paged>) -> Result<()> {
        self.inner.spiller.write(page)
    }

    /// Has `page` read ahead, if there is a thread for it.
    pub(crate) fn read_ahead(&self, page: Arc<dyn Paged>) {
        self.inner.spiller.read(&page);
    }

    /// A page that may leave when memory is needed.
    pub(crate) fn at_rest(&self, page: Arc<dyn Paged>, generation: u8) {
        self.residents().push(Arc::downgrade(&page), generation);
    }

    /// What failed to be written and was not reported to anybody.
    pub(crate) fn spill_failure(&self) -> Result<()> {
        self.inner.spiller.failure().map_or(Ok(()), Err)
    }

    /// Writes `bytes` out; those of an index so that they can be read in parts.
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

    /// Reads an extent back, into a buffer of its own of at least `room` bytes.
    pub(crate) fn load(&self, extent: &Extent, room: usize) -> Result<Buffer> {
        let buffer = self.buffer(room.max(extent.len()))?;
        self.load_into(extent, buffer)
    }

    /// As [`Pool::load`], if there is memory to spare.
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

    /// Tells the system that `extent` is read soon.
    pub(crate) fn prefetch(&self, extent: &Extent) {
        self.inner.store.prefetch(extent);
    }

    /// Bytes `range` of an extent that [has parts](Extent::has_parts). The budget may be passed by them.
    pub(crate) fn load_part(&self, extent: &Extent, range: Range<usize>) -> Result<Part> {
        let part = self.inner.store.read_part(extent, range)?;
        self.inner.metrics.loaded(part.len());
        self.tell(SpillEvent::PagedIn { bytes: part.len() });
        Ok(part)
    }

    /// Tells the system that bytes `range` of `extent` are read soon.
    pub(crate) fn prefetch_part(&self, extent: &Extent, range: &Range<usize>) {
        self.inner.store.prefetch_part(extent, range);
    }

    /// Notes that a write was spared, and whether it had begun.
    pub(crate) fn write_spared(&self, bytes: usize, begun: bool) {
        if begun {
            self.inner.metrics.cancelled();
        } else {
            self.inner.metrics.elided();
        }
        self.tell(SpillEvent::Released { bytes });
    }

    /// Notes that a page that was read ahead was there when it was asked for.
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

/// True if `policy` is [`Tiered`].
fn is_usual(policy: &dyn SpillPolicy) -> bool {
    (policy as &dyn Any).is::<Tiered>()
}

/// Memory, and the lease that pays for it.
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

/// For whoever shares it.
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
