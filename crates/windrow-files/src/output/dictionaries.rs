//! Merging of Arrow dictionaries: one dictionary for many record batches.
//!
//! Each record batch arrives with dictionaries of its own, but an Arrow file has one for each
//! column. This module numbers values in the order of their first occurrence in the rows, so that
//! the numbers depend on the rows alone. The body of an IPC message stores a dictionary column as
//! its keys. This module therefore returns record batches of [keys](Dictionaries::key_schema), and
//! at the end the [values](Dictionaries::carrier).
//!
//! Values of any type are stored as comparable rows. A null value becomes a null key.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array, new_empty_array};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;

use super::views::own;
use crate::error::{Error, Result};
use crate::nested::{child_fields, strict_cast, with_children, with_fields};

/// The dictionaries of a schema, in the order of its fields.
pub(super) struct Dictionaries {
    schema: SchemaRef,
    key_schema: SchemaRef,
    columns: Vec<Interner>,
}

impl Dictionaries {
    /// Returns `None` if the schema has no dictionaries.
    pub(super) fn of(schema: &SchemaRef) -> Result<Option<Self>> {
        let mut columns = Vec::new();
        let keys = schema.fields().iter().map(|field| to_keys(field, &mut columns));
        let keys: Vec<FieldRef> = keys.collect::<Result<_>>()?;
        let key_schema = Arc::new(Schema::new(keys));
        Ok((!columns.is_empty()).then_some(Self {
            schema: Arc::clone(schema),
            key_schema,
            columns,
        }))
    }

    /// Replaces dictionary arrays by keys, of the key types of the schema.
    pub(super) fn renumber(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut interners = self.columns.iter_mut();
        let columns = batch.columns().iter().zip(self.key_schema.fields());
        let keys = columns.map(|(column, field)| renumber(column, field, &mut interners));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(Arc::clone(&self.key_schema), keys).map_err(internal)
    }

    /// Returns a record batch without rows whose dictionaries hold all values so far.
    pub(super) fn carrier(&self) -> Result<RecordBatch> {
        let mut interners = self.columns.iter();
        let columns = self.schema.fields().iter();
        let columns =
            columns.map(|field| carry(&new_empty_array(field.data_type()), &mut interners));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(internal)
    }
}

/// The distinct values of a dictionary, and their numbers.
struct Interner {
    name: String,
    converter: RowConverter,
    numbers: HashMap<Box<[u8]>, u64>,
}

impl Interner {
    fn new(field: &Field, values: &DataType) -> Result<Self> {
        let refuse = |error: ArrowError| {
            Error::usage(format!(
                "Arrow output cannot number the dictionary of the column {:?}: {error}; write Parquet",
                field.name()
            ))
        };
        let converter = RowConverter::new(vec![SortField::new(values.clone())]);
        Ok(Self {
            name: field.name().clone(),
            converter: converter.map_err(refuse)?,
            numbers: HashMap::new(),
        })
    }

    /// Returns the number of each row's value.
    fn intern(&mut self, array: &ArrayRef) -> Result<UInt64Array> {
        let dictionary = array.as_any_dictionary();
        let values = dictionary.values();
        if values.is_empty() {
            return Ok(UInt64Array::new_null(array.len()));
        }
        // The used values in the order of their first occurrence: a slice may use few values of a
        // large dictionary.
        let keys = dictionary.normalized_keys();
        let nulls = array.logical_nulls();
        let present = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let mut place = vec![usize::MAX; values.len()];
        let mut used: Vec<u64> = Vec::new();
        for (row, key) in keys.iter().enumerate() {
            if present(row) && place[*key] == usize::MAX {
                place[*key] = used.len();
                used.push(*key as u64);
            }
        }
        let used = take(values, &UInt64Array::from(used), None).map_err(internal)?;
        let rows = self.converter.convert_columns(&[used]).map_err(internal)?;
        let numbers: Vec<u64> = rows.iter().map(|row| self.number(row.data())).collect();
        let rows = keys.iter().enumerate();
        Ok(rows.map(|(row, key)| present(row).then(|| numbers[place[*key]])).collect())
    }

