//! The partitions of a table: files whose rows have the same values in some columns, or the same
//! transforms of values.
//!
//! ```text
//!  country=nl/a.parquet   0        change 5, nl   ->  partition 0
//!  country=be/b.parquet   1        change 7, fr   ->  partition 2, which has no file yet
//! ```
//! If the key has all of these columns, the change of a key and the row of this key are in one
//! partition. If not, a row may move: its file is searched, the change removes the row there, and the
//! new row goes to a file of its partition.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::SchemaRef;
use windrow::SortColumn;

use super::keys::plain;
use super::transform::{PartitionColumn, PartitionTransform};
use crate::error::{Error, Result, failed};
use crate::names::Places;
use crate::partition::{Names, text};

/// The partitions of a table.
pub(super) struct Partitions {
    /// The columns that divide the table.
    pub(super) schema: SchemaRef,
    /// Their places in the table.
    places: Vec<usize>,
    transforms: Vec<PartitionTransform>,
    converter: RowConverter,
    numbers: HashMap<Box<[u8]>, usize>,
    /// The values of each partition as text, if all transforms are the identity. Partition 0 is that of
    /// files without rows.
    pub(super) texts: Vec<Vec<Option<String>>>,
    /// Whether the change and the row of a key are in one partition.
    pub(super) is_local: bool,
}

impl Partitions {
    /// Returns the partitions by these columns, none so far; `None` without columns.
    pub(super) fn of(
        table: &SchemaRef,
        by: &[PartitionColumn],
        key: &[String],
    ) -> Result<Option<Self>> {
        if by.is_empty() {
            return Ok(None);
        }
        let all = Places::of(table.fields());
        let names = || table.fields().iter().map(|field| field.name().as_str());
        let place = |column: &PartitionColumn| {
            all.only(&column.name).ok_or_else(|| Error::missing_column(&column.name, names()))
        };
        let places = by.iter().map(place).collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(table.project(&places).map_err(failed)?);
        let transforms: Vec<_> = by.iter().map(|column| column.transform).collect();
        let none = transformed(&RecordBatch::new_empty(SchemaRef::clone(&schema)), &transforms)?;
        let fields = none.iter().map(|values| SortField::new(values.data_type().clone()));
        Ok(Some(Self {
            schema,
            places,
            transforms,
            converter: RowConverter::new(fields.collect()).map_err(failed)?,
            numbers: HashMap::new(),
            texts: vec![Vec::new()],
            is_local: by.iter().all(|column| key.contains(&column.name)),
        }))
    }

    /// Returns the columns of `schema`, of rows of the table.
    pub(super) fn values(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        rows.project(&self.places).map_err(failed)
    }

    /// Returns the partitions of rows with these values, as bytes.
    pub(super) fn rows(&self, values: &RecordBatch) -> Result<Rows> {
        let transformed = transformed(values, &self.transforms)?;
        self.converter.convert_columns(&transformed).map_err(failed)
    }

    /// Returns the number of a partition that has files. `rows` are the partitions of record batches.
    pub(super) fn known(&self, rows: &Rows, row: usize) -> Option<usize> {
        self.numbers.get(rows.row(row).as_ref()).copied()
    }

    /// Numbers the partition of a row of `values`, if it has no number yet.
    pub(super) fn number(
        &mut self,
        rows: &Rows,
        values: &RecordBatch,
        row: usize,
    ) -> Result<usize> {
        if let Some(number) = self.known(rows, row) {
            return Ok(number);
        }
        let columns = values.columns().iter().filter(|_| self.are_values());
        let texts = columns.map(|column| text(column, row)).collect::<Result<_, _>>();
        self.texts.push(texts.map_err(failed)?);
        let number = self.numbers.len() + 1;
        self.numbers.insert(rows.row(row).as_ref().into(), number);
        Ok(number)
    }

    fn are_values(&self) -> bool {
        self.transforms.iter().all(|transform| *transform == PartitionTransform::Identity)
    }

    /// Returns the path of the first file of a partition, which has these values in a row: below
    /// directories for its values, or without any for other transforms.
    pub(super) fn file(&self, number: usize, values: &RecordBatch, row: usize) -> Result<PathBuf> {
        let names = self.schema.fields().iter().map(|field| field.name().clone());
        let names = Names::Hive { columns: names.filter(|_| self.are_values()).collect() };
        Ok(names.of(values, row, "parquet")?.path.with_file_name(format!("part-{number}.parquet")))
    }
}

/// Moves the columns that are equal in all rows of a partition behind the others. The rows of a file
/// have the same order with either key, and statistics tell more of the other columns.
pub(super) fn constant_last(key: &[SortColumn], by: &[PartitionColumn]) -> Vec<SortColumn> {
    let is_constant = |column: &&SortColumn| {
        let is_it = |by: &PartitionColumn| by.name == column.name;
        by.iter().any(|by| is_it(by) && by.transform == PartitionTransform::Identity)
    };
    let (last, first): (Vec<_>, Vec<_>) = key.iter().partition(is_constant);
    first.into_iter().chain(last).cloned().collect()
}

fn transformed(values: &RecordBatch, transforms: &[PartitionTransform]) -> Result<Vec<ArrayRef>> {
    let pairs = values.columns().iter().zip(transforms);
    pairs.map(|(column, transform)| transform.of(&plain(column)?)).collect()
}
