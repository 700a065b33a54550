//! Decoding of blocks into a record batch.
//!
//! ```text
//! block   | a | b |      block   | a | b |      ...        a: bytes of all blocks, one array
//!                                                          b: an array of each block, concatenated
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::builder::BooleanBufferBuilder;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use super::{ALIGNMENT, HEAD, Plain, damaged};
use crate::partition::concat::{children, concat};
use windrow_kernel::partition::views::INLINE;
use windrow_kernel::views::Views;
use windrow_rows::Result;

/// Bytes of a view, and of the length before an inline string.
const VIEW: usize = 16;
const PREFIX: usize = 4;

/// Appends the rows of all blocks of all `bytes` to `out`, as one record batch; as several if
/// dictionaries have more values together than keys. The arrays of a single block share its memory,
/// unless plain arrays are `copied`.
///
/// # Errors
/// [`Error::Corrupt`](windrow_rows::Error::Corrupt) if the bytes are not blocks of the schema's
/// types, [`Error::Arrow`](windrow_rows::Error::Arrow) if strings get too long for their offsets.
pub(in crate::partition) fn read(
    schema: &SchemaRef,
    bytes: &[Buffer],
    copied: bool,
    out: &mut VecDeque<RecordBatch>,
) -> Result<()> {
    let mut rows = Vec::new();
    let mut columns: Vec<Vec<Raw>> = schema.fields().iter().map(|_| Vec::new()).collect();
    for bytes in bytes {
        let mut left = bytes.clone();
        while !left.is_empty() {
            let (block, mut reader, rest) = Reader::of(&left)?;
            if u32::try_from(block).is_err() {
                return Err(damaged());
            }
            for (field, column) in schema.fields().iter().zip(&mut columns) {
                let array = reader.array(field.data_type())?;
                if array.len != block {
                    return Err(damaged());
                }
                column.push(array);
            }
            rows.push(block);
            left = rest;
        }
    }
    let columns: Vec<&[Raw]> = columns.iter().map(Vec::as_slice).collect();
    join(schema, (&rows, copied), &columns, out)
}

/// Appends blocks of `rows` rows each to `out`.
fn join(
    schema: &SchemaRef,
    (rows, copied): (&[usize], bool),
    columns: &[&[Raw]],
    out: &mut VecDeque<RecordBatch>,
) -> Result<()> {
    let arrays = schema.fields().iter().zip(columns);
    let arrays =
        arrays.map(|(field, blocks)| column(field.data_type(), blocks, copied).transpose());
    let Some(arrays) = arrays.map(Option::transpose).collect::<Result<Option<Vec<_>>>>()? else {
        let middle = rows.len() / 2;
        let (front, back): (Vec<_>, Vec<_>) =
            columns.iter().map(|blocks| blocks.split_at(middle)).unzip();
        join(schema, (&rows[..middle], copied), &front, out)?;
        return join(schema, (&rows[middle..], copied), &back, out);
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows.iter().sum()));
    out.push_back(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?);
    Ok(())
}

/// Builds the array of all blocks, or returns `None` if the values do not fit into one.
fn column(data_type: &DataType, blocks: &[Raw], copied: bool) -> Result<Option<ArrayRef>> {
    match Plain::of(data_type) {
        Some(plain) if copied || blocks.len() > 1 => joined(plain, data_type, blocks).map(Some),
        _ => {
            let arrays = blocks.iter().map(|raw| Ok(make_array(raw.filled(data_type)?)));
            let arrays = arrays.collect::<Result<Vec<_>>>()?;
            let arrays: Vec<&dyn arrow_array::Array> = arrays.iter().map(AsRef::as_ref).collect();
            concat(&arrays)
        }
    }
}

/// Joins plain arrays, one after the other.
fn joined(plain: Plain, data_type: &DataType, blocks: &[Raw]) -> Result<ArrayRef> {
    let rows = blocks.iter().map(|block| block.len).sum();
    let mut nulls = NullBufferBuilder::new(rows);
    for block in blocks {
        match &block.nulls {
            Some(bits) => nulls.append_buffer(bits),
            None => nulls.append_n_non_nulls(block.len),
        }
    }
    let nulls = nulls.finish();
    let buffers = match plain {
        Plain::Bits => {
            let mut bits = BooleanBufferBuilder::new(0);
            for block in blocks {
                let [values] = block.buffers(|len| [len.div_ceil(8)])?;
                bits.append_packed_range(0..block.len, values);
            }
            vec![bits.finish().into_inner()]
        }
        Plain::Numbers(width) => {
            let buffers = blocks.iter().flat_map(|block| &block.buffers);
            let mut values = Vec::with_capacity(buffers.map(|buffer| buffer.len()).sum());
            for block in blocks {
                let [numbers] = block.buffers(|len| [len * width])?;
                values.extend_from_slice(numbers);
            }
            vec![Buffer::from_vec(values)]
        }
        Plain::Texts(4) => joined_texts(blocks, i32::from_le_bytes)?,
        Plain::Texts(_) => joined_texts(blocks, i64::from_le_bytes)?,
        Plain::Views => return joined_views(*data_type == DataType::Utf8View, blocks, nulls),
    };
    let builder = ArrayData::builder(data_type.clone()).len(rows).nulls(nulls);
    Ok(make_array(builder.buffers(buffers).align_buffers(true).build()?))
}

