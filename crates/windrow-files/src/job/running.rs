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

/// A specification bound to the schema of the inputs: ready to be explained, written or read.
///
/// The job reads no rows before [`write`](Self::write) or [`batches`](Self::batches), which consume
/// it.
pub struct Job {
    pub(super) inputs: Arc<Inputs>,
    pub(super) arrangement: Arrangement,
    pub(super) partitioning: Option<Partitioning>,
    pub(super) cancel: Cancel,
    pub(super) progress: Arc<dyn Progress>,
}

impl Job {
    /// Adds the names of the inputs to an error of the engine.
    pub(super) fn named(&self, error: Error) -> Error {
        let error = error.named(self.inputs.files().iter().map(|file| &*file.name));
        if error.kind() != ErrorKind::Unsorted {
            return error;
        }
        // Jobs with sorted inputs have a transform only for the order of SQL floats.
        let error = match self.arrangement.transform.is_some() {
            true => error.of_sql_floats(),
            false => error,
        };
        if self.inputs.are_filtered() { error.of_kept_rows(0) } else { error }
    }
}

/// State shared by the threads of a running job.
pub(super) struct Running {
    pub(super) pool: Pool,
    pub(super) watch: Watch,
    pub(super) tally: Arc<Tally>,
    pub(super) met: Arc<Met>,
}

impl Running {
    /// Starts a job. `repeats` is true if the job's output allows a restart.
    pub(super) fn start(
        job: &Job,
        planned: &Planned,
        limits: &Limits,
        repeats: bool,
    ) -> Result<Self> {
        let plan = &planned.plan;
        let mut watch = Watch::new(&job.cancel, plan.limit, limits.alone);
        let options = limits.pool_options(job.inputs.temp_bytes);
        let pool = Pool::new(Budget::bytes(plan.ingest_budget), options)?;
        let tally = Arc::new(Tally::new(&job.inputs, planned, &pool, &job.progress));
        let met = Met::new(planned, repeats && job.inputs.bytes().is_some());
        watch.longest = met.longest(&pool);
        Ok(Self { pool, watch, tally, met })
    }
}
