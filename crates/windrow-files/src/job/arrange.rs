//! Reading, up to the last merge.

use windrow::{Batch, Batcher};

use super::plan::Plan;
use super::running::{Job, Running};
use super::{ingest, sampling};
use crate::error::Result;
use crate::progress::Phase;
use crate::verbs::Way;

impl Job {
    /// Reads and sorts, up to the last merge. Returns also the plan for the rest of the job.
    pub(super) fn arrange(&self, plan: &Plan, running: &Running) -> Result<(Batch, Plan)> {
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
                Ok((batcher.finish()?, plan))
            }
            Way::Sorted => ingest::merge(self, plan, running).map_err(|error| self.named(error)),
        }
    }
}
