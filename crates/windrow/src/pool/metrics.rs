//! What a pool did, in plain atomic counters, and a snapshot of them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::budget::Budget;
use super::residents::GENERATIONS;

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

/// What a pool did so far, and holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Chunks that were written out.
    pub spills: u64,
    /// Bytes of rows in them.
    pub spilled_bytes: usize,
    /// Bytes that they took in the store, after compression.
    pub stored_bytes: usize,
    /// Chunks that were read back.
    pub loads: u64,
    /// Bytes of rows in them.
    pub loaded_bytes: usize,
    /// Chunks that were kept in memory when they were done, and the bytes of rows in them.
    pub kept: u64,
    /// Bytes of rows in them.
    pub kept_bytes: usize,
    /// Chunks that were to be written out, and were needed, or dead, before that began.
    pub elided: u64,
    /// Chunks that were needed, or dead, while they were being written.
    pub cancelled: u64,
    /// Chunks that left memory at once, since they were in the store already.
    pub released_clean: u64,
    /// Chunks that left memory because somebody needed it: fresh ones, those of one merge, and those
    /// of more.
    pub evicted: [u64; 3],
    /// Chunks whose reading began before they were asked for.
    pub read_ahead: u64,
    /// Those of them that were there when they were asked for.
    pub read_ahead_hits: u64,
    /// Chunks that could not be written out, and stayed.
    pub failed: u64,
    /// Buffers that were mapped, because none was there to be used again.
    pub buffers_mapped: u64,
    /// Buffers that were used again.
    pub buffers_recycled: u64,
    /// Bytes of recycled buffers that were given back to the system.
    pub released_bytes: usize,
    /// Bytes of temporary files, freed extents included.
    pub temp_bytes: u64,
    /// Bytes that may be leased.
    pub budget: usize,
    /// Bytes that are leased now.
    pub leased: usize,
    /// The most bytes that were leased at one time.
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
