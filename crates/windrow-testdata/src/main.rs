//! Writes the change logs that tests, benches and examples read.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use windrow_testdata::{log, orders};

#[derive(Parser)]
#[command(version, about = "Writes Windrow's test data: the same options write the same file")]
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
}

fn main() {
    let done = match Cli::parse().command {
        Command::GenLog { rows, keys, output, seed } => log::write(&output, rows, keys, seed),
        Command::GenOrders { output, scale, seed } => orders::write(&output, scale, seed),
    };
    match done {
        Ok(summary) => println!("{summary}"),
        Err(error) => {
            eprintln!("windrow-testdata: {error}");
            std::process::exit(1);
        }
    }
}
