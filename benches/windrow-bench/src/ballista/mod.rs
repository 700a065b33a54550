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
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use futures::StreamExt;
use serde::Serialize;

use crate::Result;
use crate::datafusion::Check;
use processes::Cluster;
pub(crate) use processes::{ExecutorOptions, SchedulerOptions, executor, scheduler};

/// Timeout of a run.
const PATIENCE: Duration = Duration::from_secs(900);

const LATEST: &str = "SELECT id, lsn, op, payload, amount, ts FROM (SELECT *, row_number() OVER \
    (PARTITION BY id ORDER BY lsn DESC) rn FROM log) WHERE rn = 1";

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
}

/// Which operators executors have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    /// DataFusion's.
    Stock,
    /// DataFusion's, with settings for a small pool.
    Tuned,
    /// Windrow's.
    Ours,
}

/// The outcome of a run.
#[derive(Clone, Debug, Serialize)]
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
    let log = options.data.join(format!("log-{}.parquet", options.rows));
    if !log.exists() {
        std::fs::create_dir_all(&options.data)?;
        let part = log.with_extension("part");
        windrow_testdata::log::write(&part, options.rows, options.rows / 4, 1)?;
        std::fs::rename(part, &log)?;
    }
    // An absolute path, because executors have other working directories.
    let log = log.canonicalize()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!(
        "{:>6} {:>6} {:>8} {:>8} {:>12} {:>12}  result",
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
                let better = best.as_ref().is_none_or(|best| outcome.better_than(best));
                if better {
                    *best = Some(outcome);
                }
            }
        }
        let outcomes: Vec<Outcome> = best.into_iter().flatten().collect();
        for (&side, outcome) in sides.iter().zip(outcomes) {
            all.push(Row { rows_of_log: options.rows, limit_mib: limit, side, outcome });
            report(&all, limit);
        }
    }
    std::fs::create_dir_all("target/windrow-bench")?;
    std::fs::write("target/windrow-bench/ballista.json", serde_json::to_string_pretty(&all)?)?;
    Ok(())
}

impl Outcome {
    fn better_than(&self, other: &Self) -> bool {
        (!self.error.is_empty(), self.seconds) < (!other.error.is_empty(), other.seconds)
    }
}

/// Returns an error if an earlier run had other rows.
fn same_rows(before: &[Row], outcome: &Outcome) -> Result<()> {
    let whole = |outcome: &&Outcome| outcome.error.is_empty();
    let Some(first) = before.iter().map(|row| &row.outcome).find(whole) else { return Ok(()) };
    let same = (first.rows, first.checksum) == (outcome.rows, outcome.checksum);
    if !whole(&outcome) || same {
        return Ok(());
    }
    Err(format!("{} rows, and {} in an earlier run, or others", outcome.rows, first.rows).into())
}

/// Prints the last run of `all`, relative to stock with the same limit.
fn report(all: &[Row], limit: u64) {
    let Some(Row { side, outcome, .. }) = all.last() else { return };
    let stock = all.iter().find(|row| {
        (row.limit_mib, row.side) == (limit, Side::Stock) && row.outcome.error.is_empty()
    });
    let ratio = stock.filter(|_| outcome.error.is_empty());
    let ratio =
        ratio.map_or("-".into(), |stock| format!("{:.2}", outcome.seconds / stock.outcome.seconds));
    let listed = |bytes: &mut dyn Iterator<Item = u64>| {
        bytes.map(|bytes| (bytes >> 20).to_string()).collect::<Vec<_>>().join(" ")
    };
    let peaks = listed(&mut outcome.peaks.iter().copied());
    let growth = outcome.peaks.iter().zip(&outcome.before);
    let growth = listed(&mut growth.map(|(peak, before)| peak.saturating_sub(*before)));
    let result = if outcome.error.is_empty() { "ok" } else { &outcome.error };
    let side = format!("{side:?}").to_lowercase();
    println!(
        "{limit:>6} {side:>6} {:>8.1} {ratio:>8} {peaks:>12} {growth:>12}  {result}",
        outcome.seconds
    );
}

/// Runs the query once, with fresh processes.
async fn one(options: &Options, log: &Path, limit: u64, side: Side) -> Result<Outcome> {
    let mut cluster = Cluster::start(&options.data, limit, side)?;
    let before = cluster.memory("VmRSS:")?;
    let mut outcome = Outcome {
        error: String::new(),
        seconds: 0.0,
        before,
        peaks: Vec::new(),
        rows: 0,
        checksum: 0,
    };
    let begun = Instant::now();
    let query = latest(options, log, side, cluster.scheduler(), &mut outcome);
    let done = match tokio::time::timeout(PATIENCE, query).await {
        Ok(done) => done,
        Err(_) => Err(format!("not done after {} s", PATIENCE.as_secs()).into()),
    };
    outcome.seconds = begun.elapsed().as_secs_f64();
    // A crashed executor is a valid outcome.
    let peaks = cluster.memory("VmHWM:");
    if let Err(error) = done.and(peaks.map(|peaks| outcome.peaks = peaks)) {
        outcome.error = in_short(error.as_ref());
    }
    if side == Side::Ours && outcome.error.is_empty() && !cluster.all_rewrote() {
        return Err("an executor ran no stage with an operator of ours".into());
    }
    Ok(outcome)
}

/// Shortens an error to one line.
fn in_short(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(160).collect()
}

/// Runs the query and consumes its result.
async fn latest(
    options: &Options,
    log: &Path,
    side: Side,
    scheduler: u16,
    outcome: &mut Outcome,
) -> Result<()> {
    let mut config = SessionConfig::new_with_ballista().with_target_partitions(options.partitions);
    if side == Side::Tuned {
        config = config.with_sort_spill_reservation_bytes(1 << 20);
        config = config.with_sort_in_place_threshold_bytes(1 << 18);
    }
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let url = format!("df://localhost:{scheduler}");
    let context = SessionContext::remote_with_state(&url, state).await?;
    let path = log.to_str().ok_or("a path that is text")?;
    context.register_parquet("log", path, ParquetReadOptions::default()).await?;
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
