//! Compaction: a change log down to the latest state of each key, or to summed changes.
//!
//! ```text
//! op logs      batch -> changelog preset -> as-of filter -> last of each key -> tombstones dropped
//! diff logs    batch -> as-of filter -> (time dropped for a snapshot) -> sums -> n rows for diff n
//! ```

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Datum, RecordBatch, Scalar};
use arrow::compute::kernels::cmp::lt_eq;
use arrow::compute::{CastOptions, cast_with_options, filter_record_batch};
use arrow::datatypes::{DataType, SchemaRef};
use windrow::{Finish, IntoColumns, Order, SortColumn as Column};

use super::project::{check_names, find, projection, required};
use super::{Arrangement, Transform, Way};
use crate::changelog::{self, ChangeLog, Preset};
use crate::error::{Error, Result};
use crate::input::{Inputs, one_value};

/// A change log, reduced to the latest state of each key, or to summed changes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CompactSpec {
    /// Columns that tell rows apart; with `diff`, columns to sort by first.
    pub key: Vec<Column>,
    /// Columns that say which change of a key is the latest; input order decides between equals.
    pub order_by: Vec<Column>,
    /// The column that says what a change does.
    pub op_column: Option<String>,
    /// How it reads, and where the row is.
    pub op_preset: Option<Preset>,
    /// The column with the time of a change, for logs of (row, time, diff).
    pub time: Option<String>,
    /// The column with how often a row was added, negative if removed.
    pub diff: Option<String>,
    /// Counts only what happened at or before this time, as text: a value of `time`, or of the first column
    /// of `order_by`.
    pub as_of: Option<String>,
    /// What is written.
    pub mode: Mode,
    /// Whether a snapshot has the operation, envelope and diff columns.
    pub keep_bookkeeping: bool,
    /// The columns to write, in this order.
    pub select: Option<Vec<String>>,
}

/// What a compaction writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The live rows, sorted by key.
    #[default]
    Snapshot,
    /// The last change of each key, deletes included; or the summed changes.
    Log,
}

impl CompactSpec {
    /// The latest state of each key.
    pub fn by_key(key: impl IntoColumns) -> Self {
        Self { key: key.into_columns(), ..Self::default() }
    }

    /// Summed changes, of rows that are equal but for this column.
    pub fn of_diffs(diff: impl Into<String>) -> Self {
        Self { diff: Some(diff.into()), ..Self::default() }
    }

    /// Sets which change of a key is the latest.
    pub fn order_by(mut self, columns: impl IntoColumns) -> Self {
        self.order_by = columns.into_columns();
        self
    }

    /// Sets the column that says what a change does.
    pub fn op_column(mut self, column: impl Into<String>) -> Self {
        self.op_column = Some(column.into());
        self
    }

    /// Sets the format of the log.
    pub fn op_preset(mut self, preset: Preset) -> Self {
        self.op_preset = Some(preset);
        self
    }

    /// Sets the column with the time of a change.
    pub fn time(mut self, column: impl Into<String>) -> Self {
        self.time = Some(column.into());
        self
    }

    /// Sets the time up to which changes count.
    pub fn as_of(mut self, time: impl Into<String>) -> Self {
        self.as_of = Some(time.into());
        self
    }

    /// Sets what is written.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets whether a snapshot has the bookkeeping columns.
    pub fn keep_bookkeeping(mut self, keep: bool) -> Self {
        self.keep_bookkeeping = keep;
        self
    }

    /// Sets the columns to write.
    pub fn select<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.select = Some(names.into_iter().map(Into::into).collect());
        self
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        match &self.diff {
            Some(diff) => diff_log(self, inputs, diff),
            None => op_log(self, inputs),
        }
    }
}

/// The latest row of each key.
fn op_log(spec: &CompactSpec, inputs: &Inputs) -> Result<Arrangement> {
    if let Some(time) = &spec.time {
        return Err(Error::usage(format!(
            "`time` {time} needs `diff`; without one `as_of` looks at the first `order_by` column"
        )));
    }
    let key = spec.key.clone();
    let names: Vec<String> = key.iter().map(|column| column.name.clone()).collect();
    let mut order_by = spec.order_by.clone();
    let log = match (spec.op_preset, &spec.op_column) {
        (None, None) => None,
        (preset, op) => {
            let preset = preset.unwrap_or_default();
            let log = ChangeLog::bind(inputs.schema(), preset, op.as_deref())?;
            Some(log.keyed_by(&names))
        }
    };
    let given = log.as_ref().map_or(inputs.schema(), ChangeLog::schema);
    check_names(given, key.iter().chain(&order_by).map(|column| column.name.as_str()))?;
    let mut as_of = spec.as_of.clone();
    let log = log.map(|log| log.ordered_by(&mut order_by, as_of.as_mut())).transpose()?;
    let schema = log.as_ref().map_or(inputs.schema(), ChangeLog::schema);
    let mut order = Order::by(key).last();
    if let Some(log) = &log {
        order = order.tombstone(log.tombstone());
        if let Some(class) = log.class() {
            order = order.then(class);
        }
    }
    let as_of = match (&as_of, order_by.first()) {
        (Some(text), Some(column)) => Some(AsOf::new(schema, &column.name, text)?),
        (Some(_), None) => {
            return Err(Error::usage("`as_of` needs `order_by`, or `time`"));
        }
        (None, _) => None,
    };
    let layout = order.then(order_by).bind(schema)?;
    let hidden: Vec<String> = match &log {
        None => Vec::new(),
        Some(log) if spec.mode == Mode::Snapshot && !spec.keep_bookkeeping => {
            log.bookkeeping().to_vec()
        }
        // What the preset added for the engine says nothing that the op column does not.
        Some(log) => {
            log.bookkeeping().iter().filter(|name| changelog::is_own(name)).cloned().collect()
        }
    };
    let projection = projection(schema, spec.select.as_deref(), &hidden)?;
    let transform: Option<Transform> = match (log, as_of) {
        (None, None) => None,
        (log, as_of) => Some(Box::new(move |batch, first_row| {
            let batch = match &log {
                Some(log) => log.apply(batch, first_row)?.0,
                None => batch.clone(),
            };
            as_of.as_ref().map_or(Ok(batch.clone()), |as_of| as_of.filter(&batch))
        })),
    };
    Ok(Arrangement {
        way: Way::Unordered,
        layout,
        transform,
        finish: finish(spec),
        projection,
        required: Vec::new(),
    })
}

