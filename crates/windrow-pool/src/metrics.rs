//! Counters of a pool, and a snapshot of them.

use std::sync::Mutex;

use crate::budget::Budget;
use crate::lock::lock;

/// Counters and current state of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Chunks written out.
    pub spills: u64,
    /// Bytes of rows in chunks written out.
    pub spilled_bytes: usize,
    /// Bytes of these chunks in the store, after compression.
    pub stored_bytes: usize,
    /// Chunks read back.
    pub loads: u64,
    /// Bytes of rows in chunks read back.
    pub loaded_bytes: usize,
    /// Chunks kept in memory when complete.
    pub kept: u64,
    /// Bytes of rows in chunks kept in memory.
    pub kept_bytes: usize,
    /// Chunks queued for writing, but needed or dropped before the write began.
    pub elided: u64,
    /// Chunks needed, or dropped, during their write.
    pub cancelled: u64,
    /// Chunks evicted without a write, already in the store.
    pub released_clean: u64,
    /// Chunks evicted for lack of memory: fresh chunks, chunks after one merge, and chunks after
    /// several merges.
    pub evicted: [u64; 3],
    /// Chunks read ahead.
    pub read_ahead: u64,
    /// Chunks read ahead and in memory when needed.
    pub read_ahead_hits: u64,
    /// Chunks whose write failed, which stayed in memory.
    pub failed: u64,
    /// Buffers newly mapped, because no recycled buffer fitted.
    pub buffers_mapped: u64,
    /// Buffers reused.
    pub buffers_recycled: u64,
    /// Bytes of recycled buffers returned to the system.
    pub released_bytes: usize,
    /// Bytes of temporary files, freed extents included.
    pub temp_bytes: u64,
    /// Limit of the budget in bytes.
    pub budget: usize,
    /// Leased bytes.
    pub leased: usize,
    /// Peak of the leased bytes.
    pub peak_leased: usize,
}

/// Counters of one pool. They change once a chunk.
#[derive(Debug, Default)]
pub(super) struct Metrics(Mutex<PoolStats>);

impl Metrics {
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut PoolStats) -> R) -> R {
        change(&mut lock(&self.0))
    }

    pub(super) fn snapshot(&self, budget: &Budget, temp_bytes: u64, reused: u64) -> PoolStats {
        PoolStats {
            buffers_recycled: reused,
            temp_bytes,
            budget: budget.limit(),
            leased: budget.used(),
            peak_leased: budget.peak(),
            ..self.change(|stats| *stats)
        }
    }
}
