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

/// Builds batches with filters, like a spine's.
pub(super) fn untimed(batches: u64, keys: u64) -> Result<Vec<Batch>> {
    let (layout, pool) = (layout(None)?, Pool::unlimited());
    let batch = |batch| {
        let mut batcher = Batcher::new(&layout, &pool);
        batcher.push(&changes(keys_of(batch, batches, keys), None)?)?;
        Ok(batcher.finish()?.filtered()?)
    };
    (0..batches).map(batch).collect()
}

/// Returns a look-up in all batches.
pub(super) fn lookup(batches: &[Batch]) -> Probe<'_> {
    let layout = batches[0].layout();
    Box::new(move |keys| probe(Cursor::idle(layout, batches)?, layout, keys))
}

/// Returns the sum of all diffs, value by value or key by key.
pub(super) fn scan(batches: &[Batch], by_value: bool) -> Result<i64> {
    let (mut cursor, mut sum) = (Cursor::new(batches)?, 0);
    while cursor.has_key() {
        if !by_value {
            cursor.map_changes(|_, _, diff: i64| sum += diff)?;
        }
        while by_value && cursor.has_value() {
            cursor.map_times(|_, diff| sum += diff)?;
            cursor.step_value()?;
        }
        cursor.step_key()?;
    }
    Ok(sum)
}
