//! The targets of changes: a plain directory of Parquet files, and a list of files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef, TimeUnit};

use super::figures::{Applied, WriteMode};
use super::hidden::Hidden;
use super::prepared::Prepared;
use super::table::Table;
use super::transform::PartitionColumn;
use crate::error::{Error, Result};
use crate::input::{Inputs, ReadOptions, Source, expand_with};
use crate::job::{Explain, Job};
use crate::limits::Limits;
use crate::output::{AtomicDirectory, LockedDirectory, WriteOptions};
use crate::progress::Progress;
use crate::settings::{Mode, Setting, setters};
use crate::verbs::{CompactSpec, Onto};
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
    /// How rows are replaced, in a list of files.
    pub write_mode: WriteMode,
    /// The columns that divide the table into partitions; by default those in the names of directories.
    pub partition_by: Vec<PartitionColumn>,
    /// The types of columns that files do not have, of [`ListedFile::partition`].
    pub partition_types: Option<SchemaRef>,
    /// The directory of files for new partitions, below the directory of the table.
    pub data_directory: PathBuf,
    /// The local directory in which new files are written, if the table is in a store.
    pub written_in: Option<PathBuf>,
}

/// A file of a table.
#[derive(Clone, Debug, Default)]
pub struct ListedFile {
    /// The path of the file, below the directory of the table; or an absolute path, of a file that counts
    /// as one in the directory of new files.
    pub path: PathBuf,
    /// Columns with the same value in all rows, as text; `None` is null.
    pub partition: Vec<(String, Option<String>)>,
    /// The positions of hidden rows, as a 64-bit Roaring bitmap in its portable form; empty for none.
    pub hidden: Vec<u8>,
}

impl ApplySpec {
    /// Applies the changes of a log.
    pub fn of(changes: CompactSpec) -> Self {
        Self { changes, waits: true, ..Self::default() }
    }

    setters! {
        /// Sets whether columns that the changes lack are null in the rows of the changes.
        lacking_is_null: bool;
        /// Sets whether to wait for another job that writes to the table.
        waits: bool;
        /// Sets whether the changes are only counted.
        dry_run: bool;
        /// Sets how rows are replaced, in a list of files.
        write_mode: WriteMode;
        /// Sets the columns that divide the table into partitions.
        partition_by: Vec<PartitionColumn>;
        /// Sets the types of columns that files do not have.
        partition_types: SchemaRef => Some(partition_types);
        /// Sets the directory of files for new partitions.
        data_directory: PathBuf;
        /// Sets the local directory in which new files are written, if the table is in a store.
        written_in: PathBuf => Some(written_in);
    }
}

/// Where the new files of a table go.
enum Site {
    /// The directory is locked, and exchanged as a whole.
    Directory(LockedDirectory),
    /// Files of this version are written beside those of the table, and nothing is removed.
    Beside(PathBuf, u64),
}

/// Changes bound to a table. A directory stays locked until the value is dropped.
pub struct Apply {
    place: Site,
    table: Table,
    job: Job,
    mode: WriteMode,
    limits: Limits,
    dry_run: bool,
    cancel: Cancel,
    progress: Arc<dyn Progress>,
}

impl Apply {
    /// Locks `directory` and binds the changes in `inputs` to the columns of its Parquet files.
    ///
    /// # Errors
    /// `Usage` for a directory that is a table of Delta, Iceberg or Hudi, and for columns or types that
    /// do not fit the table.
    pub fn to_directory(
        directory: &Path,
        inputs: Inputs,
        spec: &ApplySpec,
        limits: &Limits,
        cancel: &Cancel,
    ) -> Result<Self> {
        if !directory.is_dir() {
            return Err(Error::usage(format!(
                "{}: changes are applied to a directory of Parquet files, and this is none",
                directory.display()
            )));
        }
        let locked = LockedDirectory::lock(directory, spec.waits, cancel)?;
        if locked.is_empty() {
            return Err(Error::usage(format!(
                "{}: has no files to change; write the first ones with `compact` and {}",
                directory.display(),
                Setting::MaxFileSize
            )));
        }
        let read = ReadOptions::default().cancelled_by(cancel).within(limits)?;
        let read = read.union_by_name(spec.lacking_is_null);
        let files = files(locked.path(), &read)?;
        let is_below =
            |path: &Path| path.canonicalize().is_ok_and(|path| path.starts_with(locked.path()));
        if let Some(input) = inputs.files().iter().find(|file| file.path().is_some_and(is_below)) {
            return Err(Error::usage(format!(
                "{}: is a file of the table; keep the changes elsewhere",
                input.name
            )));
        }
        if spec.write_mode != WriteMode::Copy {
            return Err(Error::usage("a directory has no place to record hidden rows"));
        }
        Self::bind(Site::Directory(locked), files, inputs, spec, read, limits, cancel)
    }

