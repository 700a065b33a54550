//! Job metrics: counts the work of all threads and reports progress.
//!
//! ```text
//! threads --read, wrote--> Tally --Moment--> Progress
//!                            \----finish---> Stats
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use windrow::{Pool, PoolStats};

use super::plan::Planned;
use crate::input::Inputs;
use crate::lock::lock;
use crate::output::Written;
use crate::progress::{Moment, Phase, Progress};
use crate::stats::{Evicted, PerPhase, Serial, Spread, Stats};
use crate::store::Stores;
use crate::system;

/// Counts of keys.
#[derive(Clone, Copy, Default)]
pub(super) struct Keys {
    pub(super) deleted: u64,
    /// Keys whose row came from a late snapshot.
    pub(super) renewed: u64,
}

/// Figures that are known at the end of their phase.
#[derive(Clone, Copy, Default)]
pub(super) struct Outcome {
    pub(super) keys: Keys,
    /// Runs of the last merge.
    pub(super) runs: usize,
    /// Row groups copied without encoding.
    pub(super) passed: u64,
    /// Size of the complete output; `spread` for an output of many files.
    pub(super) written: Written,
    pub(super) spread: Option<Spread>,
}

/// The start of a phase and the pool's figures at that moment.
#[derive(Clone, Copy, Debug)]
struct PhaseStart {
    phase: Phase,
    at: Instant,
    pool: PoolStats,
}

/// Figures of a running job, shared by all threads.
pub(super) struct Tally {
    progress: Arc<dyn Progress>,
    pool: Pool,
    stores: Stores,
    /// Rows of the inputs; `None` if a format does not state their number.
    rows: Option<u64>,
    bytes_in: Option<u64>,
    limit: Option<u64>,
    rows_in: AtomicU64,
    /// Rows processed in the current phase.
    in_phase: AtomicU64,
    outcome: Mutex<Outcome>,
    /// Nanoseconds of merges and of appends, each work for one thread at a time, and of work that
    /// all threads share. See [`timed`].
    pub(super) merging: AtomicU64,
    pub(super) appending: AtomicU64,
    pub(super) together: AtomicU64,
    /// The time that opening the inputs took, and the start of planning after it.
    opening: Duration,
    start: Instant,
    phases: Mutex<Vec<PhaseStart>>,
}

impl Tally {
    pub(super) fn new(
        inputs: &Inputs,
        planned: &Planned,
        pool: &Pool,
        progress: &Arc<dyn Progress>,
    ) -> Self {
        Self {
            progress: Arc::clone(progress),
            pool: pool.clone(),
            stores: inputs.stores.clone(),
            rows: inputs.rows(),
            bytes_in: inputs.bytes(),
            limit: planned.plan.limit,
            rows_in: AtomicU64::new(0),
            in_phase: AtomicU64::new(0),
            outcome: Mutex::default(),
            merging: AtomicU64::new(0),
            appending: AtomicU64::new(0),
            together: AtomicU64::new(0),
            opening: inputs.opening,
            start: planned.began,
            phases: Mutex::default(),
        }
    }

    /// Begins a phase. Does nothing if the phase is already running.
    pub(super) fn enter(&self, phase: Phase) {
        {
            let mut phases = self.phases();
            if phases.last().is_some_and(|last| last.phase == phase) {
                return;
            }
            phases.push(PhaseStart { phase, at: Instant::now(), pool: self.pool.stats() });
        }
        self.in_phase.store(0, Ordering::Relaxed);
        self.progress.begins(&self.moment(phase, 0));
    }

    /// Counts rows read.
    pub(super) fn read(&self, batch: &RecordBatch) {
        let rows = batch.num_rows() as u64;
        self.rows_in.fetch_add(rows, Ordering::Relaxed);
        self.wrote(rows);
    }

    /// Resets the counts of rows read, before the inputs are read again.
    pub(super) fn begin_again(&self) {
        self.rows_in.store(0, Ordering::Relaxed);
        self.in_phase.store(0, Ordering::Relaxed);
    }

