//! The memory and the disk of a task, as the engine takes them.
//!
//! ```text
//! MemoryPool --reservation--> Budget --> chunks
//!                        \--> aside: what is no chunk
//! DiskManager --directories, bytes left--> temporary files
//! ```
//! In a pool with a limit every chunk is granted by it before it is used, and given back as it goes. What a sort takes
//! beside its chunks - code, arrays to encode and to order in, record batches on their way out - is set aside in the
//! same reservation, and the budget is less by it. A pool without a limit hears how much is held after every step. Who
//! sorts is registered when the first rows are asked for: pools divide their memory among those who are registered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::config::SpillCompression;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::DiskManager;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use windrow::{Budget, Codec, Memory, Pool, PoolOptions};

use crate::error::datafusion_error;
use crate::pool::{Adopted, WindrowMemoryPool};

/// What is planned with, in bytes, where a pool does not say what its limit is.
const UNKNOWN_LIMIT: usize = 1 << 30;
/// Whatever a pool says, chunks are planned for so many bytes.
const LEAST_LIMIT: usize = 4 << 20;
/// What is taken beside chunks by code that a scan does not run, and by those who encode and order rows.
const WORKING: usize = 16 << 20;
/// Of a small limit it is no more than this part.
const WORKING_PART: usize = 4;
/// The part of it, one of so many, that is there still when rows come out: code, and what heaps keep.
const LASTING_PART: usize = 2;

/// Memory and disk for one sort.
#[derive(Debug)]
pub(crate) struct Workspace {
    pool: Pool,
    /// Where the memory pool has a limit: what is no chunk.
    aside: Option<Aside>,
    /// Where the memory pool has no limit: what it is told.
    told: Option<Mutex<MemoryReservation>>,
    /// In a pool of Windrow's: what makes batches give way to others.
    adopted: Option<Adopted>,
    /// Its temporary directories go with it.
    _runtime: Arc<RuntimeEnv>,
}

impl Workspace {
    /// One of `sharers` of the same operator in the pool of `context`; `name` is what it is called there.
    pub(crate) fn open(context: &TaskContext, name: String, sharers: usize) -> Result<Self> {
        let options = options(context)?;
        let memory = context.memory_pool();
        let runtime = context.runtime_env();
        if let Some(own) = memory.downcast_ref::<WindrowMemoryPool>() {
            let pool = Pool::new(own.budget().clone(), options).map_err(datafusion_error)?;
            let adopted = Some(own.adopt(&pool));
            let reservation = MemoryConsumer::new(name).register(memory);
            let reserved = Arc::new(Reserved(reservation));
            let aside = Some(Aside::open(&pool, reserved, None, pool.budget().limit())?);
            return Ok(Self { pool, aside, told: None, adopted, _runtime: runtime });
        }
        let reservation = MemoryConsumer::new(name).with_can_spill(true).register(memory);
        let limit = match memory.memory_limit() {
            MemoryLimit::Infinite => {
                let pool = Pool::new(Budget::unlimited(), options).map_err(datafusion_error)?;
                let told = Some(Mutex::new(reservation));
                return Ok(Self { pool, aside: None, told, adopted: None, _runtime: runtime });
            }
            MemoryLimit::Finite(limit) => limit / sharers.max(1),
            MemoryLimit::Unknown => UNKNOWN_LIMIT,
        };
        let limit = granted(&reservation, limit);
        let reserved = Arc::new(Reserved(reservation));
        let budget = Budget::within(limit, Arc::clone(&reserved) as Arc<dyn Memory>);
        let pool = Pool::new(budget, options).map_err(datafusion_error)?;
        let aside = Some(Aside::open(&pool, reserved, Some(limit), limit)?);
        Ok(Self { pool, aside, told: None, adopted: None, _runtime: runtime })
    }

    /// From now on rows come out, as record batches of `bytes` bytes: leaves those to what is no chunk, and what lasts of
    /// the work before. Chunks leave memory for it.
    ///
    /// # Errors
    /// What writing them out reports.
    pub(crate) fn set_aside_for(&self, bytes: usize) -> Result<()> {
        let Some(aside) = &self.aside else { return Ok(()) };
        aside.set(&self.pool, bytes + aside.lasting)
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// True if others may ask for what is held when it is sorted.
    pub(crate) fn gives_way(&self) -> bool {
        self.adopted.is_some()
    }

    /// Tells a pool without a limit what is held now.
    pub(crate) fn tell(&self) {
        if let Some(told) = &self.told {
            let reservation = told.lock().unwrap_or_else(PoisonError::into_inner);
            reservation.resize(self.pool.budget().used());
        }
    }
}

/// What a sort takes beside its chunks, in the same memory.
#[derive(Debug)]
struct Aside {
    reserved: Arc<Reserved>,
    /// Bytes for chunks and for that, where they do not follow from what is reserved.
    whole: Option<usize>,
    /// What of the work before is still there when rows come out.
    lasting: usize,
    bytes: AtomicUsize,
}

impl Aside {
    /// What those take who work with `limit` bytes.
    fn open(
        pool: &Pool,
        reserved: Arc<Reserved>,
        whole: Option<usize>,
        limit: usize,
    ) -> Result<Self> {
        let working = WORKING.min(limit / WORKING_PART);
        // Where batches give way, what others ask for is more than a guess.
        let lasting = if whole.is_some() { working / LASTING_PART } else { 0 };
        let aside = Self { reserved, whole, lasting, bytes: AtomicUsize::new(0) };
        aside.set(pool, working)?;
        Ok(aside)
    }

    /// Makes it `bytes`. What the memory pool refuses is not counted.
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

/// The most bytes, at most `limit`, that the pool would grant at once, by steps of an eighth.
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

/// All that the pool of `context` grants to `name` at once, or nothing if it has no limit, and how much that is.
///
/// # Errors
/// What the pool reports of less than the least that is planned for.
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

/// Memory of a pool of DataFusion's.
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

/// Where and how temporary files are written.
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

/// The directories of the disk manager; none of one that keeps what is spilled elsewhere.
fn directories(disks: &Arc<DiskManager>) -> Result<Vec<std::path::PathBuf>> {
    let named = disks.temp_dir_paths();
    if !named.is_empty() {
        return Ok(named);
    }
    // The directory is made with the first file.
    disks.create_tmp_file("a sort")?;
    Ok(disks.temp_dir_paths())
}
