//! Many record batches into chunks of each partition, within a budget.
//!
//! 2,048 partitions by given ids; skewed ids have nine of ten rows in one partition. The rival
//! works without a builder: split every record batch, keep the pieces, and concatenate at the end,
//! all in memory. Both output all partitions in turn, and the chunks are dropped.

use std::hint::black_box;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use windrow::{Budget, PartitionBuilder, Partitioner, Pool};

use super::Options;
use super::data::{Ids, MIXED, Shape, record_batch};
use super::rivals::grouped;
use crate::Result;
use crate::cells::{Cells, seconds};

const PARTITIONS: usize = 2048;
/// Rows of a record batch, and number of record batches: about 400 MiB of ten columns.
const ROWS: usize = 8192;
const BATCHES: usize = 500;
/// Sets of ids in rotation: half a million ids, more than any branch predictor learns.
const SETS: usize = 64;

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    let per_row = |seconds: f64| seconds * 1e9 / (ROWS * BATCHES) as f64;
    for shape in [Shape::Skewed, Shape::Uniform] {
        let batch = record_batch(MIXED, 10, ROWS, true);
        let all = Ids::new(shape, ROWS, PARTITIONS, SETS);
        let ids = |turn: usize| all.set(turn).ids();
        let (rival, ()) = seconds(|| in_memory(&batch, ids))?;
        for limit in [16, 64, 1024] {
            let name = format!("builder {} {limit} MiB", shape.name());
            if !options.wants(&name) {
                continue;
            }
            let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(limit << 20))?;
            let (ours, ()) = seconds(|| {
                let partitioner = Partitioner::ids(PARTITIONS);
                let mut builder = PartitionBuilder::new(partitioner, batch.schema_ref(), &pool)?;
                for turn in 0..BATCHES {
                    builder.push_by_ids(&batch, ids(turn))?;
                }
                for partition in 0..PARTITIONS {
                    for chunk in builder.flush(partition)? {
                        black_box(chunk?);
                    }
                }
                Ok(())
            })?;
            let stats = pool.stats();
            let [leased, stored] = [stats.peak_leased, stats.spilled_bytes]
                .map(|bytes| bytes as f64 / f64::from(1 << 20));
            println!("{name}: {leased:.1} MiB leased, {stored:.1} MiB stored");
            cells.push(&name, per_row(ours), [("takes and concat", per_row(rival))]);
        }
    }
    Ok(())
}

fn in_memory<'a>(batch: &RecordBatch, ids: impl Fn(usize) -> &'a [u32]) -> Result<()> {
    let mut lists = vec![Vec::new(); PARTITIONS];
    let mut parts: Vec<Vec<RecordBatch>> = vec![Vec::new(); PARTITIONS];
    for turn in 0..BATCHES {
        for (partition, columns) in grouped(&mut lists, batch, ids(turn)) {
            parts[partition].push(RecordBatch::try_new(batch.schema(), columns)?);
        }
    }
    for pieces in parts {
        black_box(concat_batches(batch.schema_ref(), &pieces)?);
    }
    Ok(())
}
