//! Record batches in a dataflow: no row is ever a value of Rust.
//!
//! ```text
//! Changes --rows--> to their worker --> batcher --> batches --> trace      the machinery of typed rows
//!    ^                                                 |  |
//!    |                                    bytes of rows|  |the same bytes, compared, counted, added up
//!    +---- decoded, the columns that are wanted -------+  +--> reduce_columns --> batches --> trace
//! ```
//! A row is coded once, where a collection is arranged, and its columns are read again where record batches come out. Joins
//! and reductions move bytes: what a column is they need not know.
//!
//! Invariant: a collection has one schema, which is known when the dataflow is built.

mod aggregate;
mod arranged;
mod build;
mod changes;
mod collection;
mod encode;
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

/// Keys and values that are columns of a schema: they are known by an arrangement, and not by their type.
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
