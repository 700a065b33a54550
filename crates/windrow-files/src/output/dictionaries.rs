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

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray, UInt64Array, make_array, new_empty_array};
use arrow_buffer::ArrowNativeType;
use arrow_data::ArrayData;
use arrow_row::{RowConverter, SortField};
use arrow_schema::ArrowError;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;

use super::views::own;
use crate::error::{Error, Result};

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
        let columns = batch
            .columns()
            .iter()
            .zip(self.key_schema.fields())
            .map(|(column, field)| renumber(column, field, &mut interners))
            .collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(Arc::clone(&self.key_schema), columns).map_err(internal)
    }

    /// Returns a record batch without rows whose dictionaries hold all values so far.
    pub(super) fn carrier(&self) -> Result<RecordBatch> {
        let mut interners = self.columns.iter();
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|field| {
                let empty = new_empty_array(field.data_type()).to_data();
                carry(empty, &mut interners).map(make_array)
            })
            .collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(internal)
    }
}

/// The distinct values of a dictionary, and their numbers.
struct Interner {
    name: String,
    converter: RowConverter,
    numbers: HashMap<Box<[u8]>, usize>,
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
    fn intern(&mut self, array: &ArrayRef) -> Result<Vec<Option<usize>>> {
        let dictionary = array.as_any_dictionary();
        let values = dictionary.values();
        if values.is_empty() {
            return Ok(vec![None; array.len()]);
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
        let numbers: Vec<usize> = rows.iter().map(|row| self.number(row.data())).collect();
        let rows = keys.iter().enumerate();
        Ok(rows.map(|(row, key)| present(row).then(|| numbers[place[*key]])).collect())
    }

    fn number(&mut self, value: &[u8]) -> usize {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.numbers.len();
        self.numbers.insert(value.into(), number);
        number
    }

    /// Returns all values, by number.
    fn values(&self) -> Result<ArrayRef> {
        let mut values: Vec<&[u8]> = vec![&[]; self.numbers.len()];
        for (value, number) in &self.numbers {
            values[*number] = value;
        }
        let parser = self.converter.parser();
        let rows = values.into_iter().map(|value| parser.parse(value));
        let mut columns = self.converter.convert_rows(rows).map_err(internal)?;
        columns.pop().ok_or_else(|| internal("no column"))
    }
}

/// Replaces dictionary types in the field by their key types. Appends each dictionary to `columns`.
fn to_keys(field: &FieldRef, columns: &mut Vec<Interner>) -> Result<FieldRef> {
    let data_type = match field.data_type() {
        DataType::Dictionary(key, values) => {
            let mut inner = Vec::new();
            to_keys(&Arc::new(Field::new("", (**values).clone(), true)), &mut inner)?;
            if !inner.is_empty() {
                return Err(Error::usage(format!(
                    "Arrow output cannot hold the column {:?}, a dictionary of dictionaries; write Parquet",
                    field.name()
                )));
            }
            if is_bare(values) {
                return Err(Error::usage(format!(
                    "Arrow output cannot hold the column {:?}, a dictionary of binary of no bytes; leave \
                     it out with `select`",
                    field.name()
                )));
            }
            columns.push(Interner::new(field, values)?);
            // A dictionary may have null values even if its keys are never null.
            let keys = Field::new(field.name(), (**key).clone(), true);
            return Ok(Arc::new(keys));
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| to_keys(field, columns));
            DataType::Struct(fields.collect::<Result<_>>()?)
        }
        DataType::List(item) => DataType::List(to_keys(item, columns)?),
        DataType::LargeList(item) => DataType::LargeList(to_keys(item, columns)?),
        DataType::ListView(item) => DataType::ListView(to_keys(item, columns)?),
        DataType::LargeListView(item) => DataType::LargeListView(to_keys(item, columns)?),
        DataType::FixedSizeList(item, n) => DataType::FixedSizeList(to_keys(item, columns)?, *n),
        DataType::Map(entries, sorted) => DataType::Map(to_keys(entries, columns)?, *sorted),
        DataType::RunEndEncoded(ends, values) => {
            DataType::RunEndEncoded(Arc::clone(ends), to_keys(values, columns)?)
        }
        _ => return Ok(Arc::clone(field)),
    };
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
        let numbers = interner.intern(array)?;
        return keys(key, numbers).ok_or_else(|| {
            Error::data(format!(
                "the dictionary column {:?} has more values than {key} can number; \
                 write Parquet, where each value stands for itself",
                interner.name
            ))
        });
    }
    let data = own(array).map_err(internal)?.to_data();
    let fields = child_fields(field.data_type());
    let children = data.child_data().iter().zip(&fields);
    let children = children
        .map(|(child, field)| {
            let child = renumber(&make_array(child.clone()), field, interners)?;
            Ok(child.to_data())
        })
        .collect::<Result<Vec<_>>>()?;
    let builder = data.into_builder().data_type(field.data_type().clone());
    let renumbered = builder.child_data(children).build().map_err(internal)?;
    Ok(make_array(renumbered))
}

/// Returns true if the values, or parts of them, have no bytes. An array taken from such values
/// gets its length from its bytes, and becomes empty.
fn is_bare(values: &DataType) -> bool {
    let children = child_fields(values);
    matches!(values, DataType::FixedSizeBinary(0))
        || children.iter().any(|field| is_bare(field.data_type()))
}

/// Puts the values of every dictionary into an empty array's data.
fn carry(data: ArrayData, interners: &mut std::slice::Iter<'_, Interner>) -> Result<ArrayData> {
    let children = if let DataType::Dictionary(..) = data.data_type() {
        let interner = interners.next().ok_or_else(|| internal("no dictionary"))?;
        vec![interner.values()?.to_data()]
    } else if data.child_data().is_empty() {
        return Ok(data);
    } else {
        let children = data.child_data().iter();
        children.map(|child| carry(child.clone(), interners)).collect::<Result<Vec<_>>>()?
    };
    data.into_builder().child_data(children).build().map_err(internal)
}

/// Returns the fields of an array's children.
pub(super) fn child_fields(data_type: &DataType) -> Vec<FieldRef> {
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

/// Makes keys of a type; `None` if a number is too large for the type.
fn keys(key: &DataType, numbers: Vec<Option<usize>>) -> Option<ArrayRef> {
    match key {
        DataType::Int8 => typed_keys::<Int8Type>(numbers),
        DataType::Int16 => typed_keys::<Int16Type>(numbers),
        DataType::Int32 => typed_keys::<Int32Type>(numbers),
        DataType::Int64 => typed_keys::<Int64Type>(numbers),
        DataType::UInt8 => typed_keys::<UInt8Type>(numbers),
        DataType::UInt16 => typed_keys::<UInt16Type>(numbers),
        DataType::UInt32 => typed_keys::<UInt32Type>(numbers),
        DataType::UInt64 => typed_keys::<UInt64Type>(numbers),
        _ => None,
    }
}

fn typed_keys<K: ArrowPrimitiveType>(numbers: Vec<Option<usize>>) -> Option<ArrayRef> {
    let keys: Option<Vec<Option<K::Native>>> = numbers
        .into_iter()
        .map(|number| match number {
            None => Some(None),
            Some(number) => K::Native::from_usize(number).map(Some),
        })
        .collect();
    Some(Arc::new(PrimitiveArray::<K>::from_iter(keys?)))
}

fn internal(cause: impl std::fmt::Display) -> Error {
    Error::data(format!("Arrow dictionaries: {cause}"))
}
