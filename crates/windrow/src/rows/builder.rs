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

use super::decode::corrupt;
use super::escape;
use super::fixed::{Word, with_word};
use super::recode::recode;
use super::text;
use super::value::{self, ValueReader};
use crate::error::{Error, Result};
use crate::order::code::{Kind, OrderedCode, PayloadCode, plain_type};
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
        let as_value = layout.payload().contains(&(column, PayloadCode::Value));
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
        for valid in valid {
            self.valid.append(valid);
        }
    }

    pub(super) fn extend_bool(&mut self, values: impl Iterator<Item = Option<bool>>) {
        let Values::Bool(bits) = &mut self.values else { return };
        for value in values {
            bits.append(value.unwrap_or(false));
            self.valid.append(value.is_some());
            self.len += 1;
        }
    }

    pub(super) fn extend_raw<'a>(&mut self, width: usize, values: impl Iterator<Item = &'a [u8]>) {
        let Values::Fixed(out) = &mut self.values else { return };
        if width == 0 {
            self.len += values.count();
            return;
        }
        if !matches!(width, 1 | 2 | 4 | 8 | 16 | 32) {
            for value in values {
                out.extend_from_slice(value);
                self.len += 1;
            }
            return;
        }
        with_word!(width, W => {
            for value in values {
                let at = out.len();
                out.resize(at + W::BYTES, 0);
                out[at..].copy_from_slice(value);
                self.len += 1;
            }
        });
    }

    /// Values in their ordered code.
    pub(super) fn extend_code<'a>(
        &mut self,
        width: usize,
        kind: Kind,
        descending: bool,
        values: impl Iterator<Item = &'a [u8]>,
    ) {
        let Values::Fixed(out) = &mut self.values else { return };
        with_word!(width, W => {
            for value in values {
                let at = out.len();
                out.resize(at + W::BYTES, 0);
                W::read_big(value).value(kind, descending).write_native(&mut out[at..]);
                self.len += 1;
            }
        });
    }

    /// Values and nulls of a slot without a marker; moves the cursors past them.
    pub(super) fn extend_escaping(
        &mut self,
        slot: &Slot,
        width: usize,
        kind: Kind,
        rows: &[&[u8]],
        cursors: &mut [usize],
    ) -> Result<()> {
        let Values::Fixed(out) = &mut self.values else { return Ok(()) };
        with_word!(width, W => {
            for (row, cursor) in rows.iter().zip(cursors) {
                let (value, len) = row
                    .get(*cursor..)
                    .and_then(|rest| escape::take::<W>(slot, kind, rest))
                    .ok_or_else(|| corrupt("a number is cut off or has no such code"))?;
                self.valid.append(value.is_some());
                let at = out.len();
                out.resize(at + W::BYTES, 0);
                if let Some(value) = value {
                    value.write_native(&mut out[at..]);
                }
                self.len += 1;
                *cursor += len;
            }
        });
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

    /// A byte string in its ordered code, the end included.
    pub(super) fn push_text(
        &mut self,
        code: OrderedCode,
        descending: bool,
        encoded: &[u8],
    ) -> Result<()> {
        self.len += 1;
        if let Values::Bytes { data, offsets, .. } = &mut self.values {
            text::decode(code, descending, encoded, data);
            offsets.push(data.len() as i64);
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
