//! Windrow's side: chains of chunks, merged on one thread.

use std::sync::Arc;

use windrow::arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt64Array};
use windrow::{Batch, Batcher, Layout, Merging, Order, Pool};

use super::data::{Digest, Record, VALUES};
use crate::Result;

/// Rows of an input or output record batch.
const ROWS: usize = 8192;

/// Converts records to columns.
fn record_batch(records: &[Record]) -> Result<RecordBatch> {
    let words = |word: &dyn Fn(&Record) -> u64| {
        Arc::new(UInt64Array::from_iter_values(records.iter().map(word))) as ArrayRef
    };
    let mut columns = vec![("key".to_owned(), words(&|record| record.key))];
    columns.extend((0..VALUES).map(|at| (format!("v{at}"), words(&|record| record.values[at]))));
    let diffs = Int64Array::from_iter_values(records.iter().map(|record| record.diff));
    columns.push(("diff".to_owned(), Arc::new(diffs)));
    let columns = columns.into_iter().map(|(name, column)| (name, column, false));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// Returns the layout of records.
pub(super) fn layout() -> Result<Layout> {
    Ok(Order::by("key").diff("diff").bind(&record_batch(&[])?.schema())?)
}

/// Builds a batch of one chain from a sorted run, in memory as far as the pool's limit allows.
pub(super) fn batch(layout: &Layout, pool: &Pool, run: &[Record]) -> Result<Batch> {
    let mut batcher = Batcher::new(layout, pool);
    for piece in run.chunks(ROWS) {
        batcher.push(&record_batch(piece)?)?;
    }
    Ok(batcher.finish()?.settle()?)
}

/// Merges batches in memory.
pub(super) fn merge(layout: &Layout, pool: &Pool, batches: Vec<Batch>) -> Result<Batch> {
    Ok(Batch::union(layout, pool, batches).settle()?)
}

/// Merges batches in temporary files into one such batch. All of the output is written on return.
pub(super) fn merge_files(layout: &Layout, pool: &Pool, batches: Vec<Batch>) -> Result<Batch> {
    let merged = Batch::union(layout, pool, batches).spill()?;
    pool.wait_for_spills();
    Ok(merged)
}

/// As [`merge_files`], but merges like a spine: the result has key filters. The pool's policy
/// writes everything.
pub(super) fn merge_filtered(layout: &Layout, pool: &Pool, batches: Vec<Batch>) -> Result<Batch> {
    let merged = Merging::new(layout, pool, batches).filtered().finish()?;
    pool.wait_for_spills();
    Ok(merged)
}

/// Returns the digest of a batch.
pub(super) fn digest(batch: Batch) -> Result<Digest> {
    let mut digest = Digest::default();
    for rows in batch.record_batches(ROWS)? {
        let rows = rows?;
        let words = |at: usize| rows.column(at).as_any().downcast_ref::<UInt64Array>();
        let columns: Option<Vec<_>> = (0..=VALUES).map(words).collect();
        let diffs = rows.column(VALUES + 1).as_any().downcast_ref::<Int64Array>();
        let (columns, diffs) = columns.zip(diffs).ok_or("columns of another type")?;
        for row in 0..rows.num_rows() {
            digest.take(&Record {
                key: columns[0].value(row),
                values: std::array::from_fn(|at| columns[at + 1].value(row)),
                diff: diffs.value(row),
            });
        }
    }
    Ok(digest)
}
