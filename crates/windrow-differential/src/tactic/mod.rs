//! How keys are joined and reduced: page by page, through the engine's cursors.
//!
//! ```text
//! batches of a trace --one chunk of each in memory--> cursor --the changes of one key--> Changes --> join, reduce
//! ```
//! A cursor of differential lends what it reads for as long as the batches live, so what it has seen stays in memory. Here
//! the values of one key are copied and the chunks are let go: traces of any size are joined and reduced in a few chunks.

mod changes;
mod join;
mod reduce;
mod replay;

use windrow::Cursor;

pub use join::RowJoin;
pub use reduce::RowReduce;

use crate::batch::RowBatch;
use crate::context::done;
use crate::time::TimeCode;

/// A cursor over all of `batches`; nothing if there are none.
fn cursor_over<K, V, T: TimeCode, R>(batches: &[RowBatch<K, V, T, R>]) -> Option<Cursor<T::Code>> {
    (!batches.is_empty()).then(|| done(Cursor::new(batches.iter().map(RowBatch::batch))))
}

/// A cursor over all of `batches` in which keys are looked up, at none of them; nothing if there are no batches.
fn look_up_in<K, V, T: TimeCode, R>(batches: &[RowBatch<K, V, T, R>]) -> Option<Cursor<T::Code>> {
    let layout = batches.first()?.batch().layout();
    Some(done(Cursor::idle(layout, batches.iter().map(RowBatch::batch))))
}

/// The key that a cursor stands at, if there is one.
fn key_at<T: TimeCode>(cursor: &Option<Cursor<T::Code>>) -> Option<&[u8]> {
    cursor.as_ref()?.key()
}
