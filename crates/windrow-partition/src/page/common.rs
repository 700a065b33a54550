//! The common parts of all formats: codecs, damage, and the schema of a record batch that was read.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use windrow_rows::engine::check_fields;
use windrow_rows::{Error, Result};

/// Compression of pages. Readers of Presto pages must be given the codec; Arrow pages name their
/// codec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageCodec {
    /// Bytes as they are.
    #[default]
    None,
    /// LZ4: blocks in Presto pages, frames in Arrow pages.
    Lz4,
    /// Zstandard, level 1.
    Zstd,
}

/// Default limit of a reader for the bytes of a page.
pub(super) const MOST_BYTES: usize = 1 << 30;

/// Returns the error of a damaged page.
pub(super) fn damaged(place: &str, message: impl Into<String>) -> Error {
    Error::Corrupt { place: place.to_owned(), message: message.into() }
}

/// Replaces the schema of `batch`, metadata included, by `schema`.
///
/// # Errors
/// [`Error::SchemaMismatch`] if columns have other names or types, [`Error::Value`] for a null
/// where the schema has none.
pub(super) fn with_schema(schema: &SchemaRef, batch: RecordBatch) -> Result<RecordBatch> {
    if Arc::ptr_eq(schema, batch.schema_ref()) {
        return Ok(batch);
    }
    check_fields(schema, batch.schema_ref())?;
    let mut fields = schema.fields().iter().zip(batch.columns());
    if let Some((field, _)) =
        fields.find(|(field, column)| !field.is_nullable() && column.null_count() > 0)
    {
        return Err(Error::Value {
            column: field.name().clone(),
            message: "a null in a column that must not have one".into(),
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
