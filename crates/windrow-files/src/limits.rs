//! What a job may take: memory, temporary files, threads.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use windrow::{Codec, PoolOptions, SpillTo};

use crate::error::{Error, Result};
use crate::setting::Setting;
use crate::size::Limit;
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
