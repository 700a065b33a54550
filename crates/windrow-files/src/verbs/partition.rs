//! The verb `partition`: splits rows into files by hash, range or value. Equal keys go to the same
//! file.
//!
//! ```text
//! --into N              hash of `by`, N files        `range_at` V ...   ranges of `by`, given
//! `range` --into N      ranges of `by`, sampled      `hive`             a directory per value of `by`
//! ```

use std::num::NonZeroU32;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_select::concat::concat;
use windrow::{IntoColumns, Layout, Order, Partitioner, SortColumn as Column, asc};

use super::project::{check_names, projection};
use super::{Arrangement, Transform};
use crate::columns::{fields, names};
use crate::derived::Derived;
use crate::equality::{one_nan, plain_type};
use crate::error::{Error, Result, failed};
use crate::input::{Inputs, literal};
use crate::partition::{Ids, Names, Partitioning};
use crate::settings::setters;

/// Specification of a split into files. Rows with equal keys go to the same file, and keep their
/// order there unless the file is sorted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartitionSpec {
    /// Columns that determine the file of a row.
    pub by: Vec<Column>,
    /// Rule for the file of a row.
    pub partitions: Partitions,
    /// Columns by which every file is sorted.
    pub sort: Vec<Column>,
    /// Columns to write, in this order.
    pub select: Option<Vec<String>>,
}

/// Rules for splitting rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Partitions {
    /// This many files, by a hash that is the same on every machine and in every release.
    Hash(NonZeroU32),
    /// This many ranges of about equally many rows. Reads the input twice.
    Ranges(NonZeroU32),
    /// Ranges that start at these values, as text. For several columns, values are separated by
    /// commas.
    RangesAt(Vec<String>),
    /// A directory for each value.
    Hive,
}

impl PartitionSpec {
    /// Splits by these columns.
    pub fn by(by: impl IntoColumns, partitions: Partitions) -> Self {
        Self { by: by.into_columns(), partitions, sort: Vec::new(), select: None }
    }

    setters! {
        /// Sorts every file.
        sort: impl IntoColumns => sort.into_columns();
        /// Sets the columns to write.
        select: impl IntoIterator<Item: Into<String>> =>
            Some(select.into_iter().map(Into::into).collect());
    }

