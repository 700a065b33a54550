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
use crate::harness::{Cells, Turns, contender, seconds, timed};
use windrow_testdata::rng::Rng;

const BATCH: usize = 8192;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rows to sort
    #[arg(long, default_value_t = 4_000_000)]
    rows: usize,
}

/// Measures and writes the table.
pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<()> {
    let mut rng = Rng::new(7);
    let batches: Vec<RecordBatch> =
        (0..options.rows.div_ceil(BATCH)).map(|_| rows(&mut rng, BATCH)).collect::<Result<_>>()?;
    let layout = Order::by("key").bind(&batches[0].schema())?;
    // Sorts all rows, and discards the output without decoding.
    let sort = |pool: &Pool| drain(pushed(&layout, &batches, pool)?);
    let [_, bytes] = sort(&Pool::unlimited())?;
    let fresh = |_| Ok(((), (batches.len() * BATCH) as f64));
    let turns = Turns { rounds: 3, warm: 0, calls: 1 };
    for (case, limit, codec) in [
        ("budget of all the rows and a half", bytes * 3 / 2, Codec::None),
        ("rows 4x the budget, lz4", bytes / 4, Codec::Lz4),
        ("rows 4x the budget", bytes / 4, Codec::None),
        ("rows 16x the budget, lz4", bytes / 16, Codec::Lz4),
        ("rows 16x the budget", bytes / 16, Codec::None),
    ] {
        let ours = contender("ours", |_, _| {
            let pool = pool(limit, codec)?;
            Ok(seconds(|| sort(&pool))?.0)
        });
        let in_memory = timed("all in memory", |_, _| sort(&Pool::unlimited()));
        cells.race(case, turns, fresh, &mut [ours, in_memory])?;
    }
    for codec in [Codec::Lz4, Codec::None] {
        let rates = (0..turns.rounds).map(|_| paged_merge(&layout, &batches, codec));
        let rate = rates.collect::<Result<Vec<_>>>()?.into_iter().fold(0.0, f64::max);
        println!("two runs merged into one, every chunk on disk, {codec:?}: {rate:.2} GiB/s");
    }
    let pool = pool(2 * bytes, Codec::None)?;
    let (batch, kept) = (pushed(&layout, &batches, &pool)?.settle()?, pool.budget().used());
    let resident = batch.resident_bytes();
    let leave = seconds(|| Ok(pool.set_limit(resident / 16)?))?.0;
    let back = seconds(|| drain(batch))?.0;
    println!("{resident} of {kept} bytes: {leave:.3} s to leave, {back:.3} s to be read back");
    println!("written when everything cancels: {} bytes", cancelled(&batches)?);
    cells.finish()
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

/// Returns the GiB of input rows a second while two runs on disk are merged into one.
fn paged_merge(layout: &Layout, batches: &[RecordBatch], codec: Codec) -> Result<f64> {
    let pool = pool(256 << 20, codec)?;
    let halves = batches.chunks(batches.len().div_ceil(2));
    let runs = halves.map(|half| Ok(pushed(layout, half, &pool)?.spill()?));
    let runs = runs.collect::<Result<Vec<Batch>>>()?;
    let before = pool.stats().loaded_bytes;
    let (elapsed, _) = seconds(|| Ok(Batch::union(layout, &pool, runs).spill()?))?;
    Ok((pool.stats().loaded_bytes - before) as f64 / elapsed / f64::from(1 << 30))
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
