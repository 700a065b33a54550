//! Rows for a table, and keys of a table, as Arrow objects or Python values.
//!
//! ```text
//! Arrow object --columns by name--> the key's columns, in the table's order and types
//! 7, "nl", ("nl", 7), a list of these --as text--> the columns of the key
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use windrow_files::Result;

use crate::errors::{mistyped, usage};
use crate::inputs::{is_arrow, pieces};

/// Record batches of a producer, or a single record batch of key values.
pub(crate) type Rows =
    Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send>;

/// Converts an argument with keys to record batches with at least the key columns.
pub(crate) fn keys(name: &str, given: &Bound<'_, PyAny>, key: &SchemaRef) -> PyResult<Rows> {
    if is_arrow(given)? {
        return Ok(Box::new(pieces(given)?));
    }
    let keys: Vec<Bound<'_, PyAny>> = match given.cast::<PyList>() {
        Ok(list) => list.iter().collect(),
        Err(_) => vec![given.clone()],
    };
    let columns = (0..key.fields().len()).map(|at| column(name, &keys, key, at));
    let columns = columns.collect::<PyResult<Vec<_>>>()?;
    let batch = RecordBatch::try_new(Arc::clone(key), columns);
    let batch = batch.map_err(|error| usage(given.py(), &format!("{name}=: {error}")))?;
    Ok(Box::new(std::iter::once(Ok(batch))))
}

/// Converts an argument with rows.
pub(crate) fn rows(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Rows> {
    match is_arrow(given)? {
        true => Ok(Box::new(pieces(given)?)),
        false => Err(mistyped(name, "an Arrow object", given)),
    }
}

/// Builds column `at` of keys given as Python values.
fn column(name: &str, keys: &[Bound<'_, PyAny>], key: &SchemaRef, at: usize) -> PyResult<ArrayRef> {
    let (width, field) = (key.fields().len(), key.field(at));
    let value = |given: &Bound<'_, PyAny>| -> PyResult<Option<Vec<u8>>> {
        let value = match given.cast::<PyTuple>() {
            Ok(values) if values.len() == width => values.get_item(at)?,
            Err(_) if width == 1 => given.clone(),
            _ => {
                let takes = format!(
                    "keys of {width} values: an Arrow object, tuples, or values if that is one"
                );
                return Err(usage(given.py(), &format!("{name}= takes {takes}")));
            }
        };
        if value.is_none() {
            return Ok(None);
        }
        match value.cast::<PyBytes>() {
            Ok(bytes) => Ok(Some(bytes.as_bytes().to_vec())),
            Err(_) => Ok(Some(value.str()?.to_str()?.as_bytes().to_vec())),
        }
    };
    let values = keys.iter().map(value).collect::<PyResult<Vec<_>>>()?;
    let Some(first) = keys.first() else {
        return Ok(arrow_array::new_empty_array(field.data_type()));
    };
    let bytes: BinaryArray = values.iter().map(Option::as_deref).collect();
    let made = match field.data_type() {
        binary if binary.is_binary() => strictly(&bytes, binary),
        other => StringArray::try_from_binary(bytes).and_then(|text| strictly(&text, other)),
    };
    let wrong = |error| usage(first.py(), &format!("{name}=: column {:?}: {error}", field.name()));
    made.map_err(wrong)
}

/// Casts values; fails on any value without an equivalent.
fn strictly(
    values: &dyn arrow_array::Array,
    to: &DataType,
) -> std::result::Result<ArrayRef, ArrowError> {
    cast_with_options(values, to, &CastOptions { safe: false, ..CastOptions::default() })
}

/// Refuses columns that are not in `schema`.
pub(crate) fn known(batch: &RecordBatch, schema: &SchemaRef) -> Result<()> {
    let given = batch.schema();
    let mut names = given.fields().iter().map(|field| field.name());
    match names.find(|name| schema.index_of(name).is_err()) {
        Some(name) => Err(missing(name, schema)),
        None => Ok(()),
    }
}

/// Returns the error of a column that is not in `schema`.
fn missing(column: &str, schema: &SchemaRef) -> windrow_files::Error {
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let (column, available) = (column.to_owned(), names.join(", "));
    windrow::Error::MissingColumn { column, available }.into()
}

/// Selects the columns of `schema` by name, cast to the schema's types.
pub(crate) fn fitted(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = schema.fields().iter().map(|field| {
        let Some(column) = batch.column_by_name(field.name()) else {
            return Err(missing(field.name(), &batch.schema()));
        };
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        if !is_another_layout(column.data_type(), field.data_type()) {
            let expected = format!("{:?}: {}", field.name(), field.data_type());
            let got = column.data_type().to_string();
            return Err(windrow::Error::SchemaMismatch { expected, got }.into());
        }
        Ok(strictly(column, field.data_type()).map_err(windrow::Error::from)?)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns).map_err(windrow::Error::from)?)
}

/// Returns true if both types hold the same kind of values, or both are integers, whose values are
/// checked by the cast.
fn is_another_layout(from: &DataType, to: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    let class = |data_type: &DataType| match data_type {
        Utf8 | LargeUtf8 | Utf8View => 1,
        Binary | LargeBinary | BinaryView => 2,
        integer if integer.is_integer() => 3,
        _ => 0,
    };
    match from {
        DataType::Dictionary(_, values) => **values == *to || is_another_layout(values, to),
        _ => class(from) > 0 && class(from) == class(to),
    }
}
