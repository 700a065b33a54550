//! Sorts, consolidates, partitions and indexes Apache Arrow record batches within a memory budget.
//!
//! Windrow is an arrangement engine: it takes unordered streams of record batches - plain rows, or
//! changes `(row, time, diff)` - and produces sorted, consolidated, partitioned runs.
//!
//! Data flows one way, and a module uses only the modules before it. A batcher drives the stages
//! and seals finished batches:
//!
//! ```text
//! RecordBatch -> partition -> rows -> (pool) chunk -> merge -> batch -> RecordBatch
//!                             |______________ batcher ______________|
//! ```
//!
//! # Consolidate a change log
//!
//! ```
//! # use std::sync::Arc;
//! # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
//! use windrow::{Order, consolidate};
//!
//! # let changes = RecordBatch::try_from_iter([
//! #     ("user", Arc::new(Int64Array::from(vec![2, 1, 2])) as ArrayRef),
//! #     ("item", Arc::new(StringArray::from(vec!["b", "a", "b"])) as ArrayRef),
//! #     ("ts", Arc::new(Int64Array::from(vec![7, 7, 7])) as ArrayRef),
//! #     ("delta", Arc::new(Int64Array::from(vec![1, 1, -1])) as ArrayRef),
//! # ])?;
//! let layout = Order::by(["user", "item"]).time("ts").diff("delta").bind(&changes.schema())?;
//! let compact = consolidate(&layout, &changes)?;
//! # assert_eq!(compact.num_rows(), 1);
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! # Sort more than memory
//!
//! ```
//! # use std::sync::Arc;
//! # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StringArray};
//! use windrow::{Batcher, Budget, Order, Pool, desc};
//!
//! # let batch = RecordBatch::try_from_iter([
//! #     ("country", Arc::new(StringArray::from(vec!["nl", "de", "nl"])) as ArrayRef),
//! #     ("amount", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef),
//! # ])?;
//! # let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
//! # let scratch = std::env::temp_dir();
//! # let mut written = Vec::new();
//! // `by` names the key, `then` orders within it
//! let layout = Order::by(["country"]).then(desc("amount")).bind(&reader.schema())?;
//! let pool = Pool::in_dir(scratch, Budget::bytes(512 << 20))?;
//! let mut batcher = Batcher::new(&layout, &pool);
//! for batch in reader {
//!     batcher.push(&batch?)?;
//! }
//! for sorted in batcher.finish()?.record_batches(8192)? {
//!     written.push(sorted?);
//! }
//! # assert_eq!(written[0].column(1).as_ref(), &Int64Array::from(vec![2, 3, 1]));
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! # Partition
//!
//! ```
//! # use std::sync::Arc;
//! # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch};
//! use windrow::{Order, Partitioner};
//!
//! # let users = Int64Array::from_iter_values(0..100);
//! # let batch = RecordBatch::try_from_iter([("user", Arc::new(users) as ArrayRef)])?;
//! # let writers = [(); 4];
//! let layout = Order::by(["user"]).bind(&batch.schema())?;
//! let parts = Partitioner::hash(&layout, writers.len()).split(&batch)?;
//! for part in &parts {
//! #   let part: RecordBatch = part;
//!     // a slice of one permuted record batch; rows keep the order they had
//! }
//! # assert_eq!(parts.iter().map(|p| p.num_rows()).sum::<usize>(), 100);
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! # Merge sorted runs, one chunk of each in memory
//!
//! ```
//! # use std::sync::Arc;
//! # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch};
//! use windrow::{Order, merge};
//!
//! # let run = |ids: Vec<i64>| RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids)) as ArrayRef)]).unwrap();
//! # let schema = run(vec![]).schema();
//! # let runs = [vec![Ok(run(vec![1, 4]))], vec![Ok(run(vec![2, 3]))]];
//! # let mut written = Vec::new();
//! let layout = Order::by(["id"]).bind(&schema)?;
//! for batch in merge(&layout, runs)? {
//!     written.push(batch?);
//! }
//! # assert_eq!(written[0].column(0).as_ref(), &Int64Array::from(vec![1, 2, 3, 4]));
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! # Keep a table up to date
//!
//! ```
//! # use std::sync::Arc;
//! # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
//! use windrow::{Budget, Pool, Table};
//!
//! # let scratch = std::env::temp_dir();
//! # let column = |ids: &[i64]| Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef;
//! # let ids = |ids: &[i64]| RecordBatch::try_from_iter([("id", column(ids))]);
//! # let names: ArrayRef = Arc::new(StringArray::from(vec!["ann", "bob", "cid"]));
//! # let batch = RecordBatch::try_from_iter([("id", column(&[1, 2, 3])), ("name", names)])?;
//! # let (gone, wanted, first, end) = (ids(&[2])?, ids(&[2, 3, 4])?, ids(&[0])?, ids(&[9])?);
//! # let mut written = Vec::new();
//! let pool = Pool::in_dir(scratch, Budget::bytes(256 << 20))?;
//! let mut users = Table::new(&batch.schema(), "id", &pool)?;
//! let before = users.upsert(&batch)?; // the time from which on these rows are there
//! users.delete(&gone)?; // keys
//! let some = users.get(&wanted)?; // keys to rows
//! for rows in users.scan().from(&first).to(&end).batches(8192)? {
//!     written.push(rows?);
//! }
//! let then = users.get_at(&wanted, before)?; // as it was, until `forget_before`
//! # assert_eq!([some.num_rows(), written[0].num_rows(), then.num_rows()], [1, 2, 2]);
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! A [`Table`] upserts and deletes rows by key, and answers reads as of now or of an earlier time.
//! Data beyond the budget goes to disk. Underneath, a [`Spine`] stores the changes as batches and
//! merges the batches incrementally; a [`Cursor`] reads changes by key, value and time. The
//! contents are lost when the process ends, unless they are saved (feature `ipc`).
//!
//! # Threads, memory, and going on after errors
//!
//! Every type can be moved to another thread; [`Layout`], [`Pool`], [`Partitioned`], [`Rows`],
//! [`Slab`] and encoders can also be shared. Calls do their work on the calling thread, and may
//! wait for a disk: in an async program, make calls where blocking is allowed. Batchers that share
//! a [`Budget`], through one pool or several, share its limit.
//!
//! To cancel a job, drop all its values: a dropped pool removes its temporary files, and
//! [`Pool::release`] describes when memory is returned. The documentation of a fallible call says
//! whether a failed call leaves everything unchanged. If rows are lost, later calls return
//! [`Error::Lost`].

