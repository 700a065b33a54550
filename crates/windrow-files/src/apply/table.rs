//! A table, and changes bound to its columns.

use std::path::PathBuf;
use std::sync::Arc;

use super::keys::KeyCode;
use crate::derived::Derived;
use crate::error::{Error, Result};
use crate::input::{Inputs, ReadOptions, Source};
use crate::job::Job;
use crate::limits::Limits;
use crate::settings::Format;
use crate::settings::Mode;
use crate::verbs::{CompactSpec, Onto};

/// A table: files of one schema, and their names below its directory.
pub(super) struct Table {
    pub(super) inputs: Arc<Inputs>,
    pub(super) names: Vec<PathBuf>,
    pub(super) read: ReadOptions,
}

impl Table {
    /// Opens the files of a table.
    ///
    /// # Errors
    /// `Usage` for files that are not Parquet.
    pub(super) fn open(
        files: &[(Source, PathBuf)],
        read: &ReadOptions,
        limits: &Limits,
    ) -> Result<Self> {
        let read = read.clone().within(limits)?;
        let sources: Vec<Source> = files.iter().map(|(source, _)| source.clone()).collect();
        let inputs = Inputs::open(&sources, &read)?;
        if let Some(file) = inputs.files().iter().find(|file| file.format != Format::Parquet) {
            return Err(Error::usage(format!(
                "{}: changes are applied to Parquet files, and this is {}",
                file.name, file.format
            )));
        }
        let names = files.iter().map(|(_, name)| name.clone()).collect();
        Ok(Self { inputs: Arc::new(inputs), names, read })
    }
}

/// A change log bound to a table.
pub(super) struct Bound {
    pub(super) job: Job,
    pub(super) onto: Onto,
    pub(super) spec: CompactSpec,
}

impl Bound {
    /// Binds the changes in `inputs` to the columns of `table`.
    pub(super) fn of(
        table: &Table,
        inputs: Inputs,
        spec: &CompactSpec,
        lacking_is_null: bool,
    ) -> Result<Self> {
        let spec = CompactSpec { mode: Mode::Log, ..spec.clone() };
        let schema = table.inputs.schema();
        let ordered = spec.key.iter().chain(&spec.order_by).map(|column| &*column.name);
        let derived = Derived::of(schema, ordered);
        let width = schema.fields().len();
        let whole = Arc::clone(derived.schema());
        let mut onto = Onto { table: whole, width, lacking_is_null, order: None };
        KeyCode::of(schema, &spec.key)?;
        let job = Job::compact_onto(inputs, &spec, &mut onto)?;
        Ok(Self { job, onto, spec })
    }
}
