//! Walks over nested types: the fields of a type's children, and types with other children. Record
//! batches of any number of columns, none included.

use std::convert::Infallible;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, SchemaRef};

/// Returns a record batch of `rows` rows, which the columns do not tell where there are none.
pub(crate) fn with_rows(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

pub(crate) fn with_type(field: &FieldRef, kind: DataType) -> FieldRef {
    Arc::new(Field::clone(field).with_data_type(kind))
}

/// Returns `field` with its type's child fields replaced by `change`. The ends of runs stay.
pub(crate) fn mapped(field: &FieldRef, mut change: impl FnMut(&FieldRef) -> FieldRef) -> FieldRef {
    let Ok(kind) = with_fields(field.data_type(), |of| Ok::<_, Infallible>(change(of)));
    with_type(field, kind)
}

/// Returns the fields of an array's children. Members of unions and values of dictionaries do not
/// count.
pub(crate) fn child_fields(data_type: &DataType) -> Vec<FieldRef> {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(Arc::clone).collect(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => vec![Arc::clone(item)],
        DataType::RunEndEncoded(ends, values) => vec![Arc::clone(ends), Arc::clone(values)],
        _ => Vec::new(),
    }
}

/// Returns the type with its child fields replaced by `change`. The ends of runs stay.
pub(crate) fn with_fields<E>(
    data_type: &DataType,
    mut change: impl FnMut(&FieldRef) -> Result<FieldRef, E>,
) -> Result<DataType, E> {
    use DataType as D;
    Ok(match data_type {
        D::Struct(fields) => D::Struct(fields.iter().map(change).collect::<Result<_, E>>()?),
        D::List(item) => D::List(change(item)?),
        D::LargeList(item) => D::LargeList(change(item)?),
        D::ListView(item) => D::ListView(change(item)?),
        D::LargeListView(item) => D::LargeListView(change(item)?),
        D::FixedSizeList(item, length) => D::FixedSizeList(change(item)?, *length),
        D::Map(entries, sorted) => D::Map(change(entries)?, *sorted),
        D::RunEndEncoded(ends, values) => D::RunEndEncoded(Arc::clone(ends), change(values)?),
        other => other.clone(),
    })
}
