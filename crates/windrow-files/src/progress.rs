//! How far a job has come, for who watches it.

use windrow::Pool;

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Rows are read, and sorted as far as they fit.
    Read,
    /// Runs are merged down to as many as can be merged at once.
    Settle,
    /// Rows are merged, encoded and written.
    Write,
}

/// A moment of a job.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// What the job is doing.
    pub phase: Phase,
    /// Rows that went through this phase so far.
    pub rows: u64,
    /// Rows that will, if that is known.
    pub total: Option<u64>,
    pub(crate) pool: Option<&'a Pool>,
    pub(crate) network_bytes: u64,
}

impl Moment<'_> {
    /// Bytes of rows in memory now.
    pub fn leased_bytes(&self) -> u64 {
        self.pool.map_or(0, |pool| pool.stats().leased as u64)
    }

    /// Bytes that went over the network so far, in and out.
    pub fn network_bytes(&self) -> u64 {
        self.network_bytes
    }

    /// Bytes of rows that were moved to temporary files so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.pool.map_or(0, |pool| pool.stats().spilled_bytes as u64)
    }
}

/// Watches a job. Called from any of its threads, often: once a record batch.
///
/// `()` watches nothing.
pub trait Progress: Send + Sync {
    /// A phase begins.
    fn begins(&self, moment: &Moment<'_>) {
        self.advances(moment);
    }

    /// Rows went through the phase.
    fn advances(&self, moment: &Moment<'_>);
}

impl Progress for () {
    fn advances(&self, _: &Moment<'_>) {}
}
