//! Merges of rows in order, of one length and of any: of two inputs and of several, and whether there is
//! anything to merge.
//!
//! ```text
//! input     what is merged and where it goes: slices
//! rows      the same by cursors: one loop for rows of one length and of any
//! level     what loops are compiled for
//! two       a | | | | |  and  b | | | |  -->  out | | | | | | | | |       a loop for each pattern
//! several   up to 64 runs, by a tree of losers
//! bytes     how bytes are compared and copied
//! ascends   whether rows are in order already
//! ```
//!
//! Rows compare by their bodies; what stands behind is a tail that does not count, and where equal rows are added
//! up a diff of eight bytes.

mod ascends;
mod bytes;
mod input;
mod level;
mod rows;
mod several;
mod two;

pub(crate) use ascends::{ascends, ascends_varying};
pub(super) use bytes::copy as copy_bytes;
pub(crate) use input::{Strided, Target, Varying};
pub(crate) use several::{Hints, MOST_SEVERAL, Several};
pub(crate) use two::{merge, merge_varying};

/// Is called with sums that do not fit: the compared bytes of the row, and 1 or -1 for the 2^64 that are missing.
/// `None` where equal rows are not to be added up.
pub(crate) type Wrapped<'a> = Option<&'a mut dyn FnMut(&[u8], i64)>;
