//! `datafusion`: sorts and the latest row of each key inside DataFusion, with Windrow's and with
//! stock operators.
//!
//! Every run is a child process with the same session, pool, batch size and files. Stock and
//! Windrow take turns, and the fastest run counts. Stock runs with default settings, and with
//! settings for a small pool. An unsorted scan of the same columns is measured as well, because
//! decoding of files takes memory outside of the pool.

mod check;
mod child;
pub(crate) mod queries;
pub(crate) mod tpch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use datafusion::prelude::SessionConfig;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::cells::save;
use crate::process::answer;
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
    /// The operators of a single run in this process
    #[arg(long, hide = true)]
    side: Option<Side>,
    /// Compare rows and their order
    #[arg(long, hide = true)]
    check: bool,
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

impl Side {
    /// Returns the name as options and tables have it.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Returns a session's settings for this side.
    pub(crate) fn tuned(self, config: SessionConfig) -> SessionConfig {
        if self != Self::Tuned {
            return config;
        }
        let config = config.with_sort_spill_reservation_bytes(1 << 20);
        config.with_sort_in_place_threshold_bytes(1 << 18)
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    query: &'static str,
    limit_mib: usize,
    side: Side,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Runs the bench and writes the results.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(side) = options.side {
        return child::run(options, side);
    }
    tpch::make(&options.data, options.scale)?;
    change_log(&options.data.join("log.parquet"), 6_000_000)?;
    let chosen =
        |name: &str| options.queries.is_empty() || options.queries.iter().any(|of| of == name);
    let mut all = Vec::new();
    println!(
        "{:<13} {:>6} {:>6} {:>8} {:>8} {:>6} {:>8} {:>8} {:>8}  error",
        "query", "MiB", "side", "seconds", "of stock", "CPU s", "RSS MiB", "of scan", "spilled"
    );
    for query in QUERIES.iter().filter(|query| chosen(query.name)) {
        let of_tpch = query.sql().is_none();
        for &limit_mib in options.limits.iter().filter(|limit| !of_tpch || **limit == 0) {
            let best = cell(options, query, limit_mib)?;
            report(query.name, limit_mib, &best);
            report_each(&best);
            let row = |(side, outcome)| Row { query: query.name, limit_mib, side, outcome };
            all.extend(best.into_iter().map(row));
        }
    }
    options.limits.iter().for_each(|limit| summary(&all, *limit));
    save("datafusion", &all)
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
            if best.get(&side).is_none_or(|best| outcome.seconds < best.seconds) {
                best.insert(side, outcome);
            }
        }
    }
    let stock = child(options, query.name, limit, Side::Stock, true)?;
    let ours = child(options, query.name, limit, Side::Ours, true)?;
    if stock.error.is_empty() && ours.error.is_empty() && stock.checksum != ours.checksum {
        return Err(format!("{} at {limit} MiB: other rows than stock", query.name).into());
    }
    Ok(best)
}

/// Runs a query once, in a separate process.
fn child(options: &Options, query: &str, limit: usize, side: Side, check: bool) -> Result<Outcome> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["datafusion", &format!("--queries={query}"), &format!("--limits={limit}")]);
    command.arg(format!("--partitions={}", options.partitions)).arg("--data").arg(&options.data);
    command.args([format!("--scale={}", options.scale), format!("--side={}", side.name())]);
    answer(command.args(check.then_some("--check")))
        .map_err(|error| format!("{query}: {error}").into())
}

fn report(query: &str, limit: usize, best: &BTreeMap<Side, Outcome>) {
    let stock = best.get(&Side::Stock).filter(|stock| stock.error.is_empty());
    let scan = best.get(&Side::Scan).map_or(0, |scan| scan.peak_rss);
    for (side, outcome) in best {
        let ratio =
            stock.map_or("-".into(), |stock| format!("{:.2}", outcome.seconds / stock.seconds));
        println!(
            "{query:<13} {limit:>6} {:>6} {:>8.2} {ratio:>8} {:>6.1} {:>8} {:>8} {:>8}  {}",
            side.name(),
            outcome.seconds,
            outcome.cpu_seconds,
            outcome.peak_rss >> 20,
            (outcome.peak_rss as i64 - scan as i64) >> 20,
            outcome.spilled >> 20,
            outcome.error,
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

/// Prints, for a limit, the number of successful queries, and the geometric mean of Windrow's time
/// over the better time of stock.
fn summary(rows: &[Row], limit: usize) {
    let of = |query: &str, side: Side| {
        let of_it = |row: &&Row| (row.limit_mib, row.query, row.side) == (limit, query, side);
        let row = rows.iter().find(of_it).filter(|row| row.outcome.error.is_empty())?;
        Some(row.outcome.seconds)
    };
    let (mut ours, mut stock, mut logs) = (0, 0, Vec::new());
    for Query { name, .. } in QUERIES {
        let mine = of(name, Side::Ours);
        let theirs = [Side::Stock, Side::Tuned].into_iter().filter_map(|side| of(name, side));
        let theirs = theirs.reduce(f64::min);
        ours += usize::from(mine.is_some());
        stock += usize::from(theirs.is_some());
        logs.extend(mine.zip(theirs).map(|(mine, theirs)| (mine / theirs).ln()));
    }
    let mean = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
    println!("{limit} MiB: ours {ours} of {stock} that stock has, {mean:.2} of its time");
}

/// Generates the change log of `gen-log` with four rows a key if missing.
pub(crate) fn change_log(path: &Path, rows: u64) -> Result<()> {
    if !path.exists() {
        let part = path.with_extension("part");
        windrow_testdata::log::write(&part, rows, rows / 4, 1)?;
        std::fs::rename(part, path)?;
    }
    Ok(())
}

pub(crate) fn runtime(threads: usize) -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?)
}