fn joined_texts<O, const W: usize>(blocks: &[Raw], offset: fn([u8; W]) -> O) -> Result<Vec<Buffer>>
where
    O: arrow_buffer::ArrowNativeType + TryFrom<usize>,
{
    let too_long = |end| ArrowError::OffsetOverflowError(end);
    let (mut offsets, mut bytes) = (vec![O::usize_as(0)], Vec::new());
    for block in blocks {
        let Some(strings) = block.buffers.get(1) else { return Err(damaged()) };
        let [starts, _] = block.buffers(|len| [(len + 1) * W, strings.len()])?;
        let base = bytes.len();
        O::try_from(base + strings.len()).map_err(|_| too_long(base + strings.len()))?;
        let mut before = 0;
        for (row, at) in starts.as_chunks::<W>().0.iter().enumerate() {
            let at = offset(*at).to_usize().filter(|&at| at >= before).ok_or_else(damaged)?;
            if at > strings.len() || row == 0 && at > 0 {
                return Err(damaged());
            }
            if row > 0 {
                offsets.push(O::usize_as(base + at));
            }
            before = at;
        }
        if before != strings.len() {
            return Err(damaged());
        }
        bytes.extend_from_slice(strings);
    }
    Ok(vec![Buffer::from_vec(offsets), Buffer::from_vec(bytes)])
}

fn joined_views(is_text: bool, blocks: &[Raw], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let mut joined = Views::new(is_text);
    for block in blocks {
        let Some(strings) = block.buffers.get(1) else { return Err(damaged()) };
        let [views, _] = block.buffers(|len| [len * VIEW, strings.len()])?;
        joined.reserve(block.len, strings.len());
        for (row, view) in views.as_chunks::<VIEW>().0.iter().enumerate() {
            let view = u128::from_le_bytes(*view);
            let (len, at) = (view as u32 as usize, (view >> 96) as usize);
            let beyond =
                if len > INLINE { strings.get(at..) } else { views.get(row * VIEW + PREFIX..) };
            let beyond = beyond.filter(|beyond| beyond.len() >= len).ok_or_else(damaged)?;
            if !joined.push_beyond(beyond, len) {
                return Err(damaged());
            }
        }
    }
    Ok(joined.finish(nulls)?)
}

/// The buffers of an array and of all its children.
struct Raw {
    len: usize,
    nulls: Option<NullBuffer>,
    buffers: Vec<Buffer>,
    children: Vec<Raw>,
}

impl Raw {
    /// Returns the buffers, if their number and lengths match the number of rows.
    fn buffers<const N: usize>(
        &self,
        lengths: impl Fn(usize) -> [usize; N],
    ) -> Result<[&Buffer; N]> {
        if self.buffers.len() != N {
            return Err(damaged());
        }
        let lengths = lengths(self.len);
        if self.buffers.iter().zip(lengths).any(|(buffer, len)| buffer.len() != len) {
            return Err(damaged());
        }
        Ok(std::array::from_fn(|index| &self.buffers[index]))
    }

    fn filled(&self, data_type: &DataType) -> Result<ArrayData> {
        let pairs = children(data_type).into_iter().zip(&self.children);
        let children = pairs.map(|(data_type, raw)| raw.filled(data_type));
        let builder = ArrayData::builder(data_type.clone()).len(self.len).nulls(self.nulls.clone());
        let builder = builder.buffers(self.buffers.clone());
        let builder = builder.child_data(children.collect::<Result<_>>()?);
        Ok(builder.align_buffers(true).build()?)
    }
}

struct Reader {
    shape: Buffer,
    body: Buffer,
}

impl Reader {
    /// Returns the number of rows of the first block of `bytes`, a reader of the block, and the
    /// remaining bytes.
    fn of(bytes: &Buffer) -> Result<(usize, Self, Buffer)> {
        let number = |index: usize| -> Result<usize> {
            let number = bytes.get(index * 8..index * 8 + 8).and_then(|eight| eight.first_chunk());
            Ok(u64::from_le_bytes(*number.ok_or_else(damaged)?) as usize)
        };
        let (rows, shape, body) = (number(0)?, number(1)?, number(2)?);
        let front = shape.checked_add(HEAD).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
        let front = front.ok_or_else(damaged)?;
        let total = front.checked_add(body).filter(|&total| total <= bytes.len());
        let total = total.ok_or_else(damaged)?;
        let reader = Self {
            shape: bytes.slice_with_length(HEAD, shape),
            body: bytes.slice_with_length(front, body),
        };
        Ok((rows, reader, bytes.slice(total)))
    }

    fn number(&mut self) -> Result<usize> {
        let mut number = 0;
        for (at, shift) in (0..usize::BITS).step_by(7).enumerate() {
            let &byte = self.shape.get(at).ok_or_else(damaged)?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                self.shape.advance(at + 1);
                return Ok(number);
            }
        }
        Err(damaged())
    }

    fn buffer(&mut self, len: usize) -> Result<Buffer> {
        let padded = len.checked_next_multiple_of(ALIGNMENT).ok_or_else(damaged)?;
        if padded > self.body.len() {
            return Err(damaged());
        }
        let buffer = self.body.slice_with_length(0, len);
        self.body.advance(padded);
        Ok(buffer)
    }

    /// Reads an array and all its children: shapes and buffers come in the same sequence.
    fn array(&mut self, data_type: &DataType) -> Result<Raw> {
        let (len, buffers) = (self.number()?, self.number()?);
        let nulls = if buffers % 2 == 1 { Some(self.buffer(len.div_ceil(8))?) } else { None };
        let nulls = nulls.map(|bits| NullBuffer::new(BooleanBuffer::new(bits, 0, len)));
        let buffers = (0..buffers / 2).map(|_| {
            let len = self.number()?;
            self.buffer(len)
        });
        let buffers = buffers.collect::<Result<_>>()?;
        let children = children(data_type).into_iter().map(|child| self.array(child));
        Ok(Raw { len, nulls, buffers, children: children.collect::<Result<_>>()? })
    }
}
