//! Rows of any array, taken one by one: types without a kernel of their own.
//!
//! ```text
//! lists, maps      the elements of each row, taken from the values
//! list views       offsets and sizes; values are shared
//! runs             neighbours of one run are one run again
//! unions           the rows of each child
//! ```
//!
//! Invariant: `select(array, rows)[i]` is `array[rows[i]]`, in the same type and encoding.
//!
//! Known limit: a run of long lists whose rows part company becomes as many lists, and may outgrow
//! offsets of 32 bits; that is an error.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, GenericListArray,
    GenericListViewArray, MapArray, NullArray, OffsetSizeTrait, PrimitiveArray, StructArray,
    UInt64Array, UnionArray, downcast_dictionary_array, make_array,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use arrow_select::take::take;

use super::runs::runs;
use crate::error::{Error, Result};

/// The rows of `array` that `rows` names, in that order.
pub(super) fn select(array: &ArrayRef, rows: &[u64]) -> Result<ArrayRef> {
    if let Some((values, of)) = runs(array) {
        return select_runs(array.data_type(), values, rows.iter().map(|&row| of[row as usize]));
    }
    let nulls = select_nulls(array, rows);
    let any: &dyn Array = array;
    Ok(match array.data_type() {
        DataType::Null => Arc::new(NullArray::new(rows.len())),
        DataType::List(field) => {
            let (offsets, values) = list(array.as_list::<i32>(), nulls.as_ref(), rows)?;
            Arc::new(GenericListArray::try_new(field.clone(), offsets, values, nulls)?)
        }
        DataType::LargeList(field) => {
            let (offsets, values) = list(array.as_list::<i64>(), nulls.as_ref(), rows)?;
            Arc::new(GenericListArray::try_new(field.clone(), offsets, values, nulls)?)
        }
        DataType::Map(field, ordered) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let (offsets, entries) = elements(map.offsets(), &entries, nulls.as_ref(), rows)?;
            let entries = entries.as_struct().clone();
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *ordered)?)
        }
        DataType::ListView(_) => Arc::new(views(array.as_list_view::<i32>(), nulls, rows)?),
        DataType::LargeListView(_) => Arc::new(views(array.as_list_view::<i64>(), nulls, rows)?),
        DataType::FixedSizeList(field, size) => {
            let step = *size as u64;
            let elements: Vec<u64> =
                rows.iter().flat_map(|row| row * step..(row + 1) * step).collect();
            let values = select(array.as_fixed_size_list().values(), &elements)?;
            let (field, len) = (field.clone(), rows.len());
            Arc::new(FixedSizeListArray::try_new_with_length(field, *size, values, nulls, len)?)
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter();
            let columns = columns.map(|column| select(column, rows)).collect::<Result<_>>()?;
            let (fields, len) = (fields.clone(), rows.len());
            Arc::new(StructArray::try_new_with_length(fields, columns, nulls, len)?)
        }
        DataType::Union(_, _) => Arc::new(union(array.as_union(), rows)?),
        // Of width 0, values say nothing of the number of rows.
        DataType::FixedSizeBinary(width) => {
            let (width, step) = (*width, *width as usize);
            let values = array.as_fixed_size_binary().value_data();
            let mut out = Vec::with_capacity(rows.len() * step);
            for &row in rows {
                let at = row as usize * step;
                out.extend_from_slice(&values[at..at + step]);
            }
            let (values, len) = (Buffer::from_vec(out), rows.len());
            Arc::new(FixedSizeBinaryArray::try_new_with_len(width, values, nulls, len)?)
        }
        DataType::Dictionary(_, _) => downcast_dictionary_array! {
            any => {
                let keys = select_keys(any.keys(), nulls, rows);
                Arc::new(DictionaryArray::try_new(keys, any.values().clone())?)
            }
            _other => array.slice(0, 0),
        },
        _ => take(array, &UInt64Array::from(rows.to_vec()), None)?,
    })
}

fn select_nulls(array: &ArrayRef, rows: &[u64]) -> Option<NullBuffer> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0)?;
    let valid = |at: usize| nulls.is_valid(rows[at] as usize);
    Some(NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), valid)))
        .filter(|nulls| nulls.null_count() > 0)
}

fn select_keys<K: ArrowPrimitiveType>(
    keys: &PrimitiveArray<K>,
    nulls: Option<NullBuffer>,
    rows: &[u64],
) -> PrimitiveArray<K> {
    let values: ScalarBuffer<K::Native> =
        rows.iter().map(|&row| keys.values()[row as usize]).collect();
    PrimitiveArray::new(values, nulls)
}

fn list<O: OffsetSizeTrait>(
    array: &GenericListArray<O>,
    nulls: Option<&NullBuffer>,
    rows: &[u64],
) -> Result<(OffsetBuffer<O>, ArrayRef)> {
    elements(array.offsets(), array.values(), nulls, rows)
}

