//! Memory and disk of a task, for the engine.
//!
//! ```text
//! MemoryPool --reservation--> Budget --> chunks
//!                        \--> aside: memory outside chunks
//! DiskManager --directories, bytes left--> temporary files
//! ```
//! A pool with a limit grants every chunk before its use; the reservation shrinks when a chunk is
//! freed. A sort also needs memory outside of chunks: code, arrays for encoding and sorting, and
//! output record batches. The same reservation sets this memory aside, and the budget is reduced
//! accordingly. A pool without a limit is informed of the used bytes after every step. A sort
//! registers at the first poll, because pools divide their memory among registered consumers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::config::SpillCompression;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::DiskManager;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder, Time,
};
use windrow::{Budget, Codec, Memory, Pool, PoolOptions};

use crate::error::datafusion_error;
use crate::pool::{Adopted, WindrowMemoryPool};

/// Bytes assumed for a pool of unknown limit.
const UNKNOWN_LIMIT: usize = 1 << 30;
/// Minimum number of bytes planned for chunks, whatever the pool grants.
const LEAST_LIMIT: usize = 4 << 20;
/// Bytes set aside for code that a scan does not run, and for encoding and sorting of rows.
const WORKING: usize = 16 << 20;
/// Divisor of the limit that caps `WORKING`.
const WORKING_PART: usize = 4;
/// Divisor of the set-aside bytes for the part still in use during output: code, and memory kept by
/// heaps.
const LASTING_PART: usize = 2;

/// Metrics of a run for `EXPLAIN ANALYZE`.
#[derive(Clone, Debug)]
pub(crate) struct RunMetrics {
    pub(crate) baseline: BaselineMetrics,
    /// Spilled chunks.
    spill_count: Count,
    /// Bytes of the spilled chunks on disk.
    spilled_bytes: Count,
    peak: Gauge,
}

impl RunMetrics {
    pub(crate) fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            baseline: BaselineMetrics::new(set, partition),
            spill_count: MetricBuilder::new(set).spill_count(partition),
            spilled_bytes: MetricBuilder::new(set).spilled_bytes(partition),
            peak: MetricBuilder::new(set).peak_memory_usage("peak_mem_used", partition),
        }
    }

    pub(crate) fn elapsed(&self) -> Time {
        self.baseline.elapsed_compute().clone()
    }
}

/// Memory and disk for one sort. Records its counters as metrics when dropped.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) pool: Pool,
    /// Bytes outside of chunks, if the memory pool has a limit.
    aside: Option<Aside>,
    /// The reservation to report to, if the memory pool has no limit.
    told: Option<Mutex<Arc<Reserved>>>,
    /// Registration in a pool of Windrow's, which can spill sorted batches for other operators.
    pub(crate) adopted: Option<Adopted>,
    metrics: RunMetrics,
    /// Owner of the temporary directories.
    _runtime: Arc<RuntimeEnv>,
}

impl Workspace {
    /// Opens the workspace of one of `sharers` partitions in the pool of `context`. `name` is the
    /// consumer's name.
    pub(crate) fn open(
        context: &TaskContext,
        name: &str,
        sharers: usize,
        metrics: &RunMetrics,
    ) -> Result<Self> {
        let (options, memory) = (options(context)?, context.memory_pool());
        let own = memory.downcast_ref::<WindrowMemoryPool>();
        let consumer = MemoryConsumer::new(name).with_can_spill(own.is_none());
        let reserved = Arc::new(Reserved(consumer.register(memory)));
        let limit = match memory.memory_limit() {
            MemoryLimit::Infinite => None,
            MemoryLimit::Finite(limit) => Some(limit / sharers.max(1)),
            MemoryLimit::Unknown => Some(UNKNOWN_LIMIT),
        };
        let whole = limit.filter(|_| own.is_none()).map(|limit| granted(&reserved.0, limit));
        let budget = match (own, whole) {
            (Some(own), _) => own.budget().clone(),
            (None, Some(whole)) => Budget::within(whole, Arc::clone(&reserved) as Arc<dyn Memory>),
            (None, None) => Budget::unlimited(),
        };
        let pool = Pool::new(budget, options).map_err(datafusion_error)?;
        let adopted = own.map(|own| own.adopt(&pool));
        let (aside, told) = if limit.is_some() {
            (Some(Aside::open(&pool, reserved, whole)?), None)
        } else {
            (None, Some(Mutex::new(reserved)))
        };
        let (metrics, runtime) = (metrics.clone(), context.runtime_env());
        Ok(Self { pool, aside, told, adopted, metrics, _runtime: runtime })
    }

    /// Prepares for output in record batches of `bytes` bytes: sets aside `bytes`, and memory that
    /// lasts from earlier steps. Chunks are spilled if necessary.
    ///
    /// # Errors
    /// The error of spilling chunks.
    pub(crate) fn set_aside_for(&self, bytes: usize) -> Result<()> {
        let Some(aside) = &self.aside else { return Ok(()) };
        aside.set(&self.pool, bytes + aside.lasting)
    }