    /// Returns the figures of the outcome, to be set.
    pub(super) fn outcome(&self) -> MutexGuard<'_, Outcome> {
        lock(&self.outcome)
    }

    /// Counts rows written.
    pub(super) fn wrote(&self, rows: u64) {
        let rows = self.in_phase.fetch_add(rows, Ordering::Relaxed) + rows;
        let phase = self.phases().last().map_or(Phase::Read, |last| last.phase);
        self.progress.advances(&self.moment(phase, rows));
    }

    fn moment(&self, phase: Phase, rows: u64) -> Moment<'_> {
        let total = match phase {
            Phase::Read => self.rows,
            Phase::Settle => None,
            Phase::Write => Some(self.rows_in.load(Ordering::Relaxed)).filter(|&rows| rows > 0),
        };
        let network = self.stores.traffic();
        let network_bytes = network.map_or(0, |all| all.received_bytes + all.sent_bytes);
        Moment { phase, rows, total: total.or(self.rows), pool: Some(&self.pool), network_bytes }
    }

    /// Sums `figure` over all spans of `phase`; `figure` gets the state at the beginning and at the
    /// end of a span.
    fn over<T: std::iter::Sum>(
        &self,
        phase: Phase,
        end: &PhaseStart,
        figure: impl Fn(&PhaseStart, &PhaseStart) -> T,
    ) -> T {
        let phases = self.phases();
        let ends = phases.iter().skip(1).chain([end]);
        let spans = phases.iter().zip(ends).filter(|(begun, _)| begun.phase == phase);
        spans.map(|(begun, ended)| figure(begun, ended)).sum()
    }

    fn phases(&self) -> MutexGuard<'_, Vec<PhaseStart>> {
        lock(&self.phases)
    }

    /// Returns the figures of the finished job.
    pub(super) fn finish(&self) -> Stats {
        let pool = self.pool.stats();
        let end = &PhaseStart { phase: Phase::Write, at: Instant::now(), pool };
        let seconds = |phase| {
            let span = |from: &PhaseStart, to: &PhaseStart| to.at.duration_since(from.at);
            self.over::<Duration>(phase, end, span).as_secs_f64()
        };
        let figures = |figure: fn(&PoolStats) -> usize| {
            let between =
                move |from: &PhaseStart, to: &PhaseStart| figure(&to.pool) - figure(&from.pool);
            per_phase(|phase| self.over(phase, end, between) as u64)
        };
        let since_opening = |at: Instant| self.opening + at.duration_since(self.start);
        let first = self.phases().first().map_or(end.at, |first| first.at);
        let all = since_opening(end.at);
        let time = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed));
        let rows_in = self.rows_in.load(Ordering::Relaxed);
        let Outcome { keys, runs, passed, written, spread } = *self.outcome();
        Stats {
            rows_in,
            rows_out: written.rows,
            rows_dropped: rows_in.saturating_sub(written.rows),
            keys_deleted: keys.deleted,
            keys_renewed: keys.renewed,
            bytes_in: self.bytes_in,
            bytes_out: written.bytes,
            partitions: spread,
            bloom_filters_dropped: false,
            runs: runs as u64,
            row_groups_passed: passed,
            spilled_bytes: pool.spilled_bytes as u64,
            stored_bytes: pool.stored_bytes as u64,
            spills: pool.spills,
            loads: pool.loads,
            loaded_bytes: pool.loaded_bytes as u64,
            read_ahead: pool.read_ahead,
            read_ahead_hits: pool.read_ahead_hits,
            chunks_kept: pool.kept,
            writes_elided: pool.elided,
            writes_cancelled: pool.cancelled,
            evicted: Evicted {
                generation_0: pool.evicted[0],
                generation_1: pool.evicted[1],
                older: pool.evicted[2],
            },
            released_clean: pool.released_clean,
            buffers_mapped: pool.buffers_mapped,
            buffers_recycled: pool.buffers_recycled,
            released_bytes: pool.released_bytes as u64,
            temp_bytes: pool.temp_bytes,
            budget_bytes: pool.budget as u64,
            peak_leased_bytes: pool.peak_leased as u64,
            network: self.stores.traffic(),
            peak_rss_bytes: system::peak_resident(),
            memory_limit_bytes: self.limit,
            seconds: all.as_secs_f64(),
            planning_seconds: since_opening(first).as_secs_f64(),
            phase_seconds: per_phase(seconds),
            serial_seconds: Serial {
                merge: time(&self.merging).as_secs_f64(),
                append: time(&self.appending).as_secs_f64(),
                other: all.saturating_sub(time(&self.together)).as_secs_f64(),
            },
            phase_spilled_bytes: figures(|pool| pool.spilled_bytes),
            phase_loaded_bytes: figures(|pool| pool.loaded_bytes),
        }
    }
}

/// Runs `work` and adds the elapsed nanoseconds to `all`.
pub(super) fn timed<T>(all: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    all.fetch_add(nanos, Ordering::Relaxed);
    done
}

fn per_phase<T>(figure: impl Fn(Phase) -> T) -> PerPhase<T> {
    PerPhase {
        read: figure(Phase::Read),
        settle: figure(Phase::Settle),
        write: figure(Phase::Write),
    }
}