    fn number(&mut self, value: &[u8]) -> u64 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.numbers.len() as u64;
        self.numbers.insert(value.into(), number);
        number
    }

    /// Returns all values, by number.
    fn values(&self) -> Result<ArrayRef> {
        let mut values: Vec<&[u8]> = vec![&[]; self.numbers.len()];
        for (value, number) in &self.numbers {
            values[*number as usize] = value;
        }
        let parser = self.converter.parser();
        let rows = values.into_iter().map(|value| parser.parse(value));
        let mut columns = self.converter.convert_rows(rows).map_err(internal)?;
        columns.pop().ok_or_else(|| internal("no column"))
    }
}

/// Replaces dictionary types in the field by their key types. Appends each dictionary to `columns`.
fn to_keys(field: &FieldRef, columns: &mut Vec<Interner>) -> Result<FieldRef> {
    if let DataType::Dictionary(key, values) = field.data_type() {
        let refuse = |why: &str| {
            let name = field.name();
            let message =
                format!("Arrow output cannot hold the column {name:?}, a dictionary of {why}");
            Err(Error::usage(message))
        };
        let mut inner = Vec::new();
        to_keys(&Arc::new(Field::new("", (**values).clone(), true)), &mut inner)?;
        if !inner.is_empty() {
            return refuse("dictionaries; write Parquet");
        }
        if is_bare(values) {
            return refuse("binary of no bytes; leave it out with `select`");
        }
        columns.push(Interner::new(field, values)?);
        // A dictionary may have null values even if its keys are never null.
        return Ok(Arc::new(Field::new(field.name(), (**key).clone(), true)));
    }
    let data_type = with_fields(field.data_type(), |field| to_keys(field, columns))?;
    Ok(Arc::new(field.as_ref().clone().with_data_type(data_type)))
}

/// Converts the array to the type of `field`. The field must result from [`to_keys`].
fn renumber(
    array: &ArrayRef,
    field: &Field,
    interners: &mut std::slice::IterMut<'_, Interner>,
) -> Result<ArrayRef> {
    if array.data_type() == field.data_type() {
        return Ok(Arc::clone(array));
    }
    if let DataType::Dictionary(key, _) = array.data_type() {
        let interner = interners.next().ok_or_else(|| internal("no dictionary"))?;
        return strict_cast(&interner.intern(array)?, key).map_err(|_| {
            Error::data(format!(
                "the dictionary column {:?} has more values than {key} can number; \
                 write Parquet, where each value stands for itself",
                interner.name
            ))
        });
    }
    let fields = child_fields(field.data_type());
    let own = own(array).map_err(internal)?;
    let child = |child: ArrayRef, at: usize| renumber(&child, &fields[at], interners);
    with_children(&own, field.data_type(), child)?.map_err(internal)
}

/// Returns true if the values, or parts of them, have no bytes. An array taken from such values
/// gets its length from its bytes, and becomes empty.
fn is_bare(values: &DataType) -> bool {
    let children = child_fields(values);
    matches!(values, DataType::FixedSizeBinary(0))
        || children.iter().any(|field| is_bare(field.data_type()))
}

/// Puts the values of every dictionary into an empty array.
fn carry(empty: &ArrayRef, interners: &mut std::slice::Iter<'_, Interner>) -> Result<ArrayRef> {
    let child = |child: ArrayRef, _| match empty.data_type() {
        DataType::Dictionary(..) => {
            interners.next().ok_or_else(|| internal("no dictionary"))?.values()
        }
        _ => carry(&child, interners),
    };
    with_children(empty, empty.data_type(), child)?.map_err(internal)
}

fn internal(cause: impl std::fmt::Display) -> Error {
    Error::data(format!("Arrow dictionaries: {cause}"))
}
