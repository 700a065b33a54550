//! Tactics: joins and reductions of keys, page by page, through the engine's cursors.
//!
//! ```text
//! fewer rows --next 64 keys--> block, located in cursors --of one key--> Changes --> join, reduce
//! ```
//! A cursor of differential lends its rows for as long as the batches live, so all visited rows
//! stay in memory. The tactics copy the values of one key and release the chunks: joins and
//! reductions of traces of any size take a few chunks of memory.

mod changes;
mod join;
mod reduce;
mod replay;

use differential_dataflow::trace::TraceReader;
use timely::progress::Antichain;
use windrow::{Cursor, KeyBlock, Time};

pub(crate) use changes::Changes;
pub use join::RowJoin;
pub use reduce::RowReduce;

use crate::context::done;
use crate::{ScopedBatch, TimeCode};

/// Times of the rows of a batch, as the engine encodes them.
pub(crate) type Code<S> = <<S as ScopedBatch>::RowTime as TimeCode>::Code;

/// Converts the time of a row to a time of the scope.
#[inline(always)]
pub(crate) fn scoped<S: ScopedBatch>(code: Code<S>) -> S::Time {
    S::scoped(S::RowTime::of_code(code))
}

/// Returns a cursor over all of `batches`, at the first key, or `None` without batches.
pub(crate) fn cursor_over<S: ScopedBatch>(batches: &[S]) -> Option<Cursor<Code<S>>> {
    let batches = batches.iter().map(|batch| batch.rows().batch());
    (batches.len() > 0).then(|| done(Cursor::new(batches)))
}

/// Returns a cursor for look-ups in all of `batches`, without a current key, or `None` without
/// batches.
pub(crate) fn look_up_in<S: ScopedBatch>(batches: &[S]) -> Option<Cursor<Code<S>>> {
    let layout = batches.first()?.rows().batch().layout();
    Some(done(Cursor::idle(layout, batches.iter().map(|batch| batch.rows().batch()))))
}

/// Returns a cursor as [`look_up_in`] does, in all batches of a trace.
pub(crate) fn look_up_in_all<Tr: TraceReader<Batch: ScopedBatch>>(
    trace: &mut Tr,
) -> Option<Cursor<Code<Tr::Batch>>> {
    let batches = trace.batches_through(Antichain::new().borrow());
    look_up_in(&batches.expect("all batches are a cut of the trace"))
}

/// Returns the current key of a cursor, if any.
fn key_at<T: Time>(cursor: &Option<Cursor<T>>) -> Option<&[u8]> {
    cursor.as_ref()?.key()
}

/// Moves a cursor to its next key.
fn step_key<T: Time>(cursor: &mut Option<Cursor<T>>) {
    cursor.as_mut().into_iter().for_each(|cursor| done(cursor.step_key()));
}

/// Fills `block` with the next keys of `cursor`, with none after the last.
pub(crate) fn next_block<T: Time>(cursor: &mut Option<Cursor<T>>, block: &mut KeyBlock) {
    block.clear();
    cursor.as_mut().into_iter().for_each(|cursor| done(block.fill(cursor)));
}

/// Looks up the keys of `block` in all batches of `cursor`.
pub(crate) fn locate<T: Time>(cursor: &mut Option<Cursor<T>>, block: &KeyBlock) {
    cursor.as_mut().into_iter().for_each(|cursor| cursor.locate(block));
}
