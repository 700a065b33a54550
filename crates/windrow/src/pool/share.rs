//! How many fill the memory of one pool at a time, and what each may fill.
//!
//! ```text
//! limit   | pusher of engine 0 | pusher of engine 0 | pusher of engine 1 |      a third each
//! ```
//!
//! Whoever stops leaves its part to the others. Rows that are in memory then stay in it until somebody
//! needs the memory: those of a batch at rest can leave, those that a pusher holds cannot.

use std::sync::atomic::Ordering;

use super::Pool;

/// One who fills memory, until this drops.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Pool,
}

impl Pool {
    /// One more who fills memory.
    pub(crate) fn join(&self) -> Share {
        self.inner.sharing.fetch_add(1, Ordering::Relaxed);
        Share { pool: self.clone() }
    }

    /// Bytes that each of those may fill who are there now, or of `expected` if they are fewer.
    pub(crate) fn share(&self, expected: usize) -> usize {
        self.inner.budget.limit() / self.sharing().max(expected).max(1)
    }

    /// How many fill memory now.
    pub(crate) fn sharing(&self) -> usize {
        self.inner.sharing.load(Ordering::Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.inner.sharing.fetch_sub(1, Ordering::Relaxed);
    }
}
