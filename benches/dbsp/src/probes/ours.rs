//! Windrow's side: a spine of timed changes, and cursors over untimed batches.

use std::sync::Arc;

use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use windrow::{Antichain, Batch, Batcher, Cursor, Layout, Order, Pool, RowEncoder, Spine};

use super::{Probe, keys_of};
use crate::Result;

/// Creates changes of keys with themselves as values, at `time` if given.
fn changes(keys: Vec<u64>, time: Option<u64>) -> Result<RecordBatch> {
    let numbers = |values: Vec<u64>| Arc::new(UInt64Array::from(values)) as ArrayRef;
    let count = keys.len();
    let mut columns = vec![("key", numbers(keys.clone())), ("value", numbers(keys))];
    columns.extend(time.map(|time| ("time", numbers(vec![time; count]))));
    columns.push(("diff", Arc::new(Int64Array::from(vec![1; count]))));
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Returns the sum of diffs of all values of found keys.
fn probe(mut cursor: Cursor, layout: &Layout, keys: &[u64]) -> Result<i64> {
    let keys: ArrayRef = Arc::new(UInt64Array::from(keys.to_vec()));
    let rows = RowEncoder::of_keys(layout).encode(&RecordBatch::try_from_iter([("key", keys)])?)?;
    let mut sum = 0;
    cursor.probe(&rows, |_, cursor| cursor.map_changes(|_, _, diff: i64| sum += diff))?;
    Ok(sum)
}

/// Builds a spine of batches with distinct times. Returns its number of batches, and its look-up.
pub(super) fn timed(batches: u64, keys: u64) -> Result<(usize, Probe<'static>)> {
    let schema = changes(Vec::new(), Some(0))?.schema();
    let layout = Order::by("key").time("time").diff("diff").bind(&schema)?;
    let pool = Pool::unlimited();
    let (mut batcher, mut spine) = (Batcher::new(&layout, &pool), Spine::new(&layout, &pool)?);
    for time in 0..batches {
        batcher.push(&changes(keys_of(time, batches, keys).collect(), Some(time))?)?;
        spine.insert(batcher.seal(&Antichain::at(time + 1))?)?;
    }
    let count = spine.batches().count();
    Ok((count, Box::new(move |keys| probe(spine.idle_cursor()?, &layout, keys))))
}

/// Builds batches with filters, like a spine's, and returns a look-up in all of them.
pub(super) fn untimed(batches: u64, keys: u64) -> Result<Probe<'static>> {
    let layout = Order::by("key").diff("diff").bind(&changes(Vec::new(), None)?.schema())?;
    let pool = Pool::unlimited();
    let batch = |batch| {
        let mut batcher = Batcher::new(&layout, &pool);
        batcher.push(&changes(keys_of(batch, batches, keys).collect(), None)?)?;
        Ok(batcher.finish()?.filtered()?)
    };
    let batches = (0..batches).map(batch).collect::<Result<Vec<Batch>>>()?;
    Ok(Box::new(move |keys| probe(Cursor::idle(&layout, &batches)?, &layout, keys)))
}
