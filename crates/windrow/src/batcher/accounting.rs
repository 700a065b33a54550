//! What a batcher holds, told to whoever wants to know.

use std::sync::Arc;

use crate::merge::Run;
use crate::order::Layout;
use crate::pool::Pool;

/// A change of what a batcher holds in chains of chunks. All changes that it reports add up to what it
/// holds, and to zero once it is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Rows.
    pub records: i64,
    /// Bytes of rows, in memory or on disk.
    pub bytes: i64,
    /// Bytes of memory.
    pub capacity: i64,
    /// Pieces of memory.
    pub allocations: i64,
}

impl Accounting {
    fn of(run: &Run) -> Self {
        Self {
            records: run.rows() as i64,
            bytes: run.bytes() as i64,
            capacity: run.resident_bytes() as i64,
            allocations: run.resident_chunks() as i64,
        }
    }
}

impl std::ops::Neg for Accounting {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            records: -self.records,
            bytes: -self.bytes,
            capacity: -self.capacity,
            allocations: -self.allocations,
        }
    }
}

impl std::ops::AddAssign for Accounting {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.capacity += other.capacity;
        self.allocations += other.allocations;
    }
}

/// Hears of changes.
pub(super) type Sink = Option<Arc<dyn Fn(Accounting) + Send + Sync>>;

/// A run that a batcher holds, reported when it comes and when it goes.
pub(super) struct Held {
    run: Option<Run>,
    bytes: usize,
    resident: usize,
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

    /// Puts a run behind it.
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

    /// True if `behind` may be put behind it.
    pub(super) fn goes_on_with(&self, layout: &Layout, pool: &Pool, behind: &Run) -> bool {
        self.run.as_ref().is_some_and(|run| run.goes_on_with(layout, pool, behind))
    }

    /// Bytes of its rows.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of memory that it takes.
    pub(super) fn resident_bytes(&self) -> usize {
        self.resident
    }

    /// The run, which is held no more.
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
