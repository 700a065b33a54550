//! Record batches as bytes and back: what a partition's rows are while they wait.
//!
//! ```text
//!  | rows, bytes of shape, bytes of body | shape: lengths of arrays and buffers | body: buffers |
//!    three u64                             numbers of varying length, padded        each padded to 8
//! ```
//!
//! The schema is not in the bytes; who reads has it. Arrays come in the order of columns, an array
//! before its children.
//!
//! Invariant: a block holds what its rows use and nothing else - slices are cut out, views and
//! dictionaries too, down to the last child. What is read is what was written, in the same types.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
    downcast_dictionary_array, make_array, new_empty_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, SchemaRef};

use super::nested::select;
use crate::error::{Error, Result};

/// Bytes of the three numbers in front.
const HEAD: usize = 24;
/// Buffers and blocks are padded to so many bytes; readers copy what needs more.
const ALIGNMENT: usize = 8;

/// Appends a block of the rows of `batch` to `out`.
///
/// # Errors
/// [`Error::Arrow`] if arrays cannot be cut out, which no array of Arrow's makers gives cause to.
pub(super) fn write(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
    let mut shape = Vec::new();
    let start = out.len();
    out.resize(start + HEAD, 0);
    let mut arrays = Vec::with_capacity(batch.num_columns());
    for column in batch.columns() {
        let array = cut_out(column)?;
        put_shape(&array, &mut shape);
        arrays.push(array);
    }
    out.extend_from_slice(&shape);
    pad(out);
    let body = out.len();
    arrays.iter().for_each(|array| put_buffers(array, out));
    let numbers = [batch.num_rows(), shape.len(), out.len() - body];
    for (index, number) in numbers.into_iter().enumerate() {
        let at = start + index * 8;
        out[at..at + 8].copy_from_slice(&(number as u64).to_le_bytes());
    }
    Ok(())
}

/// The record batch of the first block of `bytes`, over the same memory, and the bytes behind it.
///
/// # Errors
/// [`Error::Corrupt`] if these bytes are no block of the schema's types.
pub(super) fn read(schema: &SchemaRef, bytes: &Buffer) -> Result<(RecordBatch, Buffer)> {
    let number = |index: usize| -> Result<usize> {
        let number = bytes.get(index * 8..index * 8 + 8).and_then(|eight| eight.first_chunk());
        Ok(u64::from_le_bytes(*number.ok_or_else(damaged)?) as usize)
    };
    let (rows, shape, body) = (number(0)?, number(1)?, number(2)?);
    let front = shape.checked_add(HEAD).ok_or_else(damaged)?.next_multiple_of(ALIGNMENT);
    let total = front.checked_add(body).filter(|&total| total <= bytes.len());
    let total = total.ok_or_else(damaged)?;
    let mut reader =
        Reader { shape: &bytes[HEAD..HEAD + shape], body: bytes.slice_with_length(front, body) };
    let columns = schema.fields().iter().map(|field| reader.array(field.data_type()));
    let columns = columns.map(|array| array.map(make_array)).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
    Ok((batch, bytes.slice(total)))
}

fn damaged() -> Error {
    Error::Corrupt {
        place: "a block of a partition".into(),
        message: "its numbers do not fit its bytes".into(),
    }
}

/// `array` from offset 0, with no more values, buffers and entries than it uses.
fn cut_out(array: &ArrayRef) -> Result<ArrayData> {
    match array.data_type() {
        DataType::Utf8View => return Ok(array.as_string_view().gc().into_data()),
        DataType::BinaryView => return Ok(array.as_binary_view().gc().into_data()),
        DataType::Dictionary(_, _) if array.as_any_dictionary().values().len() > array.len() => {
            return copied(&without_unused(array)?.to_data());
        }
        _ => {}
    }
    copied(&array.to_data())
}

fn copied(data: &ArrayData) -> Result<ArrayData> {
    let mut copy = MutableArrayData::new(vec![data], false, data.len());
    copy.try_extend(0, 0, data.len())?;
    let data = copy.freeze();
    if !data.child_data().iter().any(pins_more) {
        return Ok(data);
    }
    let children = data.child_data().iter().map(|child| cut_out(&make_array(child.clone())));
    let children = children.collect::<Result<_>>()?;
    Ok(data.into_builder().child_data(children).build()?)
}

