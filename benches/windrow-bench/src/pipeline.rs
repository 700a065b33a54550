//! `pipeline`: the cost of each stage of an in-memory sort of the change log, on one thread.
//!
//! The rival is arrow-rs's way of sorting: `lexsort_to_indices` over the whole table and a `take`
//! of every column. The lower bound is a copy of the table's bytes. Each round allocates fresh
//! output memory for both.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use windrow::{Decoder, Finish, Order, Pool};

use crate::Result;
use crate::cells::{Cells, least, seconds};
use crate::spill::pushed;

const BATCH: usize = 8192;

/// Measures on the first `rows` rows of `log`.
pub(crate) fn run(log: &Path, rows: usize, rounds: usize) -> Result<()> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(log)?)?
        .with_batch_size(BATCH)
        .with_limit(rows)
        .build()?;
    let batches: Vec<RecordBatch> = reader.collect::<std::result::Result<_, _>>()?;
    let schema = batches.first().ok_or("an empty log")?.schema();
    let table = concat_batches(&schema, &batches)?;
    let layout = Order::by(["id", "lsn"]).bind(&schema)?;
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    let keys =
        ["id", "lsn"].map(|name| SortColumn { values: Arc::clone(&table[name]), options: None });

    let best = least(rounds, |_| {
        let pool = Pool::unlimited();
        let (push, batch) = seconds(|| pushed(&layout, &batches, &pool))?;
        let mut decoder = Decoder::new(&layout, &all)?;
        let mut stream = batch.slabs(Finish::Log);
        let (mut merge, mut decode) = (0.0, 0.0);
        loop {
            let (elapsed, slab) = seconds(|| Ok(stream.next(BATCH, usize::MAX)?))?;
            merge += elapsed;
            let Some(slab) = slab else { break };
            decode += seconds(|| Ok(black_box(decoder.decode(&slab)?)))?.0;
        }
        let (lexsort, order) = seconds(|| Ok(lexsort_to_indices(&keys, None)?))?;
        let (take, _) = seconds(|| Ok(take_record_batch(&table, &order)?))?;
        let (copy, _) = seconds(|| {
            let buffers = table.columns().iter().flat_map(|c| c.to_data().buffers().to_vec());
            Ok(buffers.map(|buffer| buffer.as_slice().to_vec()).collect::<Vec<_>>())
        })?;
        Ok([push, merge, decode, lexsort, take, copy])
    })?;
    let [push, merge, decode, lexsort, take, copy] =
        best.map(|s| s * 1e9 / table.num_rows() as f64);
    let mut cells = Cells::new("pipeline", "ns/row");
    cells.push("encode and sort chunks", push, [("lexsort_to_indices", lexsort)]);
    cells.push("merge chunks", merge, [("memcpy of the table", copy)]);
    cells.push("decode", decode, [("take", take)]);
    cells.push("all of it", push + merge + decode, [("lexsort_to_indices + take", lexsort + take)]);
    cells.finish()
}
