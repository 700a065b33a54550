//! From rows to the columns that are written, with a name for the column that cannot hold them.
//!
//! Rows hold the values of a dictionary, not its keys: a column is made anew of each slab. The values that
//! meet there may come from many dictionaries, and be more than one can have.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use windrow::{Decoder, Error, Slab};

use crate::error::{self, Result};
use crate::verbs::Arrangement;

/// The engine's decoder of an arrangement's columns.
pub(super) struct RowDecoder {
    decoder: Decoder,
    /// Of the columns that are written.
    schema: SchemaRef,
    /// Whether a sift makes these of the decoded ones.
    is_sifted: bool,
}

impl RowDecoder {
    pub(super) fn new(arrangement: &Arrangement) -> Result<Self> {
        let decoder = Decoder::new(&arrangement.layout, &arrangement.projection)?;
        let (schema, is_sifted) = (arrangement.schema()?, arrangement.sifting.is_some());
        Ok(Self { decoder, schema, is_sifted })
    }

    /// The schema of the columns that are written.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of `slab` as columns; those that a sift looks at, if there is one.
    ///
    /// # Errors
    /// `Unfit` that names the column in which the rows do not fit.
    pub(super) fn decode(&mut self, slab: &Slab) -> Result<RecordBatch> {
        let batch = self.decoder.decode(slab).map_err(|error| match &error {
            Error::Value { column, message } => {
                match self.decoder.schema().column_with_name(column) {
                    Some((_, field)) => unfit(column, &field.data_type().to_string(), message),
                    None => error.into(),
                }
            }
            _ => error.into(),
        })?;
        if self.is_sifted { Ok(batch) } else { self.written(batch) }
    }

    /// `batch`, whose columns are those that are written, with the metadata of these.
    pub(super) fn written(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if batch.schema_ref().metadata() == self.schema.metadata() {
            return Ok(batch);
        }
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::clone(&self.schema);
        RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &rows)
            .map_err(|error| error::Error::data(error.to_string()))
    }
}

fn unfit(column: &str, data_type: &str, message: &str) -> error::Error {
    let why = match data_type.contains("Dictionary(") {
        true => {
            "the values of its dictionaries, of all inputs together, outnumber their keys; give it \
             wider keys, or plain values, in the inputs"
        }
        false => message,
    };
    error::Error::unfit(column, format!("column {column:?}, of type {data_type}: {why}"))
}
