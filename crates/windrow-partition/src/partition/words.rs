//! Words: 64 bits for every value of a column, the input of the hash.
//!
//! ```text
//! integers, dates, times   the value, extended to 64 bits
//! floats                   the bits as a 64-bit float; -0.0 as 0.0, every NaN as one
//! bytes, text              16 bytes at a time, folded
//! wider than 8 bytes       8 bytes at a time, folded
//! null                     a constant
//! nested                   the words of the parts, combined by `nested_words`
//! ```
//!
//! Invariant: a word depends on the value alone, and not on its encoding, the width of its type or
//! offsets, or its position. So the words of a dictionary are computed once for each entry, and the
//! words of a run once for each run. `docs/partition-hash.md` is the specification.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{AnyDictionaryArray, Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_array::{GenericByteArray, GenericByteViewArray};
use arrow_array::{downcast_integer_array, downcast_primitive_array};
use arrow_buffer::i256;
use arrow_schema::DataType;

use super::nested_words::nested;
use super::runs::runs;
use windrow_kernel::partition::hash::fold;
use windrow_kernel::partition::string_hash::{SALTS, view_words, word as bytes, words as strings};

/// The word of a null.
pub(super) const NULL: u64 = 0xe703_7ed1_a0b4_28db;
/// Bits of the NaN that represents all NaNs.
const NAN: u64 = 0x7ff8_0000_0000_0000;

/// A column as words.
pub(super) enum Words<'a> {
    /// All words: the values themselves, if none is null, or computed words.
    Ready(Cow<'a, [u64]>),
    /// Words are computed from the values, a block at a time.
    Plain(&'a dyn Array),
    /// The words of a dictionary's values.
    Keyed(Vec<u64>, &'a dyn AnyDictionaryArray),
    /// The words of runs, and the run of each row.
    Runs(Vec<u64>, Vec<u64>),
}

impl<'a> Words<'a> {
    /// Computes the words that can be computed ahead of the blocks.
    pub(super) fn of(array: &'a ArrayRef) -> Self {
        if let Some((values, of)) = runs(array) {
            return Self::Runs(all(values), of);
        }
        if let Some(words) = nested(array) {
            return Self::Ready(words.into());
        }
        match array.data_type() {
            DataType::Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary();
                Self::Keyed(all(dictionary.values()), dictionary)
            }
            _ => borrowed(array).map_or(Self::Plain(array), |words| Self::Ready(words.into())),
        }
    }

    /// Returns true if the encoding shows that all words are equal.
    pub(super) fn are_one(&self) -> bool {
        match self {
            Self::Ready(_) => false,
            Self::Plain(array) => *array.data_type() == DataType::Null,
            Self::Keyed(words, dictionary) => words.len() == 1 && dictionary.null_count() == 0,
            Self::Runs(words, _) => words.len() == 1,
        }
    }

    /// Returns the words of the rows from `start` on: borrowed, or written to `block`.
    pub(super) fn block<'b>(&'b self, start: usize, block: &'b mut [u64]) -> &'b [u64] {
        match self {
            Self::Ready(words) => return &words[start..start + block.len()],
            Self::Plain(array) => plain(array.slice(start, block.len()).as_ref(), block),
            Self::Keyed(words, dictionary) => keyed(words, *dictionary, start, block),
            Self::Runs(words, of) => {
                for (word, &run) in block.iter_mut().zip(&of[start..]) {
                    *word = words[run as usize];
                }
            }
        }
        block
    }
}

/// Borrows eight-byte integers without nulls.
fn borrowed(array: &ArrayRef) -> Option<&[u64]> {
    fn of<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> &[u64] {
        array.values().inner().typed_data()
    }
    let array: &dyn Array = array;
    let words = array.data_type().primitive_width() == Some(8);
    let made = matches!(array.data_type(), DataType::Float64 | DataType::Interval(_));
    if !words || made || array.null_count() > 0 {
        return None;
    }
    downcast_primitive_array! {
        array => Some(of(array)),
        _other => None,
    }
}

/// Returns the words of every value of `array`.
pub(super) fn all(array: &ArrayRef) -> Vec<u64> {
    match Words::of(array) {
        Words::Ready(words) => words.into_owned(),
        others => {
            let mut words = vec![0; array.len()];
            others.block(0, &mut words);
            words
        }
    }
}

fn keyed(words: &[u64], dictionary: &dyn AnyDictionaryArray, start: usize, block: &mut [u64]) {
    let keys = dictionary.keys().slice(start, block.len());
    let keys: &dyn Array = &keys;
    // A null row may have any key.
    let word = |key: usize| words.get(key).copied().unwrap_or(NULL);
    downcast_integer_array! {
        keys => {
            for (slot, key) in block.iter_mut().zip(keys.values()) {
                *slot = word(*key as usize);
            }
        },
        _other => {}
    }
    mark_nulls(keys, block);
}

/// Writes the words of `array`, which is neither a dictionary nor run-end encoded.
fn plain(array: &dyn Array, block: &mut [u64]) {
    fn each<V>(values: impl Iterator<Item = V>, word: impl Fn(V) -> u64, block: &mut [u64]) {
        for (slot, value) in block.iter_mut().zip(values) {
            *slot = word(value);
        }
    }
    fn of_bytes<T: ByteArrayType>(array: &GenericByteArray<T>, block: &mut [u64]) {
        strings(array.value_offsets(), array.value_data(), block);
    }
    fn of_views<T: ByteViewType>(array: &GenericByteViewArray<T>, block: &mut [u64]) {
        view_words(array.views(), array.data_buffers(), block);
    }
    fn text<'a>(len: usize, value: impl Fn(usize) -> &'a [u8], block: &mut [u64]) {
        each(0..len, |row| bytes(value(row)), block);
    }
    let len = array.len();
    downcast_primitive_array! {
        array => each(array.values().iter(), |value| value.word(), block),
        DataType::Null => block.fill(NULL),
        DataType::Boolean => each(array.as_boolean().values().iter(), u64::from, block),
        DataType::Utf8 => of_bytes(array.as_string::<i32>(), block),
        DataType::LargeUtf8 => of_bytes(array.as_string::<i64>(), block),
        DataType::Utf8View => of_views(array.as_string_view(), block),
        DataType::Binary => of_bytes(array.as_binary::<i32>(), block),
        DataType::LargeBinary => of_bytes(array.as_binary::<i64>(), block),
        DataType::BinaryView => of_views(array.as_binary_view(), block),
        DataType::FixedSizeBinary(_) => {
            text(len, |row| array.as_fixed_size_binary().value(row), block)
        }
        _other => {}
    }
    mark_nulls(array, block);
}

