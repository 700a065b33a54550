//! Arrangements of differential-dataflow in Windrow's memory: sorted, consolidated and indexed
//! within one budget, and spilled to disk beyond it.
//!
//! A program of differential-dataflow creates a [`Context`] and calls the operators whose names end
//! in `_rows`:
//!
//! ```
//! use differential_dataflow::input::Input;
//! use windrow::{Budget, Pool};
//! use windrow_differential::{ArrangeRows, Context, RowArrangement};
//!
//! let context = Context::new(Pool::in_dir(std::env::temp_dir(), Budget::bytes(64 << 20)).unwrap());
//! timely::execute_directly(move |worker| {
//!     let (mut orders, mut users) = worker.dataflow::<u64, _, _>(|scope| {
//!         let (orders_in, orders) = scope.new_collection::<(u64, u64), isize>();
//!         let (users_in, users) = scope.new_collection::<(u64, String), isize>();
//!         let (orders, users) = (orders.arrange_rows(&context), users.arrange_rows(&context));
//!         orders
//!             .join_rows(users, |_user, amount, name| Some((name.get(), amount.get())))
//!             .arrange_rows(&context)
//!             .reduce_rows(&context, |_name, amounts, out| {
//!                 let sum: u64 = amounts.iter().map(|(amount, n)| amount.get() * *n as u64).sum();
//!                 out.push((sum, 1isize));
//!             })
//!             .map_rows(|name, sum| (name.get(), sum.get()))
//!             .inspect(|((name, sum), _, _)| assert_eq!((name.as_str(), *sum), ("ada", 12)));
//!         (orders_in, users_in)
//!     });
//!     users.insert((7, "ada".to_owned()));
//!     orders.insert((7, 5));
//!     orders.insert((7, 7));
//! });
//! ```
//!
//! # Record batches
//!
//! If columns are known only at run time, rows never become Rust values. Record batches carry a
//! time and a diff for each row ([`Changes`]), and are arranged, joined and reduced by column name:
//!
//! ```
//! # use std::sync::Arc;
//! # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
//! # use windrow::{Budget, Pool};
//! use windrow_differential::{ColumnInput, Context, count, sum};
//!
//! # let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
//! # let rows = RecordBatch::try_from_iter([("user", column(vec![7, 7])), ("amount", column(vec![5, 8]))]).unwrap();
//! # let names: ArrayRef = Arc::new(StringArray::from(vec!["ada"]));
//! # let people = RecordBatch::try_from_iter([("id", column(vec![7])), ("name", names)]).unwrap();
//! let context = Context::new(Pool::in_dir(std::env::temp_dir(), Budget::bytes(64 << 20))?);
//! timely::execute_directly(move |worker| -> windrow::Result<()> {
//!     let (mut orders_in, mut users_in) = worker.dataflow(|scope| -> windrow::Result<_> {
//!         let (orders_in, orders) = ColumnInput::<u64, i64>::new(scope, &rows.schema());
//!         let (users_in, users) = ColumnInput::<u64, i64>::new(scope, &people.schema());
//!         let (orders, users) = (orders.arrange_by(&context, "user")?, users.arrange_by(&context, "id")?);
//!         let named = orders.join_rows(users, ["name", "amount"])?.arrange_by(&context, "name")?;
//!         let totals = named.reduce_columns([count(), sum("amount").named("total")])?;
//!         totals.changes().inspect_changes(|changes| println!("{changes:?}"));
//!         Ok((orders_in, users_in))
//!     })?;
//!     orders_in.push(rows)?;
//!     users_in.push(people)
//! })?;
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! # Errors
//! A call returns an error if its column names or types do not fit. Later errors have no path
//! through a dataflow: a full disk, a damaged page or an overflowing sum ends the dataflow with the
//! engine's message, as a panic of the worker, and timely stops the other workers.

#![forbid(unsafe_code)]

// The derive macro emits paths that start with the crate's name; this makes them resolve in the
// crate itself.
extern crate self as windrow_differential;

mod ahead;
pub mod algorithms;
mod batch;
mod batcher;
mod builder;
mod columns;
mod combine;
mod context;
mod diff;
mod enc;
mod exchange;
mod format;
mod half_join;
mod ledger;
mod of;
mod operators;
pub mod row;
mod scan;
mod sorter;
mod tactic;
mod time;
mod totals;
mod updates;
mod upserts;

pub use batch::{RowBatch, RowCursor, RowMerger, ScopedBatch};
pub use batcher::RowBatcher;
pub use builder::{RowBuffer, RowBuilder};
pub use columns::{
    Aggregate, Changes, ChangesOf, ColumnArranged, ColumnCollection, ColumnInput, ColumnTrace,
    Columns, Pick, count, left, max, min, right, sum,
};
pub use context::Context;
pub use diff::{DiffCode, folds};
pub use enc::{Enc, EncVec};
pub use half_join::half_join_rows;
pub use operators::{ArrangeRows, RowArranged, RowArrangement, RowCollection, RowSpine, RowTrace};
pub use row::{Row, RowCode};
pub use sorter::RowSorter;
pub use tactic::{RowJoin, RowReduce};
pub use time::TimeCode;
pub use totals::RowTotals;
pub use updates::Updates;
pub use upserts::ArrangeUpserts;
pub use windrow_differential_derive::Row;

/// The example in the README, tested with the examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
