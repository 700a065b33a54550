//! One schema for all inputs.
//!
//! The first input gives the names, their order, the types and the metadata. The others may hold the
//! columns in another order, and a column is nullable when it is so in any input. All else must agree:
//! a column that is missing, extra or of another type is named, with both files.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};

use crate::error::{CliError, Result};

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

    /// The schema of the first input.
    pub(super) fn first_schema(&self) -> SchemaRef {
        self.schema.clone()
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
            if field.data_type() != there.data_type() {
                return Err(CliError::Data(format!(
                    "{name}: column '{}' is {}, but {} in {}; make the types equal, \
                     or give the files to separate runs",
                    field.name(),
                    there.data_type(),
                    field.data_type(),
                    self.first
                )));
            }
            if there.is_nullable() && !field.is_nullable() {
                *field = Arc::new(Field::clone(field).with_nullable(true));
            }
        }
        Ok(order)
    }

    fn order_in(&self, name: &str, other: &Schema) -> Result<Arc<[usize]>> {
        let mut order = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let mut places = (0..other.fields().len())
                .filter(|place| other.field(*place).name() == field.name());
            let Some(place) = places.next() else {
                return Err(CliError::Data(format!(
                    "{name}: column '{}' is missing; {} has it",
                    field.name(),
                    self.first
                )));
            };
            if places.next().is_some() {
                return Err(CliError::Data(format!(
                    "{name}: column '{}' is there twice, so the order of columns must be that of {}",
                    field.name(),
                    self.first
                )));
            }
            order.push(place);
        }
        for field in other.fields() {
            if !self.fields.iter().any(|known| known.name() == field.name()) {
                return Err(CliError::Data(format!(
                    "{name}: column '{}' is not in {}",
                    field.name(),
                    self.first
                )));
            }
        }
        if order.len() != other.fields().len() {
            return Err(CliError::Data(format!(
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
        if self.fields.as_slice() == &self.schema.fields()[..] {
            return self.schema;
        }
        let metadata = self.schema.metadata().clone();
        Arc::new(Schema::new_with_metadata(self.fields, metadata))
    }
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
    let columns = match order {
        Some(order) => order.iter().map(|i| batch.column(*i).clone()).collect(),
        None => batch.columns().to_vec(),
    };
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}
