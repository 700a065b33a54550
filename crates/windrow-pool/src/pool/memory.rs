//! Buffers and leases within the budget, and whose memory goes first if the budget is exhausted.

use std::sync::atomic::Ordering;

use windrow_kernel::region::Region;
use windrow_rows::Result;

use super::Pool;
use crate::budget::Lease;
use crate::buffer::Buffer;
use crate::lock::lock;
use crate::spiller::Leave;

/// Chunks of the budget that stay free for running operations.
const SPARE_CHUNKS: usize = 4;
/// Smaller exact buffers come from the allocator (glibc serves such sizes quickly), larger ones are
/// mappings. With a limit, buffers of this size are chunks of an index: in the heap of a table at a
/// limit of 32 MiB, they left 20 MiB of holes.
const MOST_OF_ALLOCATOR: usize = 64 << 10;
const MOST_OF_ALLOCATOR_IN_LIMIT: usize = 16 << 10;

/// Bytes of a page of a mapping; pages may be larger.
const PAGE: usize = 4 << 10;

/// For the engine.
#[doc(hidden)]
impl Pool {
    /// Returns the size of the buffer for `len` bytes: a chunk of either size, or `len` if that is
    /// more.
    fn buffer_bytes(&self, len: usize) -> usize {
        if len <= self.chunk_bytes() { self.chunk_bytes() } else { len.max(self.inner.chunk_bytes) }
    }

    /// Returns the bytes of the budget for rows: the limit without the metadata of pages, which
    /// stays in memory when rows leave.
    pub fn limit_of_rows(&self) -> usize {
        self.inner.budget.limit().saturating_sub(self.inner.pages.load(Ordering::Relaxed))
    }

    /// Leases `bytes` for the metadata of a page. May exceed the budget.
    pub fn lease_page(&self, bytes: usize) -> Lease {
        if !self.fine {
            self.inner.pages.fetch_add(bytes, Ordering::Relaxed);
        }
        self.inner.budget.lease(bytes)
    }

    /// Records that a page was dropped and its lease is about to end.
    pub fn page_is_gone(&self, lease: &Lease) {
        if !self.fine {
            self.inner.pages.fetch_sub(lease.bytes(), Ordering::Relaxed);
        }
    }

    /// Returns a buffer of at least `len` bytes. May exceed the budget: the caller must spill as
    /// much as possible *before* the call, and may request only memory without which the job cannot
    /// go on.
    pub fn buffer(&self, len: usize) -> Result<Buffer> {
        let len = self.buffer_bytes(len);
        let buffer = self.evicting_for(|| self.buffer_at_once(len))?;
        buffer.unwrap_or_else(|| self.mapped(len, self.inner.budget.lease(len)))
    }

    /// Leases `bytes` of memory that the caller provides. Evicts pages as far as needed; returns
    /// `None` if that does not suffice.
    pub fn lease_or_evict(&self, bytes: usize) -> Result<Option<Lease>> {
        self.evicting_for(|| self.inner.budget.try_lease(bytes))
    }

    /// Repeats `attempt` until it succeeds, and frees memory in between. Returns `None` if there is
    /// none to free.
    fn evicting_for<R>(&self, attempt: impl Fn() -> Option<R>) -> Result<Option<R>> {
        loop {
            let done = attempt();
            if done.is_some() || self.release_recycled_beyond(0) == 0 && !self.wait_or_evict()? {
                return Ok(done);
            }
        }
    }

    /// Returns a buffer of `len` bytes, the size of a chunk or more: a recycled one, or within the
    /// budget.
    fn buffer_at_once(&self, len: usize) -> Option<Result<Buffer>> {
        if let Some(buffer) = lock(&self.inner.recycled).take(len) {
            return Some(Ok(buffer));
        }
        let lease = self.inner.budget.try_lease(len)?;
        Some(self.mapped(len, lease))
    }

    /// Copies a few bytes into an exactly sized buffer for long-lived data. May exceed the budget,
    /// if the caller is about to free more.
    pub fn small_buffer(&self, bytes: &[u8]) -> Buffer {
        Buffer { region: Region::of_allocator(bytes), _lease: self.inner.budget.lease(bytes.len()) }
    }

    /// Returns a buffer of `len` bytes, rounded up to at most a page, for long-lived data of a
    /// caller that is about to free more. Returns `None` if the buffer is large and the budget has
    /// no memory to spare.
    pub fn exact_buffer(&self, len: usize) -> Option<Buffer> {
        let is_limited = self.inner.budget.is_limited();
        if len < if is_limited { MOST_OF_ALLOCATOR_IN_LIMIT } else { MOST_OF_ALLOCATOR } {
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
    pub fn page_buffer(&self, len: usize) -> Result<Buffer> {
        let len = len.next_multiple_of(PAGE);
        let lease = self.inner.budget.lease(len);
        self.mapped(len, lease)
    }

    /// Returns a buffer as [`Pool::buffer`] does, if the budget has memory to spare.
    pub(super) fn spare_buffer(&self, len: usize) -> Option<Buffer> {
        let len = self.buffer_bytes(len);
        if self.spare() < len {
            return None;
        }
        self.buffer_at_once(len)?.ok()
    }

    /// Returns the free bytes of the budget, recycled buffers included, beyond the reserve for
    /// running operations.
    pub fn spare(&self) -> usize {
        if !self.inner.budget.is_limited() {
            return usize::MAX;
        }
        let recycled = lock(&self.inner.recycled).bytes;
        let used = self.inner.budget.used() + SPARE_CHUNKS * self.chunk_bytes();
        self.inner.budget.limit().saturating_sub(used.saturating_sub(recycled))
    }

    fn mapped(&self, len: usize, lease: Lease) -> Result<Buffer> {
        let buffer = Buffer::mapped(len, lease)?;
        self.inner.metrics.change(|stats| stats.buffers_mapped += 1);
        Ok(buffer)
    }

    /// Takes a buffer for reuse.
    pub fn recycle(&self, buffer: Buffer) {
        let within = self.inner.budget.used() <= self.inner.budget.limit();
        let len = buffer.region.len();
        if within && (len == self.inner.chunk_bytes || len == self.inner.fine_bytes) {
            lock(&self.inner.recycled).put(buffer);
        }
    }

    /// Returns recycled buffers and the compression workspace to the system. Returns the bytes of
    /// the buffers.
    pub fn release_recycled(&self) -> usize {
        self.inner.store.release_scratch();
        self.release_recycled_beyond(0)
    }

    /// Returns all but `kept` bytes of recycled buffers to the system. Returns the bytes released.
    pub fn release_recycled_beyond(&self, kept: usize) -> usize {
        let buffers = lock(&self.inner.recycled).take_beyond(kept);
        let bytes = buffers.iter().map(|buffer| buffer.len()).sum();
        if bytes > 0 {
            self.inner.metrics.change(|stats| stats.released_bytes += bytes);
        }
        bytes
    }

    /// Waits for a write that frees memory, or evicts the coldest page. Returns false if neither
    /// exists.
    pub(super) fn wait_or_evict(&self) -> Result<bool> {
        if self.inner.spiller.wait_for_one()? {
            return Ok(true);
        }
        let coldest = lock(&self.inner.residents).coldest();
        let Some((left, page, generation)) = coldest else { return Ok(false) };
        self.inner.metrics.change(|stats| {
            stats.evicted[generation] += 1;
            stats.released_clean += u64::from(left == Leave::Left);
        });
        if left == Leave::Write {
            self.inner.spiller.write(page)?;
        }
        Ok(true)
    }
}
