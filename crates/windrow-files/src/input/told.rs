//! Information about inputs besides rows: notes, the CSV delimiter, the change log format, advice.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::content::File;
use super::{FileInfo, Inputs};
use crate::error::Error;
use crate::format::Format;
use crate::preset::Preset;

impl Inputs {
    /// Iterates over the notes: facts about readable inputs that a user may want to know.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.contents.iter().flat_map(|file| file.content.notes()).map(String::as_str)
    }

    /// Adds advice from the inputs to `error`, if `error` is about a missing column.
    pub(crate) fn advised(&self, error: Error) -> Error {
        advised(error, &self.contents)
    }

    /// Returns the delimiter of the first CSV input whose delimiter was detected: neither the
    /// caller nor the file name gives it.
    pub(crate) fn told_delimiter(&self) -> Option<u8> {
        let mut files = self.files.iter().zip(&self.contents[..]);
        files.find_map(|(file, content)| {
            let told = content.content.csv()?.delimiter;
            told.filter(|_| self.csv.clone().known_of(file.path()).delimiter.is_none())
        })
    }

    /// Returns the format of the change log in the inputs, and the evidence for the format.
    pub fn change_log(&self) -> Option<(Preset, &str)> {
        self.log.as_ref().map(|log| (log.preset, &*log.by))
    }
}

/// Adds the number of lines that seem to precede the column names, if `error` is about a missing
/// column.
pub(super) fn advised(error: Error, contents: &[File]) -> Error {
    match contents.iter().find_map(|file| file.content.preamble()) {
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
