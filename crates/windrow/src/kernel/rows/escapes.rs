//! Byte strings escaped before they are written: strings one behind the other become such strings again, in which nothing
//! is left to be escaped.
//!
//! ```text
//! strings    05 00 07 | 02 | 09          offsets  0 3 4 5
//! escaped    05 02 01 07 | 02 03 | 09             0 4 6 7     a byte up to an escape behind one, and one more
//! ```
//!
//! Which strings have such a byte is not to be predicted, and to look at each costs more than to write it. All are looked
//! at as one; where a string is then follows from how many such bytes are in front.

use arrow_array::OffsetSizeTrait;

use super::spans::Spans;

/// Bytes of strings that are escaped so, at the most: they are copied.
const MOST: usize = 1 << 20;

/// Room for `len` bytes escaped, and for what may be overwritten behind them.
pub(super) fn room_of(len: usize) -> usize {
    2 * len + 128
}

/// The strings with each byte up to `greatest` one greater and behind `greatest`: their bytes, and where each begins and
/// the last one ends. Nothing if they have more bytes than [`MOST`].
///
/// # Panics
/// If a string lies outside of its source.
pub(crate) fn escape<O: OffsetSizeTrait>(
    spans: Spans<'_, O>,
    greatest: u8,
) -> Option<(Vec<u8>, Vec<i32>)> {
    let (first, last) = (spans.offsets()[0], spans.offsets()[spans.len()]);
    if last.as_usize().saturating_sub(first.as_usize()) > MOST {
        return None;
    }
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected.
        return Some(unsafe { super::avx512::escape(spans, greatest) });
    }
    Some(escape_each(spans, greatest))
}

/// The portable twin.
fn escape_each<O: OffsetSizeTrait>(spans: Spans<'_, O>, greatest: u8) -> (Vec<u8>, Vec<i32>) {
    let (bytes, offsets) = (spans.checked_bytes(), spans.offsets());
    let mut escaped = Vec::with_capacity(room_of(bytes.len()));
    let mut ends = Vec::with_capacity(offsets.len());
    let (first, mut at) = (offsets[0].as_usize(), 0);
    for offset in offsets {
        for &byte in &bytes[at..offset.as_usize() - first] {
            if byte <= greatest {
                escaped.extend([greatest, byte + 1]);
            } else {
                escaped.push(byte);
            }
        }
        at = offset.as_usize() - first;
        ends.push(escaped.len() as i32);
    }
    (escaped, ends)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_escaped_as_one_by_one(
            strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..200),
            longest in 0usize..200,
            scale in 1u8..60,
            front in 0usize..70,
        ) {
            let (mut source, mut offsets) = (vec![0; front], vec![front as i64]);
            let (mut expected, mut ends) = (vec![], vec![0]);
            for string in strings {
                // Some are long, and of bytes to be escaped there are many or few.
                let len = string.len() * longest / 20;
                for byte in string.iter().cycle().take(len).map(|byte| byte.wrapping_mul(scale)) {
                    source.push(byte);
                    expected.extend((byte <= 2).then_some(2));
                    expected.push(if byte <= 2 { byte + 1 } else { byte });
                }
                offsets.push(source.len() as i64);
                ends.push(expected.len() as i32);
            }
            source.push(0);
            let small: Vec<i32> = offsets.iter().map(|&offset| offset as i32).collect();
            let expected = Some((expected, ends));
            prop_assert_eq!(&escape(Spans::new(&source, &small, None), 2), &expected);
            prop_assert_eq!(&escape(Spans::new(&source, &offsets, None), 2), &expected);
            prop_assert_eq!(Some(escape_each(Spans::new(&source, &offsets, None), 2)), expected);
        }
    }

    #[test]
    fn many_bytes_are_left_as_they_are() {
        let source = vec![0; MOST + 1];
        let offsets = [0, 5, MOST as i32];
        let escaped = escape(Spans::new(&source, &offsets, None), 2).expect("not too many");
        assert_eq!((escaped.0.len(), escaped.1), (2 * MOST, vec![0, 10, 2 * MOST as i32]));
        assert_eq!(escape(Spans::new(&source, &[0, MOST as i32 + 1], None), 2), None);
    }
}
