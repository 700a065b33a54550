//! The budget: one number of bytes for everything, and leases that return themselves.
//!
//! ```text
//! limit   | pusher of one batcher | pusher of the same | pusher of another |      a third each
//! ```
//! What can leave memory when somebody needs it is nobody's part: that of batches at rest. Rows that a
//! pusher holds cannot leave, so those who hold some share the limit, whatever pool they belong to.
//!
//! A budget may lie within the [`Memory`] of somebody else: what it leases is counted there too.
//!
//! A lease gives its bytes back to the budget as it is at that moment: shrinking or growing the
//! limit while leases are out changes what may be leased next, never what is counted as used. Tested
//! in `tests/budget_under_every_interleaving.rs`.

use std::fmt::Debug;

use super::sync::{Arc, AtomicUsize, Ordering};

/// Memory that is counted elsewhere, such as by the memory pool of a query engine. The methods are those of a
/// memory reservation in DataFusion; calls come from any thread.
pub trait Memory: Debug + Send + Sync {
    /// Counts `bytes` more, unless that is too much: false if it is.
    fn try_grow(&self, bytes: usize) -> bool;

    /// Counts `bytes` more, whatever that comes to: a job cannot go on without them.
    fn grow(&self, bytes: usize);

    /// Counts `bytes` less, which were counted before.
    fn shrink(&self, bytes: usize);
}

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
    /// What all that is leased is also counted in. The standard library's `Arc`, in tests too.
    within: Option<std::sync::Arc<dyn Memory>>,
    /// Bytes that were leased when that memory refused more. A grant beyond half of it doubles it: memory that others
    /// gave back is found again.
    refused: AtomicUsize,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn bytes(limit: usize) -> Self {
        Self::new(limit, None)
    }

    /// A budget of at most `limit` bytes, as far as `memory` has them: rows leave for disk when it has none left,
    /// even where the limit is not reached. Name a limit that it has as a rule: chunks and merges are planned by it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// use windrow::{Budget, Memory};
    ///
    /// #[derive(Debug)]
    /// struct Shared(AtomicUsize);
    ///
    /// impl Memory for Shared {
    ///     fn try_grow(&self, bytes: usize) -> bool {
    ///         let fits = |used: usize| Some(used + bytes).filter(|sum| *sum <= 1 << 30);
    ///         self.0.fetch_update(Relaxed, Relaxed, fits).is_ok()
    ///     }
    ///     fn grow(&self, bytes: usize) {
    ///         self.0.fetch_add(bytes, Relaxed);
    ///     }
    ///     fn shrink(&self, bytes: usize) {
    ///         self.0.fetch_sub(bytes, Relaxed);
    ///     }
    /// }
    ///
    /// let budget = Budget::within(256 << 20, Arc::new(Shared(AtomicUsize::new(0))));
    /// # assert!(budget.is_limited());
    /// ```
    pub fn within(limit: usize, memory: std::sync::Arc<dyn Memory>) -> Self {
        Self::new(limit, Some(memory))
    }

    fn new(limit: usize, within: Option<std::sync::Arc<dyn Memory>>) -> Self {
        let counters = Counters {
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            sharing: AtomicUsize::new(0),
            within,
            refused: AtomicUsize::new(usize::MAX),
        };
        Self { counters: Arc::new(counters) }
    }

    /// A budget that is never used up.
    pub fn unlimited() -> Self {
        Self::bytes(usize::MAX)
    }

    /// The limit in bytes; less while the memory that the budget lies within does not have as much.
    pub fn limit(&self) -> usize {
        let limit = self.counters.limit.load(Ordering::Relaxed);
        match &self.counters.within {
            Some(_) => limit.min(self.counters.refused.load(Ordering::Relaxed)),
            None => limit,
        }
    }

    /// False if it is never used up.
    pub fn is_limited(&self) -> bool {
        self.limit() < usize::MAX || self.counters.within.is_some()
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

    /// Leases `bytes` if the limit and the memory that the budget lies within allow it.
    pub(crate) fn try_lease(&self, bytes: usize) -> Option<Lease> {
        let limit = self.counters.limit.load(Ordering::Relaxed);
        let fits = |used: usize| used.checked_add(bytes).filter(|&sum| sum <= limit);
        let used =
            self.counters.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        if let Some(memory) = &self.counters.within {
            let Counters { used: all, refused, .. } = &*self.counters;
            if !memory.try_grow(bytes) {
                all.fetch_sub(bytes, Ordering::Relaxed);
                refused.store(used, Ordering::Relaxed);
                return None;
            }
            let most = refused.load(Ordering::Relaxed);
            if used + bytes > most / 2 {
                refused.store(most.saturating_mul(2).max(used + bytes), Ordering::Relaxed);
            }
        }
        self.counters.peak.fetch_max(used + bytes, Ordering::Relaxed);
        Some(Lease { budget: self.clone(), bytes })
    }

    /// Leases `bytes` whatever the limit: for what a job cannot go on without.
    pub(crate) fn lease(&self, bytes: usize) -> Lease {
        let used = self.counters.used.fetch_add(bytes, Ordering::Relaxed);
        if let Some(memory) = &self.counters.within {
            memory.grow(bytes);
        }
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
        let Counters { used, within, .. } = &*self.budget.counters;
        used.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(memory) = within {
            memory.shrink(self.bytes);
        }
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
