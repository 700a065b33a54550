//! A merge of a spine, done by whoever has time for it: the spine's own calls, or threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use super::slot::Slot;
use crate::batch::{Batch, MergedPart, Merging};
use crate::error::{Error, Result};
use crate::time::Time;

/// A merge says what it has done each time that one part in so many of the rows went in, so that its inputs need not be
/// kept: what is there twice is no more than that.
const PARTS: u64 = 8;

/// Rows of a part at the least: as many are merged at once.
const LEAST_PART: u64 = 64;

/// A merge that is under way or has ended.
pub(super) struct Merge<T> {
    /// Rows that go in.
    rows: u64,
    slot: Slot<Part<T>, Merged<T>>,
    /// What it has done, for its spine to take.
    done: Mutex<Option<MergedPart>>,
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
        let slot = Slot::new(Part { merging: Box::new(merging), fuel: 0 });
        Self { rows, slot, done: Mutex::new(None) }
    }

    /// What it has done, if there is more of it than when this was last called.
    pub(super) fn done(&self) -> Option<MergedPart> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Fuel from one time that it says what it has done to the next.
    fn step(&self) -> u64 {
        (self.rows / PARTS).max(LEAST_PART)
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
        let step = self.step() - before % self.step();
        let given = (*fuel).min(i64::try_from(step).unwrap_or(i64::MAX));
        let mut left = given;
        // Nobody may wait for ever for a thread that has panicked.
        let worked = catch_unwind(AssertUnwindSafe(|| {
            let done = merging.work(&mut left)?;
            Ok(if done { Done::Batch(merging.finish()?) } else { Done::Part(merging) })
        }));
        let took = given.saturating_sub(left);
        *fuel = fuel.saturating_sub(took);
        let fuel = before + took.unsigned_abs();
        match worked.unwrap_or(Err(Error::Lost)) {
            Ok(Done::Part(merging)) => {
                if before / self.step() < fuel / self.step()
                    && let Some(part) = merging.part()
                {
                    *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(part);
                }
                self.slot.put(Part { merging, fuel });
            }
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
