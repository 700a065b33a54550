//! `rows`: encoding, decoding, comparing and sorting rows, beside arrow-row and `lexsort_to_indices`.
//!
//! Every cell is the least of many rounds in which ours, the rivals and the floor take turns, each on
//! the next of several record batches of the same shape (4 MiB in all, and three at the least), so
//! that no input is in a core's own caches from the round before. Memory of the output: `recycled` writes into the memory of the round before
//! (ours `encode_into`, theirs `append` after `clear`), `fresh` lets either allocate its own
//! (`encode`, `convert_columns`). The floor copies as many bytes as our rows have into recycled
//! memory. Decoding gives fresh arrays on both sides. A sort takes columns to a permutation, building
//! of keys included; the words of ours and the rows of arrow-row are in recycled memory.

mod codec;
mod data;
mod sort;

use std::time::Instant;

use crate::Result;
use crate::cells::Cells;

/// Which cells, and how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Cases whose name holds this text
    #[arg(long, default_value = "")]
    only: String,
    /// Fewer rounds, and no sorts of a million rows
    #[arg(long)]
    quick: bool,
}

/// Runs every case that is asked for.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cells = Cells::new("rows", "us");
    codec::run(options, &mut cells)?;
    sort::run(options, &mut cells)?;
    cells.finish()
}

/// Something to measure on input number `at`.
type Contender<'a> = (&'a str, Box<dyn FnMut(usize) -> Result<()> + 'a>);

/// The least time of each contender in microseconds, over `rounds` in which they take turns.
fn race(rounds: usize, inputs: usize, contenders: &mut [Contender<'_>]) -> Result<Vec<f64>> {
    let mut best = vec![f64::INFINITY; contenders.len()];
    for round in 0..rounds {
        for ((_, work), best) in contenders.iter_mut().zip(&mut best) {
            let start = Instant::now();
            work(round % inputs)?;
            *best = best.min(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(best)
}
