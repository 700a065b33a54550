//! A merge of a spine, done in slices by calls of the spine or by threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use super::slot::Slot;
use crate::batch::{Batch, MergedPart, Merging};
use windrow_pool::lock;
use windrow_rows::{Error, Result, Time};

/// A merge reports its finished part `PARTS` times, so that its spine can release merged inputs: at
/// most one such part exists twice.
const PARTS: u64 = 32;

/// Least rows of a part: the size of a merged block.
const LEAST_PART: u64 = 64;

/// A running or ended merge.
pub(super) struct Merge<T> {
    /// Input rows.
    rows: u64,
    slot: Slot<Part<T>, Merged<T>>,
    /// The finished part, for the spine to take.
    done: Mutex<Option<MergedPart>>,
}

/// A merge and the fuel consumed so far.
struct Part<T> {
    merging: Box<Merging<T>>,
    fuel: u64,
}

/// The outcome of a merge and the fuel consumed.
pub(super) struct Merged<T> {
    pub(super) batch: Result<Batch<T>>,
    pub(super) fuel: u64,
}

/// Work done in slices.
pub(super) trait Job: Send + Sync {
    /// Returns the total amount of work; smaller jobs go first.
    fn size(&self) -> u64;

    /// Does some of the work. Returns false if another caller is at work.
    fn work(&self, fuel: &mut i64) -> bool;

    /// Waits while another caller works on the job, not longer than until it is put back.
    fn wait(&self);

    /// Returns true once the work has ended.
    fn is_over(&self) -> bool;
}

impl<T: Time> Merge<T> {
    pub(super) fn new(merging: Merging<T>, rows: u64) -> Self {
        let slot = Slot::new(Part { merging: Box::new(merging), fuel: 0 });
        Self { rows, slot, done: Mutex::new(None) }
    }

    /// Takes the finished part, if it has grown since the last call.
    pub(super) fn done(&self) -> Option<MergedPart> {
        lock(&self.done).take()
    }

    /// Returns the fuel between two reports of the finished part.
    fn step(&self) -> u64 {
        (self.rows / PARTS).max(LEAST_PART)
    }

    /// Takes the outcome, once the merge has ended.
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
        // A panicking thread must not leave callers waiting.
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
                    *lock(&self.done) = Some(part);
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