/// Offsets and values of lists; a null has no elements, whatever it had before.
fn elements<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    values: &ArrayRef,
    nulls: Option<&NullBuffer>,
    rows: &[u64],
) -> Result<(OffsetBuffer<O>, ArrayRef)> {
    let lists = || {
        let valid = |at: usize| nulls.is_none_or(|nulls| nulls.is_valid(at));
        rows.iter().enumerate().map(move |(at, &row)| match valid(at) {
            true => offsets[row as usize].as_usize()..offsets[row as usize + 1].as_usize(),
            false => 0..0,
        })
    };
    // Offsets first: elements that they cannot count could be more than there is memory for.
    let mut out = Vec::with_capacity(rows.len() + 1);
    let mut total = 0;
    out.push(O::zero());
    for list in lists() {
        total += list.len();
        out.push(O::from_usize(total).ok_or_else(overflow)?);
    }
    let mut elements = Vec::with_capacity(total);
    lists().for_each(|list| elements.extend(list.map(|element| element as u64)));
    Ok((OffsetBuffer::new(out.into()), select(values, &elements)?))
}

fn views<O: OffsetSizeTrait>(
    array: &GenericListViewArray<O>,
    nulls: Option<NullBuffer>,
    rows: &[u64],
) -> Result<GenericListViewArray<O>> {
    let (DataType::ListView(field) | DataType::LargeListView(field)) = array.data_type() else {
        return Ok(array.clone());
    };
    let pick = |from: &ScalarBuffer<O>| -> ScalarBuffer<O> {
        rows.iter().map(|&row| from[row as usize]).collect()
    };
    let (offsets, sizes) = (pick(array.offsets()), pick(array.sizes()));
    let values = array.values().clone();
    Ok(GenericListViewArray::try_new(field.clone(), offsets, sizes, values, nulls)?)
}

fn union(array: &UnionArray, rows: &[u64]) -> Result<UnionArray> {
    let DataType::Union(fields, _) = array.data_type() else { return Ok(array.clone()) };
    let ids: ScalarBuffer<i8> = rows.iter().map(|&row| array.type_id(row as usize)).collect();
    if array.offsets().is_none() {
        let children = fields.iter().map(|(id, _)| select(array.child(id), rows));
        let children = children.collect::<Result<_>>()?;
        return Ok(UnionArray::try_new(fields.clone(), ids, None, children)?);
    }
    // A type id is never negative.
    let mut of_child: Vec<Vec<u64>> = vec![Vec::new(); 128];
    let mut offsets = Vec::with_capacity(rows.len());
    for (&row, &id) in rows.iter().zip(&ids) {
        let of_child = &mut of_child[id as usize];
        offsets.push(i32::try_from(of_child.len()).map_err(|_| overflow())?);
        of_child.push(array.value_offset(row as usize) as u64);
    }
    let children = fields.iter().map(|(id, _)| select(array.child(id), &of_child[id as usize]));
    let children = children.collect::<Result<_>>()?;
    Ok(UnionArray::try_new(fields.clone(), ids, Some(offsets.into()), children)?)
}

/// A run-end array of `data_type` whose rows are `runs` of `values`.
fn select_runs(
    data_type: &DataType,
    values: &ArrayRef,
    runs: impl Iterator<Item = u64>,
) -> Result<ArrayRef> {
    let (mut kept, mut ends): (Vec<u64>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut len = 0;
    for run in runs {
        len += 1;
        if kept.last() == Some(&run) {
            ends.pop();
        } else {
            kept.push(run);
        }
        ends.push(len);
    }
    fn array<R: ArrowPrimitiveType>(ends: &[usize]) -> Result<ArrayData> {
        let ends = ends.iter().map(|&end| R::Native::from_usize(end).ok_or_else(overflow));
        let ends = ends.collect::<Result<Vec<_>>>()?;
        Ok(PrimitiveArray::<R>::new(ends.into(), None).into_data())
    }
    let ends = match data_type {
        DataType::RunEndEncoded(field, _) => match field.data_type() {
            DataType::Int16 => array::<Int16Type>(&ends)?,
            DataType::Int32 => array::<Int32Type>(&ends)?,
            _ => array::<Int64Type>(&ends)?,
        },
        _ => array::<Int64Type>(&ends)?,
    };
    let values = select(values, &kept)?.to_data();
    let data = ArrayData::builder(data_type.clone()).len(len).child_data(vec![ends, values]);
    Ok(make_array(data.build()?))
}

fn overflow() -> Error {
    Error::Value {
        column: String::new(),
        message: "a partition has more elements than offsets of its type can count".into(),
    }
}
