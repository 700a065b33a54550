//! Pages: record batches as bytes on a wire.
//!
//! ```text
//!  Partitioned --partition(p)--> RecordBatch --write--> | page | page | ...  --read--> RecordBatch
//!                                             |
//!                                      bytes: at least the size of the page
//! ```
//!
//! Each format is a feature of the crate: `presto`, the format of Presto and Velox exchanges, and
//! `ipc`, Arrow's own streams. `docs/page-format.md` draws the bytes.
//!
//! Both sides have the schema. A written record batch must have the columns of the schema, by name
//! and type; metadata may differ. A record batch that was read has the reader's schema.
//!
//! Invariant: the reader returns the written record batch, or an error. Damaged bytes neither cause
//! a panic nor take more memory than the reader allows.

#[cfg(feature = "ipc")]
mod ipc;
#[cfg(feature = "presto")]
mod presto;

#[cfg(feature = "ipc")]
pub use ipc::IpcPages;
#[cfg(feature = "presto")]
pub use presto::PrestoPages;

#[cfg(any(feature = "ipc", feature = "presto"))]
use {
    arrow_array::{Array, RecordBatch, RecordBatchOptions},
    arrow_schema::SchemaRef,
    std::sync::Arc,
    windrow_rows::engine::check_fields,
    windrow_rows::{Error, Result},
};

/// Compression of pages. Readers of Presto pages must be given the codec; Arrow pages name their
/// codec.
#[cfg(any(feature = "ipc", feature = "presto"))]
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
#[cfg(any(feature = "ipc", feature = "presto"))]
const MOST_BYTES: usize = 1 << 30;

/// Returns the error of a damaged page.
#[cfg(any(feature = "ipc", feature = "presto"))]
fn damaged(place: &str, message: impl Into<String>) -> Error {
    Error::Corrupt { place: place.to_owned(), message: message.into() }
}

/// Replaces the schema of `batch`, metadata included, by `schema`.
///
/// # Errors
/// [`Error::SchemaMismatch`] if columns have other names or types, [`Error::Value`] for a null
/// where the schema has none.
#[cfg(any(feature = "ipc", feature = "presto"))]
fn with_schema(schema: &SchemaRef, batch: RecordBatch) -> Result<RecordBatch> {
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
