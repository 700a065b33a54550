//! What inputs tell beside their rows: the types of columns without a value, and advice.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::Error;
use crate::input::source::info::FileInfo;
use crate::input::units::unit::File;
use crate::settings::Format;

/// Adds the number of lines that seem to precede the column names, if `error` is about a missing
/// column.
pub(super) fn advised(error: Error, contents: &[File]) -> Error {
    match contents.iter().find_map(|file| file.about.preamble) {
        Some(lines) => error.behind_lines(lines),
        None => error,
    }
}

/// Replaces the type `Null`, of columns in CSV files without rows, by text.
fn nulls_as_text(schema: SchemaRef) -> SchemaRef {
    if !schema.fields().iter().any(|field| field.data_type().is_null()) {
        return schema;
    }
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Null => Field::clone(field).with_data_type(DataType::Utf8),
        _ => Field::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns the final schema of all files.
pub(super) fn agreed(schema: SchemaRef, files: &[FileInfo]) -> SchemaRef {
    match files.iter().all(|file| file.format == Format::Csv) {
        true => nulls_as_text(schema),
        false => schema,
    }
}