    /// Binds the changes in `inputs` to the columns of `files`, whose paths are below `directory`. New
    /// files are written beside the old ones, or in [`ApplySpec::written_in`], and made durable; their names
    /// have `version`, which no other job may use. Nothing is removed: the caller commits the result, and
    /// excludes other writers. New files that hide rows of others are written like the last one of `files`.
    ///
    /// # Errors
    /// `Usage` for columns or types that do not fit the table, and for times in nanoseconds, which
    /// tables of Delta and Iceberg do not hold.
    pub fn to_files(
        (directory, version): (&Path, u64),
        files: &[ListedFile],
        inputs: Inputs,
        spec: &ApplySpec,
        limits: &Limits,
        cancel: &Cancel,
    ) -> Result<Self> {
        let read = ReadOptions::default().cancelled_by(cancel).within(limits)?.union_by_name(true);
        let read = ReadOptions { hive_types: spec.partition_types.clone(), ..read };
        let read = read.stores(&inputs.stores);
        let new = spec.written_in.as_deref().unwrap_or(directory);
        let place = Site::Beside(new.to_owned(), version);
        let hidden = Hidden::of(files.iter().map(|file| (&*file.path, &*file.hidden)))?;
        let files = files.iter().map(|ListedFile { path: name, partition, .. }| {
            let path = directory.join(name);
            let name = match name.file_name().filter(|_| name.is_absolute()) {
                Some(file) => spec.data_directory.join(file),
                None => name.clone(),
            };
            (Source::Partition { path, values: partition.as_slice().into() }, name)
        });
        let mut bound = Self::bind(place, files.collect(), inputs, spec, read, limits, cancel)?;
        bound.table.hidden = hidden;
        let is_nano =
            |kind: &DataType| matches!(kind, DataType::Timestamp(TimeUnit::Nanosecond, _));
        let mut fields = bound.table.schema().fields().iter();
        match fields.find(|field| is_nano(field.data_type())) {
            None => Ok(bound),
            Some(field) => Err(Error::usage(format!(
                "column {:?}: a file has times as INT96 or in nanoseconds, and tables hold microseconds; write \
                 that file again in microseconds first",
                field.name()
            ))
            .in_column(field.name())),
        }
    }

    fn bind(
        place: Site,
        files: Vec<(Source, PathBuf)>,
        inputs: Inputs,
        spec: &ApplySpec,
        read: ReadOptions,
        limits: &Limits,
        cancel: &Cancel,
    ) -> Result<Self> {
        let read = ReadOptions { wide_keys: true, reads_again: true, ..read };
        // A log keeps the deletes.
        let mut changes = CompactSpec { mode: Mode::Log, ..spec.changes.clone() };
        let mut table = Table::open(files, read, &changes.key, &spec.partition_by)?;
        changes.key.clone_from(&table.key);
        let mut onto = Onto::of(table.schema(), &changes, spec.lacking_is_null);
        let bound = changes.bind_onto(&inputs, &mut onto).map(|last| (last, None));
        let job = Job::new(bound, inputs)?.cancelled_by(cancel);
        let mode = spec.write_mode;
        table.order_by(&changes, onto.preset, mode)?;
        table.data_directory.clone_from(&spec.data_directory);
        let (limits, cancel) = (limits.clone(), cancel.clone());
        let (dry_run, progress) = (spec.dry_run, Arc::new(()));
        Ok(Self { place, table, job, mode, limits, dry_run, cancel, progress })
    }

    /// Makes the job report its progress to `progress`.
    pub fn watched_by(mut self, progress: Arc<dyn Progress>) -> Self {
        self.job = self.job.watched_by(Arc::clone(&progress));
        self.progress = progress;
        self
    }

    /// Reduces the changes, and returns the plan: which files and row groups may have a changed key.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn explain(self, write: &WriteOptions) -> Result<Explain> {
        let Self { table, job, mode, limits, cancel, .. } = self;
        Ok(Prepared::new(table, mode, job, write, &limits, &cancel)?.explain())
    }

    /// Applies the changes. The directory changes as a whole or not at all; a dry run reads everything
    /// and counts, but changes nothing.
    ///
    /// # Errors
    /// Any [`ErrorKind`](crate::ErrorKind). A failed job leaves the directory as it was.
    pub fn run(self, write: &WriteOptions) -> Result<Applied> {
        let Self { place, table, job, mode, limits, dry_run, cancel, progress } = self;
        let prepared = Prepared::new(table, mode, job, write, &limits, &cancel)?;
        if dry_run || prepared.plans.is_empty() {
            return Ok(Applied { dry_run, ..prepared.run(None, None, &*progress)? });
        }
        match place {
            Site::Directory(directory) => {
                let replacement = directory.begin(&cancel)?;
                let folder = replacement.path().to_owned();
                let applied = prepared.run(Some(folder), None, &*progress)?;
                cancel.check()?;
                if !applied.files_removed.is_empty() || !applied.files_added.is_empty() {
                    replacement.commit(&applied.files_removed)?;
                }
                Ok(applied)
            }
            Site::Beside(folder, version) => {
                let new = AtomicDirectory::inside(&folder, &cancel)?;
                let applied =
                    prepared.run(Some(new.path().to_owned()), Some(version), &*progress)?;
                cancel.check()?;
                new.add(applied.files_added.iter().map(|file| &*file.path))?;
                Ok(applied)
            }
        }
    }
}

/// Returns the files of a directory, and their paths below it.
fn files(directory: &Path, read: &ReadOptions) -> Result<Vec<(Source, PathBuf)>> {
    let mut files = Vec::new();
    for source in expand_with([directory], read)? {
        let Some(path) = source.path() else { continue };
        let name = path.strip_prefix(directory).unwrap_or(path).to_owned();
        files.push((source, name));
    }
    Ok(files)
}
