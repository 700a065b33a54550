//! One job, from the files that go in to the file that comes out.
//!
//! ```text
//!            ingest (all threads)                       emit (all threads)
//! inputs --> units --> decode, transform, encode,  -->  merge a part --> decode, encode --> append
//!                      sort, spill                      (one at a time)                     (in order)
//!                                                  \->  batches: merge, decode (ahead)      (the caller's pace)
//! ```
//!
//! A specification says what to arrange ([`Arrangement`]); the plan says with how many threads and in how
//! much memory; ingest and emit do it. Nothing here depends on which thread does what: rows carry
//! their place in the input, and parts their place in the output.

mod ahead;
mod arrange;
mod batches;
mod best;
mod cut;
mod decode;
mod emit;
mod explain;
mod file_rows;
mod finish;
mod ingest;
mod opening;
mod pass;
mod piece;
mod plan;
mod replan;
mod rows;
mod running;
mod sampling;
mod sized;
mod source;
mod tally;
mod write;

use std::sync::Arc;

use arrow_schema::SchemaRef;

pub use batches::Batches;
pub use explain::Explain;
use plan::Plan;
pub use running::Job;

use crate::error::Result;
use crate::facts;
use crate::input::Inputs;
use crate::limits::Limits;
use crate::output::{Target, WriteOptions};
use crate::partition::Partitioning;
use crate::progress::Progress;
use crate::stats::Stats;
use crate::verbs::{
    Arrangement, CompactSpec, DedupeSpec, DiffSpec, HeadSpec, MergeSpec, PartitionSpec, SortSpec,
};
use crate::watch::Cancel;

impl Job {
    /// Sorts `inputs`.
    ///
    /// # Errors
    /// `Usage` for a column that there is not, here and below.
    pub fn sort(inputs: Inputs, spec: &SortSpec) -> Result<Self> {
        let arrangement = spec.bind(&inputs).map_err(|error| inputs.advised(error))?;
        Self::new(inputs, arrangement, None)
    }

    /// Reduces the changes in `inputs`.
    ///
    /// # Errors
    /// `Usage` also for an operation column or a time that cannot be read as one.
    pub fn compact(inputs: Inputs, spec: &CompactSpec) -> Result<Self> {
        let arrangement = spec.bind(&inputs).map_err(|error| inputs.advised(error))?;
        Self::new(inputs, arrangement, None)
    }

    /// Merges `inputs`, each of which is sorted. That one is not is found while it is read.
    ///
    /// # Errors
    /// As [`sort`](Self::sort).
    pub fn merge(inputs: Inputs, spec: &MergeSpec) -> Result<Self> {
        let arrangement = spec.bind(&inputs).map_err(|error| inputs.advised(error))?;
        Self::new(inputs, arrangement, None)
    }

    /// Leaves out rows whose key another row has.
    ///
    /// # Errors
    /// As [`sort`](Self::sort).
    pub fn dedupe(inputs: Inputs, spec: &DedupeSpec) -> Result<Self> {
        let arrangement = spec.bind(&inputs).map_err(|error| inputs.advised(error))?;
        Self::new(inputs, arrangement, None)
    }

    /// What the two sides of `inputs`, an [opened pair](Inputs::open_pair), differ in. A side that has a key twice is
    /// found while the rows are merged: an error of the kind `Data`.
    ///
    /// # Errors
    /// As [`sort`](Self::sort); `Usage` for inputs that are no pair.
    pub fn diff(inputs: Inputs, spec: &DiffSpec) -> Result<Self> {
        let arrangement = spec.bind(&inputs).map_err(|error| inputs.advised(error))?;
        Self::new(inputs, arrangement, None)
    }

    /// The first rows of `inputs`, as they come. No more is read than has them.
    ///
    /// # Errors
    /// As [`sort`](Self::sort).
    pub fn head(inputs: Inputs, spec: &HeadSpec) -> Result<Self> {
        let arrangement = spec.bind(&inputs).map_err(|error| inputs.advised(error))?;
        Self::new(inputs, arrangement, None)
    }

    /// Splits `inputs` into files. [`write`](Self::write) then makes a directory; [`batches`](Self::batches) is
    /// refused.
    ///
    /// # Errors
    /// `Usage` also for ranges that do not ascend, and for nested columns in names.
    pub fn partition(inputs: Inputs, spec: &PartitionSpec) -> Result<Self> {
        let (arrangement, partitioning) =
            spec.bind(&inputs).map_err(|error| inputs.advised(error))?;
        Self::new(inputs, arrangement, Some(partitioning))
    }

    fn new(
        inputs: Inputs,
        mut arrangement: Arrangement,
        partitioning: Option<Partitioning>,
    ) -> Result<Self> {
        let schema = arrangement.schema()?;
        arrangement.metadata = Some(facts::kept(inputs.schema(), &schema));
        Ok(Self {
            inputs: Arc::new(inputs),
            arrangement,
            partitioning,
            cancel: Cancel::new(),
            progress: Arc::new(()),
        })
    }

    /// Ends the job when `cancel` is requested.
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Tells `progress` how far the job has come.
    pub fn watched_by(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = progress;
        self
    }

    /// The inputs.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// The schema of the rows that are written.
    ///
    /// # Errors
    /// `Data` for columns that rows cannot be decoded to.
    pub fn schema(&self) -> Result<SchemaRef> {
        self.arrangement.schema()
    }

    /// What [`write`](Self::write) would do, without doing it.
    ///
    /// # Errors
    /// `MemoryFloor` if the limit is below the floor; `Usage` for what cannot be written.
    pub fn explain(
        &self,
        target: &Target,
        write: &WriteOptions,
        limits: &Limits,
    ) -> Result<Explain> {
        explain::explain(self, target, write, limits)
    }

    /// Does the job, and writes to `target`, which appears whole or not at all.
    ///
    /// # Errors
    /// Any [`ErrorKind`](crate::ErrorKind). Nothing is left behind, but for what a pipe or a device has taken.
    pub fn write(self, target: &Target, write: &WriteOptions, limits: &Limits) -> Result<Stats> {
        write::write(&self, target, write, limits)
    }

    /// Does the job up to the last merge, and returns the rows as they are asked for.
    ///
    /// Record batches have 8,192 rows or 2 MiB of row bytes at the most. Threads decode them ahead, as many as the
    /// limits allow, each one batch more than waits for the caller. The job holds what `limits` allow until
    /// the reader is dropped; temporary files go with it.
    ///
    /// # Errors
    /// Any [`ErrorKind`](crate::ErrorKind), here or as an `ArrowError::ExternalError` of the reader; `Usage` for
    /// partitions.
    pub fn batches(self, limits: &Limits) -> Result<Batches> {
        Batches::open(self, limits)
    }
}
