//! The context of a process: the pool that all its arrangements share.

use windrow::{Error, Pool};

/// What arrangements are made in: one a process, shared by its workers and dataflows. Cheap to clone.
///
/// Batchers, batches and traces lease their memory from the budget of its pool, and leave it for temporary files where
/// they do not fit. Its limit, policy and codec may change while dataflows run:
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
    /// Arrangements in the memory of `pool`.
    pub fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// The pool, with its budget and counters.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
}

/// Ends the dataflow: there is no way for an error to go on, and an answer without what was lost would be a wrong one.
#[cold]
#[track_caller]
pub(crate) fn fail(error: &Error) -> ! {
    panic!("windrow: {error}")
}

/// What came out, or the end of the dataflow.
#[track_caller]
pub(crate) fn done<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| fail(&error))
}
