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
use crate::cells::{Cells, least, seconds};
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
    // Sorts all rows, and discards the output without decoding.
    let sort = |pool: &Pool| drain(pushed(&layout, &batches, pool)?);
    let [_, row_bytes] = sort(&Pool::unlimited())?;

    let limits = [
        ("budget of all the rows and a half", row_bytes * 3 / 2, Codec::None),
        ("rows 4x the budget, lz4", row_bytes / 4, Codec::Lz4),
        ("rows 4x the budget", row_bytes / 4, Codec::None),
        ("rows 16x the budget, lz4", row_bytes / 16, Codec::Lz4),
        ("rows 16x the budget", row_bytes / 16, Codec::None),
    ];
    let times = least(options.rounds, |_| {
        let mut times = vec![seconds(|| sort(&Pool::unlimited()))?.0];
        for (_, limit, codec) in limits {
            let pool = pool(limit, codec)?;
            times.push(seconds(|| sort(&pool))?.0);
        }
        Ok(times)
    })?;
    let mut cells = Cells::new("spill", "ns/row");
    let per_row = |seconds: f64| seconds * 1e9 / (batches.len() * BATCH) as f64;
    for ((case, ..), time) in limits.iter().zip(&times[1..]) {
        cells.push(case, per_row(*time), [("all in memory", per_row(times[0]))]);
    }
    cells.finish()?;
    for codec in [Codec::Lz4, Codec::None] {
        let [slowness] = least(options.rounds, |_| paged_merge(&layout, &batches, codec))?;
        println!(
            "two runs merged into one, every chunk on disk, {codec:?}: {:.2} GiB/s",
            1.0 / slowness
        );
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

/// Pushes record batches into one batcher.
fn pushed(layout: &Layout, batches: &[RecordBatch], pool: &Pool) -> Result<Batch> {
    let mut batcher = Batcher::new(layout, pool);
    batches.iter().try_for_each(|batch| batcher.push(batch))?;
    Ok(batcher.finish()?)
}

/// Returns the number of rows and of their bytes.
fn drain(batch: Batch) -> Result<[usize; 2]> {
    let mut slabs = batch.slabs(Finish::Log);
    let mut sums = [0; 2];
    while let Some(slab) = slabs.next(BATCH, usize::MAX)? {
        sums = [sums[0] + slab.rows(), sums[1] + slab.bytes()];
    }
    Ok(sums)
}

/// Returns the seconds per GiB of input rows while two runs on disk are merged into one.
fn paged_merge(layout: &Layout, batches: &[RecordBatch], codec: Codec) -> Result<[f64; 1]> {
    let pool = pool(256 << 20, codec)?;
    let halves = batches.chunks(batches.len().div_ceil(2));
    let runs = halves.map(|half| Ok(pushed(layout, half, &pool)?.spill()?));
    let runs = runs.collect::<Result<Vec<Batch>>>()?;
    let before = pool.stats().loaded_bytes;
    let (elapsed, _) = seconds(|| Ok(Batch::union(layout, &pool, runs).spill()?))?;
    Ok([elapsed * f64::from(1 << 30) / (pool.stats().loaded_bytes - before) as f64])
}

/// Returns the bytes spilled by a consolidation with an empty result, within a budget.
fn cancelled(batches: &[RecordBatch]) -> Result<usize> {
    let changes = |batch: &RecordBatch, diff: i64| {
        let diffs = Arc::new(Int64Array::from_value(diff, batch.num_rows())) as ArrayRef;
        let columns = ["key", "number", "text"].map(|name| (name, Arc::clone(&batch[name])));
        RecordBatch::try_from_iter([("diff", diffs)].into_iter().chain(columns))
    };
    let layout = Order::by("key").diff("diff").bind(&changes(&batches[0], 1)?.schema())?;
    let pool = pool(64 << 20, Codec::None)?;
    let mut batcher = Batcher::new(&layout, &pool);
    for pair in batches.chunks(16) {
        for (diff, batch) in [1, -1].iter().flat_map(|diff| pair.iter().map(move |of| (diff, of))) {
            batcher.push(&changes(batch, *diff)?)?;
        }
    }
    assert_eq!(drain(batcher.finish()?)?, [0, 0]);
    Ok(pool.stats().spilled_bytes)
}
