//! Longest row of a record batch, in bytes of its values of variable width.
//!
//! Nearly no record batch has a row of a critical length. An upper bound comes first: the sum of
//! the longest values of all columns, computed from their offsets. Only a bound above the limit
//! requires a look at each row.

use std::ops::{Range, Sub};

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, GenericByteViewArray, RecordBatch};
use arrow_schema::DataType;

/// Returns the longest row of `batch` and its bytes, if these exceed `most`.
pub(super) fn longest_row(batch: &RecordBatch, most: u64) -> Option<(usize, u64)> {
    let columns = batch.columns().iter().filter(|column| varies(column.data_type()));
    let together: u64 = columns.clone().map(|column| longest(column)).fold(0, u64::saturating_add);
    if together <= most {
        return None;
    }
    let mut rows = vec![0; batch.num_rows()];
    columns.for_each(|column| add(column, &mut rows));
    let (row, bytes) = rows.into_iter().enumerate().max_by_key(|(_, bytes)| *bytes)?;
    (bytes > most).then_some((row, bytes))
}

/// Returns for each row of `batch` the bytes of its values of at least `least` bytes; `None` if no
/// value is that long.
pub(crate) fn long_values(batch: &RecordBatch, least: u64) -> Option<Vec<u64>> {
    let columns = batch.columns().iter();
    let mut columns =
        columns.filter(|column| varies(column.data_type()) && longest(column) >= least).peekable();
    columns.peek()?;
    let mut rows = vec![0; batch.num_rows()];
    for column in columns {
        let mut values = vec![0; batch.num_rows()];
        add(column, &mut values);
        for (row, value) in rows.iter_mut().zip(values) {
            *row += if value >= least { value } else { 0 };
        }
    }
    Some(rows)
}

fn varies(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| varies(field.data_type())),
        DataType::Dictionary(_, values) => varies(values),
        DataType::RunEndEncoded(_, values) => varies(values.data_type()),
        other => {
            other.primitive_width().is_none()
                && !matches!(other, DataType::Boolean | DataType::Null)
        }
    }
}