#![forbid(unsafe_code)]

/// Implements `Debug` by the named values alone.
macro_rules! shown {
    (
        $name:ident $(<$time:ident $(: $bound:ident)?>)?,
        $this:ident => $($field:ident: $value:expr),+ $(,)?
    ) => {
        impl$(<$time $(: $bound)?>)? std::fmt::Debug for $name$(<$time>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                let mut out = f.debug_struct(stringify!($name));
                $(out.field(stringify!($field), &$value);)+
                out.finish_non_exhaustive()
            }
        }
    };
}

mod arrange;
mod batch;
mod batcher;
mod chunk;
mod cursor;
mod groups;
mod merge;
mod spine;
mod table;

/// Arrow's arrays, in the version that the engine was built with.
pub use arrow_array;
/// Arrow's schemas, in the version that the engine was built with.
pub use arrow_schema;

pub use arrange::{consolidate, merge, merge_in};
pub use batch::{
    Batch, ChunkReader, ChunkRows, Decoder, MergeHelper, Merging, RecordBatches, Slab, Slabs,
    fan_in,
};
pub use batcher::{Accounting, Batcher, Pusher};
pub use chunk::Finish;
pub use cursor::{Cursor, FilterTests, KeyBlock, ReadAhead, TakenRows};
pub use groups::Groups;
pub use merge::{ColumnarMerge, KeyedBatch, KeyedBatches, KeyedRun, OrderCheck, Picks, Retain};
pub use spine::{Mergers, Spine, SpineWork};
pub use table::{Scan, Scanned, Table};

#[doc(inline)]
pub use windrow_kernel::allocator::{give_back_free_blocks, give_back_large_blocks, share_heap};
#[doc(inline)]
pub use windrow_partition::*;
#[doc(inline)]
pub use windrow_pool::{
    Budget, Codec, Decision, ForceSpill, Memory, MetricsRegistry, Offer, Pool, PoolOptions,
    PoolStats, SpillEvent, SpillPolicy, SpillTo, Tiered, available_memory,
};
#[doc(inline)]
pub use windrow_rows::{
    Antichain, Argsorter, Diff, Error, Fold, IntoColumns, Layout, Order, Result, RowEncoder, Rows,
    Rule, SortColumn, Time, argsort, asc, column_ends, compat, desc, key_len,
};

#[doc(hidden)]
pub use windrow_rows::setters;

/// Tests the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
