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
    /// Chunks that wait for a write or for reading ahead, or are being written or read.
    pub in_flight: usize,
}

/// Receives the figures of a pool: a registry of counters and gauges, as long-running hosts have
/// them. `examples/metrics.rs` of the crate `windrow` registers a pool with Prometheus.
pub trait MetricsRegistry {
    /// Takes a figure that only grows as long as the pool exists.
    fn counter(&mut self, name: &'static str, value: u64);

    /// Takes the present value of a figure.
    fn gauge(&mut self, name: &'static str, value: f64);
}

impl PoolStats {
    /// Reports all figures to `registry`, by names that stay: bytes have a name that ends in
    /// `_bytes`, all other counters count chunks or buffers. `pressure` is the leased part of the
    /// limit, 0 without a limit. `faults` counts chunks that a worker had to wait for.
    pub fn report(&self, registry: &mut impl MetricsRegistry) {
        let [fresh, merged, old] = self.evicted;
        for (name, value) in [
            ("spills", self.spills),
            ("spilled_bytes", self.spilled_bytes as u64),
            ("stored_bytes", self.stored_bytes as u64),
            ("loads", self.loads),
            ("loaded_bytes", self.loaded_bytes as u64),
            ("faults", self.loads.saturating_sub(self.read_ahead)),
            ("read_ahead", self.read_ahead),
            ("read_ahead_hits", self.read_ahead_hits),
            ("kept", self.kept),
            ("kept_bytes", self.kept_bytes as u64),
            ("elided", self.elided),
            ("cancelled", self.cancelled),
            ("released_clean", self.released_clean),
            ("evicted_fresh", fresh),
            ("evicted_merged_once", merged),
            ("evicted_merged_often", old),
            ("failed", self.failed),
            ("buffers_mapped", self.buffers_mapped),
            ("buffers_recycled", self.buffers_recycled),
            ("released_bytes", self.released_bytes as u64),
        ] {
            registry.counter(name, value);
        }
        let is_limited = self.budget < usize::MAX;
        let pressure = if is_limited { self.leased as f64 / self.budget as f64 } else { 0.0 };
        registry.gauge("pressure", pressure);
        registry.gauge("in_flight", self.in_flight as f64);
        registry.gauge("leased_bytes", self.leased as f64);
        registry.gauge("peak_leased_bytes", self.peak_leased as f64);
        registry.gauge("temp_bytes", self.temp_bytes as f64);
    }
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
