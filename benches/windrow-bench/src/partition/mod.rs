//! `partition`: the cost of a split against alternatives, cell by cell.
//!
//! ```text
//! type x columns x partitions x shape of ids x nulls     microseconds a record batch
//!   ours             ids to partitions: checked, permuted, as an Arrow record batch and offsets
//!   copy             the columns to warm memory, in their order: a lower bound that a split can
//!                    hardly beat, and the measure of possible gains
//!   naive            out[cursor[id]++] = in, column by column
//!   unrolled         the same, four rows at a time
//!   striped          the same over ids * fanout + row % fanout: fast, but not stable
//!   grouped          a list of rows for each partition, the lists in one, a take of each column, a
//!                    slice for each partition
//! ```
//!
//! Ids are given, and no contender sees the same ids twice, because a branch predictor learns ten
//! thousand repeated ids. Before each turn, fresh ids are generated for a few calls; the first call
//! is not timed. Contenders take turns in one run, and the minimum of many times counts.
//!
//! *Output memory.* Windrow's comes from the partitioner's shelf, and is reused once the output is
//! dropped, as in a loop that writes partitions out. The scatter loops write to the same warm
//! memory every time, create no arrays and check nothing. Takes allocate and drop as arrow-rs does.
//!
//! Windrow creates partitions as slices on demand.

mod builder;
mod cases;
mod data;
mod hash;
mod large;
mod rivals;

use std::hint::black_box;
use std::time::Instant;

use crate::Result;
use crate::cells::Cells;

/// Options of the bench.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only the cells whose name contains all of these words
    #[arg(long, num_args = 1..)]
    only: Vec<String>,
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
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cells = Cells::new("partition", if options.builder { "ns" } else { "us" });
    match options {
        Options { hash: true, .. } => hash::run(options, &mut cells)?,
        Options { builder: true, .. } => builder::run(options, &mut cells)?,
        Options { large: true, .. } => large::run(options, &mut cells),
        _ => cases::run(options, &mut cells),
    }
    cells.finish()
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.iter().all(|word| name.split(' ').any(|part| part == word))
    }
}

/// A name, and an implementation of a cell's work; the argument selects one of the rotating inputs.
type Contender<'a> = (&'static str, Box<dyn FnMut(usize) + 'a>);

fn contender<'a>(name: &'static str, work: impl FnMut(usize) + 'a) -> Contender<'a> {
    (name, Box::new(work))
}

/// Calls per turn, including an untimed first one. Nine inputs fit into the second-level cache next
/// to a column or two.
const TURNS: usize = 9;

/// Returns the minimum microseconds per call of each contender; contenders take turns of `calls`
/// calls, of which the first is not timed. `refresh` replaces the inputs before each turn.
fn least(
    contenders: &mut [Contender<'_>],
    turns: usize,
    calls: usize,
    refresh: &mut dyn FnMut(),
) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; contenders.len()];
    for _ in 0..turns {
        for (contender, least) in contenders.iter_mut().zip(&mut least) {
            refresh();
            (contender.1)(black_box(0));
            let start = Instant::now();
            for turn in 1..calls {
                (contender.1)(black_box(turn));
            }
            *least = least.min(start.elapsed().as_secs_f64() * 1e6 / (calls - 1) as f64);
        }
    }
    least
}
