//! Rows: records as bytes that compare like the records.
//!
//! All later stages see only bytes. An [`Encoder`] writes the rows of record batches one after the
//! other; [`decode`] turns any list of rows back into the wanted columns.
//!
//! ```text
//! RecordBatch --prepare--> columns resolved, row lengths --encode--> | row | row | row |
//!                                                                     0     o1    o2    end
//! row = ordered slots | sequence | null bits, fixed payload | lengths and bytes | time | tail
//! ```
//!
//! Invariant, with the layout of [`crate::order`]: `a < b` as bytes (without the tail) if and only
//! if `a < b` under the layout; equal bytes if and only if equal rows. `docs/row-format.md` draws
//! the bytes.

pub(crate) mod bytes;
mod check;
pub(crate) mod column;
pub mod compat;
pub(crate) mod decode;
pub(crate) mod encode;
mod encoded;
mod escape;
pub(crate) mod fixed;
#[cfg(test)]
mod golden;
mod known;
pub(crate) mod lanes;
mod length;
mod lines;
mod nested;
mod payload;
mod prepare;
mod read;
mod row_ref;
mod sequence;
mod skip;
mod slots;
mod spans;
mod stretch;
mod strings;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod tile;
mod value;

pub use check::check_rows;
pub use decode::{Decoder, diff_of};
pub use encode::Encoder;
pub use encoded::{RowEncoder, Rows};
pub use known::Payload;
pub use prepare::Prepared;

use crate::order::Layout;

/// Returns the length of the key at the start of `row`, a row of `layout`. Walks over the columns
/// of the key, whose codes mark their own ends. Returns at most the length of `row` for bytes that
/// are not a row of `layout`.
#[inline]
pub fn key_len(layout: &Layout, row: &[u8]) -> usize {
    let mut at = 0;
    for slot in layout.key_slots() {
        at = skip::skip(slot, row, at);
    }
    at
}

/// Finds the ends of columns in `bytes`, which start with column `first` of the order of `layout`.
/// The order consists of the columns of the key and of [`Order::then`](crate::Order::then); under
/// the rule `sum`, all other columns follow in the order of the schema. Fills as many of `ends` as
/// there are columns. All ends lie within `bytes`, even if `bytes` are not such columns. Costs a
/// search for the end of each text, and hardly anything for numbers.
pub fn column_ends(layout: &Layout, first: usize, bytes: &[u8], ends: &mut [usize]) {
    let mut at = 0;
    for (slot, end) in layout.slots().iter().skip(first).zip(ends) {
        at = skip::skip(slot, bytes, at);
        *end = at;
    }
}

/// Formats one value as text, for messages.
pub fn show(array: &arrow_array::ArrayRef, row: usize) -> String {
    use arrow_array::Array;
    if array.is_null(row) {
        return "null".to_owned();
    }
    // Arrow prints whole arrays: a slice of one row prints the value between brackets.
    let text = format!("{:?}", array.slice(row, 1));
    let inner = text.split_once('[').and_then(|(_, rest)| rest.rsplit_once(']'));
    inner.map_or(text.clone(), |(inner, _)| inner.trim().trim_end_matches(',').to_owned())
}
