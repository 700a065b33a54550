//! Limits on the resources of a job: memory, temporary files, threads.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use windrow::{Codec, PoolOptions, SpillTo};

use crate::error::{Error, Result};
use crate::settings::{Setting, setters};
use crate::size::{Limit, Size};
use crate::system;

/// Limits of a job.
///
/// ```
/// use windrow_files::{Limit, Limits};
///
/// let limits = Limits::default().memory(Limit::Bytes(256 << 20)).threads(2);
/// assert_eq!(limits.threads.map(|threads| threads.get()), Some(2));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Limits {
    /// Peak resident memory of the whole process; by default 60 % of the available memory. A job
    /// whose limit is below its floor fails before it reads any rows.
    pub memory: Limit,
    /// Whether the process runs nothing but the job; false by default. If true, a job whose memory
    /// exceeds the limit in spite of the plan fails at its end, and no output appears. The check
    /// requires a dedicated process, because the memory of other code would count as well.
    pub alone: bool,
    /// Directories for temporary files, used in parallel; if empty, the system's directory.
    pub temp_dirs: Vec<PathBuf>,
    /// Bytes of all temporary files together.
    pub max_temp_bytes: Option<u64>,
    /// Maximum number of threads; by default the number of cores.
    pub threads: Option<NonZeroUsize>,
    /// Compression of temporary files.
    pub spill_codec: Codec,
    /// Destination of rows that exceed the memory limit.
    pub spill_to: SpillTo,
    /// Whether temporary files bypass the page cache: slower, but leaves the cache to other
    /// programs.
    pub spill_direct: bool,
}

impl Limits {
    setters! {
        /// Sets the peak resident memory of the process.
        memory: Limit;
        /// Sets whether the process runs nothing but the job.
        alone: bool;
    }

    /// Adds a directory for temporary files.
    pub fn temp_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.temp_dirs.push(directory.into());
        self
    }

    setters! {
        /// Sets the bytes of all temporary files together.
        max_temp_bytes: u64 => Some(max_temp_bytes);
        /// Sets the maximum number of threads; 0 means the number of cores.
        threads: usize => NonZeroUsize::new(threads);
        /// Sets the compression of temporary files.
        spill_codec: Codec;
        /// Sets the destination of rows that exceed the memory limit.
        spill_to: SpillTo;
        /// Sets whether temporary files bypass the page cache.
        spill_direct: bool;
    }

    /// Returns an error if a temporary directory does not exist.
    pub(crate) fn check(&self) -> Result<()> {
        match self.temp_dirs.iter().find(|directory| !directory.is_dir()) {
            None => Ok(()),
            Some(directory) => Err(Error::usage(format!(
                "{}: there is no directory {}; create it first",
                Setting::TempDir,
                directory.display()
            ))),
        }
    }

    /// Returns the maximum number of threads.
    pub(crate) fn cores(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, NonZeroUsize::get)
    }

    /// Returns the memory limit in bytes; `None` for unlimited memory.
    pub(crate) fn memory_bytes(&self) -> Result<Option<u64>> {
        match self.memory {
            Limit::Unlimited => Ok(None),
            Limit::Bytes(bytes) => Ok(Some(bytes)),
            Limit::Percent(percent) => {
                let all = windrow::available_memory().ok_or_else(|| {
                    Error::usage(format!(
                        "how much memory there is cannot be found out; give {} in bytes",
                        Setting::MemoryLimit
                    ))
                })?;
                Ok(Some((all as f64 * percent / 100.0) as u64))
            }
        }
    }

    /// Returns the memory limit for a job with `threads` threads. If the address space leaves less
    /// than the caller's limit, the result is the smaller amount, together with the address space
    /// limit.
    pub(crate) fn within_space(&self, threads: usize) -> Result<(Option<u64>, Option<Space>)> {
        let bytes = self.memory_bytes()?;
        let space = Space::for_threads(threads)
            .filter(|space| Some(space.memory) < bytes.or(Some(u64::MAX)));
        Ok((space.map(|space| space.memory).or(bytes), space))
    }

    /// Returns the memory limit for opening inputs.
    pub(crate) fn ceiling(&self) -> Result<Ceiling> {
        let (limit, space) = self.within_space(1)?;
        // The memory of other code in the process is unknown here.
        let negligible = limit.unwrap_or(u64::MAX) / Ceiling::NEGLIGIBLE;
        Ok(Ceiling { limit: limit.filter(|_| self.alone), space, negligible })
    }

    /// Returns the options of a pool under these limits, given `taken` bytes of existing temporary
    /// files.
    pub fn pool_options(&self, taken: u64) -> PoolOptions {
        let most = self.max_temp_bytes.map_or(u64::MAX, |most| most.saturating_sub(taken));
        PoolOptions::new()
            .directories(&self.temp_dirs)
            .max_temp_bytes(most)
            .codec(self.spill_codec)
            .spill_to(self.spill_to)
            .direct_io(self.spill_direct)
    }
}

