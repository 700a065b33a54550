//! Many record batches into chunks of each partition, within a budget.
//!
//! 2,048 partitions by given ids; skewed ids have nine of ten rows in one partition. The rival
//! works without a builder: split every record batch, keep the pieces, and concatenate at the end,
//! all in memory. Both output all partitions in turn, and the chunks are dropped.

use std::hint::black_box;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use windrow::{Budget, PartitionBuilder, Partitioner, Pool};

use super::Options;
use super::data::{Ids, Kind, Shape, record_batch};
use super::rivals::Lists;
use crate::Result;
use crate::cells::Cells;

const PARTITIONS: usize = 2048;
/// Rows of a record batch, and number of record batches: about 400 MiB of ten columns.
const ROWS: usize = 8192;
const BATCHES: usize = 500;
/// Sets of ids in rotation: half a million ids, more than any branch predictor learns.
const SETS: usize = 64;

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    println!("{:<34} {:>8} {:>8} {:>9} {:>9}", "builder", "ns a row", "limit", "leased", "stored");
    for shape in [Shape::Skewed, Shape::Uniform] {
        let batch = record_batch(Kind::Mixed, 10, ROWS, true);
        let all = Ids::new(shape, ROWS, PARTITIONS, SETS);
        let ids = |turn: usize| all.set(turn).ids();
        let start = Instant::now();
        in_memory(&batch, ids)?;
        let rival = start.elapsed().as_secs_f64() * 1e9 / (ROWS * BATCHES) as f64;
        println!("{:<34} {rival:>8.2} {:>8} {:>9} {:>9}", "takes and concat", "none", "-", "0");
        for limit in [16, 64, 1024] {
            let name = format!("builder {} {limit} MiB", shape.name());
            if !options.wants(&name) {
                continue;
            }
            let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(limit << 20))?;
            let start = Instant::now();
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
            let ours = start.elapsed().as_secs_f64() * 1e9 / (ROWS * BATCHES) as f64;
            let stats = pool.stats();
            let mib = |bytes: usize| format!("{:.1}", bytes as f64 / (1 << 20) as f64);
            println!(
                "{name:<34} {ours:>8.2} {limit:>8} {:>9} {:>9}",
                mib(stats.peak_leased),
                mib(stats.spilled_bytes)
            );
            cells.push(&name, ours, "takes and concat", rival);
        }
    }
    Ok(())
}

fn in_memory<'a>(batch: &RecordBatch, ids: impl Fn(usize) -> &'a [u32]) -> Result<()> {
    let mut lists = Lists::new(PARTITIONS);
    let mut parts: Vec<Vec<RecordBatch>> = vec![Vec::new(); PARTITIONS];
    for turn in 0..BATCHES {
        let ids = ids(turn);
        let mut occupied: Vec<u32> = ids.to_vec();
        occupied.sort_unstable();
        occupied.dedup();
        for (partition, columns) in occupied.into_iter().zip(lists.grouped(batch, ids)) {
            parts[partition as usize].push(RecordBatch::try_new(batch.schema(), columns)?);
        }
    }
    for pieces in parts {
        black_box(concat_batches(batch.schema_ref(), &pieces)?);
    }
    Ok(())
}
