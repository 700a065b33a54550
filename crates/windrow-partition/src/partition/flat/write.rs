//! Encoding of a record batch's rows into blocks.
//!
//! ```text
//! offsets  .. 10 13 20 26 ..        rows 1..3      offsets 0 7 13
//! bytes    .. aaabbbbbbbcccccc ..   --------->     bytes   bbbbbbbcccccc
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, PrimitiveArray, RecordBatch, downcast_dictionary_array,
    make_array, new_empty_array,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::DataType;

use super::{ALIGNMENT, HEAD, Plain};
use crate::partition::nested::select;
use windrow_kernel::partition::views::{INLINE, PAD, copy_out, outside, outside_bytes};
use windrow_rows::Result;

/// Writes blocks of the rows of one record batch.
pub(in crate::partition) struct Writer<'a> {
    columns: Vec<Column<'a>>,
    shape: Vec<u8>,
}

enum Column<'a> {
    Plain(Plain, ArrayData),
    Other(&'a ArrayRef),
}

impl<'a> Writer<'a> {
    pub(in crate::partition) fn new(batch: &'a RecordBatch) -> Self {
        let columns = batch.columns().iter().map(|column| match Plain::of(column.data_type()) {
            Some(plain) => Column::Plain(plain, column.to_data()),
            None => Column::Other(column),
        });
        Self { columns: columns.collect(), shape: Vec::new() }
    }

    /// Appends a block of `rows` to `out`.
    ///
    /// # Errors
    /// [`Error::Arrow`](windrow_rows::Error::Arrow) if arrays cannot be cut out, which never
    /// happens to arrays built by Arrow.
    pub(in crate::partition) fn write(
        &mut self,
        rows: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        out.resize(start + HEAD, 0);
        let mut others = Vec::new();
        self.shape.clear();
        for column in &self.columns {
            match column {
                Column::Plain(plain, data) => plain.put_shape(data, &rows, &mut self.shape),
                Column::Other(array) => {
                    let array = cut_out(&array.slice(rows.start, rows.len()))?;
                    put_shape(&array, &mut self.shape);
                    others.push(array);
                }
            }
        }
        out.extend_from_slice(&self.shape);
        pad(out);
        let body = out.len();
        let mut others = others.iter();
        for column in &self.columns {
            match column {
                Column::Plain(plain, data) => plain.put_buffers(data, &rows, out),
                Column::Other(_) => {
                    others.by_ref().take(1).for_each(|array| put_buffers(array, out))
                }
            }
        }
        let numbers = [rows.len(), self.shape.len(), out.len() - body];
        for (index, number) in numbers.into_iter().enumerate() {
            let at = start + index * 8;
            out[at..at + 8].copy_from_slice(&(number as u64).to_le_bytes());
        }
        Ok(())
    }
}

impl Plain {
    fn put_shape(self, data: &ArrayData, rows: &Range<usize>, shape: &mut Vec<u8>) {
        let has_nulls = usize::from(nulls(data, rows).is_some());
        let len = rows.len();
        put_number(len, shape);
        let mut buffers = |lengths: &[usize]| {
            put_number(lengths.len() * 2 + has_nulls, shape);
            lengths.iter().for_each(|&len| put_number(len, shape));
        };
        match self {
            Self::Bits => buffers(&[len.div_ceil(8)]),
            Self::Numbers(width) => buffers(&[len * width]),
            Self::Texts(4) => buffers(&[(len + 1) * 4, between(offsets::<i32>(data, rows)).len()]),
            Self::Texts(_) => buffers(&[(len + 1) * 8, between(offsets::<i64>(data, rows)).len()]),
            Self::Views => {
                buffers(&[len * 16, outside_bytes(&valid_views(data, rows))]);
            }
        }
    }

