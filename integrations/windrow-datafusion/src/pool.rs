//! A memory pool with one limit for all operators of a session, of Windrow and of DataFusion.
//!
//! ```text
//! limit   | reserved by others | Windrow's budget                     |
//!                              | rows being taken in | batches at rest |  <- spilled on need
//! ```
//! Windrow's budget is the limit minus the reservations of other operators. A request of another
//! operator shrinks the budget. Batches over the budget are spilled, the coldest first, before the
//! request may fail. Rows being pushed cannot be spilled; their operator sees the smaller budget at
//! the next push.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use windrow::{Budget, Pool};

/// A memory pool in which Windrow's sorted batches are spilled for other operators.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::execution::runtime_env::RuntimeEnvBuilder;
/// use windrow_datafusion::WindrowMemoryPool;
///
/// let memory = Arc::new(WindrowMemoryPool::new(256 << 20));
/// let runtime = RuntimeEnvBuilder::new().with_memory_pool(memory).build_arc()?;
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
#[derive(Debug)]
pub struct WindrowMemoryPool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit: usize,
    /// The budget of Windrow's operators.
    budget: Budget,
    others: Mutex<Others>,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Others {
    /// Bytes reserved by operators of DataFusion.
    reserved: usize,
    /// Pools of running Windrow operators, whose batches may be spilled.
    pools: Vec<(u64, Pool)>,
}

impl WindrowMemoryPool {
    /// Creates a pool of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let shared = Shared {
            limit,
            budget: Budget::bytes(limit),
            others: Mutex::default(),
            next: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the budget of Windrow's operators.
    pub(crate) fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    /// Allows spilling of the batches in `pool` for other operators, until the result is dropped.
    pub(crate) fn adopt(&self, pool: &Pool) -> Adopted {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.shared.others().pools.push((number, pool.clone()));
        Adopted { shared: Arc::clone(&self.shared), number }
    }
}

impl Shared {
    fn others(&self) -> MutexGuard<'_, Others> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves `bytes` from the budget to other operators. Returns false if spilling does not free
    /// enough.
    fn take(&self, bytes: usize) -> bool {
        let mut others = self.others();
        let wanted = others.reserved.saturating_add(bytes);
        let Some(left) = self.limit.checked_sub(wanted) else { return false };
        self.budget.set_limit(left);
        for (_, pool) in &others.pools {
            // If spilling fails, the memory stays in use.
            if self.budget.used() > left && pool.set_limit(left).is_err() {
                break;
            }
        }
        let given = self.budget.used() <= left;
        if given {
            others.reserved = wanted;
        } else {
            self.budget.set_limit(self.limit.saturating_sub(others.reserved));
        }
        given
    }

    /// Applies `change` to the bytes reserved by other operators.
    fn change(&self, change: impl FnOnce(usize) -> usize) {
        let mut others = self.others();
        others.reserved = change(others.reserved);
        self.budget.set_limit(self.limit.saturating_sub(others.reserved));
    }
}

/// Registration of a running operator's pool.
#[derive(Debug)]
pub(crate) struct Adopted {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Adopted {
    fn drop(&mut self) {
        self.shared.others().pools.retain(|(number, _)| *number != self.number);
    }
}

impl MemoryPool for WindrowMemoryPool {
    fn name(&self) -> &str {
        "windrow"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.shared.change(|reserved| reserved.saturating_add(additional));
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.shared.change(|reserved| reserved.saturating_sub(shrink));
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if self.shared.take(additional) {
            return Ok(());
        }
        let free = self.shared.limit.saturating_sub(self.reserved());
        Err(resources_datafusion_err!(
            "Failed to allocate additional {} for {} with {} already reserved; {} of {} remain",
            human_readable_size(additional),
            reservation.consumer().name(),
            human_readable_size(reservation.size()),
            human_readable_size(free),
            self
        ))
    }

    fn reserved(&self) -> usize {
        self.shared.others().reserved + self.shared.budget.used()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.shared.limit)
    }
}

impl fmt::Display for WindrowMemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "windrow({})", human_readable_size(self.shared.limit))
    }
}
