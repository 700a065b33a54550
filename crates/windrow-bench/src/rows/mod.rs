//! `rows`: encoding, decoding, comparing and sorting rows, beside arrow-row and
//! `lexsort_to_indices`.
//!
//! Every cell is the least of many rounds in which ours, the rivals and the floor take turns, in
//! another order each round, and each on the next of several record batches of the same shape (4
//! MiB in all, and three at the least): no input is in a core's own caches, and nobody has one that
//! another has just brought nearer. Memory of the output: `recycled` writes into the memory of the
//! round before (ours `encode_into`, theirs `append` after `clear`), `fresh` lets either allocate
//! its own (`encode`, `convert_columns`), and `convert; ours recycled` is our `encode_into` beside
//! `convert_columns`, which is what arrow-row's users call. The three are raced apart, so that what
//! one contender leaves behind in the caches and the allocator is there for all of them. The
//! allocator keeps what is freed: it has seen a large block come and go before, so that neither
//! side pays for pages. The floor copies the rows of each record batch into recycled memory; what
//! it says of 50 columns is in `docs/decisions/016-wide-rows-are-bound-by-memory.md`. Decoding
//! gives fresh arrays on both sides. A sort takes columns to a permutation, building of keys
//! included; the words of ours and the rows of arrow-row are in recycled memory.

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

/// Bytes: just below the most that malloc adapts to.
const ALLOCATOR_KEEPS: usize = 31 << 20;

/// Runs every case that is asked for.
pub(crate) fn run(options: &Options) -> Result<()> {
    // glibc's malloc gives blocks of up to the size of the largest freed so far from what it keeps.
    drop(std::hint::black_box(vec![1u8; ALLOCATOR_KEEPS]));
    let mut cells = Cells::new("rows", "us");
    codec::run(options, &mut cells)?;
    sort::run(options, &mut cells)?;
    cells.finish()
}

/// Something to measure on input number `at`.
type Contender<'a> = (&'a str, Box<dyn FnMut(usize) -> Result<()> + 'a>);

/// The least time of each contender in microseconds, over `rounds` in which they take turns.
fn race(rounds: usize, inputs: usize, contenders: &mut [Contender<'_>]) -> Result<Vec<f64>> {
    let count = contenders.len();
    let mut best = vec![f64::INFINITY; count];
    for turn in 0..rounds * count {
        // The first of a round is the second of the next one.
        let at = (turn + turn / count) % count;
        let start = Instant::now();
        (contenders[at].1)(turn % inputs)?;
        best[at] = best[at].min(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(best)
}
