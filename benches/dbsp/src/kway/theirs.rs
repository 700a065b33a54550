//! DBSP's side: indexed Z-sets, merged by `ListMerger`, the default merger of DBSP's spines.

use std::hash::{DefaultHasher, Hash, Hasher};

use dbsp::dynamic::{DowncastTrait, DynData, Erase};
use dbsp::trace::{BatchLocation, BatchReader as _, Builder as _, Cursor as _, ListMerger};
use dbsp::typed_batch::{BatchReader, DynOrdIndexedZSet};
use dbsp::utils::Tup10;
use dbsp::{OrdIndexedZSet, ZWeight};

use crate::data::{Record, Words};

/// The values of a record, with the same order as its array.
type Values = Tup10<u64, u64, u64, u64, u64, u64, u64, u64, u64, u64>;
/// A batch, in memory or in a file.
pub(super) type Batch = DynOrdIndexedZSet<DynData, DynData>;
type Builder = <Batch as dbsp::trace::Batch>::Builder;

/// Builds a batch in memory from a sorted run.
pub(super) fn batch(run: &[Record<Words>]) -> Batch {
    let factories = <OrdIndexedZSet<u64, Values> as BatchReader>::factories();
    let memory = Some(BatchLocation::Memory);
    let mut builder = Builder::with_capacity_in_location(&factories, run.len(), run.len(), memory);
    for of_key in run.chunk_by(|a, b| a.0[0] == b.0[0]) {
        for Record([_, a, b, c, d, e, f, g, h, i, j], diff) in of_key {
            let values = Tup10(*a, *b, *c, *d, *e, *f, *g, *h, *i, *j);
            builder.push_val_diff(values.erase(), diff.erase());
        }
        builder.push_key(of_key[0].0[0].erase());
    }
    builder.done()
}

/// Merges batches into one at `to`. May move data out of the inputs; the caller drops the inputs.
pub(super) fn merge(batches: &mut [Batch], to: BatchLocation) -> Batch {
    let factories = batches[0].factories();
    let builder = Builder::for_merge(&factories, batches.iter(), Some(to));
    let cursors = batches.iter_mut().map(|batch| batch.consuming_cursor(None, None)).collect();
    ListMerger::merge(&factories, builder, cursors)
}

/// Returns the hash of all records of a batch in order.
pub(super) fn digest(batch: &Batch) -> u64 {
    let mut digest = DefaultHasher::new();
    let mut cursor = batch.cursor();
    while cursor.key_valid() {
        while cursor.val_valid() {
            let diff: ZWeight = **cursor.weight();
            let &Tup10(a, b, c, d, e, f, g, h, i, j) = cursor.val().downcast_checked::<Values>();
            let key = *cursor.key().downcast_checked();
            Record([key, a, b, c, d, e, f, g, h, i, j], diff).hash(&mut digest);
            cursor.step_val();
        }
        cursor.step_key();
    }
    digest.finish()
}
