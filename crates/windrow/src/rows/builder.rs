//! Columns being built from the values of rows, tile by tile.
//!
//! A nullable slot's null leaves whatever bytes stood there as its hidden value; Arrow allows that,
//! and the encoder writes zeros, so equal rows build equal arrays.

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};

use super::decode::corrupt;
use super::fixed::{Word, with_word};
use super::nested::Form;
use super::recode::recode;
use super::row_ref::RowRef;
use super::strings::Strings;
use super::value::{self, ValueReader};
use super::{escape, text};
use crate::error::{Error, Result};
use crate::order::code::{Kind, Node, OrderedCode, PayloadCode, plain_type};
use crate::order::{Layout, Slot};

/// Builds one column; used again after [`Builder::finish`].
pub(super) struct Builder {
    name: String,
    /// The column's type.
    data_type: DataType,
    /// The type of what is pushed: without dictionary or run ends for ordered columns.
    plain: DataType,
    values: Values,
    /// Validity of what was pushed; empty means that all of it is valid.
    valid: BooleanBufferBuilder,
    len: usize,
}

enum Values {
    Null,
    Bool(BooleanBufferBuilder),
    Fixed(MutableBuffer),
    Bytes(Strings),
    /// With the tree of the type if the column is ordered.
    Value(Box<dyn ValueReader>, Option<Arc<Node>>),
}

impl Builder {
    pub(super) fn new(field: &Field, layout: &Layout, column: usize) -> Result<Self> {
        let data_type = field.data_type().clone();
        let slot = layout.slots().iter().find(|slot| slot.column == column);
        let node = slot.and_then(|slot| tree(slot, &data_type));
        let as_value = node.is_some() || layout.payload().contains(&(column, PayloadCode::Value));
        let plain = if as_value { data_type.clone() } else { plain_type(&data_type).clone() };
        let values = match &plain {
            _ if as_value => Values::Value(value::reader(&data_type)?, node),
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Bool(BooleanBufferBuilder::new(0)),
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView => Values::Bytes(Strings::new(&plain)),
            _ => Values::Fixed(MutableBuffer::new(0)),
        };
        Ok(Self {
            name: field.name().clone(),
            data_type,
            plain,
            values,
            valid: BooleanBufferBuilder::new(0),
            len: 0,
        })
    }

    /// Makes room for `rows` values, of which those that vary take about `bytes` in all.
    pub(super) fn reserve(&mut self, rows: usize, bytes: usize) {
        match &mut self.values {
            Values::Fixed(values) => {
                values.reserve(rows * self.plain.primitive_width().unwrap_or(1));
            }
            Values::Bytes(strings) => strings.reserve(rows, bytes),
            Values::Bool(values) => values.reserve(rows),
            Values::Null | Values::Value(..) => {}
        }
    }

    pub(super) fn push_nulls(&mut self, rows: usize) {
        self.len += rows;
    }

    pub(super) fn extend_valid(&mut self, valid: impl Iterator<Item = bool>) {
        append_bits(&mut self.valid, valid);
    }

    pub(super) fn extend_bool(&mut self, values: impl Iterator<Item = Option<bool>> + Clone) {
        let Values::Bool(bits) = &mut self.values else { return };
        let before = bits.len();
        append_bits(bits, values.clone().map(|value| value == Some(true)));
        append_bits(&mut self.valid, values.map(|value| value.is_some()));
        self.len += bits.len() - before;
    }

    /// Booleans of a column without nulls.
    pub(super) fn extend_bits(&mut self, values: impl ExactSizeIterator<Item = bool>) {
        let Values::Bool(bits) = &mut self.values else { return };
        self.len += values.len();
        append_bits(bits, values);
    }

