//! Windrow against DBSP: merges of K sorted batches, sorted lookups in a spine, scans of batches, and
//! upserts, over the same rows in one process.
//!
//! ```text
//! merges   rows --> batches of each engine, untimed --> its merger, timed --> rows, compared
//! probes   rows --> spine of each engine, untimed ----> look-ups, timed ----> sums, compared
//! upserts  rows --> table of each engine, timed ------------------------------> sums, compared
//! ```
//! Both run on one thread in turns, and the fastest round counts. Everything runs on the worker of
//! a DBSP runtime, where DBSP finds its storage and caches; Windrow needs neither, and loses
//! nothing. `scripts/bench-dbsp` pins the process to one core, and explains its settings.

#[path = "../../windrow-bench/src/spine/data.rs"]
mod changes;
#[path = "../../windrow-bench/src/kway/data.rs"]
#[expect(dead_code, reason = "shared with windrow-bench, which has texts too")]
mod data;
#[path = "../../windrow-bench/src/harness.rs"]
#[expect(dead_code, reason = "shared with windrow-bench, which has benches of other kinds too")]
mod harness;
mod kway;
mod probes;
#[path = "../../../crates/windrow-testdata/src/rng.rs"]
#[expect(dead_code, reason = "shared with windrow-bench, whose data need more of it")]
mod rng;
mod runtime;
mod upserts;

use clap::Parser;

use harness::{Cells, Select, Turns};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: dbsp::mimalloc::MiMalloc = dbsp::mimalloc::MiMalloc;

/// The result of a measurement, sendable from the worker's thread.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What to measure.
#[derive(Clone, Debug, Parser)]
#[command(about = "Measures Windrow's merges, look-ups, scans and upserts beside DBSP's own")]
pub(crate) struct Options {
    #[command(flatten)]
    select: Select,
    /// Numbers of batches that are merged
    #[arg(long, value_delimiter = ',', default_value = "8,32,64")]
    batches: Vec<usize>,
    /// Records of a merge, in all
    #[arg(long, default_value_t = 2_000_000)]
    records: usize,
    /// Keys of a spine
    #[arg(long, default_value_t = 2_000_000)]
    keys: u64,
}

fn main() {
    if let Err(error) = run(&Options::parse()) {
        eprintln!("windrow-dbsp-bench: {error}");
        std::process::exit(1);
    }
}

/// Both run on one thread in turns, and the fastest round counts.
const TURNS: Turns = Turns { rounds: 5, warm: 0, calls: 1 };

fn run(options: &Options) -> Result<()> {
    let cells = Cells::new("dbsp", "ns/record", options.select.clone());
    upserts::run(options, probes::run(options, kway::run(options, cells)?)?)?.finish()
}
