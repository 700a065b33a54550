//! Merges of two and of several sorted inputs, with rows of one length or of any, and a test for
//! sorted rows.
//!
//! ```text
//! input     sources and target: slices
//! rows      sources by cursors: one loop for rows of one length and of any length
//! level     CPU features that loops are compiled for
//! two       a | | | | |  and  b | | | |  -->  out | | | | | | | | |       a loop for each pattern
//! several   up to 64 runs, by a loser tree
//! bytes     how bytes are compared and copied
//! ascends   whether rows are in order already
//! ```
//!
//! Rows compare by their bodies. The tail after a body is not compared; where equal rows are added
//! up, the tail is a diff of eight bytes.

mod ascends;
mod bytes;
mod input;
mod level;
mod rows;
mod several;
mod two;

pub use ascends::{ascends, ascends_varying};
pub(super) use bytes::copy as copy_bytes;
pub use input::{Strided, Target, Varying, Wrapped};
pub use several::{Hints, MOST_SEVERAL, Several};
pub use two::{merge, merge_varying};
