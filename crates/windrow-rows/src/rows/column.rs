//! Columns prepared for the encoder: types and encodings resolved, one variant for each way of
//! copying.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{Array, ArrayRef, GenericByteArray, OffsetSizeTrait, downcast_primitive_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;

use super::lanes::{bits, validity};
use super::length;
use super::nested::{Nested, stored};
use super::recode::recode;
use crate::error::{Error, Result};
use crate::order::Slot;
use crate::order::code::{PayloadCode, plain_type};
use crate::order::types::Physical;
use windrow_kernel::rows::blocks::put_blocks;
use windrow_kernel::rows::exact::{Text, put_counted, put_exact};
use windrow_kernel::rows::lengths::{Form, add_each};
use windrow_kernel::rows::{Bits, text};
use windrow_kernel::viewed::Viewed;

/// A column whose values can be copied without knowing its type.
pub(crate) enum Column {
    Null,
    Bool {
        values: BooleanBuffer,
        nulls: Option<NullBuffer>,
    },
    Fixed {
        values: Buffer,
        nulls: Option<NullBuffer>,
    },
    Bytes {
        values: Bytes,
        nulls: Option<NullBuffer>,
    },
    /// Nested values of a slot.
    Nested(Nested),
    /// Codes of values, nulls included.
    Value {
        bytes: Vec<u8>,
        offsets: Vec<usize>,
    },
}

impl Column {
    /// Resolves the column of an ordered slot.
    pub(crate) fn ordered(array: &ArrayRef, slot: &Slot) -> Result<Self> {
        match &slot.node {
            None => Self::plain_values(array),
            Some(_) => Nested::of(array, slot.low_nulls()).map(Self::Nested),
        }
    }

    /// Resolves a column of plain values, without dictionary or run-end encoding.
    pub(crate) fn plain_values(array: &ArrayRef) -> Result<Self> {
        let plain = plain_type(array.data_type());
        if plain == array.data_type() {
            return Self::plain(array);
        }
        if let DataType::Dictionary(_, values) = array.data_type()
            && values.as_ref() == plain
            && !array.as_any_dictionary().values().is_empty()
        {
            let dictionary = array.as_any_dictionary();
            let values = Self::plain(dictionary.values())?;
            let keys: Vec<u32> =
                dictionary.normalized_keys().into_iter().map(|key| key as u32).collect();
            if let Some(picked) = values.pick(keys, array.logical_nulls()) {
                return Ok(picked);
            }
        }
        Self::plain(&recode(array, plain)?)
    }

    /// Returns the values at `keys`, arbitrary for nulls. Returns `None` if this form is no gain.
    fn pick(self, keys: Vec<u32>, nulls: Option<NullBuffer>) -> Option<Self> {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        match self {
            Self::Bytes { values, .. } if values.len() > 0 => {
                let values = Bytes::Picked { values: Box::new(values), keys };
                Some(Self::Bytes { values, nulls })
            }
            _ => None,
        }
    }

    pub(crate) fn payload(array: &ArrayRef, code: PayloadCode) -> Result<Self> {
        if code != PayloadCode::Value {
            return Self::plain(array);
        }
        let (bytes, offsets) = stored(array)?;
        Ok(Self::Value { bytes, offsets })
    }

