//! What the caller says of a change log, and errors of all its parts.

use std::sync::Arc;

use arrow_schema::{ArrowError, Field};

use crate::error::Error;
use crate::preset::OpMap;
use crate::settings::{Preset, Unchanged};

/// The caller's description of a change log.
#[derive(Clone, Copy, Default)]
pub(crate) struct Said<'a> {
    pub(crate) preset: Preset,
    /// The operation column, if it differs from the preset's.
    pub(crate) op_column: Option<&'a str>,
    pub(crate) op_map: Option<&'a OpMap>,
    pub(crate) unchanged: Unchanged,
    /// Whether the caller names the tables of the log.
    pub(crate) tables_are_named: bool,
}

pub(super) fn missing_op<'a>(
    names: &[&str],
    preset: Preset,
    fields: impl Iterator<Item = &'a Arc<Field>>,
) -> Error {
    let columns: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
    Error::usage(format!(
        "no column named {} for the operation (`op_preset` {}); the columns are {}; name the \
         right one with `op_column`",
        names.join(" or "),
        preset.name(),
        columns.join(", ")
    ))
}

/// Returns the error of a kernel on bound columns: the data does not match its schema.
pub(super) fn misfit(error: ArrowError) -> Error {
    Error::data(format!("the rows do not fit the input's schema: {error}"))
}
