//! Reading, up to the last merge.

use windrow::{Batch, Batcher, ColumnarMerge};

use super::ingest;
use super::plan::Plan;
use super::running::{Job, Running};
use super::source::{Step, Units};
use crate::error::{Error, Result};
use crate::input::Inputs;
use crate::lock::{lock, unlocked};
use crate::partition::Ids;
use crate::progress::Phase;
use crate::verbs::Way;
use crate::watch::Watch;

/// The rows of a job, before the last merge.
pub(super) enum Arranged {
    Rows(Batch),
    /// The inputs are sorted, and are merged without encoding whole rows.
    Columns(ColumnarMerge),
}

impl Job {
    /// Reads and sorts, up to the last merge. Returns also the plan for the rest of the job.
    pub(super) fn arrange(&self, plan: &Plan, running: &Running) -> Result<(Arranged, Plan)> {
        let Self { inputs, arrangement, .. } = self;
        let tally = &running.tally;
        let ids = self.partitioning.as_ref().and_then(|partitioning| partitioning.ids.as_deref());
        if let Some(ids) = ids {
            tally.enter(Phase::Read);
            sample(inputs, ids, plan.readers, &running.watch)?;
        }
        match arrangement.way {
            Way::Unordered => {
                tally.enter(Phase::Read);
                let batcher = Batcher::new(&arrangement.layout, &running.pool);
                ingest::ingest(self, &batcher, plan, running)?;
                arrangement.verify.as_ref().map_or(Ok(()), |verify| verify())?;
                tally.enter(Phase::Settle);
                let plan = running.met.replan()?;
                running.watch.room_for(plan.writing_bytes());
                running.pool.budget().set_limit(plan.settle_budget);
                let batch = batcher.finish()?;
                running.tally.outcome().runs = batch.runs();
                Ok((Arranged::Rows(batch), plan))
            }
            Way::Sorted if plan.by_columns => {
                running.tally.outcome().runs = inputs.files().len();
                Ok((Arranged::Columns(ingest::merge_columns(self, plan, running)), plan.clone()))
            }
            Way::Sorted => {
                let merged = ingest::merge(self, plan, running);
                let (batch, plan) = merged.map_err(|error| self.named(error))?;
                running.tally.outcome().runs = batch.runs();
                Ok((Arranged::Rows(batch), plan))
            }
        }
    }
}

/// Determines the ranges of `ids`, if needed, in an extra pass over the inputs.
fn sample(inputs: &Inputs, ids: &Ids, readers: usize, watch: &Watch) -> Result<()> {
    let Some(mut sample) = ids.sample()? else { return Ok(()) };
    if let Some(file) = inputs.files().iter().find(|file| file.bytes.is_none()) {
        return Err(Error::usage(format!(
            "`range`: {} is a stream, and finding ranges needs to read it twice; give them with \
             `range_at`, or name a file",
            file.name
        )));
    }
    let units = Units::new(inputs, watch);
    let drawn = std::sync::Mutex::new(Vec::new());
    let work = || -> Result<()> {
        let Some(mut sample) = ids.sample()? else { return Ok(()) };
        let mut reader = units.reader();
        while let Some(step) = reader.next()? {
            watch.pause()?;
            let Step::Rows(batch, place) = step else { continue };
            sample.push(&ids.prepared(&inputs.selected(batch)?.0)?, place)?;
        }
        lock(&drawn).push(sample);
        Ok(())
    };
    ingest::side_by_side(std::iter::repeat_n(work, readers))?;
    for other in unlocked(drawn) {
        sample.merge(other);
    }
    ids.cut(sample)
}
