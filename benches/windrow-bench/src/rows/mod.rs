//! `rows`: encoding, decoding, comparing, sorting and grouping rows, beside arrow-row,
//! `lexsort_to_indices`, and tables of groups.
//!
//! Every cell is the minimum of many rounds. In a round, Windrow and a rival or the lower bound take
//! turns, in a different order each round. In a turn, a contender makes one untimed call and
//! four timed ones, each on the next of several record batches of the same shape (4 MiB in total,
//! at least two batches). As in a loop over many batches, no input is in a core's own caches, while
//! the output was written shortly before. With `--calls 1`, contenders alternate after every call:
//! each finds its memory displaced by the rest, 20 MB with 50 columns, to the last cache or beyond,
//! depending on the load of neighbouring cores. With `--calls 100`, each contender has the caches
//! to itself; some need more than four calls to recover from the previous contender.
//!
//! Output memory: `recycled` overwrites the memory of the previous call (Windrow's `encode_into`,
//! arrow-row's `append` after `clear`); `fresh` allocates on both sides (`encode`,
//! `convert_columns`). These pairs and the lower bound are raced separately, so that each pair shares
//! the state of caches and allocator. The allocator keeps freed memory, because a large block was freed before; neither side pays for pages. The
//! lower bound copies the rows of each record batch into recycled memory;
//! `docs/decisions/016-wide-rows-are-bound-by-memory.md` explains its figures for 50 columns.
//! Decoding creates fresh arrays on both sides. A sort turns columns into a permutation, including
//! the building of keys. The words of Windrow and the rows of arrow-row are in recycled memory, and
//! sorts alternate call by call.

mod codec;
mod data;
mod groups;
mod sort;

use arrow::array::RecordBatch;
use arrow::row::{RowConverter, SortField};
use windrow::{Layout, Order};

use crate::Result;
use crate::harness::{Cells, keep_freed_memory};
use data::Shape;

/// Options of the bench.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fewer rounds, and no sorts of a million rows
    #[arg(long)]
    quick: bool,
    /// Calls that count of a turn of contenders that encode, decode or compare
    #[arg(long, default_value_t = 4)]
    calls: usize,
}

/// Runs every selected case.
pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<()> {
    keep_freed_memory();
    for shape in data::shapes(data::CODEC) {
        codec::measure(&shape, options, &mut cells)?;
    }
    for rows in [8192, 1 << 20] {
        for shape in data::shapes(data::SORT) {
            sort::measure(&shape, rows, options.quick, &mut cells)?;
        }
    }
    groups::measure(&mut cells)?;
    cells.finish()
}

/// Generates record batches of a shape, the layout of all columns, and arrow-row's converter.
fn inputs(
    shape: &Shape,
    count: usize,
    rows: usize,
) -> Result<(Vec<RecordBatch>, Layout, RowConverter)> {
    let inputs = (0..count).map(|seed| shape.batch(seed as u64, rows));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let schema = inputs[0].schema();
    let columns: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let fields = schema.fields().iter().map(|field| SortField::new(field.data_type().clone()));
    let converter = RowConverter::new(fields.collect())?;
    Ok((inputs, Order::by(columns).bind(&schema)?, converter))
}
