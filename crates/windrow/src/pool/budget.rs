//! The budget: one number of bytes for everything, and leases that return themselves.
//!
//! ```text
//! limit   | pusher of one batcher | pusher of the same | pusher of another |      a third each
//! ```
//! What can leave memory when somebody needs it is nobody's part: that of batches at rest. Rows that a
//! pusher holds cannot leave, so those who hold some share the limit, whatever pool they belong to.
//!
//! A lease gives its bytes back to the budget as it is at that moment: shrinking or growing the
//! limit while leases are out changes what may be leased next, never what is counted as used. Tested
//! in `tests/budget_under_every_interleaving.rs`.

use super::sync::{Arc, AtomicUsize, Ordering};

/// A limit in bytes that many parts of a job share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Budget {
    counters: Arc<Counters>,
}

#[derive(Debug)]
struct Counters {
    limit: AtomicUsize,
    used: AtomicUsize,
    peak: AtomicUsize,
    /// How many hold rows that cannot leave.
    sharing: AtomicUsize,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn bytes(limit: usize) -> Self {
        let counters = Counters {
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            sharing: AtomicUsize::new(0),
        };
        Self { counters: Arc::new(counters) }
    }

    /// A budget that is never used up.
    pub fn unlimited() -> Self {
        Self::bytes(usize::MAX)
    }

    /// The limit in bytes.
    pub fn limit(&self) -> usize {
        self.counters.limit.load(Ordering::Relaxed)
    }

    /// False if it is never used up.
    pub fn is_limited(&self) -> bool {
        self.limit() < usize::MAX
    }

    /// Changes the limit; leases that are out stay as they are.
    pub fn set_limit(&self, limit: usize) {
        self.counters.limit.store(limit, Ordering::Relaxed);
    }

    /// Bytes that are leased now.
    pub fn used(&self) -> usize {
        self.counters.used.load(Ordering::Relaxed)
    }

    /// The most bytes that were leased at one time.
    pub fn peak(&self) -> usize {
        self.counters.peak.load(Ordering::Relaxed)
    }

    /// One more who holds rows that cannot leave.
    pub(crate) fn join(&self) -> Share {
        self.counters.sharing.fetch_add(1, Ordering::Relaxed);
        Share { budget: self.clone() }
    }

    /// How many there are now.
    pub(crate) fn sharing(&self) -> usize {
        self.counters.sharing.load(Ordering::Relaxed)
    }

    /// Bytes for each of them, or of `expected` if they are fewer.
    pub(crate) fn share(&self, expected: usize) -> usize {
        self.limit() / self.sharing().max(expected).max(1)
    }

    /// Leases `bytes` if the limit allows it.
    pub(crate) fn try_lease(&self, bytes: usize) -> Option<Lease> {
        let fits = |used: usize| used.checked_add(bytes).filter(|&sum| sum <= self.limit());
        let used =
            self.counters.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        self.counters.peak.fetch_max(used + bytes, Ordering::Relaxed);
        Some(Lease { budget: self.clone(), bytes })
    }

    /// Leases `bytes` whatever the limit: for what a job cannot go on without.
    pub(crate) fn lease(&self, bytes: usize) -> Lease {
        let used = self.counters.used.fetch_add(bytes, Ordering::Relaxed);
        self.counters.peak.fetch_max(used + bytes, Ordering::Relaxed);
        Lease { budget: self.clone(), bytes }
    }
}

/// Bytes taken from a budget until this drops.
#[derive(Debug)]
pub(crate) struct Lease {
    budget: Budget,
    bytes: usize,
}

impl Lease {
    /// Bytes that this lease holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.budget.counters.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// One who holds rows that cannot leave, until this drops.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.counters.sharing.fetch_sub(1, Ordering::Relaxed);
    }
}
