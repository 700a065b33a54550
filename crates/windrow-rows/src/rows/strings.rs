//! Byte strings during decoding: bytes and offsets.
//!
//! ```text
//! data     | o n e | t w o | f o u r |
//! offsets  0       3       6         10       32 bits, 64 for large types; views are built at once
//! ```
//!
//! The bytes of all text are checked to be UTF-8 at once, when the array is built, unless they are
//! known to be ASCII.

use std::sync::Arc;

use arrow_array::{ArrayRef, GenericBinaryArray, OffsetSizeTrait};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};

use super::row_ref::{Rest, corrupt};
use super::text;
use crate::error::{Error, Result};
use crate::order::code::OrderedCode;
use windrow_kernel::rows::take_text::{Coded, Texts, take_strings, take_views};
use windrow_kernel::rows::text::Form;
use windrow_kernel::strings::{StringData, string_array};
use windrow_kernel::views::Views;

/// Byte strings of one column.
pub(super) struct Strings {
    data_type: DataType,
    data: StringData,
    offsets: Offsets,
}

/// Offsets of 32 bits may wrap around: the length of the data detects overflow. Views contain their
/// own data.
enum Offsets {
    Small(Vec<i32>),
    Large(Vec<i64>),
    Views(Views),
}

impl Strings {
    /// Creates strings of a text or binary type.
    pub(super) fn new(data_type: &DataType) -> Self {
        Self {
            data_type: data_type.clone(),
            data: StringData::default(),
            offsets: Offsets::new(data_type),
        }
    }

    /// Reserves capacity for `rows` strings of at most `bytes` in all.
    pub(super) fn reserve(&mut self, rows: usize, bytes: usize) {
        match &mut self.offsets {
            Offsets::Small(offsets) => offsets.reserve(rows),
            Offsets::Large(offsets) => offsets.reserve(rows),
            Offsets::Views(views) => return views.reserve(rows, bytes + text::SLACK),
        }
        self.data.bytes_mut().reserve(bytes + text::SLACK);
    }

    /// Frees capacity above `bytes` and above the bytes in use.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        match &mut self.offsets {
            Offsets::Views(views) => views.shrink_to(bytes),
            Offsets::Small(_) | Offsets::Large(_) => self.data.shrink_to(bytes),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if let Offsets::Views(views) = &mut self.offsets {
            return views.push(bytes).then_some(()).ok_or_else(not_a_view);
        }
        self.data.bytes_mut().extend_from_slice(bytes);
        self.push_empty(1);
        Ok(())
    }

    /// Adds `count` empty strings, which end where the data ends.
    pub(super) fn push_empty(&mut self, count: usize) {
        match &mut self.offsets {
            Offsets::Small(offsets) => {
                offsets.extend((0..count).map(|_| i32::usize_as(self.data.len())))
            }
            Offsets::Large(offsets) => {
                offsets.extend((0..count).map(|_| i64::usize_as(self.data.len())))
            }
            Offsets::Views(views) => views.push_empty(count),
        }
    }

    /// Reads the next string of each of `rows`, and advances the rows. With `null`, the marker byte
    /// of a null, a marker precedes each string, and a bit for each row is appended to `valid`.
    pub(super) fn read_codes(
        &mut self,
        (coded, form): (Coded, Form),
        null: Option<u8>,
        rows: &mut Rest<'_, '_>,
        valid: &mut Vec<u64>,
    ) -> Result<()> {
        let texts = &Texts { bytes: rows.bytes, ends: rows.ends, form, null };
        let cursors = &mut *rows.cursors;
        let fits = match &mut self.offsets {
            Offsets::Small(offsets) => {
                take_next(coded, texts, cursors, &mut self.data, offsets, valid)
            }
            Offsets::Large(offsets) => {
                take_next(coded, texts, cursors, &mut self.data, offsets, valid)
            }
            Offsets::Views(views) => {
                let fits = take_views(coded, texts, cursors, views, valid);
                return fits.then_some(()).ok_or_else(not_a_view);
            }
        };
        if fits { Ok(()) } else { Err(corrupt("a text does not end within its row")) }
    }

    /// Builds the array of all strings, and removes the strings.
    pub(super) fn finish(&mut self, name: &str, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let offsets = std::mem::replace(&mut self.offsets, Offsets::new(&self.data_type));
        let data = std::mem::take(&mut self.data);
        let is_binary = matches!(self.data_type, DataType::Binary | DataType::LargeBinary);
        let array = match offsets {
            Offsets::Large(offsets) => array(is_binary, offsets, data, nulls),
            Offsets::Small(_) if i32::try_from(data.len()).is_err() => {
                return Err(Error::Value {
                    column: name.to_owned(),
                    message: "over 2 GiB of strings in one record batch: ask for smaller ones"
                        .into(),
                });
            }
            Offsets::Small(offsets) => array(is_binary, offsets, data, nulls),
            Offsets::Views(mut views) => views.finish(nulls),
        };
        // Encoded strings passed the same tests.
        array.map_err(|error| corrupt(&error.to_string()))
    }
}

impl Offsets {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::LargeUtf8 | DataType::LargeBinary => Self::Large(vec![0]),
            DataType::Utf8View => Self::Views(Views::new(true)),
            DataType::BinaryView => Self::Views(Views::new(false)),
            _ => Self::Small(vec![0]),
        }
    }
}

/// Returns the encoding of strings of an ordered `code` in rows.
pub(super) fn coded(code: OrderedCode, descending: bool) -> (Coded, Form) {
    let flip = if descending { 0xff } else { 0 };
    let coded = if code == OrderedCode::Text { Coded::Text } else { Coded::Binary };
    (coded, text::form(flip))
}

fn array<O: OffsetSizeTrait>(
    is_binary: bool,
    offsets: Vec<O>,
    data: StringData,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    if !is_binary {
        return Ok(Arc::new(string_array(offsets, data, nulls)?));
    }
    let (offsets, data) = (ScalarBuffer::from(offsets), Buffer::from_vec(data.into_bytes()));
    Ok(Arc::new(GenericBinaryArray::try_new(OffsetBuffer::new(offsets), data, nulls)?))
}

/// Appends the strings at `cursors`, and their ends to `offsets`.
fn take_next<O: OffsetSizeTrait>(
    coded: Coded,
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut StringData,
    offsets: &mut Vec<O>,
    valid: &mut Vec<u64>,
) -> bool {
    let before = offsets.len();
    offsets.resize(before + cursors.len(), O::usize_as(0));
    let fits = take_strings(coded, texts, cursors, data, &mut offsets[before..], valid);
    if !fits {
        // The offsets do not ascend.
        offsets.truncate(before);
    }
    fits
}

fn not_a_view() -> Error {
    corrupt("a text does not end within its row, or is not UTF-8")
}
