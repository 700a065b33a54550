//! A merge of a spine, done in slices by calls of the spine or by threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

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

/// A merge and its cost so far.
struct Part<T> {
    merging: Box<Merging<T>>,
    spent: Spent,
}

/// The cost of a merge.
#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) fuel: u64,
    pub(super) nanoseconds: u64,
}

/// The outcome of a merge, with the number of rows dropped by key or value, and its cost.
pub(super) struct Merged<T> {
    pub(super) batch: Result<(Batch<T>, u64)>,
    pub(super) spent: Spent,
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
        let slot = Slot::new(Part { merging: Box::new(merging), spent: Spent::default() });
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
        let Some(Part { mut merging, mut spent }) = self.slot.take() else { return false };
        let (before, start) = (spent.fuel, Instant::now());
        let step = self.step() - before % self.step();
        let given = (*fuel).min(i64::try_from(step).unwrap_or(i64::MAX));
        let mut left = given;
        // A panicking thread must not leave callers waiting.
        let worked = catch_unwind(AssertUnwindSafe(|| {
            let done = merging.work(&mut left)?;
            let dropped = merging.dropped();
            Ok(if done { Done::Batch(merging.finish()?, dropped) } else { Done::Part(merging) })
        }));
        let took = given.saturating_sub(left);
        *fuel = fuel.saturating_sub(took);
        spent.fuel += took.unsigned_abs();
        spent.nanoseconds += start.elapsed().as_nanos() as u64;
        match worked.unwrap_or(Err(Error::Lost)) {
            Ok(Done::Part(merging)) => {
                if before / self.step() < spent.fuel / self.step()
                    && let Some(part) = merging.part()
                {
                    *lock(&self.done) = Some(part);
                }
                self.slot.put(Part { merging, spent });
            }
            Ok(Done::Batch(batch, dropped)) => {
                self.slot.end(Merged { batch: Ok((batch, dropped)), spent });
            }
            Err(error) => self.slot.end(Merged { batch: Err(error), spent }),
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
    Batch(Batch<T>, u64),
}