/// A dictionary array with the values that its rows use, in the order of their first use.
fn without_unused(array: &ArrayRef) -> Result<ArrayRef> {
    let dictionary = array.as_any_dictionary();
    if array.is_empty() {
        return Ok(new_empty_array(array.data_type()));
    }
    let mut places = HashMap::new();
    let mut used = Vec::new();
    // The keys of nulls are those of some value.
    let keys = dictionary.normalized_keys().into_iter().map(|key| {
        *places.entry(key).or_insert_with(|| {
            used.push(key as u64);
            used.len() - 1
        })
    });
    let keys: Vec<usize> = keys.collect();
    let values = select(dictionary.values(), &used)?;
    fn renumbered<K: ArrowDictionaryKeyType>(
        old: &PrimitiveArray<K>,
        keys: &[usize],
        values: ArrayRef,
    ) -> Result<ArrayRef> {
        // New numbers are below the rows, and below the old ones' range.
        let keys: ScalarBuffer<K::Native> =
            keys.iter().map(|&key| K::Native::usize_as(key)).collect();
        let keys = PrimitiveArray::<K>::new(keys, old.nulls().cloned());
        Ok(Arc::new(DictionaryArray::try_new(keys, values)?))
    }
    let any: &dyn Array = array;
    downcast_dictionary_array! {
        any => renumbered(any.keys(), &keys, values),
        _other => Ok(Arc::clone(array)),
    }
}

/// True if a copy of the array may share more than it uses.
fn pins_more(data: &ArrayData) -> bool {
    use DataType as T;
    matches!(data.data_type(), T::Utf8View | T::BinaryView | T::Dictionary(_, _))
        || data.offset() > 0
        || data.child_data().iter().any(pins_more)
}

fn put_shape(data: &ArrayData, shape: &mut Vec<u8>) {
    debug_assert_eq!(data.offset(), 0);
    put_number(data.len(), shape);
    put_number(data.buffers().len() * 2 + usize::from(data.nulls().is_some()), shape);
    data.buffers().iter().for_each(|buffer| put_number(buffer.len(), shape));
    data.child_data().iter().for_each(|child| put_shape(child, shape));
}

fn put_buffers(data: &ArrayData, out: &mut Vec<u8>) {
    if let Some(nulls) = data.nulls() {
        out.extend_from_slice(&nulls.inner().sliced());
        pad(out);
    }
    for buffer in data.buffers() {
        out.extend_from_slice(buffer);
        pad(out);
    }
    data.child_data().iter().for_each(|child| put_buffers(child, out));
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn put_number(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

struct Reader<'a> {
    shape: &'a [u8],
    body: Buffer,
}

impl Reader<'_> {
    fn number(&mut self) -> Result<usize> {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let (&byte, rest) = self.shape.split_first().ok_or_else(damaged)?;
            self.shape = rest;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
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
        self.body = self.body.slice(padded);
        Ok(buffer)
    }

    fn array(&mut self, data_type: &DataType) -> Result<ArrayData> {
        let node = self.node(data_type)?;
        self.filled(data_type, node)
    }

    /// The shape of an array and of all below it, which stands before that of the next.
    fn node(&mut self, data_type: &DataType) -> Result<Node> {
        let (len, buffers) = (self.number()?, self.number()?);
        let nulls = buffers % 2 == 1;
        let buffers = (0..buffers / 2).map(|_| self.number()).collect::<Result<_>>()?;
        let children = children(data_type).into_iter().map(|child| self.node(child));
        Ok(Node { len, nulls, buffers, children: children.collect::<Result<_>>()? })
    }

    fn filled(&mut self, data_type: &DataType, node: Node) -> Result<ArrayData> {
        let nulls = node.nulls.then(|| self.buffer(node.len.div_ceil(8))).transpose()?;
        let nulls = nulls.map(|bits| NullBuffer::new(BooleanBuffer::new(bits, 0, node.len)));
        let buffers = node.buffers.into_iter().map(|len| self.buffer(len));
        let buffers = buffers.collect::<Result<_>>()?;
        let pairs = children(data_type).into_iter().zip(node.children);
        let children = pairs.map(|(data_type, node)| self.filled(data_type, node));
        let builder = ArrayData::builder(data_type.clone()).len(node.len).nulls(nulls);
        let builder = builder.buffers(buffers).child_data(children.collect::<Result<_>>()?);
        Ok(builder.align_buffers(true).build()?)
    }
}

struct Node {
    len: usize,
    nulls: bool,
    buffers: Vec<usize>,
    children: Vec<Node>,
}

/// The types of the arrays below one of `data_type`.
fn children(data_type: &DataType) -> Vec<&DataType> {
    use DataType as T;
    match data_type {
        T::List(field) | T::LargeList(field) | T::ListView(field) | T::LargeListView(field) => {
            vec![field.data_type()]
        }
        T::FixedSizeList(field, _) | T::Map(field, _) => vec![field.data_type()],
        T::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        T::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        T::Dictionary(_, values) => vec![values],
        T::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => Vec::new(),
    }
}
