//! `ballista`: the latest rows of a change log on two Ballista executors, with and without
//! Windrow's engine.
//!
//! ```text
//! windrow-bench ballista --SQL--> scheduler --stages--> executor, executor
//!                       <----------- rows --------------/
//! ```
//! Each run starts a scheduler and two single-core executors on this machine, as child processes of
//! this program. Stock and Windrow take turns. For each side, the fastest run counts, with its
//! executors' peak memory. Result rows are hashed on both sides; a run with a different result is
//! an error.

mod processes;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use clap::Args;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use serde::Serialize;

use crate::Result;
use crate::cells::save;
use crate::datafusion::queries::LATEST;
use crate::datafusion::tpch::register_file;
use crate::datafusion::{Check, Side, change_log, runtime};
use processes::{Cluster, executor, scheduler};

/// Timeout of a run.
const PATIENCE: Duration = Duration::from_secs(900);

/// What is measured, and how often.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rows of the log; a quarter of them are keys
    #[arg(long, default_value_t = 24_000_000)]
    rows: u64,
    /// Memory of the pool of each executor in MiB; 0 leaves it to Ballista
    #[arg(long, value_delimiter = ',', default_value = "0,256,64")]
    limits: Vec<u64>,
    /// Partitions of a shuffle
    #[arg(long, default_value_t = 16)]
    partitions: usize,
    /// Rounds, of which the fastest counts
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Where the file is, or is made, and where executors write
    #[arg(long, default_value = "target/windrow-bench/data")]
    data: PathBuf,
    /// The ports of a process of a run: of the scheduler, and of an executor
    #[arg(long, value_delimiter = ',', hide = true)]
    ports: Vec<u16>,
    /// The operators of an executor
    #[arg(long, hide = true)]
    side: Option<Side>,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, Serialize)]
struct Outcome {
    /// The error, or empty.
    error: String,
    seconds: f64,
    /// Resident bytes of each executor before the query, and at the peak.
    before: Vec<u64>,
    peaks: Vec<u64>,
    rows: u64,
    /// Checksum of all rows, independent of order.
    checksum: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    rows_of_log: u64,
    limit_mib: u64,
    side: Side,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Runs the bench and writes the results.
pub(crate) fn run(options: &Options) -> Result<()> {
    match options.ports[..] {
        [] => {}
        [port, at, grpc] => return executor(options, port, at, grpc),
        [port, ..] => return scheduler(port),
    }
    let log = options.data.join(format!("log-{}.parquet", options.rows));
    std::fs::create_dir_all(&options.data)?;
    change_log(&log, options.rows)?;
    // An absolute path, because executors have other working directories.
    let log = log.canonicalize()?;
    let runtime = runtime(2)?;
    println!(
        "{:>6} {:>6} {:>8} {:>8} {:>12} {:>12}  error",
        "MiB", "side", "seconds", "of stock", "peaks, MiB", "growth, MiB"
    );
    let mut all: Vec<Row> = Vec::new();
    for &limit in &options.limits {
        let sides: &[Side] = match limit {
            0 => &[Side::Stock, Side::Ours],
            _ => &[Side::Stock, Side::Tuned, Side::Ours],
        };
        let mut best: Vec<Option<Outcome>> = vec![None; sides.len()];
        for _ in 0..options.rounds {
            for (&side, best) in sides.iter().zip(&mut best) {
                let outcome = runtime.block_on(one(options, &log, limit, side))?;
                same_rows(&all, &outcome)?;
                let order = |of: &Outcome| (!of.error.is_empty(), of.seconds);
                if best.as_ref().is_none_or(|best| order(&outcome) < order(best)) {
                    *best = Some(outcome);
                }
            }
        }
        let stock = best[0].clone().filter(|stock| stock.error.is_empty());
        for (&side, outcome) in sides.iter().zip(best.into_iter().flatten()) {
            report(limit, side, &outcome, stock.as_ref());
            all.push(Row { rows_of_log: options.rows, limit_mib: limit, side, outcome });
        }
    }
    save("ballista", &all)
}

/// Returns an error if an earlier run had other rows.
fn same_rows(before: &[Row], outcome: &Outcome) -> Result<()> {
    let first = before.iter().map(|row| &row.outcome).find(|outcome| outcome.error.is_empty());
    let Some(first) = first.filter(|_| outcome.error.is_empty()) else { return Ok(()) };
    if (first.rows, first.checksum) == (outcome.rows, outcome.checksum) {
        return Ok(());
    }
    Err(format!("{} rows, and {} in an earlier run, or others", outcome.rows, first.rows).into())
}

/// Prints a run, relative to stock with the same limit.
fn report(limit: u64, side: Side, outcome: &Outcome, stock: Option<&Outcome>) {
    let Outcome { error, seconds, before, peaks, .. } = outcome;
    let stock = stock.filter(|_| error.is_empty());
    let ratio = stock.map_or("-".into(), |stock| format!("{:.2}", seconds / stock.seconds));
    let growth = peaks.iter().zip(before).map(|(peak, before)| peak.saturating_sub(*before) >> 20);
    let growth = format!("{:?}", growth.collect::<Vec<_>>());
    let peaks = format!("{:?}", peaks.iter().map(|bytes| bytes >> 20).collect::<Vec<_>>());
    let side = side.name();
    println!("{limit:>6} {side:>6} {seconds:>8.1} {ratio:>8} {peaks:>12} {growth:>12}  {error}");
}

/// Runs the query once, with fresh processes.
async fn one(options: &Options, log: &Path, limit: u64, side: Side) -> Result<Outcome> {
    let mut cluster = Cluster::start(&options.data, limit, side)?;
    let mut outcome = Outcome { before: cluster.memory("VmRSS")?, ..Outcome::default() };
    let begun = Instant::now();
    let query = latest(options, log, side, cluster.port, &mut outcome);
    let done = match tokio::time::timeout(PATIENCE, query).await {
        Ok(done) => done,
        Err(_) => Err(format!("not done after {} s", PATIENCE.as_secs()).into()),
    };
    outcome.seconds = begun.elapsed().as_secs_f64();
    // A crashed executor is a valid outcome.
    let peaks = cluster.memory("VmHWM");
    if let Err(error) = done.and(peaks.map(|peaks| outcome.peaks = peaks)) {
        // One line.
        let words = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        outcome.error = words.chars().take(160).collect();
    }
    Ok(outcome)
}

/// Runs the query and consumes its result.
async fn latest(
    options: &Options,
    log: &Path,
    side: Side,
    scheduler: u16,
    outcome: &mut Outcome,
) -> Result<()> {
    let config = SessionConfig::new_with_ballista().with_target_partitions(options.partitions);
    let config = side.tuned(config);
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let url = format!("df://localhost:{scheduler}");
    let context = SessionContext::remote_with_state(&url, state).await?;
    register_file(&context, "log", log).await?;
    let mut rows = context.sql(LATEST).await?.execute_stream().await?;
    let mut check = Check::default();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        outcome.rows += batch.num_rows() as u64;
        check.add(&batch, 0)?;
    }
    outcome.checksum = check.sum;
    Ok(())
}
