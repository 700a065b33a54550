//! Times of rows, as numbers.
//!
//! ```text
//! row   | key | ... | time | diff |        the time stands before the tail; its code has the order of times
//! ```

use crate::order::Layout;
use crate::order::code::OrderedCode;

/// The least and the greatest time code of some rows.
pub(crate) type TimeCodes = (u64, u64);

/// Bytes of the time of a row; 0 if it has none.
pub(crate) fn time_width(layout: &Layout) -> usize {
    let data_type = |column| layout.schema().field(column).data_type();
    layout
        .time()
        .and_then(|column| OrderedCode::of(data_type(column)))
        .map_or(0, OrderedCode::width)
}

/// The time of a row, which takes `width` bytes before the tail.
#[inline(always)]
pub(crate) fn time_of<'a>(layout: &Layout, width: usize, row: &'a [u8]) -> &'a [u8] {
    let end = row.len() - layout.tail().len();
    &row[end - width..end]
}

/// Up to eight bytes as a number that has their order.
#[inline(always)]
pub(crate) fn code_of(bytes: &[u8]) -> u64 {
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_be_bytes(bytes);
    }
    bytes.iter().fold(0, |code, &byte| code << 8 | u64::from(byte))
}
