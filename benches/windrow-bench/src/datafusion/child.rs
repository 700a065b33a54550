//! A single run of a query, in a separate process.

use std::sync::Arc;
use std::time::Instant;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryPool, PeakRecordingPool, TrackConsumersPool, UnboundedMemoryPool,
};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use windrow_datafusion::WithWindrow;

use super::check::Check;
use super::queries::{QUERIES, Query};
use super::{Options, Outcome, Side, runtime, tpch};
use crate::Result;
use crate::process::memory;

/// Runs the first query with the first limit, and prints the outcome as JSON.
pub(super) fn run(options: &Options, side: Side) -> Result<()> {
    let name = options.queries.first();
    let query = QUERIES.iter().find(|query| name.is_some_and(|name| name == query.name));
    let query = query.ok_or("no such query")?;
    let inner: Arc<dyn MemoryPool> = match options.limits.iter().sum::<usize>() {
        0 => Arc::new(UnboundedMemoryPool::default()),
        limit => {
            let top = std::num::NonZeroUsize::MIN;
            Arc::new(TrackConsumersPool::new(FairSpillPool::new(limit << 20), top))
        }
    };
    let pool = Arc::new(PeakRecordingPool::new(inner));
    let context = session(options, side, Arc::clone(&pool) as Arc<dyn MemoryPool>)?;
    let mut outcome = Outcome::default();
    let done = runtime(options.partitions)?.block_on(measured(
        options,
        side,
        query,
        &context,
        &mut outcome,
    ));
    if let Err(error) = done {
        outcome.error =
            error.to_string().lines().next().unwrap_or("failed").chars().take(60).collect();
    }
    outcome.pool_peak = pool.peak_reserved() as u64;
    outcome.peak_rss = memory("self", "VmHWM")?;
    outcome.cpu_seconds = cpu_seconds();
    println!("{}", serde_json::to_string(&outcome)?);
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
    outcome: &mut Outcome,
) -> Result<()> {
    let (data, scale) = (&options.data, options.scale);
    tpch::register(context, data, scale).await?;
    tpch::register_file(context, "log", &data.join("log.parquet")).await?;
    let (sqls, key) = match (query.sql(), side) {
        (None, _) => (tpch::queries(data, scale)?, 0),
        (Some(_), Side::Scan) => (vec![query.scan()], 0),
        (Some(sql), _) => (vec![sql], query.key()),
    };
    let mut check = options.check.then(Check::default);
    for sql in sqls {
        let begun = Instant::now();
        let plan = context.sql(&sql).await?.create_physical_plan().await?;
        let mut rows = execute_stream(Arc::clone(&plan), context.task_ctx())?;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            outcome.rows += batch.num_rows() as u64;
            if let Some(check) = &mut check {
                check.add(&batch, key)?;
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        outcome.seconds += seconds;
        outcome.each.push(seconds);
        outcome.spilled += spilled(&plan);
    }
    outcome.checksum = check.map_or(0, |check| check.sum);
    Ok(())
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
