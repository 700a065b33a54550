//! Merges of rows, of one length and of any: two-way, with a loop for each pattern, and of several runs.
//!
//! ```text
//! two     a | | | | |  and  b | | | |   -->   out | | | | | | | | |      block by block
//! level   the loops, compiled for newer processors and for any
//! steps   how one row, one block of rows is moved
//! runs    how rows are moved of which many come from one input
//! bytes   how bytes are compared and copied
//! sum     neighbours in out that are equal become one
//! varying the same for rows of any length, in one loop
//! several more than two runs at once
//! ascends whether there is anything to merge
//! behind  the same, of rows that are columns still
//! ```
//!
//! Rows compare by their first `body` bytes; what stands behind is a diff of eight bytes, or nothing.

mod ascends;
mod behind;
mod bytes;
mod level;
mod runs;
mod several;
mod shape;
mod steps;
mod sum;
mod two;
mod varying;

pub(crate) use ascends::{ascends, ascends_varying};
pub(crate) use behind::{MOST as MOST_BEHIND, Word, ties};
pub(crate) use several::{Hints, MOST_SEVERAL, Several};
pub(crate) use shape::Strided;
pub(crate) use two::merge;
pub(crate) use varying::{Target, Varying, merge_varying};

/// Hears of sums that do not fit: the compared bytes of the row, and 1 or -1 for the 2^64 that are
/// missing. `None` where equal rows are not to be added up.
pub(crate) type Wrapped<'a> = Option<&'a mut dyn FnMut(&[u8], i64)>;
