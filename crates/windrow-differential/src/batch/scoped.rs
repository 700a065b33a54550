//! Batches of rows in the times of a nested scope.
//!
//! ```text
//! outer scope          (key, value, time)           RowBatch
//!   | enter
//! nested scope         (key, value, enter(time))    BatchEnter: the same rows, not copied
//! ```
//! Joins, reductions and scans read the rows of the outer batch and convert each time on the way.

use differential_dataflow::trace::wrappers::enter::BatchEnter;
use timely::progress::timestamp::Refines;

use super::RowBatch;
use crate::{DiffCode, RowCode, TimeCode};

/// A batch of rows in the times of a scope: a [`RowBatch`], or a batch of an arrangement that
/// [entered](differential_dataflow::operators::arrange::Arranged::enter) the scope.
pub trait ScopedBatch: Clone + 'static {
    /// Keys of the rows.
    type Key: RowCode;
    /// Values of the rows.
    type Value: RowCode;
    /// Differences of the rows.
    type Diff: DiffCode;
    /// Times of the scope.
    type Time: TimeCode;
    /// Times of the rows, of the scope that made the batch.
    type RowTime: TimeCode;

    /// Returns the underlying batch of rows.
    fn rows(&self) -> &RowBatch<Self::Key, Self::Value, Self::RowTime, Self::Diff>;

    /// Converts the time of a row to a time of the scope.
    fn scoped(time: Self::RowTime) -> Self::Time;
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> ScopedBatch for RowBatch<K, V, T, R> {
    type Key = K;
    type Value = V;
    type Diff = R;
    type Time = T;
    type RowTime = T;

    fn rows(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn scoped(time: T) -> T {
        time
    }
}

impl<B: ScopedBatch, TInner: TimeCode + Refines<B::Time>> ScopedBatch for BatchEnter<B, TInner> {
    type Key = B::Key;
    type Value = B::Value;
    type Diff = B::Diff;
    type Time = TInner;
    type RowTime = B::RowTime;

    fn rows(&self) -> &RowBatch<B::Key, B::Value, B::RowTime, B::Diff> {
        self.inner().rows()
    }

    #[inline(always)]
    fn scoped(time: B::RowTime) -> TInner {
        TInner::to_inner(B::scoped(time))
    }
}
