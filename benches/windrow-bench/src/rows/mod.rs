//! `rows`: encoding, decoding, comparing and sorting rows, beside arrow-row and
//! `lexsort_to_indices`.
//!
//! Every cell is the minimum of many rounds. In a round, Windrow, the rivals and the lower bound
//! take turns, in a different order each round. In a turn, a contender makes one untimed call and
//! four timed ones, each on the next of several record batches of the same shape (4 MiB in total,
//! at least two batches). As in a loop over many batches, no input is in a core's own caches, while
//! the output was written shortly before. With `--calls 1`, contenders alternate after every call:
//! each finds its memory displaced by the rest, 20 MB with 50 columns, to the last cache or beyond,
//! depending on the load of neighbouring cores. With `--calls 100`, each contender has the caches
//! to itself; some need more than four calls to recover from the previous contender.
//!
//! Output memory: `recycled` overwrites the memory of the previous call (Windrow's `encode_into`,
//! arrow-row's `append` after `clear`); `fresh` allocates on both sides (`encode`,
//! `convert_columns`). These pairs and the lower bound are raced separately, so that each pair shares the state of caches and allocator. The allocator
//! keeps freed memory, because a large block was freed before; neither side pays for pages. The
//! lower bound copies the rows of each record batch into recycled memory;
//! `docs/decisions/016-wide-rows-are-bound-by-memory.md` explains its figures for 50 columns.
//! Decoding creates fresh arrays on both sides. A sort turns columns into a permutation, including
//! the building of keys. The words of Windrow and the rows of arrow-row are in recycled memory, and
//! sorts alternate call by call.

mod codec;
mod data;
mod sort;

use std::hint::black_box;
use std::time::Instant;

use arrow::array::RecordBatch;
use windrow::{Layout, Order};

use crate::Result;
use crate::cells::{Cells, keep_freed_memory};
use data::Shape;

/// Options of the bench.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Cases whose name holds this text
    #[arg(long, default_value = "")]
    only: String,
    /// Fewer rounds, and no sorts of a million rows
    #[arg(long)]
    quick: bool,
    /// Calls that count of a turn of contenders that encode, decode or compare
    #[arg(long, default_value_t = 4)]
    calls: usize,
}

/// Runs every selected case.
pub(crate) fn run(options: &Options) -> Result<()> {
    keep_freed_memory();
    let mut cells = Cells::new("rows", "us");
    codec::run(options, &mut cells)?;
    sort::run(options, &mut cells)?;
    cells.finish()
}

/// Generates record batches of a shape, and the layout of all columns.
fn inputs(shape: &Shape, count: usize, rows: usize) -> Result<(Vec<RecordBatch>, Layout)> {
    let inputs = (0..count).map(|seed| shape.batch(seed as u64, rows));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let schema = inputs[0].schema();
    let columns: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    Ok((inputs, Order::by(columns).bind(&schema)?))
}

/// Ends the work of a contender whose output is dropped.
fn dropped<T>(output: T) -> Result<()> {
    drop(black_box(output));
    Ok(())
}

/// A contender's work on input number `at`.
type Work<'a> = &'a mut dyn FnMut(usize) -> Result<()>;

/// Returns the minimum microseconds of each contender over `rounds`. A turn has `calls` timed
/// calls, after an untimed one if `calls` is above 1.
fn race(
    rounds: usize,
    calls: usize,
    inputs: usize,
    contenders: &mut [Work<'_>],
) -> Result<Vec<f64>> {
    let count = contenders.len();
    let mut best = vec![f64::INFINITY; count];
    for turn in 0..rounds * count {
        // Rotates the order by one in each round.
        let at = (turn + turn / count) % count;
        let (best, work) = (&mut best[at], &mut contenders[at]);
        if calls > 1 {
            work(turn % inputs)?;
        }
        for call in 1..=calls {
            let start = Instant::now();
            work((turn + call) % inputs)?;
            *best = best.min(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(best)
}