    fn plain(array: &ArrayRef) -> Result<Self> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let data_type = array.data_type();
        let no_width = || Error::Value {
            column: data_type.to_string(),
            message: "the type has no fixed width".into(),
        };
        Ok(match Physical::of(data_type).ok_or_else(no_width)? {
            Physical::Null => Self::Null,
            Physical::Boolean => Self::Bool { values: array.as_boolean().values().clone(), nulls },
            Physical::Bytes(..) => Self::Bytes { values: Bytes::of(array), nulls },
            other => {
                let width = other.width().ok_or_else(no_width)?;
                let array = array.as_ref();
                let values = downcast_primitive_array! {
                    array => array.values().inner().clone(),
                    _ => {
                        let data = array.to_data();
                        data.buffers().first().map_or_else(Buffer::default, |buffer| {
                            buffer.slice_with_length(data.offset() * width, data.len() * width)
                        })
                    }
                };
                Self::Fixed { values, nulls }
            }
        })
    }

    pub(crate) fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Self::Null | Self::Value { .. } => None,
            Self::Bool { nulls, .. } | Self::Fixed { nulls, .. } | Self::Bytes { nulls, .. } => {
                nulls.as_ref()
            }
            Self::Nested(nested) => nested.nulls(),
        }
    }

    /// Adds the encoded lengths of all rows' strings to `lengths`, like [`add_each`]; returns their
    /// sum.
    pub(crate) fn add_lengths(&self, form: Form, lengths: &mut [u32]) -> u64 {
        match self {
            Self::Bytes { values, nulls } => values.add_lengths(validity(nulls), form, lengths),
            Self::Null
            | Self::Bool { .. }
            | Self::Fixed { .. }
            | Self::Nested(_)
            | Self::Value { .. } => 0,
        }
    }

    /// Writes the strings of `rows` at the cursors, and moves the cursors past the strings.
    pub(super) fn put(
        &self,
        rows: Range<usize>,
        how: Written,
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        self.visit(rows, Put { how, cursors, out });
    }

    /// Calls `visitor` with the strings of `rows`. Does nothing if the column's values do not vary
    /// in length.
    #[inline]
    pub(crate) fn visit(&self, rows: Range<usize>, visitor: impl Visit) {
        match self {
            Self::Bytes { values, nulls: None } => values.visit(rows, |_| true, visitor),
            Self::Bytes { values, nulls: Some(nulls) } => {
                let valid = bits(nulls);
                values.visit(rows, |row| valid.get(row), visitor);
            }
            Self::Value { bytes, offsets } => {
                let len = |row: usize| offsets[row + 1] - offsets[row];
                visitor.visit(rows.map(|row| Text::new(&bytes[offsets[row]..], len(row), true)));
            }
            Self::Null | Self::Bool { .. } | Self::Fixed { .. } | Self::Nested(_) => {}
        }
    }
}

/// An operation on byte strings, independent of their layout.
pub(crate) trait Visit {
    /// Processes the strings of consecutive rows.
    fn visit<'a>(self, strings: impl Iterator<Item = Text<'a>> + Clone);
}

/// Calls a function with each string.
pub(crate) struct Each<F>(pub(super) F);

impl<F: FnMut(Text<'_>)> Visit for Each<F> {
    #[inline]
    fn visit<'a>(self, strings: impl Iterator<Item = Text<'a>> + Clone) {
        strings.for_each(self.0);
    }
}

/// The encoding of strings in rows.
#[derive(Clone, Copy)]
pub(super) enum Written {
    /// As ordered codes, with the greatest escaped byte, if any.
    Ordered(text::Form, Option<u8>),
    /// After their lengths.
    Counted,
    /// In blocks, with the marker of a null, complemented by `flip`.
    Blocks { null: u8, flip: u8 },
}

/// Writes strings to rows.
struct Put<'a> {
    how: Written,
    cursors: &'a mut [usize],
    out: &'a mut [u8],
}

impl Visit for Put<'_> {
    #[inline]
    fn visit<'a>(self, strings: impl Iterator<Item = Text<'a>> + Clone) {
        let Self { how, cursors, out } = self;
        match how {
            Written::Ordered(form, escape) => put_exact(strings, form, escape, cursors, out),
            Written::Counted => put_counted(strings, length::put, cursors, out),
            Written::Blocks { null, flip } => put_blocks(strings, null, flip, cursors, out),
        }
    }
}

/// Byte strings in any of Arrow's layouts.
pub(crate) enum Bytes {
    Small {
        offsets: arrow_buffer::ScalarBuffer<i32>,
        data: Buffer,
    },
    Large {
        offsets: arrow_buffer::ScalarBuffer<i64>,
        data: Buffer,
    },
    Views(Viewed),
    /// Values of a dictionary, at least one, selected by keys.
    Picked {
        values: Box<Bytes>,
        keys: Vec<u32>,
    },
}

impl Bytes {
    fn of(array: &ArrayRef) -> Self {
        match array.data_type() {
            DataType::Utf8 => Self::small(array.as_string::<i32>()),
            DataType::Binary => Self::small(array.as_binary::<i32>()),
            DataType::LargeUtf8 => Self::large(array.as_string::<i64>()),
            DataType::LargeBinary => Self::large(array.as_binary::<i64>()),
            DataType::Utf8View => Self::Views(Viewed::of(array.as_string_view())),
            _ => Self::Views(Viewed::of(array.as_binary_view())),
        }
    }

