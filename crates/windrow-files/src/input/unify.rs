//! One schema for all inputs.
//!
//! The first input gives the names, their order, the types and the metadata. The others may hold the
//! columns in another order, and the same values in another form, which becomes that of the first:
//!
//! ```text
//!  string, large string, string view; binary alike       the first's
//!  a dictionary and another, or what is in it             what is in it
//!  decimals of another width, of as many digits           the first's
//!  lists and large lists, whatever their items are called the first's
//!  lists of fixed length and others                       lists
//!  timestamps of two zones                                the first's: the instants are the same
//!  nothing but nulls                                      the other's
//! ```
//! Nested types are alike if their parts are. A column is nullable when it is so in any input. All else
//! must agree: a column that is missing, extra or of another type is named, with both files.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use crate::error::{Error, Result};

/// The schema so far.
pub(super) struct Unifier {
    first: Arc<str>,
    schema: SchemaRef,
    fields: Vec<FieldRef>,
}

/// Where the columns of the schema are in a file; `None` when they are in its order.
pub(super) type Order = Option<Arc<[usize]>>;

impl Unifier {
    pub(super) fn new(name: Arc<str>, schema: SchemaRef) -> Self {
        Self { first: name, fields: schema.fields().to_vec(), schema }
    }

    /// The schema of the files that fitted.
    pub(super) fn so_far(&self) -> SchemaRef {
        if self.fields.as_slice() == &self.schema.fields()[..] {
            return self.schema.clone();
        }
        let metadata = self.schema.metadata().clone();
        Arc::new(Schema::new_with_metadata(self.fields.clone(), metadata))
    }

    /// Where the columns are in the file called `name`, which has the schema `other`.
    ///
    /// # Errors
    /// `Data` that names both files and the column in which they differ.
    pub(super) fn fit(&mut self, name: &str, other: &Schema) -> Result<Order> {
        let same_names = self.fields.len() == other.fields().len()
            && self.fields.iter().zip(other.fields()).all(|(a, b)| a.name() == b.name());
        let order = if same_names { None } else { Some(self.order_in(name, other)?) };
        for (position, field) in self.fields.iter_mut().enumerate() {
            let there = other.field(order.as_ref().map_or(position, |order| order[position]));
            *field = common_field(field, there).ok_or_else(|| {
                Error::data(format!(
                    "{name}: column '{}' is {}, but {} in {}; cast it in one of them first",
                    field.name(),
                    there.data_type(),
                    field.data_type(),
                    self.first
                ))
            })?;
        }
        Ok(order)
    }

    fn order_in(&self, name: &str, other: &Schema) -> Result<Arc<[usize]>> {
        let mut order = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let mut places = (0..other.fields().len())
                .filter(|place| other.field(*place).name() == field.name());
            let Some(place) = places.next() else {
                return Err(Error::data(format!(
                    "{name}: column '{}' is missing; {} has it",
                    field.name(),
                    self.first
                )));
            };
            if places.next().is_some() {
                return Err(Error::data(format!(
                    "{name}: column '{}' is there twice, so the order of columns must be that of {}",
                    field.name(),
                    self.first
                )));
            }
            order.push(place);
        }
        for field in other.fields() {
            if !self.fields.iter().any(|known| known.name() == field.name()) {
                return Err(Error::data(format!(
                    "{name}: column '{}' is not in {}",
                    field.name(),
                    self.first
                )));
            }
        }
        if order.len() != other.fields().len() {
            return Err(Error::data(format!(
                "{name}: has {} columns, but {} has {}",
                other.fields().len(),
                self.first,
                order.len()
            )));
        }
        Ok(order.into())
    }

    /// The schema of all files that fitted.
    pub(super) fn finish(self) -> SchemaRef {
        self.so_far()
    }
}

