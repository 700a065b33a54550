//! A table: files of one schema, and their rows.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_row::Rows as Keys;
use arrow_schema::{ArrowError, FieldRef, Schema, SchemaRef};
use windrow::SortColumn;

use super::figures::WriteMode;
use super::hidden::{Hidden, Rows};
use super::keys::Code;
use super::partitions::{Partitions, constant_last};
use super::transform::{PartitionColumn, PartitionTransform};
use crate::columns::{are_of, names};
use crate::error::{Error, Result, failed};
use crate::input::{Inputs, ReadOptions, RowGroups, Source, Unit, conform};
use crate::job::Job;
use crate::limits::Limits;
use crate::settings::{FloatOrder, Format, Preset};
use crate::verbs::{CompactSpec, SortSpec};
use crate::watch::Watch;

/// The files of a table.
pub(super) struct Table {
    pub(super) inputs: Inputs,
    /// Paths of the files below the directory of the table.
    pub(super) names: Vec<PathBuf>,
    pub(super) key: Vec<SortColumn>,
    /// The encoder of keys.
    pub(super) code: Code,
    /// The encoder of the order of changes, if the table has its columns.
    pub(super) order: Option<Code>,
    /// The columns that a search for keys reads.
    searched: Searched,
    pub(super) hidden: Hidden,
    /// The partitions, if the table has some.
    pub(super) partitions: Option<Partitions>,
    /// The columns that files have; all others are in the names of directories.
    stored: Vec<usize>,
    pub(super) stored_schema: SchemaRef,
    /// The directory of files for new partitions.
    pub(super) data_directory: PathBuf,
    read: ReadOptions,
}

impl Table {
    /// Opens the files of a table.
    ///
    /// # Errors
    /// `Usage` for files that are not Parquet, and for a missing key.
    pub(super) fn open(
        files: Vec<(Source, PathBuf)>,
        read: ReadOptions,
        key: &[SortColumn],
        by: &[PartitionColumn],
    ) -> Result<Self> {
        let (sources, paths): (Vec<_>, _) = files.into_iter().unzip();
        let inputs = Inputs::open(&sources, &read)?;
        if let Some(file) = inputs.files().iter().find(|file| file.format != Format::Parquet) {
            return Err(Error::usage(format!(
                "{}: changes are applied to Parquet files, and this is {}",
                file.name, file.format
            )));
        }
        if key.is_empty() {
            return Err(Error::usage("changes need a `key`"));
        }
        let in_names = in_names(&inputs)?;
        let given = in_names.iter();
        let given =
            given.map(|field| PartitionColumn::new(field.name(), PartitionTransform::Identity));
        let by = if by.is_empty() { given.collect() } else { by.to_vec() };
        let key = constant_last(key, &by);
        let schema = inputs.schema();
        let code = Code::of(schema, &key)?;
        let stored =
            (0..schema.fields().len()).filter(|place| !in_names.contains(&schema.fields()[*place]));
        let stored: Vec<usize> = stored.collect();
        let stored_schema = Arc::new(schema.project(&stored).map_err(failed)?);
        let partitions = Partitions::of(schema, &by, &names(&key))?;
        let read = match in_names.is_empty() {
            true => read,
            // The names of one file alone could give other types.
            false => read.hive_types(Arc::new(Schema::new(in_names.to_vec()))),
        };
        let searched = Searched::of(schema, &key, &CompactSpec::default(), None)?;
        let data_directory = PathBuf::new();
        Ok(Self {
            searched,
            hidden: Hidden::default(),
            partitions,
            stored,
            stored_schema,
            data_directory,
            inputs,
            names: paths,
            key,
            code,
            order: None,
            read,
        })
    }

    /// Sets the order of changes and rows.
    pub(super) fn order_by(
        &mut self,
        spec: &CompactSpec,
        preset: Option<Preset>,
        mode: WriteMode,
    ) -> Result<()> {
        let (order, texts) = (&spec.order_by, &spec.order_texts);
        self.order = Code::of_order(self.schema(), order, preset, texts)?;
        // Whether a change is older than its row decides whether the row moves, or is hidden.
        let rows_move = self.partitions.as_ref().is_some_and(|all| !all.is_local);
        if self.order.is_some() && (rows_move || mode != WriteMode::Copy) {
            self.searched = Searched::of(self.schema(), &self.key, spec, preset)?;
        }
        Ok(())
    }

