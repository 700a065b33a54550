//! How many bytes strings take in rows, found from where each ends: their own bytes are not looked at.
//!
//! ```text
//! offsets   0     3     6    10
//! lengths     3     3     4          and the byte of an end, or what blocks take; of a null what stands for it
//! ```

use std::hint::select_unpredictable;

use super::blocks;

/// How strings stand in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Their bytes and one more; a null takes none.
    Ended,
    /// In [`blocks`], of which a null is a byte.
    Blocks,
}

impl Form {
    /// Bytes of a string of `len`, without a branch on whether it is one.
    #[inline(always)]
    fn len(self, len: usize, valid: bool) -> usize {
        match self {
            Self::Ended => select_unpredictable(valid, len + 1, 0),
            Self::Blocks => select_unpredictable(valid, blocks::encoded_len(len), 1),
        }
    }
}

/// Adds the bytes that strings take to `lengths`, which wrap around; returns their sum. Each string says how long it is,
/// and whether it is one.
pub(crate) fn add_each(
    strings: impl Iterator<Item = (usize, bool)>,
    form: Form,
    lengths: &mut [u32],
) -> u64 {
    let mut total = 0;
    for ((len, valid), length) in strings.zip(lengths) {
        let own = form.len(len, valid);
        total += own as u64;
        *length = length.wrapping_add(own as u32);
    }
    total
}
