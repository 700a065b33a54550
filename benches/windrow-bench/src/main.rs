//! Benches of the engine beside its rivals: each prints a table and writes `target/windrow-bench/NAME.json`.

mod cells;
mod columns;
#[cfg(feature = "dataflow")]
mod dataflow;
#[cfg(feature = "datafusion")]
mod datafusion;
mod kway;
mod merge;
mod partition;
#[cfg(any(feature = "dataflow", feature = "datafusion", feature = "stores"))]
mod process;
mod rows;
mod spill;
mod spine;

use clap::{Parser, Subcommand};
use windrow_testdata::rng;

/// The result of a command; errors are for display only.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
#[command(version, about = "Measures Windrow beside its rivals")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Merge two chains of chunks, beside differential-dataflow's mergers
    Merge(merge::Options),
    /// Push 64 times and seal, beside differential-dataflow's batchers
    Batcher(merge::Options),
    /// Measure what a memory limit costs the engine
    Spill(spill::Options),
    /// Look keys up in batches of changes, and keep a table up to date
    Spine(spine::Options),
    /// Merge K sorted runs, beside a loser tree
    Kway(kway::Options),
    /// Measure splits of record batches against scatter loops and takes
    Partition(partition::Options),
    /// Arrange, join and loop in a dataflow, beside differential-dataflow's own traces
    #[cfg(feature = "dataflow")]
    Dataflow(dataflow::Options),
    /// Measure rows against arrow-row: encode, decode, compare, sort
    Rows(rows::Options),
    /// Sort and take the latest rows inside DataFusion, beside its own operators
    #[cfg(feature = "datafusion")]
    Datafusion(datafusion::Options),
}

fn main() {
    let measured = match Cli::parse().command {
        Command::Merge(options) => merge::run(merge::Work::Merge, &options),
        Command::Kway(options) => kway::run(&options),
        Command::Batcher(options) => merge::run(merge::Work::Batcher, &options),
        Command::Spill(options) => spill::run(&options),
        Command::Spine(options) => spine::run(&options),
        Command::Partition(options) => partition::run(&options),
        #[cfg(feature = "dataflow")]
        Command::Dataflow(options) => dataflow::run(&options),
        Command::Rows(options) => rows::run(&options),
        #[cfg(feature = "datafusion")]
        Command::Datafusion(options) => datafusion::run(&options),
    };
    if let Err(error) = measured {
        eprintln!("windrow-bench: {error}");
        std::process::exit(1);
    }
}
