//! `dataflow`: arrangements of differential-dataflow 0.26, Windrow's and stock, on one worker.
//!
//! ```text
//! spines   keys arranged and joined: rounds of updates (load), then rounds of look-ups (query)
//! rounds   a loaded trace, and rounds of a few updates each: the time until their output appears
//! programs join, distances, components of numbers, by the CPU time of a round
//! spill    load and query once more, in a quarter of the memory that they take
//! rest     bytes of an arrangement after all merges
//! ```
//! All sides take turns within a round, and the minimum time counts. For single rounds, the median,
//! the 99th percentile and the maximum count.

mod programs;
mod rest;
mod spines;

use clap::Args;

use crate::Result;
use crate::cells::{Cells, keep_freed_memory};

/// What is measured, and how often.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Updates to load, and keys to look up
    #[arg(long, default_value_t = 2_000_000)]
    updates: usize,
    /// Updates in a round of the load
    #[arg(long, default_value_t = 100_000)]
    round: usize,
    /// Edges of the graph
    #[arg(long, default_value_t = 200_000)]
    edges: usize,
    /// Rounds, of which the fastest counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Cases whose name has this: spines, programs, rest
    #[arg(long, default_value = "")]
    only: String,
    /// A process that arranges and tells its memory
    #[arg(long, hide = true)]
    rest: Option<String>,
}

/// Runs the bench and writes the results.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(case) = &options.rest {
        return rest::child(options, case);
    }
    keep_freed_memory();
    let mut cells = Cells::new("dataflow", "ns/update");
    type Case = fn(&Options, &mut Cells) -> Result<()>;
    let cases: [(&str, Case); 3] =
        [("spines", spines::measure), ("programs", programs::measure), ("rest", rest::measure)];
    for (_, case) in cases.iter().filter(|(name, _)| name.contains(&options.only)) {
        case(options, &mut cells)?;
    }
    cells.finish()
}

/// Adds the median, the 99th percentile and the maximum of the seconds of single rounds.
fn percentiles(cells: &mut Cells, case: &str, ours: &[f64], (name, rival): (&str, &[f64])) {
    let microseconds = |times: &[f64], hundredths: usize| {
        let mut times = times.to_vec();
        times.sort_by(f64::total_cmp);
        times[(times.len() * hundredths / 100).min(times.len() - 1)] * 1e6
    };
    for (hundredths, figure) in [(50, "p50"), (99, "p99"), (100, "max")] {
        let [ours, rival] = [ours, rival].map(|times| microseconds(times, hundredths));
        cells.push_in("us/round", &format!("{case}, {figure}"), ours, (name, rival));
    }
}
