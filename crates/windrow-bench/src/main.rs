//! Generators and benches: the data behind the README's tables, and the tables.
//!
//! Every command is deterministic: the same options write the same file.

#[cfg(feature = "ballista")]
mod ballista;
mod batcher;
mod cells;
#[cfg(feature = "dataflow")]
mod dataflow;
#[cfg(feature = "datafusion")]
mod datafusion;
mod r#gen;
mod kway;
mod merge;
mod partition;
mod pipeline;
mod rows;
mod spill;
mod spine;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a command returns; the text of an error is all that a caller needs here.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
#[command(version, about = "Generates Windrow's data and measures it against its rivals")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a synthetic change log: the 6M-row file of the end-to-end bench
    GenLog {
        /// Events in the file
        #[arg(long, default_value_t = 6_000_000)]
        rows: u64,
        /// Distinct keys
        #[arg(long, default_value_t = 1_500_000)]
        keys: u64,
        /// Where to write it
        #[arg(short, long)]
        output: PathBuf,
        /// The same seed gives the same rows
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Write a small change log of TPC-H orders: the file of examples/data
    GenOrders {
        /// Where to write it
        #[arg(short, long)]
        output: PathBuf,
        /// TPC-H scale factor; 1 is 1.5 million orders
        #[arg(long, default_value_t = 0.02)]
        scale: f64,
        /// The same seed gives the same rows
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Merge two chains of chunks, beside differential-dataflow's mergers
    Merge(merge::Options),
    /// Push 64 times and seal, beside differential-dataflow's batchers
    Batcher(merge::Options),
    /// Measure what a memory limit costs the engine
    Spill(spill::Options),
    /// Look keys up in batches of changes, and keep a table up to date
    Spine(spine::Options),
    /// Merge K sorted runs, beside a binary heap and a loser tree
    Kway(kway::Options),
    /// Measure the stages of a sort in memory against arrow-rs
    Pipeline {
        /// The change log, as written by gen-log
        log: PathBuf,
        /// Rows of it to sort
        #[arg(long, default_value_t = 3_000_000)]
        rows: usize,
        /// Rounds, of which the fastest counts
        #[arg(long, default_value_t = 3)]
        rounds: usize,
    },
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
    /// One run of `datafusion`
    #[cfg(feature = "datafusion")]
    #[command(hide = true)]
    DatafusionRun(datafusion::RunOptions),
    /// Take the latest rows on two executors of Ballista, beside its own operators
    #[cfg(feature = "ballista")]
    Ballista(ballista::Options),
    /// The scheduler of a run of `ballista`
    #[cfg(feature = "ballista")]
    #[command(hide = true)]
    BallistaScheduler(ballista::SchedulerOptions),
    /// An executor of a run of `ballista`
    #[cfg(feature = "ballista")]
    #[command(hide = true)]
    BallistaExecutor(ballista::ExecutorOptions),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::GenLog { rows, keys, output, seed } => {
            r#gen::log::write(&output, rows, keys, seed)
        }
        Command::GenOrders { output, scale, seed } => r#gen::orders::write(&output, scale, seed),
        Command::Pipeline { log, rows, rounds } => return end(pipeline::run(&log, rows, rounds)),
        Command::Merge(options) => return end(merge::run(&options)),
        Command::Kway(options) => return end(kway::run(&options)),
        Command::Batcher(options) => return end(batcher::run(&options)),
        Command::Spill(options) => return end(spill::run(&options)),
        Command::Spine(options) => return end(spine::run(&options)),
        Command::Partition(options) => return end(partition::run(&options)),
        #[cfg(feature = "dataflow")]
        Command::Dataflow(options) => return end(dataflow::run(&options)),
        Command::Rows(options) => return end(rows::run(&options)),
        #[cfg(feature = "datafusion")]
        Command::Datafusion(options) => return end(datafusion::run(&options)),
        #[cfg(feature = "datafusion")]
        Command::DatafusionRun(options) => return end(datafusion::run_one(&options)),
        #[cfg(feature = "ballista")]
        Command::Ballista(options) => return end(ballista::run(&options)),
        #[cfg(feature = "ballista")]
        Command::BallistaScheduler(options) => return end(ballista::scheduler(&options)),
        #[cfg(feature = "ballista")]
        Command::BallistaExecutor(options) => return end(ballista::executor(&options)),
    };
    match done {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

fn end(measured: Result<()>) -> ExitCode {
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error),
    }
}

fn fail(error: Box<dyn std::error::Error>) -> ExitCode {
    eprintln!("windrow-bench: {error}");
    ExitCode::FAILURE
}
