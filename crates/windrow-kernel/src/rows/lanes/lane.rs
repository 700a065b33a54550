//! The values and the constants of one column.

use arrow_buffer::ArrowNativeType;

use crate::values::Values;

/// Bits of a buffer from any bit on, least significant first.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    pub bytes: &'a [u8],
    /// The bit of row 0.
    pub first: usize,
}

impl Bits<'_> {
    pub fn holds(self, rows: usize) -> bool {
        self.bytes.len() * 8 >= self.first + rows
    }

    #[inline(always)]
    pub fn get(self, row: usize) -> bool {
        let at = self.first + row;
        self.bytes[at / 8] >> (at % 8) & 1 == 1
    }

    /// Returns the bits of up to 64 rows from `row` on, with zeros after the end of the buffer.
    #[inline]
    pub fn word(self, row: usize) -> u64 {
        let at = self.first + row;
        let bytes = self.bytes.get(at / 8..).unwrap_or(&[]);
        if let Some((word, rest)) = bytes.split_first_chunk::<8>() {
            let low = u64::from_le_bytes(*word) >> (at % 8);
            let high = rest.first().map_or(0, |&byte| u64::from(byte));
            return if at.is_multiple_of(8) { low } else { low | high << (64 - at % 8) };
        }
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word) >> (at % 8)
    }
}

/// The mapping of a column's values to codes. With `v` the value as an unsigned number:
///
/// ```text
/// c = (v ^ (float if v is negative) ^ flip) + delta
/// code = null, if the row is null
///        longer and a byte more, if `escapes` and c is edge or edge + 1: a code of another width
///        c, otherwise
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The sign bit of signed types; complemented as a whole when descending.
    pub flip: u64,
    /// All bits but the sign for floats, else 0.
    pub float: u64,
    /// Offset that frees the code of a null: 1, all ones (-1), or 0.
    pub delta: u64,
    /// The code of a null.
    pub null: u64,
    /// The lesser of the two values without a code of this width; the greater is `edge + 1`.
    pub edge: u64,
    /// The number that begins the longer codes of both.
    pub longer: u64,
    /// Whether codes are big-endian; the payload keeps the native order.
    pub big: bool,
    /// Whether the column may have nulls, whose code is one of the values' codes.
    pub escapes: bool,
}

impl Code {
    /// Values unchanged, nulls as zeros.
    pub const RAW: Self = Self {
        flip: 0,
        float: 0,
        delta: 0,
        null: 0,
        edge: 0,
        longer: 0,
        big: false,
        escapes: false,
    };
}

/// A column to be written.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    /// The values in Arrow's layout.
    pub values: &'a [u8],
    /// Validity bits; `None` if all values are valid.
    pub valid: Option<Bits<'a>>,
    pub code: Code,
}

/// A number type of columns to read.
pub trait Word: ArrowNativeType {
    /// Returns the low bits of `value`.
    fn of(value: u64) -> Self;

    /// Decodes a number: reverses its bytes if `big`, XORs it with `flip`, and then with `float` if
    /// negative.
    fn turned(self, big: bool, flip: Self, float: Self) -> Self;
}

macro_rules! word {
    ($($number:ty)*) => {$(
        impl Word for $number {
            #[inline(always)]
            fn of(value: u64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn turned(self, big: bool, flip: Self, float: Self) -> Self {
                let value = if big { Self::from_be(self) } else { self } ^ flip;
                // Without a branch: signs are unpredictable.
                let negative = (value.cast_signed() >> (Self::BITS - 1)).cast_unsigned();
                value ^ (float & negative)
            }
        }
    )*};
}
word!(u8 u16 u32 u64 u128);

/// A column to be read.
#[derive(Debug)]
pub struct LaneOut<'a, T> {
    /// The values, appended; nulls are zero.
    pub values: &'a mut Values<T>,
    /// Validity bits of the rows of one call, 64 rows a word, if the code encodes nulls;
    /// overwritten. Bits after the last row are zero.
    pub valid: &'a mut Vec<u64>,
    pub code: Code,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_bits_begin_anywhere() {
        let bytes: Vec<u8> = (0..20u8).map(|byte| byte.wrapping_mul(73) ^ 0xb5).collect();
        for (len, first) in (0..bytes.len()).flat_map(|len| (0..20).map(move |first| (len, first)))
        {
            let bits = Bits { bytes: &bytes[..len], first };
            assert!(!bits.holds((8 * len).saturating_sub(first) + 1));
            assert!(8 * len < first || bits.holds(8 * len - first));
            for row in 0..8 * len {
                let is_set = |at: usize| first + at < 8 * len && bits.get(at);
                let expected =
                    (0..64).rev().fold(0, |word, at| word << 1 | u64::from(is_set(row + at)));
                assert_eq!(bits.word(row), expected, "{len} bytes, {first} and {row}");
            }
        }
    }
}
