//! The context of a process: the pool that all its arrangements share.

use windrow::{Pool, Result};

/// The shared state of all arrangements: one per process, used by all workers and dataflows. Cheap
/// to clone.
///
/// Batchers, batches and traces reserve memory from the pool's budget, and spill to temporary files
/// beyond it. The limit, the policy and the codec may change while dataflows run:
///
/// ```
/// use windrow::{Budget, Codec, Pool};
/// use windrow_differential::Context;
///
/// let context = Context::new(Pool::in_dir(std::env::temp_dir(), Budget::bytes(64 << 20))?);
/// context.pool().set_codec(Codec::Lz4);
/// context.pool().set_limit(32 << 20)?;
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    pool: Pool,
}

impl Context {
    /// Creates a context whose arrangements use the memory of `pool`.
    pub fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Returns the pool, with its budget and counters.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
}

/// Returns the value, or panics with the error, which ends the dataflow: errors have no path
/// through a dataflow, and a result without the lost data would be wrong.
#[track_caller]
pub(crate) fn done<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("windrow: {error}"))
}
