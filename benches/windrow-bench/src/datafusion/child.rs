//! A single run of a query, in a separate process.

use std::sync::Arc;
use std::time::Instant;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryPool, TrackConsumersPool, UnboundedMemoryPool,
};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream, execute_stream_partitioned};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use windrow_datafusion::{WindrowExchangeExec, WithWindrow};

use super::check::Check;
use super::queries::{QUERIES, Query};
use super::{Options, Side, runtime, tpch};
use crate::Result;
use crate::process::memory;

/// A run as its process reports it.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Run {
    /// The error, or empty.
    pub(super) error: String,
    pub(super) seconds: f64,
    /// Seconds of each statement.
    pub(super) each: Vec<f64>,
    pub(super) cpu_seconds: f64,
    pub(super) peak_rss: u64,
    pub(super) spilled: u64,
    /// Checksum of all rows, independent of order; 0 if not requested.
    pub(super) checksum: u64,
}

/// Runs the first query with the first limit, and prints the run as JSON.
pub(super) fn run(options: &Options, side: Side) -> Result<()> {
    let name = options.queries.first();
    let query = QUERIES.iter().find(|query| name.is_some_and(|name| name == query.name));
    let query = query.ok_or("no such query")?;
    let pool: Arc<dyn MemoryPool> = match options.limits.iter().sum::<usize>() {
        0 => Arc::new(UnboundedMemoryPool::default()),
        limit => {
            let top = std::num::NonZeroUsize::MIN;
            Arc::new(TrackConsumersPool::new(FairSpillPool::new(limit << 20), top))
        }
    };
    let context = session(options, side, pool)?;
    let mut run = Run::default();
    let work = measured(options, side, query, &context, &mut run);
    let done = runtime(options.partitions)?.block_on(work);
    if let Err(error) = done {
        run.error = error.to_string().lines().next().unwrap_or("failed").chars().take(60).collect();
    }
    run.peak_rss = memory("self", "VmHWM")?;
    run.cpu_seconds = cpu_seconds();
    println!("{}", serde_json::to_string(&run)?);
    Ok(())
}

fn session(options: &Options, side: Side, pool: Arc<dyn MemoryPool>) -> Result<SessionContext> {
    let config = SessionConfig::new().with_target_partitions(options.partitions);
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc()?;
    let builder = SessionStateBuilder::new()
        .with_config(side.tuned(config))
        .with_runtime_env(runtime)
        .with_default_features();
    let is_ours = side == Side::Ours;
    let builder = if is_ours { builder.with_windrow() } else { builder };
    Ok(SessionContext::new_with_state(builder.build()))
}

async fn measured(
    options: &Options,
    side: Side,
    query: &Query,
    context: &SessionContext,
    run: &mut Run,
) -> Result<()> {
    let (data, scale) = (&options.data, options.scale);
    tpch::register(context, data, scale).await?;
    tpch::register_file(context, "log", &data.join("log.parquet")).await?;
    if side == Side::Ours {
        context.sql("SET windrow.exchange = true").await?;
    }
    let (sqls, key) = match (query.sql(), side) {
        (None, _) => (tpch::queries(data, scale)?, 0),
        (Some(_), Side::Scan) => (vec![query.scan()], 0),
        (Some(sql), _) => (vec![sql], query.key()),
    };
    let mut check = options.check.then(Check::default);
    for sql in sqls {
        let begun = Instant::now();
        let frame = context.sql(&sql).await?;
        let mut plan = frame.create_physical_plan().await?;
        let mut in_turns = false;
        if let (Some(exchange), false) = (query.exchange(), side == Side::Scan) {
            (plan, in_turns) = (exchanged(plan, exchange.0, side)?, exchange.1);
        }
        let (of, task) = (Arc::clone(&plan), context.task_ctx());
        let mut rows = match in_turns {
            true => stream::iter(execute_stream_partitioned(of, task)?).flatten().boxed(),
            false => execute_stream(of, task)?,
        };
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            if let Some(check) = &mut check {
                check.add(&batch, key)?;
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        run.seconds += seconds;
        run.each.push(seconds);
        run.spilled += spilled(&plan);
    }
    run.checksum = check.map_or(0, |check| check.sum);
    Ok(())
}

/// Returns `plan` with its rows distributed by a hash of their first column.
fn exchanged(
    plan: Arc<dyn ExecutionPlan>,
    partitions: usize,
    side: Side,
) -> Result<Arc<dyn ExecutionPlan>> {
    let key = col(plan.schema().field(0).name(), &plan.schema())?;
    let stock = RepartitionExec::try_new(plan, Partitioning::Hash(vec![key], partitions))?;
    let ours = if side == Side::Ours { WindrowExchangeExec::of(&stock)? } else { None };
    Ok(ours.map_or_else(|| Arc::new(stock) as _, |ours| Arc::new(ours) as _))
}

/// Returns the bytes spilled by the operators of `plan`.
fn spilled(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let own = plan.metrics().and_then(|metrics| metrics.spilled_bytes()).unwrap_or(0) as u64;
    own + plan.children().into_iter().map(spilled).sum::<u64>()
}

/// Returns the CPU time of all threads.
fn cpu_seconds() -> f64 {
    /// Ticks per second, the same on every architecture of Linux.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / TICKS
}
