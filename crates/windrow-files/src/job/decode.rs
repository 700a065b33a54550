//! Decodes rows to the written columns. An error names the column whose type cannot hold the
//! values.
//!
//! Rows store the values of a dictionary column, not the dictionary keys, so each slab gets a new
//! dictionary. The values in a slab may come from many dictionaries, and can be too many for the
//! key type.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use windrow::{Decoder, Error, Picks, Slab};

use crate::error::{self, Result};
use crate::nested::with_rows;
use crate::verbs::Arrangement;

/// The engine's decoder for the columns of an arrangement.
pub(super) struct RowDecoder {
    decoder: Decoder,
    projection: Vec<usize>,
    /// Schema of the written columns.
    pub(super) schema: SchemaRef,
    /// Whether a sift turns the decoded columns into the written ones.
    is_sifted: bool,
}

impl RowDecoder {
    pub(super) fn new(arrangement: &Arrangement) -> Result<Self> {
        let decoder = Decoder::new(&arrangement.layout, &arrangement.projection)?;
        let (schema, is_sifted) = (arrangement.schema()?, arrangement.sifting.is_some());
        let projection = arrangement.projection.clone();
        Ok(Self { decoder, projection, schema, is_sifted })
    }

    /// Decodes `slab` to the written columns, or to the input columns of the sift if the
    /// arrangement has one.
    ///
    /// # Errors
    /// `Unfit`, with the name of the column whose type cannot hold the values.
    pub(super) fn decode(&mut self, slab: &Slab) -> Result<RecordBatch> {
        let batch = self.decoder.decode(slab).map_err(|error| {
            if let Error::Value { column, message } = &error
                && let Some((_, field)) = self.decoder.schema().column_with_name(column)
            {
                return unfit(column, &field.data_type().to_string(), message);
            }
            error.into()
        })?;
        if self.is_sifted { Ok(batch) } else { self.written(batch) }
    }

    /// Gathers the written columns of `picks`.
    pub(super) fn gather(&self, picks: &Picks) -> Result<RecordBatch> {
        self.written(picks.gather(&self.projection)?)
    }

    /// Replaces the metadata of `batch`, which has the written columns, by the output's.
    pub(super) fn written(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if batch.schema_ref().metadata() == self.schema.metadata() {
            return Ok(batch);
        }
        let columns = batch.columns().to_vec();
        with_rows(&self.schema, columns, batch.num_rows()).map_err(error::failed)
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
