//! `windrow compact`: a change log down to the latest state of each key, or to summed changes.
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
use windrow::{Column, Finish, Order};

use super::project::{check_names, find, projection, required};
use crate::args::{self, Mode};
use crate::changelog::{self, ChangeLog};
use crate::columns::Columns;
use crate::error::{CliError, Result};
use crate::input::{Inputs, one_value};
use crate::job::{self, Arrangement, Transform, Way};

/// Compacts.
pub(crate) fn compact(args: &args::Compact) -> Result<()> {
    if let (Some(time), None) = (&args.time, &args.diff) {
        // The parser lets it pass where --order-by excludes --diff.
        return Err(CliError::Usage(format!(
            "--time {time} needs --diff; without one --as-of looks at the first --order-by column"
        )));
    }
    let inputs = job::open_inputs(&args.input, Some(&args.limits))?;
    let arrangement = match &args.diff {
        Some(diff) => diff_log(args, &inputs, diff)?,
        None => op_log(args, &inputs)?,
    };
    job::run(inputs, &arrangement, &args.output, &args.limits, &args.report)
}

/// The latest row of each key.
fn op_log(args: &args::Compact, inputs: &Inputs) -> Result<Arrangement> {
    let key = columns(args.key.as_ref());
    let names: Vec<String> = key.iter().map(|column| column.name.clone()).collect();
    let mut order_by = columns(args.order_by.as_ref());
    let log = match (args.op_preset, &args.op_column) {
        (None, None) => None,
        (preset, op) => {
            let preset = preset.unwrap_or_default();
            let log = ChangeLog::bind(inputs.schema(), preset, op.as_deref())?;
            Some(log.keyed_by(&names))
        }
    };
    let given = log.as_ref().map_or(inputs.schema(), ChangeLog::schema);
    check_names(given, key.iter().chain(&order_by).map(|column| column.name.as_str()))?;
    let mut as_of = args.as_of.clone();
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
            return Err(CliError::Usage("--as-of needs --order-by, or --time".to_owned()));
        }
        (None, _) => None,
    };
    let layout = order.then(order_by).bind(schema)?;
    let hidden: Vec<String> = match &log {
        None => Vec::new(),
        Some(log) if args.mode == Mode::Snapshot && !args.keep_bookkeeping => {
            log.bookkeeping().to_vec()
        }
        // What the preset added for the engine says nothing that the op column does not.
        Some(log) => {
            log.bookkeeping().iter().filter(|name| changelog::is_own(name)).cloned().collect()
        }
    };
    let projection = projection(schema, args.output.select.as_deref(), &hidden)?;
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
        finish: finish(args),
        projection,
        required: Vec::new(),
    })
}

/// Rows equal in all else, their diffs summed.
fn diff_log(args: &args::Compact, inputs: &Inputs, diff: &str) -> Result<Arrangement> {
    let schema = inputs.schema();
    let required = required(schema, &[&args.diff, &args.time])?;
    let as_of = match (&args.as_of, &args.time) {
        (Some(text), Some(time)) => Some(AsOf::new(schema, time, text)?),
        (Some(_), None) => return Err(CliError::Usage("--as-of needs --time".to_owned())),
        (None, _) => None,
    };
    // In a snapshot everything happened by now: times are dropped, so that rows meet across them.
    let (kept, schema) = match (&args.time, args.mode) {
        (Some(time), Mode::Snapshot) => {
            let time = find(schema, time)?;
            let kept: Vec<usize> = (0..schema.fields().len()).filter(|&i| i != time).collect();
            let schema = schema.project(&kept).map_err(|e| CliError::Data(e.to_string()))?;
            (Some(kept), Arc::new(schema))
        }
        _ => (None, Arc::clone(schema)),
    };
    let mut order = Order::by(columns(args.key.as_ref())).diff(diff);
    if let (Some(time), None) = (&args.time, &kept) {
        order = order.time(time);
    }
    let layout = order.bind(&schema)?;
    let finish = finish(args);
    let hidden = if finish == Finish::Snapshot { vec![diff.to_owned()] } else { Vec::new() };
    let projection = projection(&schema, args.output.select.as_deref(), &hidden)?;
    let transform: Option<Transform> = match (as_of, kept) {
        (None, None) => None,
        (as_of, kept) => Some(Box::new(move |batch, _| {
            let batch = as_of.as_ref().map_or(Ok(batch.clone()), |as_of| as_of.filter(batch))?;
            match &kept {
                Some(kept) => batch.project(kept).map_err(|e| CliError::Data(e.to_string())),
                None => Ok(batch),
            }
        })),
    };
    Ok(Arrangement { way: Way::Unordered, layout, transform, finish, projection, required })
}

fn finish(args: &args::Compact) -> Finish {
    match (args.mode, args.keep_bookkeeping) {
        (Mode::Log, _) => Finish::Log,
        (Mode::Snapshot, false) => Finish::Snapshot,
        (Mode::Snapshot, true) => Finish::Counts,
    }
}

fn columns(columns: Option<&Columns>) -> Vec<Column> {
    columns.map(|Columns(columns)| columns.clone()).unwrap_or_default()
}

/// Rows that happened at or before a time.
struct AsOf {
    column: usize,
    limit: Scalar<ArrayRef>,
}

impl AsOf {
    fn new(schema: &SchemaRef, name: &str, text: &str) -> Result<Self> {
        let column = schema.index_of(name).map_err(|error| CliError::Usage(error.to_string()))?;
        let data_type = schema.field(column).data_type();
        let limit = parse(text, data_type).ok_or_else(|| {
            CliError::Usage(format!(
                "--as-of: {text:?} is no value of column {name:?}, which is {data_type}"
            ))
        })?;
        Ok(Self { column, limit: Scalar::new(limit) })
    }

    fn filter(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let times: &dyn Datum = batch.column(self.column);
        lt_eq(times, &self.limit)
            .and_then(|kept| filter_record_batch(batch, &kept))
            .map_err(|error| CliError::Data(error.to_string()))
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
