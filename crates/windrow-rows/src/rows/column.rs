//! Columns prepared for the encoder: types and encodings resolved, one variant for each way of
//! copying.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, downcast_primitive_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;

use super::bytes::{Bytes, Visit};
use super::lanes::{bits, validity};
use super::nested::{Form as Coded, Ordered, Tree, other_node, stored};
use super::row_ref::Rest;
use super::value::reader;
use super::{length, spans};
use crate::error::{Error, Result};
use crate::order::Slot;
use crate::order::code::{Node, PayloadCode, plain_type};
use crate::order::types::Physical;
use windrow_kernel::rows::blocks::put_blocks;
use windrow_kernel::rows::exact::{Text, put_counted, put_exact};
use windrow_kernel::rows::lengths::Form;
use windrow_kernel::rows::text;

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
            Self::Bool { nulls, .. }
            | Self::Fixed { nulls, .. }
            | Self::Bytes { nulls, .. }
            | Self::Nested(Nested { nulls, .. }) => nulls.as_ref(),
        }
    }

    /// Adds the encoded lengths of all rows' strings to `lengths`, like [`add_each`]; returns their
    /// sum.
    pub(crate) fn add_lengths(&self, form: Form, lengths: &mut [u32]) -> u64 {
        match self {
            Self::Bytes { values, nulls } => values.add_lengths(validity(nulls), form, lengths),
            _ => 0,
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

/// Values of a nested column, and the length of each row's code.
pub(crate) struct Nested {
    values: Box<Tree<Ordered>>,
    /// Position of each row's value, if a value is stored once for many rows.
    keys: Option<Vec<usize>>,
    nulls: Option<NullBuffer>,
    /// Bytes of each row's code, without a marker; 0 for a null.
    pub(super) lengths: Vec<usize>,
}

impl Nested {
    pub(super) fn of(array: &ArrayRef, low: bool) -> Result<Self> {
        let (keys, nulls, values) = spans::resolved(array);
        let values = Box::new(Tree::of(&values, Ordered { low })?);
        let mut nested = Self { values, keys, nulls, lengths: vec![0; array.len()] };
        let (rows, picks) = nested.picks(0..array.len());
        let mut bodies = vec![0; picks.len()];
        nested.values.add_body_lengths(&picks, &mut bodies);
        rows.iter().zip(bodies).for_each(|(&row, body)| nested.lengths[row] = body);
        Ok(nested)
    }

    /// Returns the rows that are not null, and the position of each such row's value.
    fn picks(&self, rows: Range<usize>) -> (Vec<usize>, Vec<usize>) {
        let valid = |row: &usize| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        let key = |row: usize| self.keys.as_ref().map_or(row, |keys| keys[row]);
        rows.filter(valid).map(|row| (row, key(row))).unzip()
    }

    /// Writes the codes of `rows`, complemented by `flip`, at the cursors, and moves the cursors
    /// past the codes.
    pub(super) fn put(&self, rows: Range<usize>, flip: u8, cursors: &mut [usize], out: &mut [u8]) {
        let (valid, picks) = self.picks(rows.clone());
        let mut places: Vec<usize> = valid.iter().map(|row| cursors[row - rows.start]).collect();
        self.values.put_bodies(&picks, &mut places, out);
        for (row, cursor) in rows.clone().zip(&mut *cursors) {
            *cursor += self.lengths[row];
        }
        if flip != 0 {
            for (row, &end) in rows.zip(&*cursors) {
                out[end - self.lengths[row]..end].iter_mut().for_each(|byte| *byte ^= flip);
            }
        }
    }
}

/// Converts `array` to another encoding: `to` must be the same type apart from encodings.
pub(super) fn recode(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let (bytes, offsets) = stored(array)?;
    let mut cursors = offsets[..array.len()].to_vec();
    let node = Node::of(to).ok_or_else(other_node)?;
    let mut reader = reader(to)?;
    let rows = &mut Rest { bytes: &bytes, cursors: &mut cursors, ends: &offsets[1..] };
    reader.read_codes(&node, Coded::STORED, rows)?;
    reader.finish()
}
