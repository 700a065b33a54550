//! One job, from the input files to the output file.
//!
//! ```text
//!            ingest (all threads)                       emit (all threads)
//! inputs --> units --> decode, transform, encode,  -->  merge a part --> decode, encode --> append
//!                      sort, spill                      (one at a time)                     (in order)
//!                                                  \->  batches: merge, decode (ahead)      (the caller's pace)
//! ```
//!
//! A specification ([`Arrangement`]) defines the result. The plan chooses the number of threads and
//! divides the memory. Ingest and emit do the work. The result does not depend on the scheduling of
//! threads: rows carry their position in the input, and parts their position in the output.

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
mod in_order;
mod ingest;
mod opening;
mod pass;
mod piece;
mod plan;
mod replan;
mod rewrites;
mod rows;
mod running;
mod sized;
mod source;
mod tally;
mod write;

use std::sync::Arc;

use arrow_schema::SchemaRef;

pub use batches::Batches;
pub use explain::Explain;
pub(crate) use ingest::share_out;
use plan::Plan;
pub(crate) use rewrites::Rewrites;
pub use running::Job;

use crate::error::Result;
use crate::facts;
use crate::input::Inputs;
use crate::limits::Limits;
use crate::partition::Partitioning;
use crate::progress::Progress;
use crate::verbs::{
    Arrangement, CompactSpec, DedupeSpec, DiffSpec, HeadSpec, MergeSpec, PartitionSpec, SortSpec,
};
use crate::watch::Cancel;

impl Job {
    /// Sorts `inputs`.
    ///
    /// # Errors
    /// `Usage` for a missing column, here and in the methods below.
    pub fn sort(inputs: Inputs, spec: &SortSpec) -> Result<Self> {
        Self::new(spec.bind(&inputs).map(unsplit), inputs)
    }

    /// Reduces the changes in `inputs`.
    ///
    /// # Errors
    /// `Usage` also for an operation column or a time column of an unsupported type.
    pub fn compact(inputs: Inputs, spec: &CompactSpec) -> Result<Self> {
        Self::new(spec.bind(&inputs).map(unsplit), inputs)
    }

    /// Merges `inputs`, each of which must be sorted. The job checks the order while it reads.
    ///
    /// # Errors
    /// As [`sort`](Self::sort).
    pub fn merge(inputs: Inputs, spec: &MergeSpec) -> Result<Self> {
        Self::new(spec.bind(&inputs).map(unsplit), inputs)
    }

    /// Removes rows with duplicate keys.
    ///
    /// # Errors
    /// As [`sort`](Self::sort).
    pub fn dedupe(inputs: Inputs, spec: &DedupeSpec) -> Result<Self> {
        Self::new(spec.bind(&inputs).map(unsplit), inputs)
    }

    /// Finds the differences between the two sides of `inputs`, an
    /// [opened pair](Inputs::open_pair). The merge fails with an error of the kind `Data` if a side
    /// has a key twice.
    ///
    /// # Errors
    /// As [`sort`](Self::sort); `Usage` for inputs that are not a pair.
    pub fn diff(inputs: Inputs, spec: &DiffSpec) -> Result<Self> {
        Self::new(spec.bind(&inputs).map(unsplit), inputs)
    }

    /// Returns the first rows of `inputs`, in input order. The job reads no more than it needs.
    ///
    /// # Errors
    /// As [`sort`](Self::sort).
    pub fn head(inputs: Inputs, spec: &HeadSpec) -> Result<Self> {
        Self::new(spec.bind(&inputs).map(unsplit), inputs)
    }

    /// Splits `inputs` into files. [`write`](Self::write) then creates a directory;
    /// [`batches`](Self::batches) returns an error.
    ///
    /// # Errors
    /// `Usage` also for ranges that do not ascend, and for nested columns in names.
    pub fn partition(inputs: Inputs, spec: &PartitionSpec) -> Result<Self> {
        Self::new(spec.bind(&inputs).map(|(rows, files)| (rows, Some(files))), inputs)
    }

    pub(crate) fn new(
        bound: Result<(Arrangement, Option<Partitioning>)>,
        inputs: Inputs,
    ) -> Result<Self> {
        let (mut arrangement, partitioning) = bound.map_err(|error| inputs.advised(error))?;
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

    /// Makes the job end when `cancel` is requested.
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Makes the job report its progress to `progress`.
    pub fn watched_by(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = progress;
        self
    }

    /// Returns the inputs.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Returns the schema of the output rows.
    ///
    /// # Errors
    /// `Data` for column types that rows cannot be decoded to.
    pub fn schema(&self) -> Result<SchemaRef> {
        self.arrangement.schema()
    }

    /// Runs the job up to the last merge, and returns a reader of the rows.
    ///
    /// Record batches have at most 8,192 rows or 2 MiB of row bytes. As many threads as the limits
    /// allow decode ahead; besides the batch in work, each may have one batch waiting for the
    /// caller. The reader holds the memory granted by `limits` and the temporary files until it is
    /// dropped.
    ///
    /// # Errors
    /// Any [`ErrorKind`](crate::ErrorKind), here or as an `ArrowError::ExternalError` of the reader; `Usage` for
    /// partitions.
    pub fn batches(self, limits: &Limits) -> Result<Batches> {
        Batches::open(self, limits)
    }
}

/// Returns the specification of a job without partitions.
fn unsplit(arrangement: Arrangement) -> (Arrangement, Option<Partitioning>) {
    (arrangement, None)
}
