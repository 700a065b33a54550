//! The pool: bytes under one budget, and a place on disk for what does not fit.
//!
//! ```text
//! Budget   a number of bytes; leases take from it and give back on drop
//! Buffer   memory with its lease, recycled through the pool
//! Store    a few unlinked files, or memory outside of the process; extents of them, checksummed
//! ```
//! Budget, codec and place may change while leases and extents are out.
//!
//! Invariant: what is leased never passes the limit, except by one buffer where a job could not go
//! on otherwise; what is read back from a store is what was written, or an error.

mod budget;
mod codec;
mod metrics;
mod store;

/// What the budget is synchronised by; `tests/budget_under_every_interleaving.rs` puts loom's here.
mod sync {
    pub(super) use std::sync::Arc;
    pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
}

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub use budget::Budget;
pub(crate) use budget::Lease;
pub use codec::Codec;
use metrics::Metrics;
pub use metrics::PoolStats;
pub(crate) use store::Extent;
use store::Store;

use crate::error::{Error, Result};
use crate::kernel::region::Region;

/// A chunk holds about this many bytes of rows: few enough to be sorted in the second-level cache
/// and its neighbourhood, many enough that 64 GiB of them can be told apart in memory.
const CHUNK_BYTES: usize = 2 << 20;
/// Chunks never get smaller than this, whatever the budget: transfers would no longer saturate a disk.
const SMALLEST_CHUNK: usize = 64 << 10;
/// A budget is divided into at least this many chunks, so that runs can meet in few merges.
const CHUNKS_PER_BUDGET: usize = 96;

/// Memory under a budget, and temporary files for what does not fit. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    budget: Budget,
    store: Store,
    chunk_bytes: usize,
    /// Buffers of `chunk_bytes` for the next taker; they keep their leases.
    recycled: Mutex<Vec<Buffer>>,
    metrics: Metrics,
}

/// Where spilled chunks go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpillTo {
    /// Temporary files without a name.
    #[default]
    Disk,
    /// Memory outside of the process, which the system swaps out: for machines with swap and without a
    /// scratch disk. It does not count as resident in the process, but does in its cgroup. Worth
    /// compressing.
    Memory,
}

/// How a [`Pool`] spills.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Directories for temporary files, used in turn. Empty: the system's.
    pub directories: Vec<PathBuf>,
    /// Bytes that temporary files may take, or memory in their place.
    pub max_temp_bytes: u64,
    /// How spilled chunks are compressed.
    pub codec: Codec,
    /// Where they go.
    pub spill_to: SpillTo,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            directories: Vec::new(),
            max_temp_bytes: u64::MAX,
            codec: Codec::None,
            spill_to: SpillTo::Disk,
        }
    }
}

impl Pool {
    /// A pool that spills into files under `directory`, unlinked from the start.
    ///
    /// # Errors
    /// [`Error::TempSpace`] if no file can be made there.
    pub fn in_dir(directory: impl AsRef<Path>, budget: Budget) -> Result<Self> {
        let directories = vec![directory.as_ref().to_path_buf()];
        Self::new(budget, PoolOptions { directories, ..PoolOptions::default() })
    }

    /// A pool without a limit, which never spills.
    pub fn unlimited() -> Self {
        Self::new(Budget::unlimited(), PoolOptions::default())
            .expect("files are made when the first chunk is spilled")
    }

