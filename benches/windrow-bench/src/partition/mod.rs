//! `partition`: the cost of a split against alternatives, cell by cell.
//!
//! ```text
//! type x columns x partitions x shape of ids x nulls     microseconds a record batch
//!   ours             ids to partitions: checked, permuted, as an Arrow record batch and offsets
//!   copy             the columns to warm memory, in their order: a lower bound that a split can
//!                    hardly beat, and the measure of possible gains
//!   naive            out[cursor[id]++] = in, column by column
//!   unrolled         the same, four rows at a time
//!   grouped          a list of rows for each partition, the lists in one, a take of each column, a
//!                    slice for each partition
//! ```
//!
//! Ids are given, and no contender sees the same ids twice, because a branch predictor learns ten
//! thousand repeated ids. Before each round, fresh ids are generated for a few calls; the first call
//! is not timed. Contenders take turns in one run, and the minimum of many times counts.
//!
//! *Large record batches* (`--large`) have two cells each: `fresh` writes to memory not yet supplied
//! by the system, `recycled` to memory touched before. Takes allocate in both.
//!
//! *Output memory.* Windrow's comes from the partitioner's shelf, and is reused once the output is
//! dropped, as in a loop that writes partitions out. The scatter loops write to the same warm
//! memory every time, create no arrays and check nothing. Takes allocate and drop as arrow-rs does.
//!
//! Windrow creates partitions as slices on demand.

mod builder;
mod cases;
mod costs;
mod data;
mod hash;
mod pages;
mod rivals;

use crate::Result;
use crate::harness::{Cells, Turns};

/// Options of the bench.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Every shape of ids, and nulls, instead of uniform ids without nulls
    #[arg(long)]
    full: bool,
    /// Rows of a record batch
    #[arg(long, default_value_t = 10_000)]
    rows: usize,
    /// Samples of a contender, of which the least counts
    #[arg(long, default_value_t = 15)]
    samples: usize,
    /// Hash and partition id instead of splits
    #[arg(long)]
    hash: bool,
    /// A record batch of 64M rows instead: 2 GiB of memory, and a minute
    #[arg(long)]
    large: bool,
    /// Many record batches gathered by a builder instead: 1 GiB of memory
    #[arg(long)]
    builder: bool,
    /// Pages of partitions instead: written, read, and from rows to pages
    #[arg(long)]
    pages: bool,
    /// Other rules, early ends, slices and null counts instead
    #[arg(long)]
    costs: bool,
}

pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<()> {
    match options {
        Options { hash: true, .. } => hash::run(options, &mut cells)?,
        Options { builder: true, .. } => builder::run(&mut cells)?,
        Options { pages: true, .. } => pages::run(&mut cells)?,
        Options { costs: true, .. } => costs::run(options, &mut cells)?,
        Options { large: true, .. } => cases::large(options, &mut cells)?,
        _ => cases::matrix(options, &mut cells)?,
    }
    cells.finish()
}

/// Rounds of a sample, of calls of a few microseconds. Nine inputs fit into the second-level cache
/// next to a column or two.
const TURNS: Turns = Turns { rounds: 8, warm: 1, calls: 8 };