fn mark_nulls(array: &dyn Array, block: &mut [u64]) {
    if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
        for (slot, valid) in block.iter_mut().zip(nulls) {
            *slot = if valid { *slot } else { NULL };
        }
    }
}

/// The word of a value of fixed width.
trait Word {
    fn word(&self) -> u64;
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Word for $type {
            #[inline(always)]
            fn word(&self) -> u64 {
                *self as u64
            }
        })*
    };
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Word for f64 {
    #[inline(always)]
    fn word(&self) -> u64 {
        // Adding 0.0 turns -0.0 into 0.0, and does not change any other value.
        if self.is_nan() { NAN } else { (self + 0.0).to_bits() }
    }
}

impl Word for f32 {
    #[inline(always)]
    fn word(&self) -> u64 {
        f64::from(*self).word()
    }
}

impl Word for half::f16 {
    #[inline(always)]
    fn word(&self) -> u64 {
        self.to_f64().word()
    }
}

impl Word for i128 {
    #[inline(always)]
    fn word(&self) -> u64 {
        fold(*self as u64 ^ SALTS[1], (*self >> 64) as u64 ^ SALTS[2])
    }
}

impl Word for i256 {
    #[inline(always)]
    fn word(&self) -> u64 {
        let (low, high) = self.to_parts();
        fold((low as i128).word() ^ SALTS[1], high.word() ^ SALTS[2])
    }
}

impl Word for arrow_buffer::IntervalDayTime {
    fn word(&self) -> u64 {
        fold(self.days.word() ^ SALTS[1], self.milliseconds.word() ^ SALTS[2])
    }
}

impl Word for arrow_buffer::IntervalMonthDayNano {
    fn word(&self) -> u64 {
        let days = fold(self.months.word() ^ SALTS[1], self.days.word() ^ SALTS[2]);
        fold(days ^ SALTS[1], self.nanoseconds.word() ^ SALTS[2])
    }
}
