//! What inputs tell beside their rows: notes, what they are written down as, and advice.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::Error;
use crate::format::Format;
use crate::input::Inputs;
use crate::input::source::info::FileInfo;
use crate::input::units::unit::File;
use crate::preset::Preset;

impl Inputs {
    /// What users may want to know of inputs that are read all the same.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.contents.iter().flat_map(|file| file.content.notes()).map(String::as_str)
    }

    /// `error`, which may be about a column that there is not, with what the inputs tell of it.
    pub(crate) fn advised(&self, error: Error) -> Error {
        advised(error, &self.contents)
    }

    /// What separates fields in the first of those of which neither the caller nor the name says it.
    pub(crate) fn told_delimiter(&self) -> Option<u8> {
        let mut files = self.files.iter().zip(&self.contents[..]);
        files.find_map(|(file, content)| {
            let told = content.content.csv()?.delimiter;
            told.filter(|_| self.csv.clone().known_of(file.path()).delimiter.is_none())
        })
    }

    /// The format of the change log that they are, and what it was told by.
    pub fn change_log(&self) -> Option<(Preset, &str)> {
        self.log.as_ref().map(|log| (log.preset, &*log.by))
    }
}

/// `error` with the lines that seem to stand in front of the names of columns, if it is about one that there is not.
pub(super) fn advised(error: Error, contents: &[File]) -> Error {
    match contents.iter().find_map(|file| file.content.preamble()) {
        Some(lines) => error.behind_lines(lines),
        None => error,
    }
}

/// The schema of CSV of which there is no row.
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

/// What all files agree on.
pub(super) fn agreed(schema: SchemaRef, files: &[FileInfo]) -> SchemaRef {
    match files.iter().all(|file| file.format == Format::Csv) {
        true => nulls_as_text(schema),
        false => schema,
    }
}
