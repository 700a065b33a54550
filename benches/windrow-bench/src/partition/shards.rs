//! Pushers with disjoint keys against pushers with shared keys: the benefit of distributing work by
//! a hash of the key.
//!
//! A single thread does the work of all pushers in sequence, so the figures show work and not
//! scheduling. `push` is the part that threads would divide; `merge` is serial. Output rows are
//! counted and summed, and must be equal.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use windrow::{Batcher, Order, Partitioner, Pool, Pusher};

use super::Options;
use crate::Result;
use crate::cells::{Cells, least, seconds};
use crate::columns::{Kind, column};
use windrow_testdata::rng::Rng;

const ROWS: usize = 8192;
const BATCHES: usize = 250;
/// Alternating runs of each method; the minimum counts.
const ROUNDS: usize = 3;

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    for (name, keys) in [("1 change a key", u64::MAX), ("4", 500_000), ("40", 50_000)] {
        for pushers in [2, 4] {
            let name = format!("shards {pushers} {name}");
            if !options.wants(&name) {
                continue;
            }
            let batches = changes(keys);
            let mut sums = Vec::new();
            let [push, merge, hashed, hashed_merge] = least(ROUNDS, |_| {
                let (push, merge, sum) = arranged(&batches, pushers, false)?;
                let (hashed, hashed_merge, other) = arranged(&batches, pushers, true)?;
                sums.extend([sum, other]);
                let times = [push, merge, hashed, hashed_merge];
                Ok(times.map(|time| time * 1e9 / (ROWS * BATCHES) as f64))
            })?;
            assert!(sums.iter().all(|sum| *sum == sums[0]), "the same rows either way");
            for (part, ours, rival) in [("push", hashed, push), ("merge", hashed_merge, merge)] {
                cells.push_in("ns", &format!("{name}, {part}"), ours, ("any pusher", rival), None);
            }
        }
    }
    Ok(())
}

/// Seconds to push, seconds to merge and decode, and the output: rows and the sum of counts.
type Arranged = (f64, f64, (usize, i64));

fn arranged(batches: &[RecordBatch], count: usize, hashed: bool) -> Result<Arranged> {
    let layout = Order::by("key").diff("diff").bind(&batches[0].schema())?;
    let by_key = Order::by("key").bind(&batches[0].schema())?;
    let pool = Pool::unlimited();
    let batcher = Batcher::new(&layout, &pool);
    let mut pushers = batcher.pushers(count);
    let mut partitioner = Partitioner::hash(&by_key, count);
    let (push, ()) = seconds(|| {
        for (turn, batch) in batches.iter().enumerate() {
            let sequence = (turn * ROWS) as u64;
            if hashed {
                let parts = partitioner.split(batch)?;
                for (part, rows) in parts.occupied() {
                    pushers[part].push(&rows, sequence)?;
                }
            } else {
                pushers[turn % count].push(batch, sequence)?;
            }
        }
        Ok(pushers.iter_mut().try_for_each(Pusher::flush)?)
    })?;
    let (merge, sum) = seconds(|| {
        let (mut rows, mut sum) = (0, 0);
        for batch in batcher.finish()?.record_batches(ROWS)? {
            let batch = batch?;
            rows += batch.num_rows();
            sum += batch.column(1).as_primitive::<Int64Type>().values().iter().sum::<i64>();
        }
        Ok((rows, sum))
    })?;
    Ok((push, merge, sum))
}

fn changes(keys: u64) -> Vec<RecordBatch> {
    let mut rng = Rng::new(5);
    let batches = (0..BATCHES).map(|_| {
        let diffs: ArrayRef = Arc::new(Int64Array::from(vec![1; ROWS]));
        let keys = column(Kind::Below(keys), &mut rng, ROWS, 0);
        RecordBatch::try_from_iter([("key", keys), ("diff", diffs)]).expect("columns of one length")
    });
    batches.collect()
}
