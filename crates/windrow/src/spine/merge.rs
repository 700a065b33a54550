//! A merge of a spine, done by whoever has time for it: the spine's own calls, or threads.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::slot::Slot;
use crate::batch::{Batch, Merging};
use crate::error::{Error, Result};
use crate::time::Time;

/// A merge that is under way or has ended.
pub(super) struct Merge<T> {
    /// Rows that go in.
    rows: u64,
    slot: Slot<Part<T>, Merged<T>>,
}

/// A merge and the fuel it took so far.
struct Part<T> {
    merging: Box<Merging<T>>,
    fuel: u64,
}

/// What a merge came to, and the fuel it took.
pub(super) struct Merged<T> {
    pub(super) batch: Result<Batch<T>>,
    pub(super) fuel: u64,
}

/// Work that is done by slices.
pub(super) trait Job: Send + Sync {
    /// How much of it there is in all: less goes first.
    fn size(&self) -> u64;

    /// Does some of it, if nobody else does; true if that was so.
    fn work(&self, fuel: &mut i64) -> bool;

    /// Waits while somebody is at it.
    fn wait(&self);

    /// True once there is nothing left to do.
    fn is_over(&self) -> bool;
}

impl<T: Time> Merge<T> {
    pub(super) fn new(merging: Merging<T>, rows: u64) -> Self {
        Self { rows, slot: Slot::new(Part { merging: Box::new(merging), fuel: 0 }) }
    }

    /// What it came to, once it has ended.
    pub(super) fn outcome(&self) -> Option<Merged<T>> {
        self.slot.outcome()
    }
}

impl<T: Time> Job for Merge<T> {
    fn size(&self) -> u64 {
        self.rows
    }

    fn work(&self, fuel: &mut i64) -> bool {
        let Some(Part { mut merging, fuel: before }) = self.slot.take() else { return false };
        let given = *fuel;
        // Nobody may wait for ever for a thread that has panicked.
        let worked = catch_unwind(AssertUnwindSafe(|| {
            let done = merging.work(fuel)?;
            Ok(if done { Done::Batch(merging.finish()?) } else { Done::Part(merging) })
        }));
        let fuel = before + given.saturating_sub(*fuel).unsigned_abs();
        match worked.unwrap_or(Err(Error::Lost)) {
            Ok(Done::Part(merging)) => self.slot.put(Part { merging, fuel }),
            Ok(Done::Batch(batch)) => self.slot.end(Merged { batch: Ok(batch), fuel }),
            Err(error) => self.slot.end(Merged { batch: Err(error), fuel }),
        }
        true
    }

    fn wait(&self) {
        self.slot.wait();
    }

    fn is_over(&self) -> bool {
        self.slot.is_over()
    }
}

enum Done<T> {
    Part(Box<Merging<T>>),
    Batch(Batch<T>),
}
