//! From rows to the columns that are written, with a name for the column that cannot hold them.
//!
//! Rows hold the values of a dictionary, not its keys: a column is made anew of each slab. The values that
//! meet there may come from many dictionaries, and be more than one can have.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use windrow::{Decoder, Error, Layout, Slab};

use super::Arrangement;
use crate::error::{CliError, Result};

/// The engine's decoder of an arrangement's columns.
pub(super) struct RowDecoder {
    decoder: Decoder,
    layout: Layout,
    projection: Vec<usize>,
}

impl RowDecoder {
    pub(super) fn new(arrangement: &Arrangement) -> Result<Self> {
        let Arrangement { layout, projection, .. } = arrangement;
        let decoder = Decoder::new(layout, projection)?;
        Ok(Self { decoder, layout: layout.clone(), projection: projection.clone() })
    }

    /// The schema of the columns.
    pub(super) fn schema(&self) -> &SchemaRef {
        self.decoder.schema()
    }

    /// The rows of `slab` as columns.
    ///
    /// # Errors
    /// `Unfit` that names the column in which the rows do not fit.
    pub(super) fn decode(&mut self, slab: &Slab) -> Result<RecordBatch> {
        self.decoder.decode(slab).map_err(|error| match error {
            Error::Value { .. } => self.blame(slab).unwrap_or_else(|| error.into()),
            other => other.into(),
        })
    }

    /// The first column that cannot be decoded by itself.
    fn blame(&self, slab: &Slab) -> Option<CliError> {
        self.projection.iter().find_map(|&column| {
            let mut alone = Decoder::new(&self.layout, &[column]).ok()?;
            let error = alone.decode(slab).err()?;
            let field = self.layout.schema().field(column);
            let (name, data_type) = (field.name(), field.data_type());
            let why = match &error {
                Error::Value { column, .. } if column.starts_with("Dictionary") => {
                    "the values of its dictionaries, of all inputs together, outnumber their keys; \
                     give it wider keys, or plain values, in the inputs"
                        .to_owned()
                }
                other => other.to_string(),
            };
            Some(CliError::Unfit(format!("column {name:?}, of type {data_type}: {why}")))
        })
    }
}
