//! What inputs tell beside their rows: the types of columns without a value, and advice.

use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};

use crate::error::Error;
use crate::input::source::info::FileInfo;
use crate::input::units::unit::File;
use crate::nested::with_type;
use crate::settings::Format;

/// Adds the number of lines that seem to precede the column names, if `error` is about a missing
/// column.
pub(super) fn advised(error: Error, contents: &[File]) -> Error {
    match contents.iter().find_map(|file| file.about.preamble) {
        Some(lines) => error.behind_lines(lines),
        None => error,
    }
}

/// Returns the final schema of all files. A column of the type `Null`, in CSV files without rows,
/// is text.
pub(super) fn agreed(schema: SchemaRef, files: &[FileInfo]) -> SchemaRef {
    if files.iter().any(|file| file.format != Format::Csv) {
        return schema;
    }
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Null => with_type(field, DataType::Utf8),
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}