    pub(super) fn extend_raw<'a>(
        &mut self,
        width: usize,
        values: impl ExactSizeIterator<Item = &'a [u8]>,
    ) {
        let Values::Fixed(out) = &mut self.values else { return };
        let start = out.len();
        self.len += values.len();
        if width == 0 {
            return;
        }
        out.resize(start + values.len() * width, 0);
        if !matches!(width, 1 | 2 | 4 | 8 | 16 | 32) {
            for (target, value) in out[start..].chunks_exact_mut(width).zip(values) {
                target.copy_from_slice(value);
            }
            return;
        }
        with_word!(width, W => {
            for (target, value) in out[start..].chunks_exact_mut(W::BYTES).zip(values) {
                target.copy_from_slice(value);
            }
        });
    }

    /// Values in their ordered code.
    pub(super) fn extend_code<'a>(
        &mut self,
        width: usize,
        kind: Kind,
        descending: bool,
        values: impl ExactSizeIterator<Item = &'a [u8]>,
    ) {
        let Values::Fixed(out) = &mut self.values else { return };
        let start = out.len();
        self.len += values.len();
        out.resize(start + values.len() * width, 0);
        with_word!(width, W => {
            for (target, value) in out[start..].chunks_exact_mut(W::BYTES).zip(values) {
                W::read_big(value).value(kind, descending).write_native(target);
            }
        });
    }

    /// Values and nulls of a slot without a marker; moves the cursors past them.
    pub(super) fn extend_escaping(
        &mut self,
        slot: &Slot,
        width: usize,
        kind: Kind,
        rows: &[RowRef<'_>],
        cursors: &mut [usize],
    ) -> Result<()> {
        let Values::Fixed(out) = &mut self.values else { return Ok(()) };
        let start = out.len();
        self.len += rows.len();
        out.resize(start + rows.len() * width, 0);
        let up = slot.nulls_first;
        let mut fits = true;
        with_word!(width, W => {
            let targets = out[start..].chunks_exact_mut(W::BYTES);
            let valid = rows.iter().zip(cursors).zip(targets).map(|((row, cursor), target)| {
                let bytes = row.beyond(*cursor);
                let (value, valid, len, known) = match bytes.get(..W::BYTES + 1) {
                    Some(code) => escape::take_within::<W>(up, kind, slot.descending, code),
                    // At the end of the last row.
                    None => match escape::take::<W>(up, bytes) {
                        Some((Some(code), len)) => {
                            (code.value(kind, slot.descending), true, len, true)
                        }
                        Some((None, len)) => (W::filled(false), false, len, true),
                        None => (W::filled(false), false, 0, false),
                    },
                };
                *cursor += len;
                fits &= known & (*cursor <= row.len());
                value.write_native(target);
                valid
            });
            append_bits(&mut self.valid, valid);
        });
        if fits { Ok(()) } else { Err(corrupt("a number is cut off or has no such code")) }
    }

    /// Byte strings in their ordered code, of rows that are not marked as `null`; moves the cursors,
    /// which stand behind the markers, past them.
    pub(super) fn extend_text(
        &mut self,
        code: OrderedCode,
        descending: bool,
        null: Option<u8>,
        rows: &[RowRef<'_>],
        cursors: &mut [usize],
    ) -> Result<()> {
        let Values::Bytes(strings) = &mut self.values else { return Ok(()) };
        self.len += rows.len();
        let cursors = Cell::from_mut(cursors).as_slice_of_cells();
        let row = |at: usize| {
            let (row, cursor) = (rows[at], cursors[at].get());
            let valid = null.is_none_or(|null| row[cursor - 1] != null);
            valid.then(|| row.from(cursor))
        };
        let behind = |at: usize, len: usize| cursors[at].set(cursors[at].get() + len);
        strings.read_codes(code, descending, rows.len(), row, behind)
    }

    /// The strings of this column, if it is one of those; [`Builder::end_strings`] is to follow.
    pub(super) fn strings(&mut self) -> Option<&mut Strings> {
        match &mut self.values {
            Values::Bytes(strings) => Some(strings),
            _ => None,
        }
    }

    /// `count` strings were added; `valid` tells which, or nothing if none is null.
    pub(super) fn end_strings(&mut self, count: usize, valid: impl Iterator<Item = bool>) {
        self.len += count;
        self.extend_valid(valid);
    }

    /// Values whose every byte is complemented by `flip`.
    pub(super) fn extend_flipped<'a>(&mut self, flip: u8, values: impl Iterator<Item = &'a [u8]>) {
        let Values::Fixed(out) = &mut self.values else { return };
        for value in values {
            let at = out.len();
            out.extend_from_slice(value);
            out[at..].iter_mut().for_each(|byte| *byte ^= flip);
            self.len += 1;
        }
    }

    pub(super) fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.len += 1;
        match &mut self.values {
            Values::Bytes(strings) => strings.push(bytes),
            Values::Value(reader, _) => {
                let mut rest = bytes;
                in_column(&self.name, reader.read(&mut rest))?;
                if !rest.is_empty() {
                    return Err(Error::Corrupt {
                        place: format!("column {:?} of a row", self.name),
                        message: format!("{} bytes behind the value", rest.len()),
                    });
                }
            }
            Values::Null | Values::Bool(_) | Values::Fixed(_) => {}
        }
        Ok(())
    }

    /// True if ordered values are read by [`Builder::extend_values`]: nested and encoded ones.
    pub(super) fn is_read_by_value(&self) -> bool {
        matches!(self.values, Values::Value(_, Some(_)))
    }

    /// Ordered values of a slot with their markers; moves the cursors past them.
    pub(super) fn extend_values(
        &mut self,
        slot: &Slot,
        rows: &[RowRef<'_>],
        cursors: &mut [usize],
    ) -> Result<()> {
        let Values::Value(reader, Some(node)) = &mut self.values else { return Ok(()) };
        self.len += rows.len();
        let mut rest: Vec<RowRef<'_>> =
            rows.iter().zip(&*cursors).map(|(row, &cursor)| row.from(cursor)).collect();
        let form = Form::of(slot);
        let null = text::markers(slot).0;
        let mut first = 0;
        if slot.has_marker() {
            for at in 0..rest.len() {
                let marker = rest[at].byte().ok_or_else(|| corrupt("a row ends inside its key"))?;
                if marker == null {
                    in_column(&self.name, reader.read_bodies(node, form, &mut rest[first..at]))?;
                    reader.read(&mut &[0][..])?;
                    first = at + 1;
                }
            }
        }
        in_column(&self.name, reader.read_bodies(node, form, &mut rest[first..]))?;
        for ((row, rest), cursor) in rows.iter().zip(rest).zip(cursors) {
            *cursor = row.len() - rest.len();
        }
        Ok(())
    }

    /// The diff of a row, in the width of its column.
    pub(super) fn push_diff(&mut self, diff: i64) -> Result<()> {
        let Values::Fixed(out) = &mut self.values else { return Ok(()) };
        self.len += 1;
        let overflow = || Error::Value {
            column: self.name.clone(),
            message: format!("the sum {diff} does not fit its type, {}", self.data_type),
        };
        match &self.data_type {
            DataType::Int8 => out.push(i8::try_from(diff).map_err(|_| overflow())?),
            DataType::Int16 => out.push(i16::try_from(diff).map_err(|_| overflow())?),
            DataType::Int32 => out.push(i32::try_from(diff).map_err(|_| overflow())?),
            DataType::UInt8 => out.push(u8::try_from(diff).map_err(|_| overflow())?),
            DataType::UInt16 => out.push(u16::try_from(diff).map_err(|_| overflow())?),
            DataType::UInt32 => out.push(u32::try_from(diff).map_err(|_| overflow())?),
            _ => out.push(diff),
        }
        Ok(())
    }

    /// The column of all that was pushed; the builder is empty again.
    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        let len = std::mem::take(&mut self.len);
        let valid = if self.valid.is_empty() { None } else { Some(self.valid.finish()) };
        let nulls = valid.map(arrow_buffer::NullBuffer::new).filter(|nulls| nulls.null_count() > 0);
        let plain = self.plain.clone();
        let array: ArrayRef = match &mut self.values {
            Values::Null => arrow_array::new_null_array(&plain, len),
            Values::Bool(bits) => Arc::new(arrow_array::BooleanArray::new(bits.finish(), nulls)),
            Values::Fixed(values) => {
                let values: Buffer = std::mem::replace(values, MutableBuffer::new(0)).into();
                let data =
                    ArrayData::builder(plain.clone()).len(len).add_buffer(values).nulls(nulls);
                make_array(data.build()?)
            }
            Values::Bytes(strings) => strings.finish(&self.name, nulls)?,
            Values::Value(reader, _) => return in_column(&self.name, reader.finish()),
        };
        if plain == self.data_type { Ok(array) } else { recode(&array, &self.data_type) }
    }
}

/// `result`, of which an error about a value names the column: readers know types alone.
fn in_column<T>(name: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        Error::Value { message, .. } => Error::Value { column: name.to_owned(), message },
        other => other,
    })
}

/// The tree of a slot whose values are read one by one: nested ones, and those that are stored once for
/// many rows and vary.
fn tree(slot: &Slot, data_type: &DataType) -> Option<Arc<Node>> {
    let is_encoded = plain_type(data_type) != data_type;
    match &slot.node {
        Some(node) => Some(Arc::clone(node)),
        None => (is_encoded && slot.code.varies()).then(|| Arc::new(Node::Plain(slot.code))),
    }
}

/// Appends bits, 64 at a time.
fn append_bits(out: &mut BooleanBufferBuilder, mut bits: impl Iterator<Item = bool>) {
    loop {
        let (mut word, mut count) = (0u64, 0);
        for bit in bits.by_ref().take(64) {
            word |= u64::from(bit) << count;
            count += 1;
        }
        out.append_packed_range(0..count, &word.to_le_bytes());
        if count < 64 {
            return;
        }
    }
}
