//! DBSP's side: indexed Z-sets, merged by its `ListMerger`, which is what its spines merge with unless told otherwise.

use dbsp::dynamic::{DowncastTrait, DynData, Erase};
use dbsp::trace::{
    Batch as _, BatchLocation, BatchReader as _, Builder as _, Cursor as _, ListMerger,
};
use dbsp::typed_batch::{BatchReader, DynOrdIndexedZSet};
use dbsp::utils::Tup10;
use dbsp::{OrdIndexedZSet, ZWeight};

use super::data::{Digest, Record};
use crate::Result;

/// The values of a record, which compare as its array does.
type Values = Tup10<u64, u64, u64, u64, u64, u64, u64, u64, u64, u64>;
/// A batch, in memory or in a file.
pub(super) type Batch = DynOrdIndexedZSet<DynData, DynData>;
type Builder = <Batch as dbsp::trace::Batch>::Builder;

/// A sorted run as a batch in memory.
pub(super) fn batch(run: &[Record]) -> Batch {
    let factories = <OrdIndexedZSet<u64, Values> as BatchReader>::factories();
    let memory = Some(BatchLocation::Memory);
    let mut builder = Builder::with_capacity_in_location(&factories, run.len(), run.len(), memory);
    for of_key in run.chunk_by(|a, b| a.key == b.key) {
        for Record { values: [a, b, c, d, e, f, g, h, i, j], diff, .. } in of_key {
            let values = Tup10(*a, *b, *c, *d, *e, *f, *g, *h, *i, *j);
            builder.push_val_diff(values.erase(), diff.erase());
        }
        builder.push_key(of_key[0].key.erase());
    }
    builder.done()
}

/// The same batch in a file of the runtime's storage.
pub(super) fn stored(batch: &Batch) -> Result<Batch> {
    batch.persisted().ok_or_else(|| "a batch that is in a file already".into())
}

/// Merges batches into one that is at `to`. What they held may be moved out of them; they are the caller's to drop.
pub(super) fn merge(batches: &mut [Batch], to: BatchLocation) -> Batch {
    let factories = batches[0].factories();
    let builder = Builder::for_merge(&factories, batches.iter(), Some(to));
    let cursors = batches.iter_mut().map(|batch| batch.consuming_cursor(None, None)).collect();
    ListMerger::merge(&factories, builder, cursors)
}

/// What a batch has.
pub(super) fn digest(batch: &Batch) -> Digest {
    let mut digest = Digest::default();
    let mut cursor = batch.cursor();
    while cursor.key_valid() {
        while cursor.val_valid() {
            let diff: ZWeight = **cursor.weight();
            let &Tup10(a, b, c, d, e, f, g, h, i, j) = cursor.val().downcast_checked::<Values>();
            let values = [a, b, c, d, e, f, g, h, i, j];
            digest.take(&Record { key: *cursor.key().downcast_checked(), values, diff });
            cursor.step_val();
        }
        cursor.step_key();
    }
    digest
}
