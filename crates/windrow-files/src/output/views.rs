//! Compaction of view arrays: removes bytes outside of all views.
//!
//! The views of an array, of strings or of lists, point into shared buffers. A slice of a few rows
//! keeps the buffers of all rows, and the record batches of the rows determine the buffers. An
//! Arrow message contains whole buffers, so views are compacted into one buffer before encoding.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType};
use arrow_select::interleave::interleave;

use crate::nested::{child_fields, with_children};

/// Returns the record batch with every view array compacted.
pub(super) fn compact_views(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(compact);
    RecordBatch::try_new(batch.schema(), columns.collect::<Result<_, _>>()?)
}

fn compact(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Utf8View => Ok(Arc::new(array.as_string_view().gc())),
        DataType::BinaryView => Ok(Arc::new(array.as_binary_view().gc())),
        nested if has_views(nested) => {
            with_children(&own(array)?, nested, |child, _| compact(&child))?
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// Copies an array. A slice of lists keeps the children of all lists, the copy only its own.
pub(super) fn own(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    // `take` leaves the children of views of lists unchanged.
    let rows: Vec<(usize, usize)> = (0..array.len()).map(|row| (0, row)).collect();
    interleave(&[array.as_ref()], &rows)
}

fn has_views(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View
        | DataType::BinaryView
        | DataType::ListView(_)
        | DataType::LargeListView(_) => true,
        DataType::RunEndEncoded(..) => false,
        nested => child_fields(nested).iter().any(|field| has_views(field.data_type())),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int32Builder, ListViewBuilder};
    use arrow_array::types::Int32Type;

    use super::*;

    #[test]
    fn views_of_lists_have_their_own_items_only() {
        let mut lists = ListViewBuilder::new(Int32Builder::new());
        for row in 0..100 {
            lists.append_value([Some(row), None, Some(-row)]);
        }
        let lists = Arc::new(lists.finish()) as ArrayRef;
        let compacted = compact(&lists.slice(7, 2)).expect("compacted");
        let items = compacted.as_list_view::<i32>().values();
        let items: Vec<_> = items.as_primitive::<Int32Type>().iter().collect();
        assert_eq!(items, [Some(7), None, Some(-7), Some(8), None, Some(-8)]);
        assert_eq!(&compacted, &lists.slice(7, 2));
    }
}
