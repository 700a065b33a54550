//! A table: files of one schema, and their rows.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_row::Rows as Keys;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use windrow::SortColumn;

use super::keys::Code;
use crate::columns::{are_of, names};
use crate::error::{Error, Result, failed};
use crate::input::{Inputs, ReadOptions, RowGroups, Source, conform};
use crate::job::Job;
use crate::limits::Limits;
use crate::settings::{FloatOrder, Format, Preset};
use crate::verbs::{CompactSpec, SortSpec};
use crate::watch::Watch;

/// Rows as record batches.
pub(super) type Rows<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + Send + 'a>;

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
    /// The columns of the key alone, and their encoder.
    keys: (SchemaRef, Code),
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
        let code = Code::of(inputs.schema(), key)?;
        let columns = names(key);
        let fields = inputs.schema().fields().iter();
        let fields = fields.filter(|field| are_of(&columns, field.name()));
        let schema = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
        let keys = (Arc::clone(&schema), Code::of(&schema, key)?);
        Ok(Self { inputs, names: paths, key: key.to_vec(), code, order: None, keys, read })
    }

    /// Sets the order of changes and rows.
    pub(super) fn order_by(&mut self, spec: &CompactSpec, preset: Option<Preset>) -> Result<()> {
        let (order, texts) = (&spec.order_by, &spec.order_texts);
        self.order = Code::of_order(self.schema(), order, preset, texts)?;
        Ok(())
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        self.inputs.schema()
    }

    /// Opens the key columns of a file, or all of them.
    pub(super) fn one(&self, file: usize, keys: bool) -> Result<Inputs> {
        let names = keys.then(|| names(&self.key));
        let read = self.read.clone().selecting(names.clone(), names.as_deref());
        Inputs::open(&[self.inputs.files()[file].source.clone()], &read)
    }

    /// Sorts rows of one file by the key.
    pub(super) fn sorted(&self, one: Inputs, limits: &Limits, watch: &Watch) -> Result<Rows<'_>> {
        let spec = SortSpec::by(self.key.clone()).float_order(FloatOrder::Sql);
        let rows = Job::sort(one, &spec)?.cancelled_by(&watch.cancel).batches(limits)?;
        let rows = rows.map(|batch| batch.map_err(|error| windrow::Error::from(error).into()));
        Ok(Box::new(rows.fuse()))
    }

    /// Returns the keys of record batches that have the key columns of one file.
    pub(super) fn keys_in<'a>(&'a self, rows: Rows<'a>) -> impl Iterator<Item = Result<Keys>> + 'a {
        let (schema, code) = &self.keys;
        conformed(rows, schema).map(|batch| code.rows(&batch?))
    }

    /// Returns all row groups of a file, from a new read of its footer.
    pub(super) fn row_groups(&self, file: usize) -> Result<Arc<RowGroups>> {
        let groups = self.inputs.whole_row_groups(file)?;
        groups.map(Arc::new).ok_or_else(|| {
            let name = &self.inputs.files()[file].name;
            Error::usage(format!("{name}: is encrypted, and a new file in its place would not be"))
        })
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