/// An address space limit that leaves the job less memory than its memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// Bytes that may be resident.
    pub(crate) memory: u64,
    limit: u64,
}

impl Space {
    /// Bytes of a thread's stack and guard page.
    const THREAD: u64 = (2 << 20) + (64 << 10);
    /// Threads other than readers and writers: for signals, for spilling.
    const OTHERS: u64 = 3;

    /// Returns the memory left by the address space limit of the process, if there is a limit.
    fn for_threads(threads: usize) -> Option<Self> {
        let (left, limit) = system::address_space()?;
        let threads = (threads as u64).saturating_add(Self::OTHERS).saturating_mul(Self::THREAD);
        // A fifth is reserved: blocks returned to the system between blocks in use stay mapped.
        let memory = system::resident_now() + left.saturating_sub(threads) / 5 * 4;
        // Rounded to whole KiB, as displayed.
        let memory = memory >> 10 << 10;
        Some(Self { memory, limit })
    }

    /// Returns the remedy as text.
    pub(crate) fn remedy(&self) -> String {
        format!(
            "the address space of the process is limited to {}, which leaves {} to the job: raise \
             that (`ulimit -v`, `ulimit -d`)",
            Size(self.limit).exactly(),
            Size(self.memory).exactly(),
        )
    }
}

/// A limit of the resident memory while inputs are opened. Large parts of inputs are counted before
/// they are read, so that a process that refuses a job stays within the limit of the job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ceiling {
    limit: Option<u64>,
    space: Option<Space>,
    /// Bytes of a page that need no look before they are read; 0 as long as the limits are unknown.
    pub(crate) negligible: u64,
}

impl Ceiling {
    /// Bytes of code loaded later, and of allocator overhead.
    const LATE: u64 = 4 << 20;
    /// The limit's share below which a page is [negligible](Self::negligible): all threads together
    /// hold some hundred pages.
    const NEGLIGIBLE: u64 = 1024;
    /// Bytes of any job in addition to its inputs: see `docs/memory.md`. An error before planning
    /// names a limit that is sufficient.
    const JOB: u64 = 80 << 20;

    /// Returns the number of bytes still available.
    pub(crate) fn left(self) -> u64 {
        let Some(limit) = self.limit else { return u64::MAX };
        // A limit too low even for `LATE` is left to the plan, whose error states the need.
        limit.saturating_sub(system::resident_now() + Self::LATE).max(Self::LATE)
    }

    /// Returns an error if fewer than `bytes` bytes are available for the input `name`; `what`
    /// describes their use. The job takes `later` bytes for the input.
    ///
    /// # Errors
    /// `MemoryFloor`, with a limit that is sufficient.
    pub(crate) fn admit(self, bytes: u64, later: u64, name: &Arc<str>, what: &str) -> Result<()> {
        let Some(limit) = self.limit.filter(|_| bytes > self.left()) else { return Ok(()) };
        windrow::give_back_free_blocks();
        if bytes <= self.left() {
            return Ok(());
        }
        let all = later.max(bytes).saturating_add(system::resident_now() + Self::JOB);
        let enough = Size(all).rounded_up();
        let remedy = match self.space {
            Some(space) => space.remedy(),
            None => format!("raise `memory_limit`, which is {}", Size(limit).exactly()),
        };
        let message = format!(
            "{name}: {what} would take {}, and the job needs a memory limit of {enough}; {remedy}",
            Size(bytes).rounded_up(),
        );
        Err(Error::memory_floor(message, enough.0, limit).in_file(Arc::clone(name)))
    }
}
