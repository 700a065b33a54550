//! Selection of rows of any array, for types without a kernel.
//!
//! ```text
//! runs             neighbours of one run stay one run: 7 7 7 9 | rows 0 1 3 --> 7 7 9
//! fixed lists      the elements of each row, taken from the values
//! structs, unions  the rows of each child
//! lists, maps      Arrow's `take`, after a check that offsets can count the elements
//! all else         Arrow's `take`
//! ```
//!
//! Differences from Arrow's `take`: `take` panics where elements outgrow 32-bit offsets, as rows of
//! one long run do, so that this module handles every type with lists inside. `take` also counts
//! the elements of fixed lists in 32 bits, loses the rows of values of width 0, and makes bitmaps
//! without nulls.
//!
//! Invariant: `select(array, rows)[i]` is `array[rows[i]]`, in the same type and encoding.
//!
//! Known limit: a run of long lists whose rows are separated becomes as many lists, and may outgrow
//! offsets of 32 bits; this is an error.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeBinaryArray, FixedSizeListArray, OffsetSizeTrait, StructArray,
    UInt64Array, UnionArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use arrow_select::take::take;

use super::runs::{run_ends, runs};
use windrow_rows::{Error, Result};

/// Returns the rows `rows` of `array`, in this order.
pub(super) fn select(array: &ArrayRef, rows: &[u64]) -> Result<ArrayRef> {
    if let Some((values, of)) = runs(array) {
        return select_runs(array.data_type(), values, rows.iter().map(|&row| of[row as usize]));
    }
    let len = rows.len();
    match array.data_type() {
        DataType::List(_) => check(array.as_list::<i32>().value_offsets(), array, rows)?,
        DataType::LargeList(_) => check(array.as_list::<i64>().value_offsets(), array, rows)?,
        DataType::Map(_, _) => check(array.as_map().value_offsets(), array, rows)?,
        DataType::FixedSizeList(field, size) => {
            let step = *size as u64;
            let elements = rows.iter().flat_map(|row| row * step..(row + 1) * step);
            let elements: Vec<u64> = elements.collect();
            let values = select(array.as_fixed_size_list().values(), &elements)?;
            let (field, nulls) = (field.clone(), select_nulls(array, rows));
            let array = FixedSizeListArray::try_new_with_length(field, *size, values, nulls, len)?;
            return Ok(Arc::new(array));
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter();
            let columns = columns.map(|column| select(column, rows)).collect::<Result<_>>()?;
            let (fields, nulls) = (fields.clone(), select_nulls(array, rows));
            return Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, len)?));
        }
        DataType::Union(_, _) => return Ok(Arc::new(union(array.as_union(), rows)?)),
        DataType::FixedSizeBinary(0) => {
            let (values, nulls) = (Buffer::from_vec(Vec::<u8>::new()), select_nulls(array, rows));
            return Ok(Arc::new(FixedSizeBinaryArray::try_new_with_len(0, values, nulls, len)?));
        }
        _ => {}
    }
    Ok(take(array, &UInt64Array::from(rows.to_vec()), None)?)
}

/// Returns the nulls of `rows`, if there are any.
fn select_nulls(array: &ArrayRef, rows: &[u64]) -> Option<NullBuffer> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0)?;
    let valid = |at: usize| nulls.is_valid(rows[at] as usize);
    Some(NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), valid)))
        .filter(|nulls| nulls.null_count() > 0)
}

/// Fails if the lists of `rows` have more elements than offsets can count. `offsets` are the starts
/// of all lists; null lists do not count.
fn check<O: OffsetSizeTrait>(offsets: &[O], array: &ArrayRef, rows: &[u64]) -> Result<()> {
    let valid = |row: &usize| array.is_valid(*row);
    let rows = rows.iter().map(|&row| row as usize).filter(valid);
    let total: usize = rows.map(|row| offsets[row + 1].as_usize() - offsets[row].as_usize()).sum();
    O::from_usize(total).map(drop).ok_or_else(overflow)
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

/// Makes a run-end array of `data_type`, whose rows have the runs `runs` of `values`.
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
    let of_ends = match data_type {
        DataType::RunEndEncoded(field, _) => field.data_type(),
        other => other,
    };
    let ends = run_ends(of_ends, &ends).ok_or_else(overflow)?.to_data();
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
