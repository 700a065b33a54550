//! Counters of a pool, and a snapshot of them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::budget::Budget;
use crate::residents::GENERATIONS;

/// Counters of one pool.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    spills: AtomicU64,
    spilled_bytes: AtomicUsize,
    stored_bytes: AtomicUsize,
    loads: AtomicU64,
    loaded_bytes: AtomicUsize,
    read_ahead: AtomicU64,
    mapped: AtomicU64,
    released_bytes: AtomicUsize,
    kept: AtomicU64,
    kept_bytes: AtomicUsize,
    elided: AtomicU64,
    cancelled: AtomicU64,
    clean: AtomicU64,
    evicted: [AtomicU64; GENERATIONS],
    read_ahead_hits: AtomicU64,
    failed: AtomicU64,
}

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

impl Metrics {
    pub(super) fn spilled(&self, bytes: usize, stored: usize) {
        self.spills.fetch_add(1, Ordering::Relaxed);
        self.spilled_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.stored_bytes.fetch_add(stored, Ordering::Relaxed);
    }

    pub(super) fn loaded(&self, bytes: usize) {
        self.loads.fetch_add(1, Ordering::Relaxed);
        self.loaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn read_ahead(&self) {
        self.read_ahead.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn kept(&self, bytes: usize) {
        self.kept.fetch_add(1, Ordering::Relaxed);
        self.kept_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn elided(&self) {
        self.elided.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn cancelled(&self) {
        self.cancelled.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn evicted(&self, generation: usize, clean: bool) {
        self.evicted[generation].fetch_add(1, Ordering::Relaxed);
        self.clean.fetch_add(u64::from(clean), Ordering::Relaxed);
    }

    pub(super) fn read_ahead_hit(&self) {
        self.read_ahead_hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn mapped(&self) {
        self.mapped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn released(&self, bytes: usize) {
        self.released_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self, budget: &Budget, temp_bytes: u64, reused: u64) -> PoolStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let bytes = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        PoolStats {
            spills: count(&self.spills),
            spilled_bytes: bytes(&self.spilled_bytes),
            stored_bytes: bytes(&self.stored_bytes),
            loads: count(&self.loads),
            loaded_bytes: bytes(&self.loaded_bytes),
            kept: count(&self.kept),
            kept_bytes: bytes(&self.kept_bytes),
            elided: count(&self.elided),
            cancelled: count(&self.cancelled),
            released_clean: count(&self.clean),
            evicted: self.evicted.each_ref().map(count),
            read_ahead: count(&self.read_ahead),
            read_ahead_hits: count(&self.read_ahead_hits),
            failed: count(&self.failed),
            buffers_mapped: count(&self.mapped),
            buffers_recycled: reused,
            released_bytes: bytes(&self.released_bytes),
            temp_bytes,
            budget: budget.limit(),
            leased: budget.used(),
            peak_leased: budget.peak(),
        }
    }
}
