//! Many record batches into chunks of each partition, within a budget.
//!
//! 2,048 partitions by given ids; skewed ids have nine of ten rows in one partition. The rival
//! works without a builder: split every record batch, keep the pieces, and concatenate at the end,
//! all in memory. Both output all partitions in turn, and the chunks are dropped.

use std::hint::black_box;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use windrow::{Budget, PartitionBuilder, Partitioner, Pool};

use super::data::{Ids, MIXED, Shape, record_batch};
use super::rivals::grouped;
use crate::Result;
use crate::harness::{Cells, Turns, timed};

const PARTITIONS: usize = 2048;
/// Rows of a record batch, and number of record batches: about 400 MiB of ten columns.
const ROWS: usize = 8192;
const BATCHES: usize = 500;
/// Sets of ids in rotation: half a million ids, more than any branch predictor learns.
const SETS: usize = 64;

pub(super) fn run(cells: &mut Cells) -> Result<()> {
    cells.unit = "ns";
    let batch = record_batch(MIXED, 10, ROWS, true)?;
    for (shape, limit) in
        [Shape::Skewed, Shape::Uniform].iter().flat_map(|s| [16, 64, 1024].map(|l| (*s, l)))
    {
        let name = format!("builder {} {limit} MiB", shape.name());
        if !cells.wants(&name) {
            continue;
        }
        let ids = Ids::new(shape, ROWS, PARTITIONS, SETS);
        let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(limit << 20))?;
        let ours = timed("ours", |_, _| {
            let partitioner = Partitioner::ids(PARTITIONS);
            let mut builder = PartitionBuilder::new(partitioner, batch.schema_ref(), &pool)?;
            (0..BATCHES).try_for_each(|turn| builder.push_by_ids(&batch, ids.set(turn)))?;
            for partition in 0..PARTITIONS {
                for chunk in builder.flush(partition)? {
                    black_box(chunk?);
                }
            }
            Ok(())
        });
        let rival = timed("takes and concat", |_, _| in_memory(&batch, &ids));
        let fresh = |_| Ok(((), (ROWS * BATCHES) as f64));
        cells.race(&name, Turns { rounds: 1, warm: 0, calls: 1 }, fresh, &mut [ours, rival])?;
        let stats = pool.stats();
        let [leased, stored] =
            [stats.peak_leased, stats.spilled_bytes].map(|bytes| bytes as f64 / f64::from(1 << 20));
        println!("{name}: {leased:.1} MiB leased, {stored:.1} MiB stored");
    }
    Ok(())
}

fn in_memory(batch: &RecordBatch, ids: &Ids) -> Result<()> {
    let mut lists = vec![Vec::new(); PARTITIONS];
    let mut parts: Vec<Vec<RecordBatch>> = vec![Vec::new(); PARTITIONS];
    for turn in 0..BATCHES {
        for (partition, columns) in grouped(&mut lists, batch, ids.set(turn)) {
            parts[partition].push(RecordBatch::try_new(batch.schema(), columns)?);
        }
    }
    for pieces in parts {
        black_box(concat_batches(batch.schema_ref(), &pieces)?);
    }
    Ok(())
}