    fn put_buffers(self, data: &ArrayData, rows: &Range<usize>, out: &mut Vec<u8>) {
        if let Some(nulls) = nulls(data, rows) {
            put_bits(nulls.validity(), nulls.offset() + rows.start, rows.len(), out);
            pad(out);
        }
        match self {
            Self::Bits => {
                put_bits(&data.buffers()[0], data.offset() + rows.start, rows.len(), out);
            }
            Self::Numbers(width) => {
                let start = (data.offset() + rows.start) * width;
                out.extend_from_slice(&data.buffers()[0][start..start + rows.len() * width]);
            }
            Self::Texts(4) => {
                let offsets = offsets::<i32>(data, rows);
                out.extend(offsets.iter().flat_map(|at| (at - offsets[0]).to_le_bytes()));
                pad(out);
                out.extend_from_slice(&data.buffers()[1][between(offsets)]);
            }
            Self::Texts(_) => {
                let offsets = offsets::<i64>(data, rows);
                out.extend(offsets.iter().flat_map(|at| (at - offsets[0]).to_le_bytes()));
                pad(out);
                out.extend_from_slice(&data.buffers()[1][between(offsets)]);
            }
            Self::Views => {
                // There is one buffer of strings, after the views.
                let mut moved = valid_views(data, rows);
                let first = out.len();
                let start = first + moved.len() * 16;
                let end = start + outside_bytes(&moved);
                out.resize(end + PAD, 0);
                copy_out(&mut moved, &data.buffers()[1..], &mut out[start..]);
                out.truncate(end);
                for (bytes, view) in out[first..].as_chunks_mut().0.iter_mut().zip(moved) {
                    *bytes = view.to_le_bytes();
                }
            }
        }
        pad(out);
    }
}

/// Returns the nulls of `data`, if some of `rows` are null.
fn nulls<'a>(data: &'a ArrayData, rows: &Range<usize>) -> Option<&'a NullBuffer> {
    let nulls = data.nulls()?;
    let (bytes, first) = (nulls.validity(), nulls.offset() + rows.start);
    let all = |at: usize| {
        let left = rows.len() - at;
        bits(bytes, first + at, left) == 0xff >> 8_usize.saturating_sub(left)
    };
    (0..rows.len()).step_by(8).any(|at| !all(at)).then_some(nulls)
}

/// Returns up to eight bits from bit `at` on, of which `left` remain, followed by zeros.
fn bits(bytes: &[u8], at: usize, left: usize) -> u8 {
    let (byte, shift) = (at / 8, at % 8);
    let low = bytes[byte] >> shift;
    let missing = 8 - shift;
    let high = if left > missing { (u16::from(bytes[byte + 1]) << missing) as u8 } else { 0 };
    (low | high) & (0xff >> 8_usize.saturating_sub(left))
}

fn put_bits(bytes: &[u8], first: usize, len: usize, out: &mut Vec<u8>) {
    out.extend((0..len).step_by(8).map(|at| bits(bytes, first + at, len - at)));
}

/// Returns the start of each string of `rows`, and the end of the last.
fn offsets<'a, O: ArrowNativeType>(data: &'a ArrayData, rows: &Range<usize>) -> &'a [O] {
    &data.buffer::<O>(0)[rows.start..=rows.end]
}

fn between<O: ArrowNativeType>(offsets: &[O]) -> Range<usize> {
    offsets[0].as_usize()..offsets[offsets.len() - 1].as_usize()
}

fn views<'a>(data: &'a ArrayData, rows: &Range<usize>) -> &'a [u128] {
    &data.buffer::<u128>(0)[rows.start..rows.end]
}

/// Returns the views of `rows`. Those of null rows, which may refer to any bytes, are empty if they
/// refer to none.
fn valid_views(data: &ArrayData, rows: &Range<usize>) -> Vec<u128> {
    let mut views = views(data, rows).to_vec();
    if data.null_count() > 0 {
        for view in &mut views {
            if *view as u32 as usize > INLINE && outside(*view, &data.buffers()[1..]).is_none() {
                *view = 0;
            }
        }
    }
    views
}

/// Copies `array` to offset 0, with no more values, buffers and entries than it uses.
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

/// Returns a dictionary array with only the used values, in order of first use.
fn without_unused(array: &ArrayRef) -> Result<ArrayRef> {
    let dictionary = array.as_any_dictionary();
    if array.is_empty() {
        return Ok(new_empty_array(array.data_type()));
    }
    let mut places = HashMap::new();
    let mut used = Vec::new();
    // The keys of nulls are the keys of some value.
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
        // New keys are below the number of rows, and within the range of the old keys.
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

/// Returns true if a copy of the array may share more than it uses.
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

/// Writes seven bits a byte, lowest bits first; the top bit says whether more bytes follow.
fn put_number(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
