//! Whether rows are in order, by their first columns: numbers as they lie in the record batch, eight at a time.
//!
//! ```text
//! columns   | a | b |        | diff |        of most rows these tell whether they sort behind the row before
//! row       | a | b | c | text | time | diff |        of the others, what is written behind them
//! ```

use std::ops::Range;

use super::PlainEncoder;
use crate::kernel::merge::{MOST_BEHIND, Word, ties};
use crate::kernel::rows::Code;

/// Columns that are looked at: of random numbers, two hardly ever tell nothing. One, of which two of five rows
/// repeat the number before, took longer than to compare what was written.
const COLUMNS: usize = 2;
/// Bytes of a number.
const WORD: usize = 8;
/// Rows below which it takes as long to compare what was written of them.
const SOME: usize = 32;

/// What is known of the first columns.
#[derive(Debug)]
pub(super) struct Lead {
    /// Bits that are complemented before the numbers of each are compared.
    flips: [u64; COLUMNS],
}

/// The values of a record batch that tell whether its rows are in order, if they begin with numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found<'a> {
    lead: [&'a [u8]; COLUMNS],
    diffs: &'a [u8],
}

impl<'a> Found<'a> {
    /// Notes the columns of a part of the rows.
    #[inline]
    pub(super) fn note(&mut self, columns: &[&'a [u8]], is_first: bool) {
        if is_first && let [a, b, ..] = columns {
            self.lead = [a, b];
        }
        if let Some(last) = columns.last() {
            self.diffs = last;
        }
    }
}

impl Lead {
    /// Of the columns that rows begin with, if the first are numbers of eight bytes that compare as such.
    pub(super) fn of(width: usize, columns: &[(usize, Code)]) -> Option<Self> {
        let (first, _) = columns.split_first_chunk::<COLUMNS>()?;
        let compare = first.iter().all(|(_, code)| code.float == 0 && code.big);
        (width == WORD && compare).then(|| Self { flips: first.map(|(_, code)| code.flip) })
    }
}

impl PlainEncoder {
    /// True if columns tell whether so many rows are in order, and it does not take as long to look at what was
    /// written.
    pub(crate) fn tells_order(&self, rows: usize) -> bool {
        self.lead.is_some() && rows >= SOME
    }

    /// Whether each of `rows` of a record batch behind the first sorts behind the one before it, and all have
    /// diffs that are not zero. `goes_on` is asked about rows whose first columns do not tell: with their place
    /// among `rows` and the bytes at their start that are equal. Nothing if columns do not
    /// [tell](PlainEncoder::tells_order).
    pub(crate) fn ascends(
        &self,
        Found { lead, diffs }: Found<'_>,
        rows: Range<usize>,
        goes_on: impl Fn(usize, usize) -> bool,
    ) -> Option<bool> {
        let flips = self.lead.as_ref().filter(|_| self.tells_order(rows.len()))?.flips;
        if diffs[rows.start * WORD..][..WORD] == [0; WORD] {
            return Some(false);
        }
        let words = [0, 1].map(|at| Word { values: lead[at], flip: flips[at] });
        let mut next = rows.start + 1;
        while next < rows.end {
            let count = (rows.end - next).min(MOST_BEHIND);
            let Some(mut ties) = ties(&words, diffs, next, count) else { return Some(false) };
            while ties != 0 {
                let row = next + ties.trailing_zeros() as usize;
                if !goes_on(row - rows.start, COLUMNS * WORD) {
                    return Some(false);
                }
                ties &= ties - 1;
            }
            next += count;
        }
        Some(true)
    }
}
