//! Pools for the tests of several modules.

use windrow_pool::{Budget, Pool, PoolOptions};

/// Returns a pool without a limit, with chunks of about `chunk_bytes`: many chunks of few rows.
pub(crate) fn tiny(chunk_bytes: usize) -> Pool {
    staging(chunk_bytes, chunk_bytes)
}

/// The same as [`tiny`], with rows sorted `stage_bytes` at a time.
pub(crate) fn staging(chunk_bytes: usize, stage_bytes: usize) -> Pool {
    Pool::with_chunks(Budget::unlimited(), PoolOptions::default(), chunk_bytes, stage_bytes)
        .expect("the system's directory")
}
