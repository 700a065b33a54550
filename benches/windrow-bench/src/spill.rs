//! `spill`: the cost of a memory limit, on one thread, with a warm page cache.
//!
//! The same rows are sorted in memory and with budgets of a fraction of their size. Both take turns
//! in each round, and the best round counts. The pool recycles output memory. The cancellation case
//! has a +1 and a -1 for every row, so nothing is left.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use clap::Args;
use windrow::{Batch, Batcher, Budget, Codec, Finish, Layout, Order, Pool, PoolOptions};

use crate::Result;
use crate::cells::{Cells, seconds};
use windrow_testdata::rng::Rng;

const BATCH: usize = 8192;

/// What is measured, and how often.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rows to sort
    #[arg(long, default_value_t = 4_000_000)]
    rows: usize,
    /// Rounds, of which the fastest counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// Measures and writes the table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut rng = Rng::new(7);
    let batches: Vec<RecordBatch> =
        (0..options.rows.div_ceil(BATCH)).map(|_| rows(&mut rng, BATCH)).collect::<Result<_>>()?;
    let layout = Order::by("key").bind(&batches[0].schema())?;
    let row_bytes = row_bytes(&layout, &batches)?;

    let limits = [
        ("budget of all the rows and a half", row_bytes * 3 / 2, Codec::None),
        ("rows 4x the budget, lz4", row_bytes / 4, Codec::Lz4),
        ("rows 4x the budget", row_bytes / 4, Codec::None),
        ("rows 16x the budget, lz4", row_bytes / 16, Codec::Lz4),
        ("rows 16x the budget", row_bytes / 16, Codec::None),
    ];
    let mut resident = f64::INFINITY;
    let mut limited = [f64::INFINITY; 5];
    let mut space = [0.0; 5];
    for _ in 0..options.rounds {
        resident = resident.min(seconds(|| sort(&layout, &batches, &Pool::unlimited()))?.0);
        for (i, &(_, limit, codec)) in limits.iter().enumerate() {
            let pool = pool(limit, codec)?;
            limited[i] = limited[i].min(seconds(|| sort(&layout, &batches, &pool))?.0);
            space[i] = pool.stats().temp_bytes as f64 / row_bytes as f64;
        }
    }
    let mut cells = Cells::new("spill", "ns/row");
    let per_row = |seconds: f64| seconds * 1e9 / (batches.len() * BATCH) as f64;
    for (i, (case, ..)) in limits.iter().enumerate() {
        cells.push(case, per_row(limited[i]), "all in memory", per_row(resident));
    }
    cells.finish()?;

    for (i, (case, ..)) in limits.iter().enumerate().skip(1) {
        println!("{case}: temporary files {:.2} times the bytes of the rows", space[i]);
    }
    for codec in [Codec::Lz4, Codec::None] {
        let rate = (0..options.rounds).try_fold(0.0f64, |best, _| {
            Ok::<_, Box<dyn std::error::Error>>(best.max(paged_merge(&layout, &batches, codec)?))
        })?;
        println!("two runs merged into one, every chunk on disk, {codec:?}: {rate:.2} GiB/s");
    }
    println!("written when everything cancels: {} bytes", cancelled(&batches)?);
    Ok(())
}

/// Generates rows with a random key, a number and a short text.
fn rows(rng: &mut Rng, count: usize) -> Result<RecordBatch> {
    let keys = UInt64Array::from_iter_values((0..count).map(|_| rng.next_u64()));
    let numbers = Int64Array::from_iter_values((0..count as i64).map(|i| i * 3));
    let texts = (0..count).map(|_| format!("item {:016x}", rng.next_u64() >> 20));
    let texts = StringArray::from_iter_values(texts);
    Ok(RecordBatch::try_from_iter([
        ("key", Arc::new(keys) as ArrayRef),
        ("number", Arc::new(numbers)),
        ("text", Arc::new(texts)),
    ])?)
}

fn pool(limit: usize, codec: Codec) -> Result<Pool> {
    Ok(Pool::new(Budget::bytes(limit), PoolOptions::new().codec(codec))?)
}

/// Sorts all rows, and discards the output without decoding.
fn sort(layout: &Layout, batches: &[RecordBatch], pool: &Pool) -> Result<usize> {
    drain(pushed(layout, batches, pool)?)
}

fn pushed(layout: &Layout, batches: &[RecordBatch], pool: &Pool) -> Result<Batch> {
    let mut batcher = Batcher::new(layout, pool);
    for batch in batches {
        batcher.push(batch)?;
    }
    Ok(batcher.finish()?)
}

fn drain(batch: Batch) -> Result<usize> {
    let mut slabs = batch.slabs(Finish::Log);
    let mut rows = 0;
    while let Some(slab) = slabs.next(BATCH, usize::MAX)? {
        rows += slab.rows();
    }
    Ok(rows)
}

fn row_bytes(layout: &Layout, batches: &[RecordBatch]) -> Result<usize> {
    let mut slabs = pushed(layout, batches, &Pool::unlimited())?.slabs(Finish::Log);
    let mut bytes = 0;
    while let Some(slab) = slabs.next(BATCH, usize::MAX)? {
        bytes += slab.bytes();
    }
    Ok(bytes)
}

/// Measures GiB of input rows per second while two runs on disk are merged into one.
fn paged_merge(layout: &Layout, batches: &[RecordBatch], codec: Codec) -> Result<f64> {
    let pool = pool(256 << 20, codec)?;
    let halves = batches.chunks(batches.len().div_ceil(2));
    let runs = halves
        .map(|half| Ok(pushed(layout, half, &pool)?.spill()?))
        .collect::<Result<Vec<Batch>>>()?;
    let before = pool.stats();
    let (elapsed, _) = seconds(|| Ok(Batch::union(layout, &pool, runs).spill()?))?;
    let after = pool.stats();
    Ok((after.loaded_bytes - before.loaded_bytes) as f64 / elapsed / f64::from(1 << 30))
}

/// Returns the bytes spilled by a consolidation with an empty result, within a budget.
fn cancelled(batches: &[RecordBatch]) -> Result<usize> {
    let changes = |batch: &RecordBatch, diff: i64| {
        let diffs = Arc::new(Int64Array::from_value(diff, batch.num_rows())) as ArrayRef;
        let mut columns: Vec<(&str, ArrayRef)> = vec![("diff", diffs)];
        columns.extend(["key", "number", "text"].map(|name| (name, Arc::clone(&batch[name]))));
        RecordBatch::try_from_iter(columns)
    };
    let first = changes(&batches[0], 1)?;
    let layout = Order::by("key").diff("diff").bind(&first.schema())?;
    let pool = pool(64 << 20, Codec::None)?;
    let mut batcher = Batcher::new(&layout, &pool);
    for pair in batches.chunks(16) {
        for diff in [1, -1] {
            for batch in pair {
                batcher.push(&changes(batch, diff)?)?;
            }
        }
    }
    let left = drain(batcher.finish()?)?;
    assert_eq!(left, 0);
    Ok(pool.stats().spilled_bytes)
}
