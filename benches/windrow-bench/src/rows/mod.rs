//! `rows`: encoding, decoding, comparing and sorting rows, beside arrow-row and
//! `lexsort_to_indices`.
//!
//! Every cell is the least of many rounds in which ours, the rivals and the floor take turns, in
//! another order each round. In a turn a contender has a call that does not count and four that do,
//! each on the next of several record batches of the same shape (4 MiB in all, and two at the
//! least): as in a loop that encodes one after the other, no input is in a core's own caches, and
//! what is written to was written shortly before. With `--calls 1` contenders take turns after
//! every call: each finds its memory displaced by that of the others, 20 MB with 50 columns, which is
//! to say in the last cache or beyond it, as other cores have it. With `--calls 100` each has the caches to
//! itself: some take more than four calls to forget what the one before was like.
//!
//! Memory of the output: `recycled` writes into the memory of the call before (ours `encode_into`,
//! theirs `append` after `clear`), `fresh` lets either allocate its own (`encode`,
//! `convert_columns`), and `convert; ours recycled` is our `encode_into` beside `convert_columns`,
//! which is what arrow-row's users call. These and the floor are raced apart, so that what
//! one contender leaves behind in the caches and the allocator is there for all of them. The
//! allocator keeps what is freed: it has seen a large block come and go before, so that neither
//! side pays for pages. The floor copies the rows of each record batch into recycled memory; what
//! it says of 50 columns is in `docs/decisions/016-wide-rows-are-bound-by-memory.md`. Decoding
//! gives fresh arrays on both sides. A sort takes columns to a permutation, building of keys
//! included; the words of ours and the rows of arrow-row are in recycled memory, and sorts take turns
//! call by call.

mod codec;
mod data;
mod schemas;
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
    /// Calls that count of a turn of contenders that encode, decode or compare
    #[arg(long, default_value_t = 4)]
    calls: usize,
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

/// The least time of each contender in microseconds, over `rounds` in which they take turns of
/// `calls` that count, behind one that does not if there are several.
fn race(
    rounds: usize,
    calls: usize,
    inputs: usize,
    contenders: &mut [Contender<'_>],
) -> Result<Vec<f64>> {
    let count = contenders.len();
    let mut best = vec![f64::INFINITY; count];
    for turn in 0..rounds * count {
        // The first of a round is the second of the next one.
        let at = (turn + turn / count) % count;
        let (best, work) = (&mut best[at], &mut contenders[at].1);
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