    /// Returns the columns that files have.
    pub(super) fn to_store(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        match self.stored.len() == rows.num_columns() {
            true => Ok(rows.clone()),
            false => rows.project(&self.stored).map_err(failed),
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        self.inputs.schema()
    }

    /// Returns the number of rows that are not hidden.
    pub(super) fn rows(&self) -> u64 {
        self.inputs.rows().unwrap_or(0).saturating_sub(self.hidden.len())
    }

    /// Opens the columns of a file that a search reads.
    pub(super) fn keys_of(&self, file: usize) -> Result<Inputs> {
        self.one(file, Some(self.searched.names.clone()))
    }

    /// Returns the first row of a row group, in the columns of `schema`.
    pub(super) fn first_row(
        &self,
        (file, group): (usize, usize),
        schema: &SchemaRef,
        watch: &Watch,
    ) -> Result<Option<RecordBatch>> {
        let names = schema.fields().iter().map(|field| field.name().clone());
        let one = self.one(file, Some(names.collect()))?;
        let rows = group_rows(&one, 0, std::iter::once(group), watch);
        conformed(rows, schema).next().transpose()
    }

    /// Opens some columns of a file, or all of them.
    pub(super) fn one(&self, file: usize, names: Option<Vec<String>>) -> Result<Inputs> {
        let read = self.read.clone().selecting(names.clone(), names.as_deref());
        Inputs::open(&[self.inputs.files()[file].source.clone()], &read)
    }

    /// Sorts the rows of a file by the key, of which `one` has some columns.
    pub(super) fn sorted(
        &self,
        file: usize,
        mut one: Inputs,
        limits: &Limits,
        watch: &Watch,
    ) -> Result<Rows<'_>> {
        if self.hidden.of_file(file).is_some() {
            let (schema, watch) = (SchemaRef::clone(one.schema()), watch.clone());
            // The sort opens its inputs itself, and takes the rows that are not hidden as a stream.
            let rows: Rows<'static> =
                Box::new(one.units.into_iter().flat_map(move |unit| unit.read(&watch)).flatten());
            let rows = self.hidden.without(file, rows, 0);
            let rows = rows
                .map(|batch| batch.map_err(|error| ArrowError::from_external_error(error.into())));
            let name = &self.inputs.files()[file].name;
            let rows = Source::reader(name, RecordBatchIterator::new(rows, schema));
            one = Inputs::open(&[rows], &self.read)?;
        }
        let spec = SortSpec::by(self.key.clone()).float_order(FloatOrder::Sql);
        let rows = Job::sort(one, &spec)?.cancelled_by(&watch.cancel).batches(limits)?;
        let rows = rows.map(|batch| batch.map_err(|error| windrow::Error::from(error).into()));
        Ok(Box::new(rows.fuse()))
    }

    /// Returns the keys of record batches with the searched columns of one file, and their order if a row
    /// may move or be hidden.
    pub(super) fn keys_in<'a>(
        &'a self,
        rows: Rows<'a>,
    ) -> impl Iterator<Item = Result<(Keys, Option<Keys>)>> + 'a {
        let Searched { schema, code, order, .. } = &self.searched;
        conformed(rows, schema).map(|batch| {
            let batch = batch?;
            let order = order.as_ref().map(|order| order.rows(&batch)).transpose()?;
            Ok((code.rows(&batch)?, order))
        })
    }

    /// Returns all row groups of a file, from a new read of its footer.
    pub(super) fn row_groups(&self, file: usize) -> Result<Arc<RowGroups>> {
        let groups = self.inputs.content(file).whole_row_groups()?;
        groups.map(Arc::new).ok_or_else(|| {
            let name = &self.inputs.files()[file].name;
            Error::usage(format!("{name}: is encrypted, and a new file in its place would not be"))
        })
    }
}

/// The columns that a search for keys reads: those of the key, and those of the order if a row may move or
/// be hidden.
struct Searched {
    names: Vec<String>,
    schema: SchemaRef,
    code: Code,
    order: Option<Code>,
}

impl Searched {
    fn of(
        table: &SchemaRef,
        key: &[SortColumn],
        spec: &CompactSpec,
        preset: Option<Preset>,
    ) -> Result<Self> {
        let names = [names(key), names(&spec.order_by)].concat();
        let fields = table.fields().iter().filter(|field| are_of(&names, field.name()));
        let schema = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
        let order = Code::of_order(&schema, &spec.order_by, preset, &spec.order_texts)?;
        Ok(Self { names, code: Code::of(&schema, key)?, schema, order })
    }
}

/// Returns the columns in the names of the directories, which all files must have there.
fn in_names(inputs: &Inputs) -> Result<Vec<FieldRef>> {
    let of = |file: usize| inputs.directory_columns(file);
    match (1..inputs.files().len()).find(|file| of(*file) != of(0)) {
        None => Ok(of(0).to_vec()),
        Some(file) => {
            let [one, other] = [0, file].map(|file| &inputs.files()[file].name);
            Err(Error::usage(format!(
                "{one} and {other} have different columns in the names of their directories; changes are \
                 applied to tables whose partitions are all by the same columns"
            )))
        }
    }
}

/// Returns the rows of one file with the columns of `schema`.
pub(super) fn conformed<'a>(rows: Rows<'a>, schema: &SchemaRef) -> Rows<'a> {
    let schema = Arc::clone(schema);
    Box::new(rows.map(move |batch| {
        let batch = batch?;
        let place = |field: &FieldRef| batch.schema_ref().index_of(field.name()).ok();
        let order = Some(schema.fields().iter().map(place).collect());
        conform(batch, &order, &schema).map_err(failed)
    }))
}

/// Reads a row group of the only file, or some of its rows.
pub(super) fn some_rows<'a>(
    inputs: &'a Inputs,
    group: usize,
    kept: Option<Vec<Range<u64>>>,
    watch: &Watch,
) -> Rows<'a> {
    let Some(kept) = kept else {
        return group_rows(inputs, 0, std::iter::once(group), watch);
    };
    if kept.is_empty() {
        return Box::new(std::iter::empty());
    }
    let unit = Unit { kept: Some(kept.into()), ..inputs.units[group].clone() };
    unit.read(watch).unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
}

/// Reads row groups of a file.
pub(super) fn group_rows<'a>(
    inputs: &'a Inputs,
    file: usize,
    groups: impl Iterator<Item = usize> + Send + 'a,
    watch: &Watch,
) -> Rows<'a> {
    let (units, watch) = (&inputs.units, watch.clone());
    let first = units.partition_point(|unit| unit.file < file);
    Box::new(groups.flat_map(move |group| {
        let unit = units.get(first + group).filter(|unit| unit.file == file);
        let unit = unit.ok_or_else(|| Error::data("the file was replaced while it was read"));
        match unit.and_then(|unit| unit.read(&watch)) {
            Ok(batches) => batches,
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }))
}
