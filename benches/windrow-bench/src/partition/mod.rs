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
//!   take             a list of rows for each partition, and a take of each column and partition
//!   grouped          the lists in one, a take of each column, a slice for each partition
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
//! Windrow creates partitions as slices on demand; `sliced` is Windrow with every slice created,
//! which `take` and `grouped` must do in any case.

mod builder;
mod cases;
mod data;
#[cfg(feature = "datafusion")]
mod datafusion;
mod hash;
mod large;
mod rivals;
mod shards;

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
    /// Hash, split and a slice for each partition instead, beside DataFusion's `BatchPartitioner`
    #[cfg(feature = "datafusion")]
    #[arg(long)]
    datafusion: bool,
    /// A record batch of 64M rows instead: 2 GiB of memory, and a minute
    #[arg(long)]
    large: bool,
    /// Many record batches gathered by a builder instead: 1 GiB of memory
    #[arg(long)]
    builder: bool,
    /// Pushers of a batcher that share no key instead, against those that share all
    #[arg(long)]
    shards: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cells = Cells::new("partition", if options.builder { "ns" } else { "us" });
    #[cfg(feature = "datafusion")]
    if options.datafusion {
        datafusion::run(options, &mut cells)?;
        return cells.save();
    }
    if options.hash {
        hash::run(options, &mut cells)?;
    } else if options.builder {
        builder::run(options, &mut cells)?;
    } else if options.shards {
        shards::run(options, &mut cells)?;
    } else if options.large {
        large::run(options, &mut cells)?;
    } else {
        cases::run(options, &mut cells)?;
    }
    cells.save()
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.iter().all(|word| name.split(' ').any(|part| part == word))
    }
}

/// An implementation of a cell's work; the argument selects one of the rotating inputs.
struct Contender<'a> {
    name: &'static str,
    work: Box<dyn FnMut(usize) + 'a>,
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, work: impl FnMut(usize) + 'a) -> Self {
        Self { name, work: Box::new(work) }
    }
}

/// Target seconds of a sample: many calls of short work, a single call of long work.
const SAMPLE: f64 = 0.001;
/// Calls per turn with fresh inputs, including an untimed first one. Nine inputs fit into the
/// second-level cache next to a column or two.
const TURNS: usize = 9;
/// Turns per sample, for calls of a few microseconds.
const REFRESHED: usize = 8;

/// Returns the minimum microseconds per call of each contender; contenders take turns.
fn least(contenders: &mut [Contender<'_>], samples: usize) -> Vec<f64> {
    let mut turn = 0;
    let mut timed = |contender: &mut Contender<'_>, calls: usize| {
        let start = Instant::now();
        for _ in 0..calls {
            (contender.work)(black_box(turn));
            turn += 1;
        }
        start.elapsed().as_secs_f64() / calls as f64
    };
    let calls: Vec<usize> = contenders
        .iter_mut()
        .map(|contender| {
            let first = timed(contender, 3).min(timed(contender, 3));
            ((SAMPLE / first) as usize).clamp(1, 10_000)
        })
        .collect();
    let mut least = vec![f64::INFINITY; contenders.len()];
    for _ in 0..samples {
        for ((contender, &calls), least) in contenders.iter_mut().zip(&calls).zip(&mut least) {
            *least = least.min(timed(contender, calls) * 1e6);
        }
    }
    least
}

/// As [`least`], but `refresh` replaces the [`TURNS`] inputs before each turn.
fn least_of_fresh(
    contenders: &mut [Contender<'_>],
    samples: usize,
    mut refresh: impl FnMut(),
) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; contenders.len()];
    for _ in 0..samples * REFRESHED {
        for (contender, least) in contenders.iter_mut().zip(&mut least) {
            refresh();
            (contender.work)(black_box(0));
            let start = Instant::now();
            for turn in 1..TURNS {
                (contender.work)(black_box(turn));
            }
            let seconds = start.elapsed().as_secs_f64() / (TURNS - 1) as f64;
            *least = least.min(seconds * 1e6);
        }
    }
    least
}
