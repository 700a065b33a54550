//! Compaction of view arrays: removes bytes outside of all views.
//!
//! The views of an array point into shared buffers. A slice of a few rows keeps the buffers of all
//! rows, and the record batches of the rows determine the buffers. An Arrow message contains whole
//! buffers, so views are compacted into one buffer before encoding.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt64Array, make_array};
use arrow_schema::ArrowError;
use arrow_schema::DataType;
use arrow_select::take::take;

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
            let own = own_rows(array)?.to_data();
            let children = own.child_data().iter();
            let children = children.map(|child| Ok(compact(&make_array(child.clone()))?.to_data()));
            let children = children.collect::<Result<_, ArrowError>>()?;
            Ok(make_array(own.into_builder().child_data(children).build()?))
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// Copies a nested array. A slice of lists keeps the children of all lists, the copy only its own.
pub(super) fn own_rows(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let rows = UInt64Array::from_iter_values(0..array.len() as u64);
    take(array, &rows, None)
}

fn has_views(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_views(field.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_views(item.data_type()),
        _ => false,
    }
}
