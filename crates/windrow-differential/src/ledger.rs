//! What a batcher holds, as logging events of differential.
//!
//! ```text
//! the engine's batcher --every change, from any thread--> sums since the last event --by the worker--> BatcherEvent
//! ```
//! Loggers stay with their worker, and the engine's accounts may come from elsewhere: they meet in four counters.
//!
//! Invariant: all events add up to what the batcher holds in chunks, and to zero once it is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use differential_dataflow::logging::{BatcherEvent, Logger};
use windrow::Accounting;

/// Changes since the last event: records, bytes, bytes of memory, pieces of memory.
type Sums = [AtomicI64; 4];

/// Reports to a logger what one batcher holds.
pub(crate) struct Ledger {
    logger: Logger,
    operator: usize,
    sums: Arc<Sums>,
}

impl Ledger {
    /// Nothing so far, of the batcher of `operator`.
    pub(crate) fn new(logger: Logger, operator: usize) -> Self {
        Self { logger, operator, sums: Arc::default() }
    }

    /// Who takes the engine's accounts.
    pub(crate) fn sink(&self) -> impl Fn(Accounting) + Send + Sync + 'static {
        let sums = Arc::clone(&self.sums);
        move |change| {
            let Accounting { records, bytes, capacity, allocations } = change;
            for (sum, change) in sums.iter().zip([records, bytes, capacity, allocations]) {
                sum.fetch_add(change, Ordering::Relaxed);
            }
        }
    }

    /// Logs what has changed, if anything has.
    pub(crate) fn report(&self) {
        let changes = [0, 1, 2, 3].map(|at| self.sums[at].swap(0, Ordering::Relaxed) as isize);
        if changes == [0; 4] {
            return;
        }
        let [records_diff, size_diff, capacity_diff, allocations_diff] = changes;
        let operator = self.operator;
        self.logger.log(BatcherEvent {
            operator,
            records_diff,
            size_diff,
            capacity_diff,
            allocations_diff,
        });
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.report();
    }
}
