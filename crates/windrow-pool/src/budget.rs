//! The budget: one limit in bytes for everything, and leases that return their bytes on drop.
//!
//! ```text
//! limit   | pusher of one batcher | pusher of the same | pusher of another |      a third each
//! ```
//! Rows in a pusher cannot be evicted, so all pushers of a budget share its limit, whatever their
//! pools. Batches at rest can be evicted, so they have no share.
//!
//! A budget may lie within an outer [`Memory`], which then counts all leases, too.
//!
//! A lease returns its bytes to the budget with its current limit: changing the limit while leases
//! exist changes what may be leased next, never the bytes in use. Tested in
//! `tests/budget_under_every_interleaving.rs`.

use std::fmt::Debug;

use crate::sync::{Arc, AtomicUsize, Ordering};

/// Memory counted elsewhere, such as in the memory pool of a query engine. The methods match a
/// memory reservation of DataFusion. Calls come from any thread.
pub trait Memory: Debug + Send + Sync {
    /// Reserves `bytes`, or returns false if the memory does not suffice.
    fn try_grow(&self, bytes: usize) -> bool;

    /// Reserves `bytes` even beyond the limit: a job cannot go on without this memory.
    fn grow(&self, bytes: usize);

    /// Releases `bytes` of earlier reservations.
    fn shrink(&self, bytes: usize);
}

/// A limit in bytes, shared by many parts of a job. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Budget {
    counters: Arc<Counters>,
}

#[derive(Debug)]
struct Counters {
    limit: AtomicUsize,
    used: AtomicUsize,
    peak: AtomicUsize,
    /// Number of holders of unevictable rows.
    sharing: AtomicUsize,
    /// The outer memory, which also counts all leases. The standard library's `Arc`, in tests too.
    within: Option<std::sync::Arc<dyn Memory>>,
    /// Bytes in use when the outer memory last refused more, `usize::MAX` before. A grant beyond
    /// half of this value doubles it, to notice released memory.
    refused: AtomicUsize,
}

impl Budget {
    /// Returns a budget of `limit` bytes.
    pub fn bytes(limit: usize) -> Self {
        Self::new(limit, None)
    }

    /// Returns a budget of at most `limit` bytes within `memory`: rows are also spilled when
    /// `memory` refuses more, even below the limit. Pass a limit that `memory` usually grants,
    /// since chunks and merges are planned by it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// use windrow_pool::{Budget, Memory};
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

    /// Returns a budget without a limit.
    pub fn unlimited() -> Self {
        Self::bytes(usize::MAX)
    }

    /// Returns the limit in bytes; less while the outer memory does not grant as much.
    pub fn limit(&self) -> usize {
        let limit = self.counters.limit.load(Ordering::Relaxed);
        match &self.counters.within {
            Some(_) => limit.min(self.counters.refused.load(Ordering::Relaxed)),
            None => limit,
        }
    }

    /// Returns false if the budget has no limit.
    pub fn is_limited(&self) -> bool {
        self.limit() < usize::MAX || self.counters.within.is_some()
    }

    /// Changes the limit. Existing leases stay.
    pub fn set_limit(&self, limit: usize) {
        self.counters.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> usize {
        self.counters.used.load(Ordering::Relaxed)
    }

    /// Returns the peak of the bytes in use.
    pub fn peak(&self) -> usize {
        self.counters.peak.load(Ordering::Relaxed)
    }
}

/// For the engine.
#[doc(hidden)]
impl Budget {
    /// Registers a holder of unevictable rows.
    pub fn join(&self) -> Share {
        self.counters.sharing.fetch_add(1, Ordering::Relaxed);
        Share { budget: self.clone() }
    }

    /// Returns the number of holders.
    pub fn sharing(&self) -> usize {
        self.counters.sharing.load(Ordering::Relaxed)
    }

    /// Returns the bytes per holder, with at least `expected` holders assumed.
    pub fn share(&self, expected: usize) -> usize {
        self.limit() / self.sharing().max(expected).max(1)
    }

    /// Leases `bytes` if the limit and the outer memory allow it.
    pub fn try_lease(&self, bytes: usize) -> Option<Lease> {
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

    /// Leases `bytes` even beyond the limit: for memory without which a job cannot go on.
    pub fn lease(&self, bytes: usize) -> Lease {
        let used = self.counters.used.fetch_add(bytes, Ordering::Relaxed);
        if let Some(memory) = &self.counters.within {
            memory.grow(bytes);
        }
        self.counters.peak.fetch_max(used + bytes, Ordering::Relaxed);
        Lease { budget: self.clone(), bytes }
    }
}

/// Bytes taken from a budget until this value drops.
#[derive(Debug)]
pub struct Lease {
    budget: Budget,
    bytes: usize,
}

impl Lease {
    /// Returns the leased bytes.
    pub fn bytes(&self) -> usize {
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

/// A registered holder of unevictable rows, until this value drops.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.counters.sharing.fetch_sub(1, Ordering::Relaxed);
    }
}
