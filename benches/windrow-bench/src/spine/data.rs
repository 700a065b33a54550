//! Changes of keys, each its own value; also those of the bench beside DBSP.

use std::sync::Arc;

use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use windrow::{Antichain, Batcher, Layout, Order, Pool, RowEncoder, Rows, Spine};

use crate::Result;

/// Returns the keys, even numbers below `2 * keys`, of one of `batches`.
pub(crate) fn keys_of(batch: u64, batches: u64, keys: u64) -> impl Iterator<Item = u64> {
    (0..keys).filter(move |key| (key * 7919) % batches == batch).map(|key| key * 2)
}

/// Creates changes of `keys`, each its own value, at `time` if given.
pub(crate) fn changes(keys: impl Iterator<Item = u64>, time: Option<u64>) -> Result<RecordBatch> {
    let keys: ArrayRef = Arc::new(UInt64Array::from_iter_values(keys));
    let count = keys.len();
    let mut columns = vec![("key", Arc::clone(&keys)), ("value", keys)];
    columns.extend(time.map(|time| ("time", Arc::new(UInt64Array::from_value(time, count)) as _)));
    columns.push(("diff", Arc::new(Int64Array::from_value(1, count))));
    Ok(RecordBatch::try_from_iter(columns)?)
}

pub(crate) fn layout(time: Option<u64>) -> Result<Layout> {
    let schema = changes([].into_iter(), time)?.schema();
    let order = Order::by("key").diff("diff");
    Ok(if time.is_some() { order.time("time") } else { order }.bind(&schema)?)
}

/// Encodes keys for cursors.
pub(crate) fn encoded(layout: &Layout, keys: &[u64]) -> Result<Rows> {
    let keys: ArrayRef = Arc::new(UInt64Array::from(keys.to_vec()));
    Ok(RowEncoder::of_keys(layout).encode(&RecordBatch::try_from_iter([("key", keys)])?)?)
}

/// Builds a spine of `batches` with distinct times.
pub(crate) fn spine(batches: u64, keys: u64) -> Result<Spine> {
    let (layout, pool) = (layout(Some(0))?, Pool::unlimited());
    let (mut batcher, mut spine) = (Batcher::new(&layout, &pool), Spine::new(&layout, &pool)?);
    for time in 0..batches {
        batcher.push(&changes(keys_of(time, batches, keys), Some(time))?)?;
        spine.insert(batcher.seal(&Antichain::at(time + 1))?)?;
    }
    Ok(spine)
}
