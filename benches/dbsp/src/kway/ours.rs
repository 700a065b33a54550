//! Windrow's side: chains of chunks, merged on one thread.

use std::hash::{DefaultHasher, Hash, Hasher};

use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::{Int64Type, UInt64Type};
use windrow::{Batch, Layout, Merging, Pool};

use super::Place;
use crate::Result;
use crate::data::Record;

/// Merges batches at a place. All of an output in temporary files is written on return.
pub(super) fn merge(
    place: Place,
    layout: &Layout,
    pool: &Pool,
    batches: Vec<Batch>,
) -> Result<Batch> {
    let merged = match place {
        Place::Memory => Batch::union(layout, pool, batches).settle()?,
        Place::Files => Batch::union(layout, pool, batches).spill()?,
        // Merges like a spine: the result has key filters. The pool's policy writes everything.
        Place::AsTheyCome => Merging::new(layout, pool, batches).filtered().finish()?,
    };
    pool.wait_for_spills();
    Ok(merged)
}

/// Returns the hash of all records of a batch in order.
pub(super) fn digest(batch: Batch) -> Result<u64> {
    let mut digest = DefaultHasher::new();
    for rows in batch.record_batches(8192)? {
        let rows = rows?;
        let words: [&[u64]; 11] =
            std::array::from_fn(|at| &rows.column(at).as_primitive::<UInt64Type>().values()[..]);
        for (row, diff) in rows.column(11).as_primitive::<Int64Type>().values().iter().enumerate() {
            Record(words.map(|words| words[row]), *diff).hash(&mut digest);
        }
    }
    Ok(digest.finish())
}
