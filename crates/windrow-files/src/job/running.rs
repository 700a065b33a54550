//! A job, and what its threads share while it runs.

use std::sync::Arc;

use windrow::{Budget, Pool};

use super::plan::Planned;
use super::replan::Met;
use super::tally::Tally;
use crate::error::{Error, ErrorKind, Result};
use crate::input::Inputs;
use crate::limits::Limits;
use crate::partition::Partitioning;
use crate::progress::Progress;
use crate::verbs::Arrangement;
use crate::watch::{Cancel, Watch};

/// What is wanted of inputs, bound to their schema: ready to be explained, written or read.
///
/// Nothing is read before [`write`](Self::write) or [`batches`](Self::batches), which end the job.
pub struct Job {
    pub(super) inputs: Arc<Inputs>,
    pub(super) arrangement: Arrangement,
    pub(super) partitioning: Option<Partitioning>,
    pub(super) cancel: Cancel,
    pub(super) progress: Arc<dyn Progress>,
}

impl Job {
    /// Names the inputs that an error of the engine is about.
    pub(super) fn named(&self, error: Error) -> Error {
        let error = error.named(self.inputs.files().iter().map(|file| &*file.name));
        if error.kind() != ErrorKind::Unsorted {
            return error;
        }
        // Sorted inputs are transformed for nothing else.
        let error = match self.arrangement.transform.is_some() {
            true => error.of_sql_floats(),
            false => error,
        };
        if self.inputs.are_filtered() { error.of_kept_rows(0) } else { error }
    }
}

/// What the threads of a job that runs share.
pub(super) struct Running {
    pub(super) pool: Pool,
    pub(super) watch: Watch,
    pub(super) tally: Arc<Tally>,
    pub(super) met: Arc<Met>,
}

impl Running {
    /// `repeats` if the job can begin again as far as its output goes.
    pub(super) fn start(
        job: &Job,
        planned: &Planned,
        limits: &Limits,
        repeats: bool,
    ) -> Result<Self> {
        let plan = &planned.plan;
        let mut watch = Watch::new(&job.cancel, plan.limit, limits.alone);
        let options = limits.pool_options(job.inputs.temp_bytes());
        let pool = Pool::new(Budget::bytes(plan.ingest_budget), options)?;
        let tally = Arc::new(Tally::new(&job.inputs, plan.limit, &pool, &job.progress));
        let met = Met::new(planned, repeats && job.inputs.bytes().is_some());
        watch.longest = met.longest(&pool);
        Ok(Self { pool, watch, tally, met })
    }
}
