//! `datafusion`: sorts and the latest row of each key inside DataFusion, with Windrow's and with
//! stock operators.
//!
//! Every run is a child process with the same session, pool, batch size and files. Stock and
//! Windrow take turns, and the fastest run counts. Stock runs with default settings, and with
//! settings for a small pool. An unsorted scan of the same columns is measured as well, because
//! decoding of files takes memory outside of the pool.

mod check;
mod child;
mod data;
mod queries;
mod tpch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::Result;
#[cfg(feature = "ballista")]
pub(crate) use check::Check;
pub(crate) use child::{Options as RunOptions, run as run_one};
use queries::{QUERIES, Query};

/// What is measured, and how often.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// TPC-H scale factor of `lineitem`; the change log has 6 million rows
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Memory of the pool in MiB; 0 is without a limit
    #[arg(long, value_delimiter = ',', default_value = "0,1024,512,256,128,64")]
    limits: Vec<usize>,
    /// Queries by name: q1 to q11, log-sort, log-latest, log-distinct; tpch, without a limit; all unless given
    #[arg(long, value_delimiter = ',')]
    queries: Vec<String>,
    /// Partitions
    #[arg(long, default_value_t = 2)]
    partitions: usize,
    /// Rounds, of which the fastest counts
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// Where the files are, or are made
    #[arg(long, default_value = "target/windrow-bench/data")]
    data: PathBuf,
}

/// Which operators a run has.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    /// DataFusion's.
    Stock,
    /// DataFusion's, with settings for a small pool.
    Tuned,
    /// Windrow's.
    Ours,
    /// None: the columns of the query, as they come.
    Scan,
}

/// The outcome of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The error, or empty.
    pub(crate) error: String,
    pub(crate) seconds: f64,
    /// Seconds of each statement.
    pub(crate) each: Vec<f64>,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_rss: u64,
    pub(crate) pool_peak: u64,
    pub(crate) spilled: u64,
    pub(crate) rows: u64,
    /// Checksum of all rows, independent of order; 0 if not requested.
    pub(crate) checksum: u64,
}

