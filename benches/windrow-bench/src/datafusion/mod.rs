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

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use datafusion::prelude::SessionConfig;

use crate::Result;
use crate::harness::{Cells, Contender, Outcome, Turns, contender};
use crate::process::answer;
use child::Run;
use queries::QUERIES;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// TPC-H scale factor of `lineitem`; the change log has 6 million rows
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Memory of the pool in MiB; 0 is without a limit
    #[arg(long, value_delimiter = ',', default_value = "0,1024,512,256,128,64")]
    limits: Vec<usize>,
    /// Queries by name: q1 to q11, log-sort, log-latest, log-distinct, exchange, exchange-in-turns; tpch, without a limit; all unless given
    #[arg(long, value_delimiter = ',')]
    queries: Vec<String>,
    /// Partitions
    #[arg(long, default_value_t = 2)]
    partitions: usize,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
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

/// Runs the bench and writes the results.
pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<()> {
    if let Some(side) = options.side {
        return child::run(options, side);
    }
    tpch::make(&options.data, options.scale)?;
    change_log(&options.data.join("log.parquet"), 6_000_000)?;
    let chosen =
        |name: &str| options.queries.is_empty() || options.queries.iter().any(|of| of == name);
    for query in QUERIES.iter().filter(|query| chosen(query.name)) {
        let of_tpch = query.sql().is_none();
        for &limit in options.limits.iter().filter(|limit| !of_tpch || **limit == 0) {
            let sides: &[Side] = match limit {
                _ if of_tpch => &[Side::Ours, Side::Stock],
                0 => &[Side::Ours, Side::Stock, Side::Scan],
                _ => &[Side::Ours, Side::Stock, Side::Tuned, Side::Scan],
            };
            let case = format!("{limit} MiB, {}", query.name);
            let contenders = sides.iter().map(|&side| contending(options, query.name, limit, side));
            let turns = Turns { rounds: 2, warm: 1, calls: 1 };
            let fresh = |round| Ok((round, 1.0));
            cells.race(&case, turns, fresh, &mut contenders.collect::<Vec<_>>())?;
        }
    }
    cells.finish()
}

/// Runs a query in separate processes. The first call of the first round compares the rows of stock
/// and of Windrow.
fn contending<'a>(
    options: &'a Options,
    query: &'a str,
    limit: usize,
    side: Side,
) -> Contender<'a, usize> {
    contender(side.name(), move |round, call| {
        let is_checked = call == 0;
        if is_checked && (*round > 0 || !matches!(side, Side::Stock | Side::Ours)) {
            return Ok(Outcome::default());
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["datafusion", &format!("--queries={query}"), &format!("--limits={limit}")]);
        command.arg(format!("--partitions={}", options.partitions));
        command.arg("--data").arg(&options.data).arg(format!("--scale={}", options.scale));
        command.arg(format!("--side={}", side.name())).args(is_checked.then_some("--check"));
        let run: Run = answer(&mut command).map_err(|error| format!("{query}: {error}"))?;
        if !run.error.is_empty() {
            println!("{query} {limit} MiB: {} failed: {}", side.name(), run.error);
            return Ok(Outcome::default());
        }
        let figure = |part: &str, unit, figure| (part.to_owned(), unit, vec![figure]);
        let mut figures = vec![
            figure("", "s", run.seconds),
            figure("", "CPU s", run.cpu_seconds),
            figure(", peak", "MiB", (run.peak_rss >> 20) as f64),
            figure(", spilled", "MiB", (run.spilled >> 20) as f64),
        ];
        // Of TPC-H, each query too.
        let each = (1..).zip(&run.each).filter(|_| run.each.len() > 1);
        figures.extend(each.map(|(number, time)| figure(&format!(" {number}"), "s", *time)));
        Ok(Outcome { figures, digest: is_checked.then_some(run.checksum) })
    })
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
