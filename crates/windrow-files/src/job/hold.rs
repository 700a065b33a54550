//! The reading phase of jobs that only group rows: all rows are held as columns.
//!
//! ```text
//! units --> decode, transform, sort each record batch by its keys --> columns in memory --> merge by keys
//! ```
//! If the columns need more memory than planned, the rows are arranged in the usual way from the
//! beginning. Either way gives the same rows and blocks.

use std::iter::repeat_n;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use windrow::{ColumnarMerge, KeySorter, KeyedBatch};

use super::Plan;
use super::file_rows::prepared;
use super::ingest::{file_of, row_of, side_by_side};
use super::running::{Job, Running};
use super::source::{Reader, Step, Units};
use super::tally::timed;
use crate::error::Result;
use crate::lock::{lock, unlocked};
use crate::verbs::FirstRow;

/// Record batches, with their position in the inputs.
struct Held {
    batches: Mutex<Vec<(u64, KeyedBatch)>>,
    bytes: AtomicUsize,
    most: usize,
}

/// Reads all rows; returns `None` if they need more memory than planned.
pub(super) fn hold(job: &Job, plan: &Plan, running: &Running) -> Result<Option<ColumnarMerge>> {
    let most = plan.ingest_budget.min(plan.settle_budget);
    let held = Held { batches: Mutex::default(), bytes: AtomicUsize::new(0), most };
    let units = Units::new(&job.inputs, &running.watch);
    let work = || {
        let mut reader = units.reader();
        held.fill(job, &mut reader, running).or_else(|error| {
            units.fail(&reader, error);
            Ok(())
        })
    };
    timed(&running.tally.together, || side_by_side(repeat_n(work, plan.readers)))?;
    if held.is_full() {
        running.tally.begin_again();
        return Ok(None);
    }
    units.outcome()?;
    let mut batches = unlocked(held.batches);
    batches.sort_unstable_by_key(|(sequence, _)| *sequence);
    running.tally.outcome().runs = batches.len();
    let batches = batches.into_iter().map(|(_, batch)| batch);
    Ok(Some(ColumnarMerge::of_batches(&job.arrangement.layout, batches)))
}

impl Held {
    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.most
    }

    fn fill(&self, job: &Job, reader: &mut Reader<'_>, running: &Running) -> Result<()> {
        let Job { inputs, arrangement, .. } = job;
        let preparation = arrangement.preparation();
        let mut sorter = KeySorter::new(&arrangement.layout);
        while !self.is_full()
            && let Some(step) = reader.next()?
        {
            running.watch.pause()?;
            let Step::Rows(batch, sequence) = step else {
                // A row is longer than planned.
                self.bytes.store(usize::MAX, Ordering::Relaxed);
                return Ok(());
            };
            running.tally.read(&batch);
            let first = FirstRow { file: file_of(sequence), row: row_of(sequence) };
            let batch = prepared(inputs, &preparation, batch, first);
            let name = || &*inputs.files()[first.file].name;
            let batch = batch.map_err(|error| error.in_input(name()))?;
            if batch.num_rows() > 0 {
                let sorted = sorter.sort(&batch)?;
                self.bytes.fetch_add(sorted.bytes(), Ordering::Relaxed);
                lock(&self.batches).push((sequence, sorted));
            }
        }
        Ok(())
    }
}