/// What holds the values of both fields, called as the first.
fn common_field(first: &FieldRef, other: &Field) -> Option<FieldRef> {
    let kind = common_type(first.data_type(), other.data_type())?;
    let nullable = first.is_nullable() || other.is_nullable();
    if kind == *first.data_type() && nullable == first.is_nullable() {
        return Some(first.clone());
    }
    Some(Arc::new(Field::clone(first).with_data_type(kind).with_nullable(nullable)))
}

/// The type that holds the values of both, in the form of the first; none if they differ by more than form.
fn common_type(first: &DataType, other: &DataType) -> Option<DataType> {
    use DataType as D;
    let common = match (first, other) {
        (first, other) if first == other => return Some(first.clone()),
        (D::Null, kind) | (kind, D::Null) => kind.clone(),
        (D::Dictionary(_, values), D::Dictionary(_, others)) => common_type(values, others)?,
        (D::Dictionary(_, values), kind) => common_type(values, kind)?,
        (kind, D::Dictionary(_, values)) => common_type(kind, values)?,
        (D::Timestamp(unit, Some(_)), D::Timestamp(other, Some(_))) if unit == other => {
            first.clone()
        }
        (D::List(of), D::List(other) | D::LargeList(other)) => D::List(common_field(of, other)?),
        (D::LargeList(of), D::List(other) | D::LargeList(other)) => {
            D::LargeList(common_field(of, other)?)
        }
        (D::FixedSizeList(of, length), D::FixedSizeList(other, same)) if length == same => {
            D::FixedSizeList(common_field(of, other)?, *length)
        }
        (D::FixedSizeList(of, _), D::List(other)) | (D::List(of), D::FixedSizeList(other, _)) => {
            D::List(common_field(of, other)?)
        }
        (D::Map(of, sorted), D::Map(other, same)) if sorted == same => {
            // Of a map only the places tell which are the keys.
            D::Map(common_entries(of, other)?, *sorted)
        }
        (D::Struct(fields), D::Struct(others)) => {
            let named_alike =
                fields.iter().map(|field| field.name()).eq(others.iter().map(|field| field.name()));
            let pairs = fields.iter().zip(others);
            let fields = pairs.map(|(field, other)| common_field(field, other));
            D::Struct(fields.collect::<Option<_>>().filter(|_| named_alike)?)
        }
        (first, other) if digits(first).is_some() && digits(first) == digits(other) => {
            first.clone()
        }
        (first, other) if first.is_string() && other.is_string() => first.clone(),
        (first, other) if is_binary(first) && is_binary(other) => first.clone(),
        _ => return None,
    };
    [first, other].iter().all(|kind| can_cast_types(kind, &common)).then_some(common)
}

fn common_entries(first: &FieldRef, other: &Field) -> Option<FieldRef> {
    let (DataType::Struct(fields), DataType::Struct(others)) =
        (first.data_type(), other.data_type())
    else {
        return None;
    };
    let pairs = fields.iter().zip(others);
    let fields = pairs.map(|(field, other)| common_field(field, other)).collect::<Option<_>>()?;
    Some(Arc::new(Field::clone(first).with_data_type(DataType::Struct(fields))))
}

/// The precision and the scale of a decimal of any width.
fn digits(kind: &DataType) -> Option<(u8, i8)> {
    match kind {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

fn is_binary(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// `batch` with its columns in `order`, as rows of `schema`.
pub(super) fn conform(
    batch: RecordBatch,
    order: &Order,
    schema: &SchemaRef,
) -> Result<RecordBatch, arrow::error::ArrowError> {
    if order.is_none() && Arc::ptr_eq(batch.schema_ref(), schema) {
        return Ok(batch);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let whole = CastOptions { safe: false, ..CastOptions::default() };
    let columns = schema.fields().iter().enumerate().map(|(place, field)| {
        let column = batch.column(order.as_ref().map_or(place, |order| order[place]));
        match column.data_type() == field.data_type() {
            true => Ok(column.clone()),
            false => cast_with_options(column, field.data_type(), &whole),
        }
    });
    let columns = columns.collect::<Result<_, _>>()?;
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}
