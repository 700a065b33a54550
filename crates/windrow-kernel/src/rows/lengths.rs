//! Encoded lengths of strings, from their offsets alone.
//!
//! ```text
//! offsets   0     3     6    10
//! lengths     3     3     4          plus the end byte, or sizes of blocks; nulls: their own code
//! ```

use std::hint::select_unpredictable;

use super::blocks;

/// Encoding of strings in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The bytes and one more; a null takes none.
    Ended,
    /// In [`blocks`], with one byte for a null.
    Blocks,
}

impl Form {
    /// Returns the encoded length of a string of `len` bytes, without a branch on validity.
    #[inline(always)]
    fn len(self, len: usize, valid: bool) -> usize {
        match self {
            Self::Ended => select_unpredictable(valid, len + 1, 0),
            Self::Blocks => select_unpredictable(valid, blocks::encoded_len(len), 1),
        }
    }
}

/// Adds the encoded lengths of strings to `lengths`, which wrap around. Returns their sum. Each
/// item is the length and the validity of a string.
pub fn add_each(
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
