//! Functions that run a whole job in one call.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;

use crate::batch::{Batch, RecordBatches};
use crate::batcher::Batcher;
use crate::chunk::{Finish, Wraps};
use crate::merge::{SortedInput, Source};
use windrow_pool::Pool;
use windrow_rows::{Error, Layout, Result};

/// Rows of each record batch that a merge yields.
const ROWS: usize = 8192;

/// Sorts one record batch in memory and compacts it by the rule of `layout`.
///
/// # Errors
/// [`Error::SchemaMismatch`], [`Error::Value`], [`Error::DiffOverflow`].
pub fn consolidate(layout: &Layout, changes: &RecordBatch) -> Result<RecordBatch> {
    let mut batcher = Batcher::new(layout, &Pool::unlimited());
    batcher.push(changes)?;
    let batches = batcher.finish()?.record_batches(changes.num_rows())?;
    let batches = batches.collect::<Result<Vec<_>, ArrowError>>()?;
    Ok(concat_batches(&changes.schema(), &batches)?)
}

/// Merges sorted runs, with one chunk of each run in memory. Equal rows come in the order of their
/// runs. [`crate::OrderCheck`] defines the required order: under [`crate::Rule::Sum`], every column
/// but the diff, as in the output of a [`crate::Batcher`].
///
/// # Errors
/// [`Error::OutOfOrder`] names the run and the row where a run is not sorted.
pub fn merge<R, I>(layout: &Layout, runs: R) -> Result<RecordBatches>
where
    R: IntoIterator<Item = I>,
    I: IntoIterator<Item = Result<RecordBatch, ArrowError>>,
    I::IntoIter: Send + 'static,
{
    let runs = runs.into_iter().map(|run| run.into_iter().map(|batch| batch.map_err(Error::from)));
    let batch = merge_in(layout, &Pool::unlimited(), runs.enumerate());
    RecordBatches::new(batch.slabs(Finish::Log), ROWS)
}

/// Merges sorted runs like [`merge`], in the memory of `pool`, into a [`Batch`]. Each run comes
/// with a number, which orders equal rows and names the run in errors.
///
/// Errors appear when the batch is read: [`Error::OutOfOrder`], errors of the runs, and
/// [`Error::InvalidOrder`] for a number from 2^24 on, or more than 2^40 rows of one run, unless the
/// rule is [`crate::Rule::Sum`].
pub fn merge_in<I>(
    layout: &Layout,
    pool: &Pool,
    runs: impl IntoIterator<Item = (usize, I)>,
) -> Batch
where
    I: Iterator<Item = Result<RecordBatch>> + Send + 'static,
{
    let wraps = Wraps::default();
    let sources = runs
        .into_iter()
        .map(|(input, run)| {
            Source::Stream(Box::new(SortedInput::new(layout, pool, input, &wraps, run)))
        })
        .collect();
    Batch::of_sources(layout, pool, Some(wraps), sources)
}
