//! Changes applied to a plain directory of Parquet files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::figures::Applied;
use super::prepared::Prepared;
use super::table::{Bound, Table};
use crate::error::{Error, Result};
use crate::input::{Inputs, ReadOptions, Source, expand_with};
use crate::limits::Limits;
use crate::output::{LockedDirectory, WriteOptions};
use crate::progress::Progress;
use crate::settings::setters;
use crate::verbs::CompactSpec;
use crate::watch::Cancel;

/// Specification of changes to a table.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ApplySpec {
    /// The format of the change log, its key and its order.
    pub changes: CompactSpec,
    /// Whether columns of the table that the changes lack are null in the rows of the changes. If
    /// not, such a column is an error.
    pub lacking_is_null: bool,
    /// Whether to wait for another job that writes to the table. If not, the job fails.
    pub waits: bool,
    /// Whether the changes are only counted, and nothing is changed.
    pub dry_run: bool,
}

impl ApplySpec {
    /// Applies the changes of a log.
    pub fn of(changes: CompactSpec) -> Self {
        Self { changes, lacking_is_null: false, waits: true, dry_run: false }
    }

    setters! {
        /// Sets whether columns that the changes lack are null in the rows of the changes.
        lacking_is_null: bool;
        /// Sets whether to wait for another job that writes to the table.
        waits: bool;
        /// Sets whether the changes are only counted.
        dry_run: bool;
    }
}

/// Changes bound to a directory, which stays locked until the value is dropped.
pub struct Apply {
    directory: LockedDirectory,
    table: Table,
    bound: Bound,
    limits: Limits,
    dry_run: bool,
    cancel: Cancel,
    progress: Arc<dyn Progress>,
}

impl Apply {
    /// Locks `directory` and binds the changes in `inputs` to the columns of its Parquet files.
    /// `read` are options for the files of the table.
    ///
    /// # Errors
    /// `Usage` for a directory that is a table of Delta, Iceberg or Hudi, for Hive directories, and
    /// for columns or types that do not fit the table.
    pub fn to_directory(
        directory: &Path,
        inputs: Inputs,
        spec: &ApplySpec,
        read: &ReadOptions,
        limits: &Limits,
        cancel: &Cancel,
    ) -> Result<Self> {
        if !directory.is_dir() {
            return Err(Error::usage(format!(
                "{}: changes are applied to a directory of Parquet files, and this is none",
                directory.display()
            )));
        }
        let directory = LockedDirectory::lock(directory, spec.waits, cancel)?;
        let files = files(directory.path(), read)?;
        let table = Table::open(&files, read, limits)?;
        if let Some(input) = inputs.files().iter().find(|input| is_below(input.path(), &directory))
        {
            return Err(Error::usage(format!(
                "{}: is a file of the table; keep the changes elsewhere",
                input.name
            )));
        }
        let bound = Bound::of(&table, inputs, &spec.changes, spec.lacking_is_null)?;
        let (limits, cancel) = (limits.clone(), cancel.clone());
        let (dry_run, progress) = (spec.dry_run, Arc::new(()));
        Ok(Self { directory, table, bound, limits, dry_run, cancel, progress })
    }

    /// Makes the job report its progress to `progress`.
    pub fn watched_by(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = progress;
        self
    }

    /// Reduces the changes, and returns the plan: which files and row groups may have a changed key.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn explain(self, write: &WriteOptions) -> Result<ApplyPlan> {
        let (_, prepared) = self.prepared(write)?;
        Ok(ApplyPlan(prepared.lines()))
    }

    /// Applies the changes. The directory changes as a whole or not at all; a dry run reads everything
    /// and counts, but changes nothing.
    ///
    /// # Errors
    /// Any [`ErrorKind`](crate::ErrorKind). A failed job leaves the directory as it was.
    pub fn run(self, write: &WriteOptions) -> Result<Applied> {
        let (cancel, dry_run) = (self.cancel.clone(), self.dry_run);
        let (directory, prepared) = self.prepared(write)?;
        if dry_run || prepared.is_idle() {
            return Ok(Applied { dry_run, ..prepared.run(None)? });
        }
        let replacement = directory.begin(&cancel)?;
        let applied = prepared.run(Some(replacement.path().to_owned()))?;
        if applied.files_removed.is_empty() {
            return Ok(applied);
        }
        cancel.check()?;
        replacement.commit(&applied.files_removed)?;
        Ok(applied)
    }

    fn prepared(self, write: &WriteOptions) -> Result<(LockedDirectory, Prepared)> {
        let Self { directory, table, bound, limits, cancel, progress, .. } = self;
        let prepared = Prepared::new(table, bound, write, &limits, &cancel, &progress)?;
        Ok((directory, prepared))
    }
}

/// The plan of changes to a table, as text: `Display` writes a line for each topic.
#[derive(Clone, Debug)]
pub struct ApplyPlan(Vec<(&'static str, String)>);

impl ApplyPlan {
    /// Returns the lines, each as a topic and a value.
    pub fn lines(&self) -> &[(&'static str, String)] {
        &self.0
    }
}

impl fmt::Display for ApplyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, value)| writeln!(f, "{name:<14} {value}"))
    }
}

/// Returns the files of a directory, and their paths below it.
fn files(directory: &Path, read: &ReadOptions) -> Result<Vec<(Source, PathBuf)>> {
    let mut files = Vec::new();
    for source in expand_with([directory], read)? {
        let Some(path) = source.path() else { continue };
        let name = path.strip_prefix(directory).unwrap_or(path).to_owned();
        let mut directories = name.parent().into_iter().flat_map(Path::components);
        if directories.any(|part| part.as_os_str().as_encoded_bytes().contains(&b'=')) {
            return Err(Error::usage(format!(
                "{}: changes are not applied to Hive directories yet; apply them to one directory of \
                 Parquet files",
                path.display()
            )));
        }
        files.push((Source::File(path.to_owned()), name));
    }
    Ok(files)
}

fn is_below(path: Option<&Path>, directory: &LockedDirectory) -> bool {
    let path = path.and_then(|path| path.canonicalize().ok());
    path.is_some_and(|path| path.starts_with(directory.path()))
}
