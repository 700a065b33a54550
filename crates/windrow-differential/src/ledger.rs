//! Memory of a batcher, as logging events of differential.
//!
//! ```text
//! batcher --changes, from any thread--> sums since the last event --worker--> BatcherEvent
//! ```
//! A logger belongs to its worker's thread, while the engine may report from any thread. Four
//! atomic counters connect the two.
//!
//! Invariant: all events add up to the memory of the batcher's chunks, and to zero once the batcher
//! is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use differential_dataflow::logging::{BatcherEvent, Logger};
use windrow::Accounting;

/// Changes since the last event: records and bytes in memory, capacity in bytes, allocations.
type Sums = [AtomicI64; 4];

/// Reports the memory of one batcher to a logger.
pub(crate) struct Ledger {
    logger: Logger,
    operator: usize,
    sums: Arc<Sums>,
}

impl Ledger {
    /// Creates a ledger of the batcher of `operator`, with nothing to report.
    pub(crate) fn new(logger: Logger, operator: usize) -> Self {
        Self { logger, operator, sums: Arc::default() }
    }

    /// Returns the callback for the engine's accounts.
    pub(crate) fn sink(&self) -> impl Fn(Accounting) + Send + Sync + 'static {
        let sums = Arc::clone(&self.sums);
        move |change| {
            let Accounting { capacity, allocations, .. } = change;
            let records = change.records - change.spilled_records;
            let bytes = change.bytes - change.spilled_bytes;
            for (sum, change) in sums.iter().zip([records, bytes, capacity, allocations]) {
                sum.fetch_add(change, Ordering::Relaxed);
            }
        }
    }

    /// Logs the changes since the last event, if any.
    pub(crate) fn report(&self) {
        let changes = [0, 1, 2, 3].map(|at| self.sums[at].swap(0, Ordering::Relaxed) as isize);
        if changes == [0; 4] {
            return;
        }
        let [records_diff, size_diff, capacity_diff, allocations_diff] = changes;
        self.logger.log(BatcherEvent {
            operator: self.operator,
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
