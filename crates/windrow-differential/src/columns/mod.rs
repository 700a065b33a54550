//! Record batches in a dataflow: rows never become Rust values.
//!
//! ```text
//! Changes --rows--> to their worker --> batcher --> batches --> trace    as for typed rows
//!    ^                                                 |  |
//!    |                                   bytes of rows |  | equal bytes, compared, counted, summed
//!    +------ decoded: the wanted columns --------------+  +--> reduce_columns --> batches, trace
//! ```
//! `arrange_by` encodes rows once, and columns are decoded only where record batches leave. Joins
//! and reductions move bytes and do not need the types of columns.
//!
//! Invariant: a collection has one schema, known when the dataflow is built.

mod aggregate;
mod arranged;
mod build;
mod changes;
mod collection;
mod frontier;
mod input;
mod pick;
mod shape;

pub use aggregate::{Aggregate, count, max, min, sum};
pub use arranged::{ColumnArranged, ColumnTrace};
pub use changes::Changes;
pub use collection::ColumnCollection;
pub use frontier::ChangesOf;
pub use input::ColumnInput;
pub use pick::{Pick, left, right};

use crate::row::RowCode;

/// Keys and values made of columns of a schema. The arrangement knows the columns, not this type.
pub enum Columns {}

impl RowCode for Columns {
    const WIDTH: Option<usize> = None;

    type Owned = Box<[u8]>;

    fn put(owned: &Self::Owned, out: &mut Vec<u8>) {
        out.extend_from_slice(owned);
    }

    fn take(bytes: &[u8]) -> Self::Owned {
        bytes.into()
    }
}
