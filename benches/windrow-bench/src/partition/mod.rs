//! `partition`: what a split costs against the ways that others have, cell by cell.
//!
//! ```text
//! type x columns x partitions x shape of ids x nulls     microseconds a record batch
//!   ours             ids to partitions: checked, permuted, as an Arrow record batch and offsets
//!   copy             the columns to memory that is warm, in the order they have: what a split cannot beat
//!                    by much, and what tells how much is left
//!   naive            out[cursor[id]++] = in, column by column
//!   unrolled         the same, four rows at a time
//!   striped          the same over ids * fanout + row % fanout: fast, but not stable
//!   take             a list of rows for each partition, and a take of each column and partition
//!   grouped          the lists in one, a take of each column, a slice for each partition
//! ```
//!
//! Ids are given, and no contender sees the same ones twice: a branch predictor that does learns
//! ten thousand of them. Before each turn new ones are made for a few calls, the first of which is
//! not timed. Contenders take turns in one run, and the least time of many counts.
//!
//! *Output memory.* Ours comes from the partitioner's shelf and is taken again once the output dropped,
//! as in a loop that writes partitions out. The scatter loops write to the same warm memory
//! every time, make no arrays and check nothing. Takes allocate as arrow-rs does, and drop.
//!
//! Partitions are slices made on demand in ours; `sliced` is ours with every one made, as `take`
//! and `grouped` have to.

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

/// What to measure.
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

/// One way to do the work of a cell; its argument says which of the rotating inputs to take.
struct Contender<'a> {
    name: &'static str,
    work: Box<dyn FnMut(usize) + 'a>,
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, work: impl FnMut(usize) + 'a) -> Self {
        Self { name, work: Box::new(work) }
    }
}

/// Seconds that a sample should take: many calls of a short work, one of a long.
const SAMPLE: f64 = 0.001;
/// Calls with fresh inputs in one turn, and one before them. As many inputs fit the second-level
/// cache beside a column or two.
const TURNS: usize = 9;
/// Turns of a sample: of calls that take microseconds, as many as there are.
const REFRESHED: usize = 8;

/// The least microseconds a call of each contender, which take turns.
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

/// [`least`], where `refresh` replaces the [`TURNS`] inputs before each turn.
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