    /// Returns the columns with values that the verb interprets: the columns of the partition and of
    /// the files' order.
    pub fn compared(&self) -> Option<Vec<String>> {
        Some(names(self.by.iter().chain(&self.sort)))
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<(Arrangement, Partitioning)> {
        match self.partitions {
            Partitions::Hive => by_value(self, inputs),
            _ => by_number(self, inputs),
        }
    }
}

/// Numbered partitions. A column with the partition's number starts the order.
fn by_number(spec: &PartitionSpec, inputs: &Inputs) -> Result<(Arrangement, Partitioning)> {
    let ordered = spec.by.iter().chain(&spec.sort).map(|column| column.name.as_str());
    let derived = Derived::of(inputs.schema(), ordered);
    let schema = Arc::clone(&derived.schema);
    let layout = Order::by(spec.by.clone()).bind(&schema)?;
    let by = names(&spec.by).join(", ");
    let (ids, partitions, how) = match &spec.partitions {
        Partitions::RangesAt(splitters) => {
            let ranges = ranges(&layout, splitters)?;
            let partitions = u32::try_from(ranges.partitions()).unwrap_or(u32::MAX);
            (Ids::new(&layout, derived, ranges), partitions, format!("{partitions} ranges of {by}"))
        }
        Partitions::Ranges(into) => {
            let how = format!("{into} ranges of {by}, by a sample");
            (Ids::of(&layout, derived, Some(into.get() as usize)), into.get(), how)
        }
        Partitions::Hash(into) => {
            let hash = Partitioner::hash(&layout, into.get() as usize);
            let how = format!("{into} by a hash of {by}, version {}", Partitioner::HASH_VERSION);
            (Ids::new(&layout, derived, hash).equal_as_in_sql(), into.get(), how)
        }
        Partitions::Hive => return by_value(spec, inputs),
    };
    let ids = Arc::new(ids);
    let sorting = spec.sort.clone();
    check_names(&schema, sorting.iter().map(|column| column.name.as_str()))?;
    let schema = &ids.schema;
    let key = schema.fields().len() - 1;
    let number = asc(schema.field(key).name().as_str());
    let numbering = Arc::clone(&ids);
    let transform: Transform = Arc::new(move |batch: &RecordBatch, _| numbering.append(batch));
    let arrangement = Arrangement {
        transform: Some(transform),
        // Columns of `select` are columns of the input.
        projection: projection(inputs.schema(), spec.select.as_deref(), &[])?,
        ..Arrangement::of(Order::by([number]).then(sorting.clone()).bind(schema)?)
    };
    let names = Names::Numbered { partitions };
    Ok((arrangement, Partitioning { keys: vec![key], names, ids: Some(ids), sorting, how }))
}

/// A directory for every value. The order starts with the directories' columns, which files omit.
fn by_value(spec: &PartitionSpec, inputs: &Inputs) -> Result<(Arrangement, Partitioning)> {
    let ordered = spec.by.iter().chain(&spec.sort).map(|column| column.name.as_str());
    let derived = Derived::of(inputs.schema(), ordered);
    let schema = &derived.schema;
    let columns = names(&spec.by);
    if let Some(name) = spec.select.iter().flatten().find(|name| columns.contains(name)) {
        return Err(Error::usage(format!(
            "`select`: {name:?} is in the names of the directories, and left out of the files"
        )));
    }
    let mut sorting = spec.sort.clone();
    // These columns have one value within a file.
    sorting.retain(|column| !columns.contains(&column.name));
    let layout = Order::by(spec.by.clone()).then(sorting.clone()).bind(schema)?;
    let keys: Vec<usize> = layout.key().collect();
    let nested = keys.iter().map(|&key| schema.field(key));
    if let Some(field) = nested.into_iter().find(|field| field.data_type().is_nested()) {
        return Err(Error::usage(format!(
            "`hive`: column {:?} is nested, and cannot be in the name of a directory",
            field.name()
        )));
    }
    let hidden: Vec<String> = derived.names().chain(&columns).cloned().collect();
    let projection = projection(schema, spec.select.as_deref(), &hidden)?;
    if projection.is_empty() {
        return Err(Error::usage(
            "`hive`: every column is in the names of the directories; none is left to write",
        ));
    }
    let is_float = |&key: &usize| plain_type(schema.field(key).data_type()).is_floating();
    let has_floats = keys.iter().any(is_float);
    let transform: Option<Transform> = (has_floats || !derived.is_empty()).then(|| {
        let keys = keys.clone();
        Arc::new(move |batch: &RecordBatch, _| {
            let batch = derived.append(batch)?;
            let mut values: Vec<ArrayRef> = batch.columns().to_vec();
            keys.iter().for_each(|&key| values[key] = one_nan(&values[key]));
            RecordBatch::try_new(batch.schema(), values).map_err(failed)
        }) as Transform
    });
    let how = format!("a directory for each value of {}", columns.join(", "));
    let names = Names::Hive { columns };
    let arrangement = Arrangement { transform, projection, ..Arrangement::of(layout) };
    Ok((arrangement, Partitioning { keys, names, ids: None, sorting, how }))
}

/// Parses splitters, the user's values of the key columns, separated by commas. Returns the ranges
/// between splitters.
fn ranges(layout: &Layout, splitters: &[String]) -> Result<Partitioner> {
    let usage = |message: String| Error::usage(format!("`range_at`: {message}"));
    let key: Vec<usize> = layout.key().collect();
    let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); key.len()];
    for text in splitters {
        let values = match key.len() {
            1 => vec![text.clone()],
            _ => fields(text).map_err(usage)?,
        };
        if values.len() != key.len() {
            return Err(usage(format!(
                "{text:?} has {} values, and `by` has {} columns",
                values.len(),
                key.len()
            )));
        }
        for ((value, &column), parsed) in values.iter().zip(&key).zip(&mut columns) {
            let field = layout.schema().field(column);
            let (name, data_type) = (field.name(), field.data_type());
            parsed.push(literal(value, data_type).ok_or_else(|| {
                usage(format!("{value:?} is no value of column {name:?}, which is {data_type}"))
            })?);
        }
    }
    let columns = columns.iter().zip(&key).map(|(values, &column)| {
        let values: Vec<_> = values.iter().map(AsRef::as_ref).collect();
        Ok((layout.schema().field(column).name(), concat(&values)?))
    });
    let columns: Result<Vec<_>, arrow_schema::ArrowError> = columns.collect();
    let batch = columns.and_then(RecordBatch::try_from_iter).map_err(|e| usage(e.to_string()))?;
    Partitioner::range(layout, &batch).map_err(|error| match error {
        windrow::Error::OutOfOrder { row, .. } => {
            let (this, before) = (row as usize, row as usize - 1);
            usage(format!(
                "{:?} comes before {:?} in the order of `by`; give them in that order",
                splitters[this], splitters[before]
            ))
        }
        other => other.into(),
    })
}
