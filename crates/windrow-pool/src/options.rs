//! Options of a pool.

use std::path::PathBuf;
use std::sync::Arc;

use crate::codec::Codec;
use crate::policy::{SpillPolicy, SpillTo, Tiered};

/// Spill threads beside the workers.
const SPILL_THREADS: usize = 1;

/// How a [`Pool`](crate::Pool) spills.
///
/// ```
/// use windrow_pool::{Budget, Codec, Pool, PoolOptions};
/// let options = PoolOptions::new().directories([std::env::temp_dir()]).codec(Codec::Lz4);
/// let pool = Pool::new(Budget::bytes(64 << 20), options)?;
/// # Ok::<(), windrow_rows::Error>(())
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
    /// Returns the defaults: uncompressed temporary files of any size in the system's directory,
    /// and one spill thread.
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

    /// Sets the directories of temporary files, used in turn. Default: the system's directory.
    #[must_use]
    pub fn directories<P: Into<PathBuf>>(
        mut self,
        directories: impl IntoIterator<Item = P>,
    ) -> Self {
        self.directories = directories.into_iter().map(Into::into).collect();
        self
    }

    windrow_rows::setters! {
        /// Sets the limit in bytes of temporary files, or of spill memory.
        max_temp_bytes: u64;
        /// Sets the compression of spilled chunks.
        codec: Codec;
        /// Sets where chunks are spilled.
        spill_to: SpillTo;
        /// Sets whether temporary files bypass the page cache, if their file system supports it:
        /// for machines whose cache serves other work, and for containers, whose memory includes
        /// the cache.
        direct_io: bool;
        /// Sets the number of threads that write out and read ahead. With none, workers write
        /// themselves.
        spill_threads: usize;
        /// Sets the bytes of rows in a chunk, at least one row; the default follows from the
        /// budget. Small chunks are spilled and read in small pieces, and cost more per byte.
        /// Chunks of a few rows are for tests.
        chunk_bytes: usize => Some(chunk_bytes.max(1));
        /// Sets the policy: whether, where and how chunks are spilled.
        policy: impl SpillPolicy + 'static => Arc::new(policy);
    }
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self::new()
    }
}
