//! Rows: records as bytes that compare the way the records do.
//!
//! Every stage after this one sees only bytes. An [`Encoder`] writes the rows of record batches one
//! behind the other; [`decode`] turns any list of rows back into columns, only those asked for.
//!
//! ```text
//! RecordBatch --prepare--> columns resolved, row lengths --encode--> | row | row | row |
//!                                                                     0     o1    o2    end
//! row = ordered slots | sequence | null bits, fixed payload | lengths and bytes | time | tail
//! ```
//!
//! Invariant: see [`crate::order`]'s layout - `a < b` as bytes (without the tail) if and only if
//! `a < b` under the layout; equal bytes if and only if equal rows. `docs/row-format.md` draws it.

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
mod recode;
mod row_ref;
mod sequence;
mod skip;
mod slots;
mod spans;
mod strings;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod tile;
mod value;

pub(crate) use check::check_rows;
pub(crate) use decode::Decoder;
pub(crate) use encode::Encoder;
pub use encoded::{RowEncoder, Rows};
pub(crate) use known::Payload;
pub(crate) use prepare::Prepared;
pub(crate) use value::Interner;

use crate::order::Layout;

/// Bytes of the key at the start of `row`, a row of `layout`: columns say where they end, so it is found by walking over
/// those of the key. Of bytes that are no such row, at most all.
pub fn key_len(layout: &Layout, row: &[u8]) -> usize {
    let mut at = 0;
    for slot in layout.key_slots() {
        at = skip::skip(slot, row, at);
    }
    at
}

/// Where columns end in `bytes`, which begin with column `first` of the order of `layout`: the columns of its key, then under
/// the rule `sum` all others, in the order of the schema. Finds as many as `ends` has room for; of bytes that are no such
/// columns, ends within them. Costs what finding the end of text costs, nothing much for numbers.
pub fn column_ends(layout: &Layout, first: usize, bytes: &[u8], ends: &mut [usize]) {
    let mut at = 0;
    for (slot, end) in layout.slots().iter().skip(first).zip(ends) {
        at = skip::skip(slot, bytes, at);
        *end = at;
    }
}

/// One value as text, for messages.
pub(crate) fn show(array: &arrow_array::ArrayRef, row: usize) -> String {
    use arrow_array::Array;
    if array.is_null(row) {
        return "null".to_owned();
    }
    // Arrow prints a whole array; a slice of one row keeps the value between its brackets.
    let text = format!("{:?}", array.slice(row, 1));
    let inner = text.split_once('[').and_then(|(_, rest)| rest.rsplit_once(']'));
    inner.map_or(text.clone(), |(inner, _)| inner.trim().trim_end_matches(',').to_owned())
}
