//! Columns being built from the values of rows, tile by tile.
//!
//! A nullable slot's null leaves whatever bytes stood there as its hidden value; Arrow allows that,
//! and the encoder writes zeros, so equal rows build equal arrays.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, StringArray, StringViewArray, make_array,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};

use super::decode::{RowRef, corrupt};
use super::fixed::{Word, with_word};
use super::recode::recode;
use super::value::{self, ValueReader};
use super::{escape, nested, text};
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
    /// Empty between calls; keeps its memory.
    scratch: Vec<u8>,
}

enum Values {
    Null,
    Bool(BooleanBufferBuilder),
    Fixed(MutableBuffer),
    Bytes {
        data: Vec<u8>,
        offsets: Vec<i64>,
        /// Bytes of the strings of the column before: about those of the next.
        expected: usize,
    },
    Value(Box<dyn ValueReader>),
}

impl Builder {
    pub(super) fn new(field: &Field, layout: &Layout, column: usize) -> Result<Self> {
        let data_type = field.data_type().clone();
        let nested = layout.slots().iter().any(|slot| slot.column == column && slot.node.is_some());
        let as_value = nested || layout.payload().contains(&(column, PayloadCode::Value));
        let plain = if as_value { data_type.clone() } else { plain_type(&data_type).clone() };
        let values = match &plain {
            _ if as_value => Values::Value(value::reader(&data_type)?),
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Bool(BooleanBufferBuilder::new(0)),
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView => {
                Values::Bytes { data: Vec::new(), offsets: vec![0], expected: 0 }
            }
            _ => Values::Fixed(MutableBuffer::new(0)),
        };
        Ok(Self {
            name: field.name().clone(),
            data_type,
            plain,
            values,
            valid: BooleanBufferBuilder::new(0),
            len: 0,
            scratch: Vec::new(),
        })
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        match &mut self.values {
            Values::Fixed(values) => {
                values.reserve(rows * self.plain.primitive_width().unwrap_or(1));
            }
            Values::Bytes { data, offsets, expected } => {
                offsets.reserve(rows);
                data.reserve(*expected);
            }
            Values::Bool(values) => values.reserve(rows),
            Values::Null | Values::Value(_) => {}
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
        with_word!(width, W => {
            let targets = out[start..].chunks_exact_mut(W::BYTES);
            let mut valid = rows.iter().zip(cursors).zip(targets).map(|((row, cursor), target)| {
                let (value, len) = row
                    .get(*cursor..)
                    .and_then(|rest| escape::take::<W>(slot, kind, rest))
                    .ok_or_else(|| corrupt("a number is cut off or has no such code"))?;
                *cursor += len;
                if let Some(value) = value {
                    value.write_native(target);
                }
                Ok(value.is_some())
            });
            let mut error = None;
            append_bits(&mut self.valid, std::iter::from_fn(|| match valid.next()? {
                Ok(valid) => Some(valid),
                Err(found) => {
                    error = Some(found);
                    None
                }
            }));
            error.map_or(Ok(()), Err)
        })
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
        let Values::Bytes { data, offsets, .. } = &mut self.values else { return Ok(()) };
        self.len += rows.len();
        for (row, cursor) in rows.iter().zip(cursors) {
            if null.is_none_or(|null| row[*cursor - 1] != null) {
                let len = text::decode_next(code, descending, row.beyond(*cursor), data);
                *cursor += len;
                if *cursor > row.len() {
                    return Err(corrupt("a text does not end within its row"));
                }
            }
            offsets.push(data.len() as i64);
        }
        Ok(())
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
            Values::Bytes { data, offsets, .. } => {
                data.extend_from_slice(bytes);
                offsets.push(data.len() as i64);
            }
            Values::Value(reader) => {
                let mut rest = bytes;
                reader.read(&mut rest)?;
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

    /// The nested value whose body starts at `at` in `row`; returns where it ends.
    pub(super) fn push_nested(
        &mut self,
        slot: &Slot,
        null: bool,
        row: &[u8],
        at: usize,
    ) -> Result<usize> {
        let Some(node) = &slot.node else { return Err(corrupt("a nested key without its type")) };
        if null {
            self.push_bytes(&[0])?;
            return Ok(at);
        }
        let mut value = std::mem::take(&mut self.scratch);
        value.clear();
        if !matches!(**node, Node::Union(_)) {
            value.push(1);
        }
        let flip = if slot.descending { 0xff } else { 0 };
        let bytes = row.get(at..).unwrap_or(&[]);
        let mut source = nested::Source { bytes, flip, low: slot.low_nulls() };
        nested::read_body(node, &mut source, &mut value)?;
        let end = row.len() - source.bytes.len();
        self.push_bytes(&value)?;
        self.scratch = value;
        Ok(end)
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
            Values::Bytes { data, offsets, expected } => {
                *expected = data.len() + data.len() / 32;
                let data = Buffer::from_vec(std::mem::take(data));
                let offsets = std::mem::replace(offsets, vec![0]);
                bytes_array(&self.name, &plain, data, offsets, nulls)?
            }
            Values::Value(reader) => return reader.finish(),
        };
        if plain == self.data_type { Ok(array) } else { recode(&array, &self.data_type) }
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

fn bytes_array(
    name: &str,
    data_type: &DataType,
    data: Buffer,
    offsets: Vec<i64>,
    nulls: Option<arrow_buffer::NullBuffer>,
) -> Result<ArrayRef> {
    if matches!(data_type, DataType::LargeUtf8 | DataType::LargeBinary) {
        let array = ArrayData::builder(data_type.clone())
            .len(offsets.len() - 1)
            .add_buffer(Buffer::from_vec(offsets))
            .add_buffer(data)
            .nulls(nulls);
        return Ok(make_array(array.build()?));
    }
    if i32::try_from(data.len()).is_err() {
        return Err(Error::Value {
            column: name.to_owned(),
            message: "over 2 GiB of strings in one record batch: ask for smaller ones".into(),
        });
    }
    let offsets: ScalarBuffer<i32> = offsets.into_iter().map(|offset| offset as i32).collect();
    let offsets = OffsetBuffer::new(offsets);
    Ok(match data_type {
        DataType::Binary => Arc::new(BinaryArray::try_new(offsets, data, nulls)?),
        DataType::BinaryView => {
            Arc::new(BinaryViewArray::from(&BinaryArray::try_new(offsets, data, nulls)?))
        }
        DataType::Utf8View => {
            Arc::new(StringViewArray::from(&StringArray::try_new(offsets, data, nulls)?))
        }
        _ => Arc::new(StringArray::try_new(offsets, data, nulls)?),
    })
}
