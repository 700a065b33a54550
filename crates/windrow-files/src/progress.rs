//! Progress of a job, for observers.

use windrow::Pool;

/// The current work of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Rows are read, and sorted as far as memory allows.
    Read,
    /// Runs are merged until their number permits a single final merge.
    Settle,
    /// Rows are merged, encoded and written.
    Write,
}

/// The state of a job at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// Current phase.
    pub phase: Phase,
    /// Rows that have passed this phase.
    pub rows: u64,
    /// Total rows of this phase, if known.
    pub total: Option<u64>,
    pub(crate) pool: Option<&'a Pool>,
    pub(crate) network_bytes: u64,
}

impl Moment<'_> {
    /// Returns the bytes of rows currently in memory.
    pub fn leased_bytes(&self) -> u64 {
        self.pool.map_or(0, |pool| pool.stats().leased as u64)
    }

    /// Returns the bytes sent and received over the network so far.
    pub fn network_bytes(&self) -> u64 {
        self.network_bytes
    }

    /// Returns the bytes of rows moved to temporary files so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.pool.map_or(0, |pool| pool.stats().spilled_bytes as u64)
    }
}

/// An observer of a job. Any of the job's threads calls it, once for each record batch.
///
/// `()` ignores all calls.
pub trait Progress: Send + Sync {
    /// Called at the start of a phase.
    fn begins(&self, moment: &Moment<'_>) {
        self.advances(moment);
    }

    /// Called after rows have passed the phase.
    fn advances(&self, moment: &Moment<'_>);
}

impl Progress for () {
    fn advances(&self, _: &Moment<'_>) {}
}
