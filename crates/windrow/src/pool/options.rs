//! How a pool spills, as it is told when it is made.

use std::path::PathBuf;
use std::sync::Arc;

use super::codec::Codec;
use super::policy::{SpillPolicy, Tiered};

/// Threads that spill beside the workers.
const SPILL_THREADS: usize = 1;

/// Where spilled chunks go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpillTo {
    /// Temporary files without a name.
    #[default]
    Disk,
    /// Memory outside of the process, which the system swaps out: for machines with swap and without a
    /// scratch disk. It does not count as resident in the process, but does in its cgroup. Worth
    /// compressing.
    Memory,
}

/// How a [`Pool`](crate::Pool) spills.
///
/// ```
/// use windrow::{Budget, Codec, Pool, PoolOptions};
/// let options = PoolOptions::new().directories([std::env::temp_dir()]).codec(Codec::Lz4);
/// let pool = Pool::new(Budget::bytes(64 << 20), options)?;
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PoolOptions {
    pub(super) directories: Vec<PathBuf>,
    pub(super) max_temp_bytes: u64,
    pub(super) codec: Codec,
    pub(super) spill_to: SpillTo,
    pub(super) direct_io: bool,
    pub(super) spill_threads: usize,
    pub(super) chunk_bytes: Option<usize>,
    pub(super) policy: Arc<dyn SpillPolicy>,
}

impl PoolOptions {
    /// Uncompressed temporary files in the system's directory, as large as they get, and one spill thread.
    pub fn new() -> Self {
        Self {
            directories: Vec::new(),
            max_temp_bytes: u64::MAX,
            codec: Codec::None,
            spill_to: SpillTo::Disk,
            direct_io: false,
            spill_threads: SPILL_THREADS,
            chunk_bytes: None,
            policy: Arc::new(Tiered),
        }
    }

    /// Directories for temporary files, used in turn. None: the system's.
    #[must_use]
    pub fn directories<P: Into<PathBuf>>(
        mut self,
        directories: impl IntoIterator<Item = P>,
    ) -> Self {
        self.directories = directories.into_iter().map(Into::into).collect();
        self
    }

    /// Bytes that temporary files may take, or memory in their place.
    #[must_use]
    pub fn max_temp_bytes(mut self, bytes: u64) -> Self {
        self.max_temp_bytes = bytes;
        self
    }

    /// How spilled chunks are compressed.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// Where spilled chunks go.
    #[must_use]
    pub fn spill_to(mut self, spill_to: SpillTo) -> Self {
        self.spill_to = spill_to;
        self
    }

    /// Whether temporary files are read and written past the page cache, where their file system can: for
    /// machines whose cache other work needs, and for containers, which count it as theirs.
    #[must_use]
    pub fn direct_io(mut self, direct_io: bool) -> Self {
        self.direct_io = direct_io;
        self
    }

    /// Threads that write and read ahead beside the workers; with none, workers do it themselves.
    #[must_use]
    pub fn spill_threads(mut self, threads: usize) -> Self {
        self.spill_threads = threads;
        self
    }

    /// Bytes of rows that a chunk holds at the most, and one row at the least, in place of what follows from the budget.
    /// Small chunks are spilled and read piece by piece, and cost more for every byte; chunks of a few rows are
    /// for tests.
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = Some(bytes.max(1));
        self
    }

    /// Whether, where and how chunks are spilled.
    #[must_use]
    pub fn policy(mut self, policy: impl SpillPolicy + 'static) -> Self {
        self.policy = Arc::new(policy);
        self
    }
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self::new()
    }
}