/// Returns an upper bound for the bytes of the longest value.
fn longest(array: &dyn Array) -> u64 {
    match array.data_type() {
        DataType::Utf8 => widest(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => widest(array.as_string::<i64>().value_offsets()),
        DataType::Binary => widest(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => widest(array.as_binary::<i64>().value_offsets()),
        DataType::Utf8View => lengths(array.as_string_view()).max().unwrap_or(0),
        DataType::BinaryView => lengths(array.as_binary_view()).max().unwrap_or(0),
        DataType::Dictionary(..) => longest(array.as_any_dictionary().values()),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(|member| longest(member)).sum()
        }
        _ => {
            let mut rows = vec![0; array.len()];
            add(array, &mut rows);
            rows.into_iter().max().unwrap_or(0)
        }
    }
}

fn widest<O: Copy + Ord + Default + Sub<Output = O> + Into<i64>>(offsets: &[O]) -> u64 {
    // Arithmetic in the width of the offsets, and a maximum without a special first value, let the
    // compiler vectorize this loop.
    let widths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
    widths.fold(O::default(), Ord::max).into().unsigned_abs()
}

fn lengths<T: ByteViewType>(array: &GenericByteViewArray<T>) -> impl Iterator<Item = u64> {
    array.lengths().map(u64::from)
}

/// Adds the bytes of each value to its row.
fn add(array: &dyn Array, rows: &mut [u64]) {
    match array.data_type() {
        DataType::Utf8 => spans(array.as_string::<i32>().value_offsets(), rows),
        DataType::LargeUtf8 => spans(array.as_string::<i64>().value_offsets(), rows),
        DataType::Binary => spans(array.as_binary::<i32>().value_offsets(), rows),
        DataType::LargeBinary => spans(array.as_binary::<i64>().value_offsets(), rows),
        DataType::Utf8View => {
            rows.iter_mut().zip(lengths(array.as_string_view())).for_each(|(row, n)| *row += n);
        }
        DataType::BinaryView => {
            rows.iter_mut().zip(lengths(array.as_binary_view())).for_each(|(row, n)| *row += n);
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            // All keys are null here, and cannot be normalized.
            if dictionary.values().is_empty() {
                return;
            }
            let mut values = vec![0; dictionary.values().len()];
            add(dictionary.values(), &mut values);
            for (row, key) in rows.iter_mut().zip(dictionary.normalized_keys()) {
                *row += values.get(key).copied().unwrap_or(0);
            }
        }
        DataType::Struct(_) => {
            array.as_struct().columns().iter().for_each(|member| add(member, rows))
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            items(list.values(), list.value_offsets(), rows);
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            items(list.values(), list.value_offsets(), rows);
        }
        DataType::Map(..) => items(array.as_map().entries(), array.as_map().value_offsets(), rows),
        DataType::FixedSizeList(..) | DataType::FixedSizeBinary(_) => {
            let bytes = array.to_data().get_slice_memory_size().unwrap_or(0) as u64;
            let row_bytes = bytes / array.len().max(1) as u64;
            rows.iter_mut().for_each(|row| *row += row_bytes);
        }
        // A fixed width, or a type that no reader produces.
        other => {
            let width = other.primitive_width().unwrap_or(0) as u64;
            rows.iter_mut().for_each(|row| *row += width);
        }
    }
}

fn spans<O: Copy + Into<i64>>(offsets: &[O], rows: &mut [u64]) {
    for (row, pair) in rows.iter_mut().zip(offsets.windows(2)) {
        *row += (pair[1].into() - pair[0].into()).unsigned_abs();
    }
}

/// Adds the bytes of each list's items to its row.
fn items<O: Copy + Into<i64>>(values: &dyn Array, offsets: &[O], rows: &mut [u64]) {
    let place = |offset: O| usize::try_from(offset.into()).unwrap_or(0);
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return };
    if let Some(width) = values.data_type().primitive_width() {
        for (row, pair) in rows.iter_mut().zip(offsets.windows(2)) {
            *row += (place(pair[1]) - place(pair[0])) as u64 * width as u64;
        }
        return;
    }
    let within: Range<usize> = place(first)..place(last);
    let mut of_items = vec![0; within.len()];
    add(&values.slice(within.start, within.len()), &mut of_items);
    for (row, pair) in rows.iter_mut().zip(offsets.windows(2)) {
        let part = place(pair[0]) - within.start..place(pair[1]) - within.start;
        *row += of_items[part].iter().sum::<u64>();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{Int8Type, Int64Type};
    use arrow_array::{ArrayRef, DictionaryArray, Int64Array, ListArray, StringArray, StructArray};
    use arrow_schema::Field;

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    #[test]
    fn bytes_of_columns_add_up() {
        let texts = Arc::new(StringArray::from(vec!["a", "bbbb", "cc", ""])) as ArrayRef;
        let lists = vec![Some(vec![Some(1), Some(2)]), None, Some(vec![Some(3)]), Some(vec![])];
        let lists = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)) as ArrayRef;
        let keys: DictionaryArray<Int8Type> = vec!["x", "yyyyyyyy", "x", "x"].into_iter().collect();
        let keys = Arc::new(keys) as ArrayRef;
        let numbers = Arc::new(Int64Array::from(vec![1, 2, 3, 4])) as ArrayRef;
        let field = Arc::new(Field::new("t", DataType::Utf8, true));
        let nested = Arc::new(StructArray::from(vec![(field, texts.clone())])) as ArrayRef;
        let all =
            batch(vec![("t", texts), ("l", lists), ("k", keys), ("n", numbers), ("s", nested)]);
        // 1 + 16 + 1 + 1, 4 + 0 + 8 + 4, 2 + 8 + 1 + 2, 0 + 0 + 1 + 0.
        assert_eq!(longest_row(&all, 0), Some((0, 19)));
        assert_eq!(longest_row(&all.slice(1, 3), 0), Some((0, 16)));
        assert_eq!(longest_row(&all.slice(2, 2), 12), Some((0, 13)));
        assert_eq!(longest_row(&all, 19), None);
    }
}
