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

use windrow::{Cursor, Time};

pub use join::RowJoin;
pub use reduce::RowReduce;

use crate::batch::ScopedBatch;
use crate::context::done;
use crate::time::TimeCode;

/// Times of the rows of a batch, as the engine has them.
type Code<S> = <<S as ScopedBatch>::RowTime as TimeCode>::Code;

/// The time in the scope of a batch of a row.
#[inline(always)]
fn scoped<S: ScopedBatch>(code: Code<S>) -> S::Time {
    S::scoped(S::RowTime::of_code(code))
}

/// A cursor over all of `batches`; nothing if there are none.
fn cursor_over<S: ScopedBatch>(batches: &[S]) -> Option<Cursor<Code<S>>> {
    let batches = batches.iter().map(|batch| batch.rows().batch());
    (batches.len() > 0).then(|| done(Cursor::new(batches)))
}

/// A cursor over all of `batches` in which keys are looked up, at none of them; nothing if there are no batches.
fn look_up_in<S: ScopedBatch>(batches: &[S]) -> Option<Cursor<Code<S>>> {
    let layout = batches.first()?.rows().batch().layout();
    Some(done(Cursor::idle(layout, batches.iter().map(|batch| batch.rows().batch()))))
}

/// The key that a cursor stands at, if there is one.
fn key_at<T: Time>(cursor: &Option<Cursor<T>>) -> Option<&[u8]> {
    cursor.as_ref()?.key()
}