/// A run with its outcome.
#[derive(Debug, Serialize)]
struct Row {
    query: String,
    limit_mib: usize,
    side: Side,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Runs the bench and writes the results.
pub(crate) fn run(options: &Options) -> Result<()> {
    data::make(&options.data, options.scale)?;
    let chosen =
        |name: &str| options.queries.is_empty() || options.queries.iter().any(|of| of == name);
    let mut all = Vec::new();
    println!(
        "{:<13} {:>6} {:>6} {:>8} {:>8} {:>6} {:>8} {:>8} {:>8}  result",
        "query", "MiB", "side", "seconds", "of stock", "CPU s", "RSS MiB", "of scan", "spilled"
    );
    for query in QUERIES.iter().filter(|query| chosen(query.name)) {
        let of_tpch = query.sql().is_none();
        if of_tpch {
            tpch::make(&options.data, options.scale)?;
        }
        for &limit in options.limits.iter().filter(|limit| !of_tpch || **limit == 0) {
            let best = cell(options, query, limit)?;
            report(query.name, limit, &best);
            report_each(&best);
            all.extend(best.into_iter().map(|(side, outcome)| Row {
                query: query.name.to_owned(),
                limit_mib: limit,
                side,
                outcome,
            }));
        }
    }
    summary(&all);
    std::fs::create_dir_all("target/windrow-bench")?;
    std::fs::write("target/windrow-bench/datafusion.json", serde_json::to_string_pretty(&all)?)?;
    Ok(())
}

/// Returns the fastest run of each side. Compares the results once.
fn cell(options: &Options, query: &Query, limit: usize) -> Result<BTreeMap<Side, Outcome>> {
    let sides = match limit {
        _ if query.sql().is_none() => vec![Side::Stock, Side::Ours],
        0 => vec![Side::Stock, Side::Ours, Side::Scan],
        _ => vec![Side::Stock, Side::Tuned, Side::Ours, Side::Scan],
    };
    let mut best: BTreeMap<Side, Outcome> = BTreeMap::new();
    for _ in 0..options.rounds {
        for &side in &sides {
            let outcome = child(options, query.name, limit, side, false)?;
            let better = best.get(&side).is_none_or(|best| outcome.seconds < best.seconds);
            if better {
                best.insert(side, outcome);
            }
        }
    }
    let sums = [Side::Stock, Side::Ours].map(|side| child(options, query.name, limit, side, true));
    let [stock, ours] = sums;
    let (stock, ours) = (stock?, ours?);
    if stock.error.is_empty() && ours.error.is_empty() && stock.checksum != ours.checksum {
        return Err(format!("{} at {limit} MiB: other rows than stock", query.name).into());
    }
    Ok(best)
}

/// Runs a query once, in a separate process.
fn child(options: &Options, query: &str, limit: usize, side: Side, check: bool) -> Result<Outcome> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("datafusion-run").args(["--query", query]);
    command.args(["--limit", &limit.to_string(), "--partitions", &options.partitions.to_string()]);
    command.args(["--scale", &options.scale.to_string()]).arg("--data").arg(&options.data);
    command.args(["--side", &format!("{side:?}").to_lowercase()]);
    if check {
        command.arg("--check");
    }
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().last().map(serde_json::from_str) {
        Some(Ok(outcome)) => Ok(outcome),
        _ => Err(format!("{query}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn report(query: &str, limit: usize, best: &BTreeMap<Side, Outcome>) {
    let stock = best.get(&Side::Stock).filter(|stock| stock.error.is_empty());
    let scan = best.get(&Side::Scan).map_or(0, |scan| scan.peak_rss);
    for (side, outcome) in best {
        let ratio =
            stock.map_or("-".into(), |stock| format!("{:.2}", outcome.seconds / stock.seconds));
        let result = if outcome.error.is_empty() { "ok" } else { &outcome.error };
        println!(
            "{query:<13} {limit:>6} {:>6} {:>8.2} {ratio:>8} {:>6.1} {:>8} {:>8} {:>8}  {result}",
            format!("{side:?}").to_lowercase(),
            outcome.seconds,
            outcome.cpu_seconds,
            outcome.peak_rss >> 20,
            (outcome.peak_rss as i64 - scan as i64) >> 20,
            outcome.spilled >> 20,
        );
    }
}

/// For a query of several statements, prints the ratio of each to stock, the slowest first.
fn report_each(best: &BTreeMap<Side, Outcome>) {
    let (Some(stock), Some(ours)) = (best.get(&Side::Stock), best.get(&Side::Ours)) else { return };
    if stock.each.len() < 2 || stock.each.len() != ours.each.len() {
        return;
    }
    let ratios = ours.each.iter().zip(&stock.each).map(|(ours, stock)| ours / stock);
    let mut ratios: Vec<(usize, f64)> = (1..).zip(ratios).collect();
    ratios.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let ratios = ratios.iter().map(|(number, ratio)| format!("{number}: {ratio:.2}"));
    println!("of stock, each: {}", ratios.collect::<Vec<_>>().join(", "));
}

/// Prints, for each limit, the number of successful queries, and the geometric mean of Windrow's
/// time over the better time of stock.
fn summary(rows: &[Row]) {
    let mut limits: Vec<usize> = rows.iter().map(|row| row.limit_mib).collect();
    limits.sort_unstable();
    limits.dedup();
    for limit in limits {
        let of = |query: &str, side: Side| {
            let row = rows
                .iter()
                .find(|row| (row.limit_mib, row.side) == (limit, side) && row.query == query)?;
            row.outcome.error.is_empty().then_some(row.outcome.seconds)
        };
        let (mut ours, mut stock, mut logs) = (0, 0, Vec::new());
        for query in QUERIES {
            let mine = of(query.name, Side::Ours);
            let theirs = of(query.name, Side::Stock).into_iter().chain(of(query.name, Side::Tuned));
            let theirs = theirs.reduce(f64::min);
            ours += usize::from(mine.is_some());
            stock += usize::from(theirs.is_some());
            logs.extend(mine.zip(theirs).map(|(mine, theirs)| (mine / theirs).ln()));
        }
        let mean = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
        println!("{limit} MiB: ours {ours} of {stock} that stock has, {mean:.2} of its time");
    }
}

/// Returns the paths of `lineitem` at this scale and of the change log.
pub(crate) fn files(data: &Path, scale: f64) -> [PathBuf; 2] {
    [data.join(format!("lineitem-{scale}.parquet")), data.join("log.parquet")]
}