    fn small(array: &GenericByteArray<impl ByteArrayType<Offset = i32>>) -> Self {
        Self::Small { offsets: array.offsets().inner().clone(), data: array.values().clone() }
    }

    fn large(array: &GenericByteArray<impl ByteArrayType<Offset = i64>>) -> Self {
        Self::Large { offsets: array.offsets().inner().clone(), data: array.values().clone() }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Small { offsets, .. } => offsets.len().saturating_sub(1),
            Self::Large { offsets, .. } => offsets.len().saturating_sub(1),
            Self::Views(views) => views.len(),
            Self::Picked { keys, .. } => keys.len(),
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        match self {
            Self::Picked { values, keys } => values.get_plain(keys[row] as usize),
            plain => plain.get_plain(row),
        }
    }

    #[inline(always)]
    fn get_plain(&self, row: usize) -> &[u8] {
        match self {
            // A dictionary of dictionaries was resolved before.
            Self::Picked { .. } => &[],
            Self::Small { offsets, data } => {
                &data[offsets[row] as usize..offsets[row + 1] as usize]
            }
            Self::Large { offsets, data } => {
                &data[offsets[row] as usize..offsets[row + 1] as usize]
            }
            Self::Views(views) => views.get(row),
        }
    }

    fn add_lengths(&self, valid: Option<Bits<'_>>, form: Form, lengths: &mut [u32]) -> u64 {
        fn each(
            lens: impl Iterator<Item = usize>,
            valid: Option<Bits<'_>>,
            form: Form,
            lengths: &mut [u32],
        ) -> u64 {
            let lens = lens.zip(0..);
            match valid {
                None => add_each(lens.map(|(len, _)| (len, true)), form, lengths),
                Some(valid) => {
                    add_each(lens.map(|(len, row)| (len, valid.get(row))), form, lengths)
                }
            }
        }
        let rows = lengths.len();
        match self {
            Self::Small { offsets, .. } => {
                let ends = offsets[..=rows].windows(2);
                each(ends.map(|ends| (ends[1] - ends[0]) as usize), valid, form, lengths)
            }
            Self::Large { offsets, .. } => {
                let ends = offsets[..=rows].windows(2);
                each(ends.map(|ends| (ends[1] - ends[0]) as usize), valid, form, lengths)
            }
            Self::Views(views) => each(views.lens(0..rows), valid, form, lengths),
            Self::Picked { values, keys } => {
                let keys = keys[..rows].iter().map(|&key| key as usize);
                if let Self::Small { offsets, .. } = &**values {
                    let lens = keys.map(|key| (offsets[key + 1] - offsets[key]) as usize);
                    return each(lens, valid, form, lengths);
                }
                each(keys.map(|key| values.get_plain(key).len()), valid, form, lengths)
            }
        }
    }

    #[inline(always)]
    fn visit(
        &self,
        rows: Range<usize>,
        valid: impl Fn(usize) -> bool + Clone,
        visitor: impl Visit,
    ) {
        match self {
            Self::Small { offsets, data } => {
                let ends = offsets[rows.start..=rows.end].windows(2);
                visitor.visit(rows.zip(ends).map(|(row, ends)| span(data, ends, valid(row))));
            }
            Self::Large { offsets, data } => {
                let ends = offsets[rows.start..=rows.end].windows(2);
                visitor.visit(rows.zip(ends).map(|(row, ends)| span(data, ends, valid(row))));
            }
            Self::Views(views) => visitor.visit(rows.map(|row| {
                let (beyond, len) = views.get_beyond(row);
                Text::new(beyond, len, valid(row))
            })),
            Self::Picked { values, keys } => {
                if let Self::Small { offsets, data } = &**values {
                    let keys = keys[rows.clone()].iter().map(|&key| key as usize);
                    visitor.visit(
                        keys.zip(rows)
                            .map(|(key, row)| span(data, &offsets[key..key + 2], valid(row))),
                    );
                    return;
                }
                let own = |row: usize| values.get_plain(keys[row] as usize);
                visitor.visit(rows.map(|row| Text::from((own(row), valid(row)))));
            }
        }
    }
}

/// Returns the string of `data` between two offsets.
#[inline(always)]
fn span<'a, O: OffsetSizeTrait>(data: &'a [u8], ends: &[O], valid: bool) -> Text<'a> {
    let (start, end) = (ends[0].as_usize(), ends[1].as_usize());
    Text::new(&data[start..], end - start, valid)
}
