//! Types with rows can move to another thread with all their remaining work; types that are only
//! read can be shared.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use windrow::compat::Converter;
use windrow::{
    Antichain, Argsorter, Batch, Batcher, Budget, Cursor, Decoder, Error, Layout, Mergers, Merging,
    Order, OrderCheck, PartitionBuilder, PartitionChunks, Partitioned, Partitioner, Pool, Pusher,
    RecordBatches, RowEncoder, Rows, Slab, Slabs, Spine, StoredRows, Table,
};

// Results of fallible calls also implement `Debug`, for `unwrap_err` and others.
fn moves<T: Debug + Send + 'static>() {}
fn is_shared<T: Debug + Send + Sync + 'static>() {}

#[test]
fn by_type() {
    moves::<Batch>();
    moves::<Batcher>();
    moves::<Pusher>();
    moves::<RecordBatches>();
    moves::<Slabs>();
    moves::<Decoder>();
    moves::<Merging>();
    moves::<Cursor>();
    moves::<Spine>();
    moves::<Table>();
    is_shared::<Mergers>();
    moves::<PartitionChunks>();
    is_shared::<Antichain<u64>>();
    is_shared::<Argsorter>();
    is_shared::<Budget>();
    is_shared::<Converter>();
    is_shared::<Error>();
    is_shared::<Layout>();
    is_shared::<OrderCheck>();
    is_shared::<PartitionBuilder>();
    is_shared::<Partitioned>();
    is_shared::<Partitioner>();
    is_shared::<Pool>();
    is_shared::<RowEncoder>();
    is_shared::<Rows>();
    is_shared::<Slab>();
    is_shared::<StoredRows>();
}

#[test]
fn half_read() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..5000).rev()));
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..5000).map(|_| "a text")));
    let batch = RecordBatch::try_from_iter([("number", numbers), ("text", texts)]).unwrap();
    let layout = Order::by("number").bind(&batch.schema()).unwrap();
    let mut batcher = Batcher::new(&layout, &Pool::unlimited());
    batcher.push(&batch).unwrap();
    let batch = std::thread::spawn(move || batcher.finish().unwrap()).join().unwrap();
    let mut left = batch.record_batches(1000).unwrap();
    assert_eq!(left.next().unwrap().unwrap().num_rows(), 1000);
    let rows = std::thread::spawn(move || left.map(|rows| rows.unwrap().num_rows()).sum::<usize>());
    assert_eq!(rows.join().unwrap(), 4000);
}
