//! Reading, up to the last merge.

use windrow::{Batch, Batcher, ColumnarMerge};

use super::plan::Plan;
use super::running::{Job, Running};
use super::{ingest, sampling};
use crate::error::Result;
use crate::progress::Phase;
use crate::verbs::Way;

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
            sampling::sample(inputs, ids, plan.readers, &running.watch)?;
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
