//! Letters: bytes of strings in fewer than eight bits, if all belong to a small alphabet.
//!
//! ```text
//! pear plum fig     a to z: 1 to 26, five bits each; 0 is the end
//! 2024-05-17        - to 9: 1 to 13, four bits
//! ```
//!
//! Shorter letters fit more bytes into a word: the word decides among more strings, or leaves bits
//! for the next key.

use super::key::Key;
use super::rows::Rows;
use windrow_kernel::rows::{Letters, head_bounds};

/// Minimum number of rows for a pass over all heads.
const LEAST_ROWS: usize = 256;
/// Heads sampled before the pass over all heads.
const SAMPLE: usize = 32;
/// Maximum number of bits of letters for which the pass over all heads pays.
const MOST_BITS: u32 = 6;

/// Returns the letters of the heads of `rows` from `depth` on, and true if they distinguish the end
/// of a string.
pub(super) fn letters<R: Rows>(key: &Key, rows: &R, depth: usize) -> (Letters, bool) {
    const WHOLE: (Letters, bool) = (Letters::WHOLE, false);
    let Some(strings) = key.strings().filter(|_| R::ALL) else { return WHOLE };
    if rows.len() < LEAST_ROWS {
        return WHOLE;
    }
    let of = |count: usize| {
        let (least, most) = head_bounds(strings, depth, count)?;
        let letters = Letters::new(least, most);
        (letters.bits() <= MOST_BITS).then_some((letters, least > 0))
    };
    of(SAMPLE).and_then(|_| of(rows.len())).unwrap_or(WHOLE)
}
