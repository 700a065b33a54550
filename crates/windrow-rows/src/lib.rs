//! Arrow record batches as rows: bytes that compare in a requested order, and back.
//!
//! A replacement of arrow-row, with rows that are shorter, and faster to write and to read.
//! [`compat`] has the interface of arrow-row, and its bytes.
//!
//! ```text
//! Order --bind(schema)--> Layout
//! RecordBatch --RowEncoder--> Rows --> RecordBatch       a < b as bytes iff a < b in the order
//! RecordBatch --argsort--> permutation                   the same order
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use windrow_rows::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
//! use windrow_rows::{Order, RowEncoder, desc};
//!
//! let batch = RecordBatch::try_from_iter([
//!     ("country", Arc::new(StringArray::from(vec!["nl", "de", "nl"])) as ArrayRef),
//!     ("amount", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef),
//! ])?;
//! let layout = Order::by(["country"]).then(desc("amount")).bind(&batch.schema())?;
//! let rows = RowEncoder::new(&layout).encode(&batch)?;
//! assert!(rows.row(1) < rows.row(2) && rows.row(2) < rows.row(0));
//! # Ok::<(), windrow_rows::Error>(())
//! ```
//!
//! An [`Order`] names columns; a [`Layout`] is an order bound to a schema. Rules, times and diffs
//! are those of the engine, [windrow](https://docs.rs/windrow), which sorts, merges and
//! consolidates more rows than memory holds.

#![forbid(unsafe_code)]
#![expect(
    clippy::len_without_is_empty,
    reason = "types of the module `engine`, of which the other crates need the length alone"
)]

/// Defines a setter for each field of a type of options.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $kind:ty $(=> $value:expr)?;)+) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: $kind) -> Self {
            $(let $field = $value;)?
            self.$field = $field;
            self
        })+
    };
}

mod argsort;
#[doc(hidden)]
pub mod engine;
mod error;
mod order;
mod rows;
mod time;

/// Arrow's arrays, in the version that this crate was built with.
pub use arrow_array;
/// Arrow's schemas, in the version that this crate was built with.
pub use arrow_schema;

pub use argsort::{Argsorter, argsort};
pub use error::{Error, Result};
pub use order::{Fold, IntoColumns, Layout, Order, Rule, SortColumn, asc, desc};
pub use rows::compat;
pub use rows::{RowEncoder, Rows, column_ends, key_len};
pub use time::{Antichain, Diff, Time};

/// Tests the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
