//! Rows in the format of arrow-row 59, byte for byte, written faster.
//!
//! ```text
//! arrow_row::RowConverter::convert_columns(columns)  ==  Converter::encode(columns), byte for byte
//! ```
//!
//! Stored or sent rows keep their meaning, so a program can switch one side at a time, by its
//! imports alone: [`RowConverter`], [`SortField`], [`Rows`], [`Row`], [`OwnedRow`] and
//! [`RowParser`] are arrow-row's names for the same types. [`Converter`] lies below: it writes to
//! the [`crate::Rows`] of this crate, in reused memory, and keeps dictionaries.
//!
//! [`crate::RowEncoder`] has the better format: shorter, faster to write, and aware of nullability.
//! Unlike arrow-row, decoding returns errors instead of panics where rows are damaged.

mod blocks;
mod converter;
mod decode;
mod dictionaries;
mod field;
mod framing;
mod inner;
mod lists;
mod node;
mod row_converter;
mod rows;
mod strip;
#[cfg(test)]
mod tests;

pub use self::converter::Converter;
pub use self::field::SortField;
pub use self::row_converter::{RowConverter, RowParser};
pub use self::rows::{OwnedRow, Row, Rows, RowsIter};