/// Rows equal in all else, their diffs summed.
fn diff_log(spec: &CompactSpec, inputs: &Inputs, diff: &str) -> Result<Arrangement> {
    let schema = inputs.schema();
    let required = required(schema, &[&spec.diff, &spec.time])?;
    let as_of = match (&spec.as_of, &spec.time) {
        (Some(text), Some(time)) => Some(AsOf::new(schema, time, text)?),
        (Some(_), None) => return Err(Error::usage("`as_of` needs `time`")),
        (None, _) => None,
    };
    // In a snapshot everything happened by now: times are dropped, so that rows meet across them.
    let (kept, schema) = match (&spec.time, spec.mode) {
        (Some(time), Mode::Snapshot) => {
            let time = find(schema, time)?;
            let kept: Vec<usize> = (0..schema.fields().len()).filter(|&i| i != time).collect();
            let schema = schema.project(&kept).map_err(|e| Error::data(e.to_string()))?;
            (Some(kept), Arc::new(schema))
        }
        _ => (None, Arc::clone(schema)),
    };
    let mut order = Order::by(spec.key.clone()).diff(diff);
    if let (Some(time), None) = (&spec.time, &kept) {
        order = order.time(time);
    }
    let layout = order.bind(&schema)?;
    let finish = finish(spec);
    let hidden = if finish == Finish::Snapshot { vec![diff.to_owned()] } else { Vec::new() };
    let projection = projection(&schema, spec.select.as_deref(), &hidden)?;
    let transform: Option<Transform> = match (as_of, kept) {
        (None, None) => None,
        (as_of, kept) => Some(Box::new(move |batch, _| {
            let batch = as_of.as_ref().map_or(Ok(batch.clone()), |as_of| as_of.filter(batch))?;
            match &kept {
                Some(kept) => batch.project(kept).map_err(|e| Error::data(e.to_string())),
                None => Ok(batch),
            }
        })),
    };
    Ok(Arrangement { way: Way::Unordered, layout, transform, finish, projection, required })
}

fn finish(spec: &CompactSpec) -> Finish {
    match (spec.mode, spec.keep_bookkeeping) {
        (Mode::Log, _) => Finish::Log,
        (Mode::Snapshot, false) => Finish::Snapshot,
        (Mode::Snapshot, true) => Finish::Counts,
    }
}

/// Rows that happened at or before a time.
struct AsOf {
    column: usize,
    limit: Scalar<ArrayRef>,
}

impl AsOf {
    fn new(schema: &SchemaRef, name: &str, text: &str) -> Result<Self> {
        let column = schema.index_of(name).map_err(|error| Error::usage(error.to_string()))?;
        let data_type = schema.field(column).data_type();
        let limit = parse(text, data_type).ok_or_else(|| {
            Error::usage(format!(
                "`as_of`: {text:?} is no value of column {name:?}, which is {data_type}"
            ))
        })?;
        Ok(Self { column, limit: Scalar::new(limit) })
    }

    fn filter(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let times: &dyn Datum = batch.column(self.column);
        lt_eq(times, &self.limit)
            .and_then(|kept| filter_record_batch(batch, &kept))
            .map_err(|error| Error::data(error.to_string()))
    }
}

/// A value of `data_type` as people write it; nothing if it is none, or would be rounded to one.
pub(super) fn parse(text: &str, data_type: &DataType) -> Option<ArrayRef> {
    let plain = match data_type {
        DataType::Dictionary(_, values) => values.as_ref(),
        DataType::RunEndEncoded(_, values) => values.data_type(),
        plain => plain,
    };
    // A text alone would be cast to a list of it.
    if plain.is_nested() {
        return None;
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let value = cast_with_options(&one_value(text, plain).ok()?, data_type, &options).ok()?;
    (value.null_count() == 0).then_some(value)
}