    /// Reports the used bytes to a pool without a limit.
    pub(crate) fn tell(&self) {
        if let Some(told) = &self.told {
            let reserved = told.lock().unwrap_or_else(PoisonError::into_inner);
            reserved.0.resize(self.pool.budget().used());
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let stats = self.pool.stats();
        self.metrics.spill_count.add(stats.spills as usize);
        self.metrics.spilled_bytes.add(stats.stored_bytes);
        self.metrics.peak.set_max(stats.peak_leased);
    }
}

/// Memory of a sort outside of its chunks, in the same reservation.
#[derive(Debug)]
struct Aside {
    reserved: Arc<Reserved>,
    /// Total bytes for chunks and the set-aside part. `None` in a pool of Windrow's, which sets the
    /// limit.
    whole: Option<usize>,
    /// Bytes of earlier steps that are still in use during output.
    lasting: usize,
    bytes: AtomicUsize,
}

impl Aside {
    /// Sets aside the bytes needed to work within the limit.
    fn open(pool: &Pool, reserved: Arc<Reserved>, whole: Option<usize>) -> Result<Self> {
        let limit = whole.unwrap_or_else(|| pool.budget().limit());
        let working = WORKING.min(limit / WORKING_PART);
        // In a pool of Windrow's, other operators have actual requests, which take precedence over
        // this estimate.
        let lasting = if whole.is_some() { working / LASTING_PART } else { 0 };
        let aside = Self { reserved, whole, lasting, bytes: AtomicUsize::new(0) };
        aside.set(pool, working)?;
        Ok(aside)
    }

    /// Sets aside `bytes`. Does not count bytes that the memory pool refuses.
    fn set(&self, pool: &Pool, bytes: usize) -> Result<()> {
        if self.whole.is_some_and(|whole| whole <= LEAST_LIMIT) {
            return Ok(());
        }
        if let Some(whole) = self.whole {
            pool.set_limit(whole.saturating_sub(bytes)).map_err(datafusion_error)?;
        }
        let before = self.bytes.load(Ordering::Relaxed);
        if bytes < before {
            self.reserved.shrink(before - bytes);
        } else if !self.reserved.try_grow(bytes - before) {
            return Ok(());
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns the largest size up to `limit` that the pool would grant at once, reducing by an eighth
/// per attempt.
fn granted(reservation: &MemoryReservation, mut limit: usize) -> usize {
    while limit > LEAST_LIMIT {
        if reservation.try_grow(limit).is_ok() {
            reservation.free();
            return limit;
        }
        limit -= limit / 8;
    }
    LEAST_LIMIT
}

/// Reserves all memory that the pool of `context` grants to `name` at once, and returns the size.
/// Reserves nothing if the pool has no limit.
///
/// # Errors
/// The pool's error if even the minimum is refused.
#[cfg(feature = "compact")]
pub(crate) fn reserved(
    context: &TaskContext,
    name: &str,
) -> Result<(MemoryReservation, Option<usize>)> {
    let memory = context.memory_pool();
    let reservation = MemoryConsumer::new(name).register(memory);
    let limit = match memory.memory_limit() {
        MemoryLimit::Infinite => return Ok((reservation, None)),
        MemoryLimit::Finite(limit) => limit,
        MemoryLimit::Unknown => UNKNOWN_LIMIT,
    };
    let granted = granted(&reservation, limit);
    reservation.try_grow(granted)?;
    Ok((reservation, Some(granted)))
}

/// Memory in a pool of DataFusion's.
#[derive(Debug)]
struct Reserved(MemoryReservation);

impl Memory for Reserved {
    fn try_grow(&self, bytes: usize) -> bool {
        self.0.try_grow(bytes).is_ok()
    }

    fn grow(&self, bytes: usize) {
        self.0.grow(bytes);
    }

    fn shrink(&self, bytes: usize) {
        self.0.shrink(bytes);
    }
}

/// Returns the options for temporary files.
fn options(context: &TaskContext) -> Result<PoolOptions> {
    let disks = &context.runtime_env().disk_manager;
    let codec = match context.session_config().spill_compression() {
        SpillCompression::Uncompressed => Codec::None,
        SpillCompression::Lz4Frame => Codec::Lz4,
        SpillCompression::Zstd => Codec::Zstd,
    };
    let options = PoolOptions::new().codec(codec);
    if !disks.tmp_files_enabled() {
        return Ok(options.max_temp_bytes(0));
    }
    let left = disks.max_temp_directory_size().saturating_sub(disks.used_disk_space());
    Ok(options.directories(directories(disks)?).max_temp_bytes(left))
}

/// Returns the directories of the disk manager, or none if the manager spills elsewhere.
fn directories(disks: &Arc<DiskManager>) -> Result<Vec<std::path::PathBuf>> {
    let named = disks.temp_dir_paths();
    if !named.is_empty() {
        return Ok(named);
    }
    // The manager creates its directory with the first file.
    disks.create_tmp_file("a sort")?;
    Ok(disks.temp_dir_paths())
}
