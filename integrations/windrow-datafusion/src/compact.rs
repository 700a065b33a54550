//! Change logs as a table: `SELECT * FROM windrow_compact('changes/*.parquet', 'id', 'lsn', 'op')`.
//!
//! ```text
//! files --windrow-files: read, sort, compact--> record batches, one at a time, to the query
//! ```
//! The job reads the files itself, as the command line tool does. When the query polls the first
//! rows, the job reserves all the memory that the pool grants, until the last row.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::{Stream, TryStreamExt, stream};
use windrow_files::{
    Cancel, Columns, CompactSpec, Inputs, Job, Limit, Limits, OrderBy, ReadOptions, Source, expand,
};

use crate::error::datafusion_error;
use crate::memory::reserved;
use crate::run::blocking;

/// The table function `windrow_compact(files, key, order [, op [, preset]])`: the compacted rows of
/// a change log, sorted by key. `files` is a path, a pattern or a directory. `key` and `order` are
/// columns as on the command line, `id,name:desc`. `op` is the column with the kind of change.
/// `preset` is the name of the log's format, by default `generic`.
///
/// ```
/// # use std::sync::Arc;
/// # use datafusion::prelude::SessionContext;
/// # use windrow_datafusion::WindrowCompact;
/// let context = SessionContext::new();
/// context.register_udtf(WindrowCompact::NAME, Arc::new(WindrowCompact));
/// ```
#[derive(Debug)]
pub struct WindrowCompact;

impl WindrowCompact {
    /// The name of the function in SQL.
    pub const NAME: &str = "windrow_compact";
}

impl TableFunctionImpl for WindrowCompact {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let log = Log::new(args.exprs())?;
        let schema = Arc::clone(&log.schema);
        Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(log)])?))
    }
}

/// A change log, bound to its files.
#[derive(Clone, Debug)]
struct Log {
    sources: Vec<Source>,
    spec: CompactSpec,
    schema: SchemaRef,
}

impl Log {
    fn new(arguments: &[Expr]) -> Result<Self> {
        let mut texts = Vec::new();
        for argument in arguments {
            match argument {
                Expr::Literal(value, _) => match value.try_as_str() {
                    Some(text) => texts.push(text.unwrap_or_default()),
                    None => return plan_err!("{}: {argument} is not text", WindrowCompact::NAME),
                },
                other => return plan_err!("{}: {other} is not a literal", WindrowCompact::NAME),
            }
        }
        let [files, key, order, more @ ..] = texts.as_slice() else {
            return plan_err!("{}(files, key, order [, op [, preset]])", WindrowCompact::NAME);
        };
        let key: Columns = key.parse().map_err(DataFusionError::Plan)?;
        let order: OrderBy = order.parse().map_err(DataFusionError::Plan)?;
        let mut spec = CompactSpec::by_key(key).latest_by(order);
        if let Some(op) = more.first().filter(|op| !op.is_empty()) {
            spec = spec.op_column(*op);
        }
        if let Some(preset) = more.get(1) {
            spec = spec.op_preset(preset.parse().map_err(DataFusionError::Plan)?);
        }
        let sources = expand([files]).map_err(external)?;
        let mut log = Self { sources, spec, schema: Arc::new(arrow_schema::Schema::empty()) };
        log.schema = log.job()?.schema().map_err(external)?;
        Ok(log)
    }

    fn job(&self) -> Result<Job> {
        let reading = self.spec.reading(ReadOptions::default());
        let inputs = Inputs::open(&self.sources, &reading).map_err(external)?;
        Job::compact(inputs, &self.spec).map_err(external)
    }
}

impl PartitionStream for Log {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = stream::once(opened(self.clone(), context)).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}

/// Starts the job, and returns the rows of `log`.
async fn opened(
    log: Log,
    context: Arc<TaskContext>,
) -> Result<impl Stream<Item = Result<RecordBatch>> + Send> {
    let cancel = Cancelling(Cancel::new());
    let token = cancel.0.clone();
    let (batches, reservation) = blocking(move || {
        let job = log.job()?.cancelled_by(&token);
        let (limits, reservation) = limits(&context)?;
        Ok((job.batches(&limits).map_err(external)?, reservation))
    })
    .await?;
    // The reservation and the cancellation live as long as the job.
    Ok(stream::try_unfold((batches, reservation, cancel), |mut reading| {
        blocking(move || {
            let batch = reading.0.next().transpose();
            Ok(batch.map_err(|error| datafusion_error(error.into()))?.map(|batch| (batch, reading)))
        })
    }))
}

/// Cancels the job when dropped.
struct Cancelling(Cancel);

impl Drop for Cancelling {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Returns the limits of a job: resident memory of the process plus the pool's grant.
fn limits(context: &TaskContext) -> Result<(Limits, MemoryReservation)> {
    let (reservation, granted) = reserved(context, WindrowCompact::NAME)?;
    let memory = match granted {
        Some(granted) => Limit::Bytes(resident()?.saturating_add(granted as u64)),
        None => Limit::Unlimited,
    };
    let threads = context.session_config().target_partitions();
    let limits = Limits::default().memory(memory).threads(threads);
    let disks = context.runtime_env().disk_manager.temp_dir_paths();
    Ok((disks.into_iter().fold(limits, Limits::temp_dir), reservation))
}

/// Returns the resident bytes of the process.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kilobytes.unwrap_or_default() * 1024)
}

fn external(error: windrow_files::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
