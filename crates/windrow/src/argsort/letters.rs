//! How many bits tell the bytes of texts apart: fewer than eight, if all are of a small alphabet.
//!
//! ```text
//! pear plum fig     a to z: 1 to 26, five bits each; 0 is the end
//! 2024-05-17        - to 9: 1 to 13, four bits
//! ```
//!
//! With fewer bits each, more letters go into a word: more of the texts are told apart by it, or it has room
//! for the next key.

use super::key::Key;
use super::plan::Rows;
use crate::kernel::rows::{Letters, head_bounds};

/// Rows for which it pays to look at all heads.
const LEAST_ROWS: usize = 256;
/// Heads that are looked at before all of them are.
const SAMPLE: usize = 32;
/// Bits of letters that are worth a look at all heads.
const MOST_BITS: u32 = 6;

/// The letters of the heads of `rows` from `depth` on, and whether the end of a string is told from them.
pub(super) fn letters<R: Rows>(key: &Key, rows: &R, depth: usize) -> (Letters, bool) {
    const WHOLE: (Letters, bool) = (Letters::WHOLE, false);
    let (Some(strings), Some(first)) = (key.strings(), rows.first()) else { return WHOLE };
    if rows.len() < LEAST_ROWS {
        return WHOLE;
    }
    let strings = strings.skip(first);
    let of = |count: usize| {
        let (least, most) = head_bounds(strings, depth, count)?;
        let letters = Letters::new(least, most);
        (letters.bits() <= MOST_BITS).then_some((letters, least > 0))
    };
    of(SAMPLE).and_then(|_| of(rows.len())).unwrap_or(WHOLE)
}
