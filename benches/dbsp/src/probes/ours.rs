//! Windrow's side: a spine of timed changes, and cursors over untimed batches.

use windrow::{Batch, Batcher, Cursor, Layout, Pool};

use super::Probe;
use crate::Result;
use crate::changes::{changes, encoded, keys_of, layout, spine};

/// Returns the sum of diffs of all values of found keys.
fn probe(mut cursor: Cursor, layout: &Layout, keys: &[u64]) -> Result<i64> {
    let mut sum = 0;
    let add = |_, cursor: &mut Cursor| cursor.map_changes(|_, _, diff: i64| sum += diff);
    cursor.probe(&encoded(layout, keys)?, add)?;
    Ok(sum)
}

/// Builds a spine of batches with distinct times. Returns its number of batches, and its look-up.
pub(super) fn timed(batches: u64, keys: u64) -> Result<(usize, Probe<'static>)> {
    let spine = spine(batches, keys)?;
    let count = spine.batches().count();
    Ok((count, Box::new(move |keys| probe(spine.idle_cursor()?, spine.layout(), keys))))
}

/// Builds batches with filters, like a spine's, and returns a look-up in all of them.
pub(super) fn untimed(batches: u64, keys: u64) -> Result<Probe<'static>> {
    let (layout, pool) = (layout(None)?, Pool::unlimited());
    let batch = |batch| {
        let mut batcher = Batcher::new(&layout, &pool);
        batcher.push(&changes(keys_of(batch, batches, keys), None)?)?;
        Ok(batcher.finish()?.filtered()?)
    };
    let batches = (0..batches).map(batch).collect::<Result<Vec<Batch>>>()?;
    Ok(Box::new(move |keys| probe(Cursor::idle(&layout, &batches)?, &layout, keys)))
}
