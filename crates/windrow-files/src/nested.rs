//! Walks over nested types: the fields of a type's children, and types and arrays with other
//! children. Record batches of any number of columns, none included; casts of whole values.

use std::convert::Infallible;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, SchemaRef};
use arrow_select::interleave::interleave_record_batch;

/// Returns a record batch of `rows` rows, which the columns do not tell where there are none.
pub(crate) fn with_rows(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// Returns `array` as of `kind`, with its child arrays replaced by `change`, which also gets the
/// number of each. The inner error is of children that do not form an array of `kind`.
pub(crate) fn with_children<E>(
    array: &ArrayRef,
    kind: &DataType,
    mut change: impl FnMut(ArrayRef, usize) -> Result<ArrayRef, E>,
) -> Result<Result<ArrayRef, ArrowError>, E> {
    let data = array.to_data();
    let children = data.child_data().iter().enumerate();
    let children = children.map(|(at, child)| Ok(change(make_array(child.clone()), at)?.to_data()));
    let children = children.collect::<Result<_, E>>()?;
    let data = data.into_builder().data_type(kind.clone()).child_data(children);
    Ok(data.build().map(make_array))
}

/// Returns the precision and the scale of a decimal of any width.
pub(crate) fn of_decimal(kind: &DataType) -> Option<(u8, i8)> {
    match kind {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

/// Copies the rows, without anything else that their arrays hold.
pub(crate) fn copied(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let all: Vec<_> = (0..rows.num_rows()).map(|row| (0, row)).collect();
    interleave_record_batch(&[rows], &all)
}

/// Casts an array. A value that does not fit is an error.
pub(crate) fn strict_cast(values: &dyn Array, to: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(values, to, &CastOptions { safe: false, ..CastOptions::default() })
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
