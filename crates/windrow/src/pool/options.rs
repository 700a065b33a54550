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
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Directories for temporary files, used in turn. Empty: the system's.
    pub directories: Vec<PathBuf>,
    /// Bytes that temporary files may take, or memory in their place.
    pub max_temp_bytes: u64,
    /// How spilled chunks are compressed.
    pub codec: Codec,
    /// Where they go.
    pub spill_to: SpillTo,
    /// Whether temporary files are read and written past the page cache, where their file system can: for
    /// machines whose cache other work needs, and for containers, which count it as theirs.
    pub direct_io: bool,
    /// Threads that write and read ahead beside the workers; with none, workers do it themselves.
    pub spill_threads: usize,
    /// Whether, where and how.
    pub policy: Arc<dyn SpillPolicy>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            directories: Vec::new(),
            max_temp_bytes: u64::MAX,
            codec: Codec::None,
            spill_to: SpillTo::Disk,
            direct_io: false,
            spill_threads: SPILL_THREADS,
            policy: Arc::new(Tiered),
        }
    }
}
