//! Accounting of a batcher's memory, reported to a callback.

use std::sync::Arc;

use crate::merge::Run;
use windrow_pool::Pool;
use windrow_rows::Layout;

/// A change in the chunk chains that a batcher holds. All reported changes add up to the current
/// contents, and to zero after the batcher is dropped. Rows that a seal holds back may be spilled
/// later; the next seal reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Number of rows, in memory or on disk.
    pub records: i64,
    /// Bytes of rows, in memory or on disk.
    pub bytes: i64,
    /// Number of rows that are not in memory.
    pub spilled_records: i64,
    /// Bytes of rows that are not in memory.
    pub spilled_bytes: i64,
    /// Bytes of memory.
    pub capacity: i64,
    /// Number of allocations.
    pub allocations: i64,
}

impl Accounting {
    fn of(run: &Run) -> Self {
        let [rows, bytes] = run.spilled_rows_and_bytes();
        Self {
            records: run.rows() as i64,
            bytes: run.bytes() as i64,
            spilled_records: rows as i64,
            spilled_bytes: bytes as i64,
            capacity: run.resident_bytes() as i64,
            allocations: run.resident_chunks() as i64,
        }
    }

    /// Combines each figure with that of `other`.
    fn with(self, other: Self, combine: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            records: combine(self.records, other.records),
            bytes: combine(self.bytes, other.bytes),
            spilled_records: combine(self.spilled_records, other.spilled_records),
            spilled_bytes: combine(self.spilled_bytes, other.spilled_bytes),
            capacity: combine(self.capacity, other.capacity),
            allocations: combine(self.allocations, other.allocations),
        }
    }
}

impl std::ops::Neg for Accounting {
    type Output = Self;

    fn neg(self) -> Self {
        self.with(Self::default(), |figure, _| -figure)
    }
}

impl std::ops::AddAssign for Accounting {
    fn add_assign(&mut self, other: Self) {
        *self = self.with(other, |a, b| a + b);
    }
}

/// The callback for changes.
pub(super) type Sink = Option<Arc<dyn Fn(Accounting) + Send + Sync>>;

/// A run held by a batcher, reported on creation and on drop.
pub(super) struct Held {
    run: Option<Run>,
    /// The bytes of the rows.
    pub(super) bytes: usize,
    /// The bytes of memory that the run takes.
    pub(super) resident: usize,
    told: Accounting,
    sink: Sink,
}

impl Held {
    pub(super) fn new(run: Run, sink: &Sink) -> Self {
        let told = if sink.is_some() { Accounting::of(&run) } else { Accounting::default() };
        if let Some(sink) = sink {
            sink(told);
        }
        let (bytes, resident) = (run.bytes(), run.resident_bytes());
        Self { run: Some(run), bytes, resident, told, sink: sink.clone() }
    }

    /// Appends a run.
    pub(super) fn append(&mut self, behind: Run) {
        if let Some(sink) = &self.sink {
            let more = Accounting::of(&behind);
            sink(more);
            self.told += more;
        }
        self.bytes += behind.bytes();
        self.resident += behind.resident_bytes();
        if let Some(run) = &mut self.run {
            run.append(behind);
        }
    }

    /// Reports chunks that have left memory or came back since the last report.
    pub(super) fn report(&mut self) {
        if let (Some(sink), Some(run)) = (&self.sink, &self.run) {
            let now = Accounting::of(run);
            sink(now.with(self.told, |now, told| now - told));
            self.told = now;
        }
    }

    /// Returns true if `behind` may be appended.
    pub(super) fn goes_on_with(&self, layout: &Layout, pool: &Pool, behind: &Run) -> bool {
        self.run.as_ref().is_some_and(|run| run.goes_on_with(layout, pool, behind))
    }

    /// Takes the run and reports its removal.
    pub(super) fn take(mut self) -> Option<Run> {
        self.run.take()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(sink) = &self.sink {
            sink(-self.told);
        }
    }
}
