//! What a job may take: memory, temporary files, threads.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use windrow::{Codec, PoolOptions, SpillTo};

use crate::error::{Error, Result};
use crate::setting::Setting;
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
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Peak resident memory of the process, everything included; 60 % of what there is unless given. A job
    /// whose limit is below its floor fails before it reads anything.
    pub memory: Limit,
    /// Whether the job is all that the process does. Then one that has passed the limit, though it was planned to stay
    /// below, fails at its end, and its output does not appear. Not so unless given: what others take would count.
    pub alone: bool,
    /// Directories for temporary files, used side by side; the system's if there is none here.
    pub temp_dirs: Vec<PathBuf>,
    /// Bytes that temporary files may take together.
    pub max_temp_bytes: Option<u64>,
    /// Threads at the most; as many as there are cores unless given.
    pub threads: Option<NonZeroUsize>,
    /// Compression of temporary files.
    pub spill_codec: Codec,
    /// Where rows go that do not fit the memory limit.
    pub spill_to: SpillTo,
    /// Whether temporary files pass the page cache by: slower, but it is left to others.
    pub spill_direct: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: Limit::Percent(60.0),
            alone: false,
            temp_dirs: Vec::new(),
            max_temp_bytes: None,
            threads: None,
            spill_codec: Codec::None,
            spill_to: SpillTo::Disk,
            spill_direct: false,
        }
    }
}

impl Limits {
    /// Sets the peak resident memory of the process.
    pub fn memory(mut self, memory: Limit) -> Self {
        self.memory = memory;
        self
    }

    /// Sets whether the job is all that the process does.
    pub fn alone(mut self, alone: bool) -> Self {
        self.alone = alone;
        self
    }

    /// Adds a directory for temporary files.
    pub fn temp_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.temp_dirs.push(directory.into());
        self
    }

    /// Sets how many bytes temporary files may take.
    pub fn max_temp_bytes(mut self, bytes: u64) -> Self {
        self.max_temp_bytes = Some(bytes);
        self
    }

    /// Sets the number of threads; 0 is as many as there are cores.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = NonZeroUsize::new(threads);
        self
    }

    /// Sets the compression of temporary files.
    pub fn spill_codec(mut self, codec: Codec) -> Self {
        self.spill_codec = codec;
        self
    }

    /// Sets where rows go that do not fit.
    pub fn spill_to(mut self, spill_to: SpillTo) -> Self {
        self.spill_to = spill_to;
        self
    }

    /// Sets whether temporary files pass the page cache by.
    pub fn spill_direct(mut self, direct: bool) -> Self {
        self.spill_direct = direct;
        self
    }

    /// Refuses directories that are none.
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

    /// The memory limit in bytes; `None` if there is none.
    pub(crate) fn memory_bytes(&self) -> Result<Option<u64>> {
        match self.memory {
            Limit::Unlimited => Ok(None),
            Limit::Bytes(bytes) => Ok(Some(bytes)),
            Limit::Percent(percent) => {
                let all = system::available_memory().ok_or_else(|| {
                    Error::usage(format!(
                        "how much memory there is cannot be found out; give {} in bytes",
                        Setting::MemoryLimit
                    ))
                })?;
                Ok(Some((all as f64 * percent / 100.0) as u64))
            }
        }
    }

    /// The memory limit for so many threads. The address space may have room for less than the
    /// caller's limit; then the memory limit is that room, and comes with the limit of the address
    /// space.
    pub(crate) fn within_space(&self, threads: usize) -> Result<(Option<u64>, Option<Space>)> {
        let bytes = self.memory_bytes()?;
        let space = Space::for_threads(threads)
            .filter(|space| Some(space.memory) < bytes.or(Some(u64::MAX)));
        Ok((space.map(|space| space.memory).or(bytes), space))
    }

    /// What opening inputs may take.
    pub(crate) fn ceiling(&self) -> Result<Ceiling> {
        let (limit, space) = self.within_space(1)?;
        // What others take in the process is not known here.
        Ok(Ceiling { limit: limit.filter(|_| self.alone), space })
    }

    /// How a pool spills that keeps to these limits beside `taken` bytes of temporary files that there are already.
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

/// A limit of the address space that leaves less memory to the job than it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// What may be resident.
    pub(crate) memory: u64,
    limit: u64,
}

impl Space {
    /// The stack of a thread, and the page that guards it.
    const THREAD: u64 = (2 << 20) + (64 << 10);
    /// Threads beside those that read and write: for signals, for files that are spilled.
    const OTHERS: u64 = 3;

    /// What the address space of the process leaves, if that is limited.
    fn for_threads(threads: usize) -> Option<Self> {
        let (left, limit) = system::address_space()?;
        let threads = (threads as u64).saturating_add(Self::OTHERS).saturating_mul(Self::THREAD);
        // What was given back to the system is mapped still, between blocks that are in use.
        let memory = system::resident_now() + left.saturating_sub(threads) / 5 * 4;
        // In whole KiB, as it is shown.
        let memory = memory >> 10 << 10;
        Some(Self { memory, limit })
    }

    /// What to do about it.
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
}

impl Ceiling {
    /// Code that comes late, and what the allocator has beside what it was asked for.
    const LATE: u64 = 4 << 20;
    /// Bytes of any job beside its inputs: see `docs/memory.md`. A refusal before there is a plan
    /// names a limit that is enough.
    const JOB: u64 = 80 << 20;

    /// Bytes that there is room for.
    pub(crate) fn left(self) -> u64 {
        let Some(limit) = self.limit else { return u64::MAX };
        // A limit that has not even that is refused by the plan, which says what the job needs.
        limit.saturating_sub(system::resident_now() + Self::LATE).max(Self::LATE)
    }

    /// Refuses the job if there is no room for `bytes` of the input `name`, which are for `what`. The
    /// job takes `later` bytes for the input.
    ///
    /// # Errors
    /// `MemoryFloor` with a limit that is enough.
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
