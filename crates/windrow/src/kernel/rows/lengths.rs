//! How many bytes strings take in rows, found from where each ends: their own bytes are not looked at.
//!
//! ```text
//! offsets   0     3     6    10
//! lengths     3     3     4          and the byte of an end, or what blocks take; of a null what stands for it
//! ```

use std::hint::select_unpredictable;

use super::blocks;
use super::lane::Bits;

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

/// Adds the bytes that strings take to `lengths`, which wrap around; returns their sum. The strings end where the next
/// ones begin, at `offsets`.
///
/// # Panics
/// If there is not one offset more than lengths, or a validity of fewer rows.
pub(crate) fn add_spans(
    offsets: &[i32],
    valid: Option<Bits<'_>>,
    form: Form,
    lengths: &mut [u32],
) -> u64 {
    assert_eq!(offsets.len(), lengths.len() + 1, "an offset more than lengths");
    assert!(valid.is_none_or(|valid| valid.holds(lengths.len())), "a bit for each length");
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected; there is an offset more than lengths.
        return unsafe { super::avx512::add_spans(offsets, valid, form, lengths) };
    }
    add_spans_each(offsets, valid, form, lengths)
}

/// The portable twin.
fn add_spans_each(
    offsets: &[i32],
    valid: Option<Bits<'_>>,
    form: Form,
    lengths: &mut [u32],
) -> u64 {
    let lens = offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    match valid {
        None => add_each(lens.map(|len| (len, true)), form, lengths),
        Some(valid) => {
            add_each(lens.zip(0..).map(|(len, row)| (len, valid.get(row))), form, lengths)
        }
    }
}

/// As [`add_spans`], of strings of which each says how long it is, and whether it is one.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_add_the_same(
            lens in prop::collection::vec(prop_oneof![0i32..40, 0i32..300, 0i32..3_000_000], 0..200),
            bits in prop::collection::vec(any::<u8>(), 27),
            first in 0usize..8,
            is_null: bool,
        ) {
            let mut offsets = vec![7];
            offsets.extend(lens.iter().scan(7, |end, len| {
                *end += len;
                Some(*end)
            }));
            let valid = is_null.then_some(Bits { bytes: &bits, first });
            for form in [Form::Ended, Form::Blocks] {
                let mut lengths = (0..lens.len() as u32).collect::<Vec<_>>();
                let mut twin = lengths.clone();
                let total = add_spans(&offsets, valid, form, &mut lengths);
                prop_assert_eq!(total, add_spans_each(&offsets, valid, form, &mut twin));
                prop_assert_eq!(lengths, twin);
            }
        }
    }
}