    /// A pool with every option.
    ///
    /// # Errors
    /// [`Error::TempSpace`] if a directory is not there or cannot be written to.
    pub fn new(budget: Budget, options: PoolOptions) -> Result<Self> {
        let chunk_bytes =
            (budget.limit() / CHUNKS_PER_BUDGET).clamp(SMALLEST_CHUNK, CHUNK_BYTES) & !4095;
        let inner = Inner {
            budget,
            store: Store::new(options)?,
            chunk_bytes,
            recycled: Mutex::default(),
            metrics: Metrics::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A pool without a limit whose chunks hold about `chunk_bytes`, for tests of many chunks.
    #[cfg(test)]
    pub(crate) fn tiny(chunk_bytes: usize) -> Self {
        let inner = Inner {
            budget: Budget::unlimited(),
            store: Store::new(PoolOptions::default()).expect("the system's directory"),
            chunk_bytes,
            recycled: Mutex::default(),
            metrics: Metrics::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The budget that everything of this pool is leased from.
    pub fn budget(&self) -> &Budget {
        &self.inner.budget
    }

    /// What the pool did so far, and holds now.
    pub fn stats(&self) -> PoolStats {
        self.inner.metrics.snapshot(&self.inner.budget, self.inner.store.size())
    }

    /// Compresses what is spilled from now on with `codec`.
    pub fn set_codec(&self, codec: Codec) {
        self.inner.store.set_codec(codec);
    }

    /// Spills to another place from now on.
    pub fn set_spill_to(&self, to: SpillTo) {
        self.inner.store.set_spill_to(to);
    }

    /// Bytes that a chunk may hold.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.inner.chunk_bytes
    }

    /// A buffer of at least `len` bytes. The budget may be passed by it: the caller spills what it
    /// holds *before* it asks, and asks only for what it needs to go on.
    pub(crate) fn buffer(&self, len: usize) -> Result<Buffer> {
        let len = len.max(self.inner.chunk_bytes);
        if len == self.inner.chunk_bytes {
            let recycled = self.recycled().pop();
            if let Some(buffer) = recycled {
                self.inner.metrics.recycled();
                return Ok(buffer);
            }
        }
        let lease = match self.inner.budget.try_lease(len) {
            Some(lease) => lease,
            None => {
                self.release_recycled();
                self.inner.budget.lease(len)
            }
        };
        let region = Region::new(len).map_err(|source| Error::Io {
            context: format!("cannot map {len} bytes of memory"),
            source,
        })?;
        self.inner.metrics.mapped();
        Ok(Buffer { region, _lease: lease })
    }

    /// Takes a buffer back for the next taker.
    pub(crate) fn recycle(&self, buffer: Buffer) {
        let within = self.inner.budget.used() <= self.inner.budget.limit();
        if buffer.region.len() == self.inner.chunk_bytes && within {
            self.recycled().push(buffer);
        }
    }

    /// Gives the memory of recycled buffers back to the system.
    pub(crate) fn release_recycled(&self) {
        self.release_recycled_beyond(0);
    }

    /// Gives the memory of recycled buffers back to the system, all but `kept` of them.
    pub(crate) fn release_recycled_beyond(&self, kept: usize) {
        let mut recycled = self.recycled();
        let most = recycled.len();
        let buffers = recycled.split_off(kept.min(most));
        drop(recycled);
        self.inner.metrics.released(buffers.iter().map(|buffer| buffer.len()).sum());
    }

    /// Writes `bytes` out.
    pub(crate) fn store(&self, bytes: &[u8]) -> Result<Extent> {
        let extent = self.inner.store.write(bytes)?;
        self.inner.metrics.spilled(bytes.len(), extent.stored_len());
        Ok(extent)
    }

    /// Reads an extent back, into a buffer of its own.
    pub(crate) fn load(&self, extent: &Extent) -> Result<Buffer> {
        let mut buffer = self.buffer(extent.len())?;
        self.inner.store.read(extent, &mut buffer.region[..extent.len()])?;
        self.inner.metrics.loaded(extent.len());
        Ok(buffer)
    }

    /// Tells the system that `extent` is read soon.
    pub(crate) fn prefetch(&self, extent: &Extent) {
        self.inner.store.prefetch(extent);
        self.inner.metrics.read_ahead();
    }

    fn recycled(&self) -> std::sync::MutexGuard<'_, Vec<Buffer>> {
        self.inner.recycled.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.region
    }
}
