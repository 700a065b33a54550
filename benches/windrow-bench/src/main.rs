//! Benches of the engine beside its rivals: each prints a table and writes `target/windrow-bench/NAME.json`.

mod columns;
#[cfg(feature = "dataflow")]
mod dataflow;
#[cfg(feature = "datafusion")]
mod datafusion;
mod floor;
mod harness;
mod kway;
mod merge;
mod partition;
mod process;
mod rows;
mod spill;
mod spine;

use clap::{Parser, Subcommand};
use harness::{Cells, Select};
use merge::Work;
use windrow_testdata::rng;

/// The result of a command; errors are for display only.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
#[command(version, about = "Measures Windrow beside its rivals")]
struct Cli {
    #[command(flatten)]
    select: Select,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Merge two chains of chunks, beside differential-dataflow's mergers
    Merge(merge::Options),
    /// Push 64 times and seal, beside differential-dataflow's batchers
    Batcher(merge::Options),
    /// Measure a job of the tool beside reading and writing its file alone
    Floor(floor::Options),
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
    if let Err(error) = run(Cli::parse()) {
        eprintln!("windrow-bench: {error}");
        std::process::exit(1);
    }
}

fn run(Cli { select, command }: Cli) -> Result<()> {
    let new = |name, unit| Cells::new(name, unit, select);
    match command {
        Command::Merge(options) => merge::run(Work::Merge, &options, new("merge", "ns/record")),
        Command::Batcher(options) => {
            merge::run(Work::Batcher, &options, new("batcher", "ns/record"))
        }
        Command::Floor(options) => floor::run(&options, new("floor", "us")),
        Command::Spill(options) => spill::run(&options, new("spill", "ns/row")),
        Command::Spine(options) => spine::run(&options, new("spine", "ns/key")),
        Command::Kway(options) => kway::run(&options, new("kway", "ns/record")),
        Command::Partition(options) => partition::run(&options, new("partition", "us")),
        #[cfg(feature = "dataflow")]
        Command::Dataflow(options) => dataflow::run(&options, new("dataflow", "ns/update")),
        Command::Rows(options) => rows::run(&options, new("rows", "us")),
        #[cfg(feature = "datafusion")]
        Command::Datafusion(options) => datafusion::run(&options, new("datafusion", "s")),
    }
}
