//! Compaction: reduces a change log to the latest state of each key, or to summed changes.
//!
//! ```text
//! op logs      batch -> changelog preset -> as-of filter -> last of each key -> tombstones dropped
//! diff logs    batch -> as-of filter -> (time dropped for a snapshot) -> sums -> n rows for diff n
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Datum, RecordBatch, Scalar};
use arrow_ord::cmp::lt_eq;
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use windrow::{Finish, IntoColumns, Order, SortColumn as Column};

use super::known::{Filling, Known};
use super::onto::{Conform, Onto};
use super::project::{self, check_names, find, projection, required};
use super::sift::Sifting;
use super::{Arrangement, FirstRow, Transform, Verify};
use crate::changelog::{self, ChangeLog, Ranks, Said};
use crate::columns::{OrderBy, TextAs, names};
use crate::derived::Derived;
use crate::equality::{floats, with_one_form};
use crate::error::{Error, Result, failed};
use crate::input::{Inputs, Log, ReadOptions, literal};
use crate::paths::Paths;
use crate::preset::OpMap;
use crate::raw::Asked;
use crate::settings::{Mode, Preset, Setting, Unchanged, setters};

/// A change log to be reduced to the latest state of each key, or to summed changes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CompactSpec {
    /// Columns that identify a row; with `diff`, columns to sort by first.
    pub key: Vec<Column>,
    /// Columns that order the changes of a key; input order decides between equals.
    pub order_by: Vec<Column>,
    /// Interpretation of text columns in `order_by`, by name.
    pub order_texts: Vec<(String, TextAs)>,
    /// The column with the operation.
    pub op_column: Option<String>,
    /// The format of the log: the encoding of operations, and the place of the row.
    pub op_preset: Option<Preset>,
    /// Meanings of operation words, in addition to the preset or in place of its meanings.
    pub op_map: Option<OpMap>,
    /// The wanted tables of a log of several: `NAME` or `SCHEMA.NAME`, with the wildcards `*` and
    /// `?`; all matches count as one table. If empty, a log in NDJSON that names tables may name
    /// only one.
    pub tables: Vec<String>,
    /// Treatment of an update without all columns of its row.
    pub unchanged: Unchanged,
    /// The column with the time of a change, for logs of (row, time, diff).
    pub time: Option<String>,
    /// The column with the number of additions of a row, negative for removals.
    pub diff: Option<String>,
    /// Time limit as text: later changes do not count. A value of `time`, or of the first column of
    /// `order_by`.
    pub as_of: Option<String>,
    /// The form of the output.
    pub mode: Mode,
    /// Whether a snapshot keeps the operation, envelope and diff columns.
    pub keep_bookkeeping: bool,
    /// The columns to write, in this order.
    pub select: Option<Vec<String>>,
}

impl CompactSpec {
    /// Reduces a log to the latest state of each key.
    pub fn by_key(key: impl IntoColumns) -> Self {
        Self { key: key.into_columns(), ..Self::default() }
    }

    /// Sums the changes of rows equal in all other columns.
    pub fn of_diffs(diff: impl Into<String>) -> Self {
        Self { diff: Some(diff.into()), ..Self::default() }
    }

    /// Returns the options for reading the inputs: rows of raw change logs must be extracted from
    /// their text, and [`Preset::Auto`] requires detection of the format.
    pub fn reading(&self, mut options: ReadOptions) -> ReadOptions {
        let is_log = self.op_column.is_some() || self.op_preset.is_some() || self.op_map.is_some();
        if self.diff.is_none() && (is_log || !self.tables.is_empty()) {
            options.op_preset = Some(self.op_preset.unwrap_or_default());
            options.asked = Asked {
                tables: self.tables.clone(),
                words: self.op_map.clone().unwrap_or_default(),
                op_column: self.op_column.clone(),
                key: names(&self.key),
            };
        }
        options
    }

    /// Sets the columns that order the changes of a key, and the interpretation of their text.
    pub fn latest_by(mut self, order: OrderBy) -> Self {
        self.order_by = order.columns;
        self.order_texts = order.texts;
        self
    }

    /// Adds a wanted table, by name or pattern.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.tables.push(table.into());
        self
    }

    setters! {
        /// Sets the columns that order the changes of a key.
        order_by: impl IntoColumns => order_by.into_columns();
        /// Sets the column with the operation.
        op_column: impl Into<String> => Some(op_column.into());
        /// Sets the format of the log.
        op_preset: Preset => Some(op_preset);
        /// Sets the meanings of operation words.
        op_map: OpMap => Some(op_map);
        /// Sets the treatment of an update without all columns of its row.
        unchanged: Unchanged;
        /// Sets the column with the time of a change.
        time: impl Into<String> => Some(time.into());
        /// Sets the time limit; later changes do not count.
        as_of: impl Into<String> => Some(as_of.into());
        /// Sets the form of the output.
        mode: Mode;
        /// Sets whether a snapshot keeps the bookkeeping columns.
        keep_bookkeeping: bool;
        /// Sets the columns to write.
        select: impl IntoIterator<Item: Into<String>> =>
            Some(select.into_iter().map(Into::into).collect());
    }

    /// Returns the columns with values that the verb interprets: key, order and operation, beside
    /// the columns of the log's format (see
    /// [`carried_as_text`](crate::ReadOptions::carried_as_text)). `None` means all columns, if diffs
    /// of equal rows are summed.
    pub fn compared(&self) -> Option<Vec<String>> {
        if self.diff.is_some() {
            return None;
        }
        let mut columns = names(self.key.iter().chain(&self.order_by));
        columns.extend(self.op_column.iter().chain(&self.time).cloned());
        Some(columns)
    }

    pub(crate) fn bind(&self, inputs: &Inputs) -> Result<Arrangement> {
        match &self.diff {
            Some(diff) => diff_log(self, inputs, diff),
            None => op_log(self, inputs, None),
        }
    }

    /// Arranges the last change of each key, deletes included, with the columns of a table; see
    /// [`Onto`].
    pub(crate) fn bind_onto(&self, inputs: &Inputs, onto: &mut Onto) -> Result<Arrangement> {
        if self.diff.is_some() {
            return Err(Error::usage("a log of (row, time, diff) has no changes by key to apply"));
        }
        op_log(self, inputs, Some(onto))
    }
}

/// Arranges a log of operations: the latest row of each key.
fn op_log(spec: &CompactSpec, inputs: &Inputs, mut onto: Option<&mut Onto>) -> Result<Arrangement> {
    if let Some(time) = &spec.time {
        return Err(Error::usage(format!(
            "`time` {time} needs `diff`; without one `as_of` looks at the first `order_by` column"
        )));
    }
    let key = spec.key.clone();
    let mut order_by = spec.order_by.clone();
    // A column of the key cannot order the rows of a key.
    let names: HashSet<&str> = spec.key.iter().map(|column| column.name.as_str()).collect();
    let orders = |column: &Column| !names.contains(column.name.as_str());
    if spec.as_of.is_none() {
        order_by.retain(orders);
    }
    let operation = operation(spec, inputs);
    let log = change_log(spec, inputs, &operation)?;
    let given = log.as_ref().map_or(inputs.schema(), |(log, _)| &log.schema);
    let ordered = key.iter().chain(&order_by).map(|column| column.name.as_str());
    let paths = Paths::of(given);
    check_names(given, ordered.filter(|name| !paths.is_path(name)))?;
    if spec.as_of.is_some() && order_by.is_empty() {
        return Err(Error::usage("`as_of` needs `order_by`, or `time`"));
    }
    let preset = log.as_ref().map(|(_, preset)| *preset);
    if let Some(onto) = &mut onto {
        onto.preset = preset;
    }
    let log = log.map(|(log, _)| log.ordered_by(&mut order_by));
    let plain = log.as_ref().map_or(inputs.schema(), |log| &log.schema);
    let ordered = key.iter().chain(&order_by).map(|column| column.name.as_str());
    let derived = Derived::of(plain, ordered);
    let mut as_of = spec.as_of.clone();
    let ranks =
        Ranks::bind(&derived.schema, preset, &mut order_by, &spec.order_texts, as_of.as_mut())?;
    let conform = onto.as_ref().map(|onto| onto.conform(&ranks.schema)).transpose()?;
    let schema = conform.as_ref().map_or(&ranks.schema, |conform| &conform.schema);
    // To fill rows from earlier ones, the sift needs all rows of a key.
    let unknown = log.as_ref().and_then(ChangeLog::unknown);
    let mut order = if unknown.is_some() { Order::by(key) } else { Order::by(key).last() };
    if let Some(log) = &log {
        if unknown.is_none() {
            order = order.tombstone(log.tombstone());
        }
        if let Some(class) = log.class() {
            order = order.then(class);
        }
    }
    let as_of = match (&as_of, order_by.first()) {
        (Some(text), Some(column)) => Some(as_of_filter(schema, &column.name, text)?),
        _ => None,
    };
    order_by.retain(orders);
    let layout = order.then(order_by).bind(schema)?;
    // Columns added for the engine repeat the content of other columns.
    let added = schema.fields().iter().map(|field| field.name());
    let mut hidden: Vec<String> = added.filter(|name| changelog::is_own(name)).cloned().collect();
    hidden.extend(derived.names().chain(operation.names()).cloned());
    if let Some(log) = &log
        && spec.mode == Mode::Snapshot
        && !spec.keep_bookkeeping
    {
        hidden.extend_from_slice(&log.bookkeeping);
    }
    let projection = match &onto {
        Some(onto) => {
            let log = log.as_ref().map_or(&[][..], |log| &log.bookkeeping);
            onto.projection(schema, &[&hidden, log].concat(), &spec.select)?
        }
        None => projection(schema, spec.select.as_deref(), &hidden)?,
    };
    // Keys are equal as in SQL.
    let floats = floats(schema, layout.key());
    let ranks = Arc::new(ranks);
    let verify = verify(inputs, &ranks);
    let mut arrangement = Arrangement { verify, projection, ..Arrangement::of(layout) };
    match log.as_ref().and_then(|log| Some((log, log.unknown()?))) {
        Some((log, unknown)) => fill(&mut arrangement, log, unknown, spec.mode)?,
        None => arrangement.finish = finish(spec),
    }
    let log = log.map(|log| (operation, log));
    arrangement.transform = transform(log, derived, ranks, conform, as_of, floats);
    Ok(arrangement)
}

/// Returns the check of what samples of the inputs told, and of text in the order.
fn verify(inputs: &Inputs, ranks: &Arc<Ranks>) -> Option<Verify> {
    let told = inputs.log().filter(|told| told.raw.is_some()).cloned();
    (ranks.are_unsure() || told.is_some()).then(|| {
        let ranks = Arc::clone(ranks);
        Box::new(move || {
            told.as_ref().map_or(Ok(()), Log::check)?;
            ranks.check()
        }) as Verify
    })
}

/// Adds a sift that fills the last row of each key with earlier values, by the marks in the column
/// `unknown`.
fn fill(arrangement: &mut Arrangement, log: &ChangeLog, unknown: &str, mode: Mode) -> Result<()> {
    let schema = arrangement.schema()?;
    let width = arrangement.projection.len();
    let Arrangement { layout, projection, .. } = arrangement;
    let mut place = |name: &str| -> Result<usize> {
        let column = layout.schema().index_of(name).map_err(failed)?;
        Ok(project::places(projection, [column])[0])
    };
    let (unknown, deleted) = (place(unknown)?, place(log.tombstone())?);
    let late = log.late().map(&mut place).transpose()?;
    let written = log.written().map(&mut place).transpose()?;
    let filling = Arc::new(Filling {
        key: project::places(projection, layout.key()),
        width,
        // A column after the columns of the log is derived from them, and has no marks.
        marks: projection.clone(),
        unknown,
        deleted,
        late,
        written,
        keeps_deletes: mode == Mode::Log,
        schema: Arc::clone(&schema),
    });
    let start = Box::new(move || Box::new(Known::new(&filling)) as _);
    arrangement.sifting = Some(Sifting { schema, keeps_order: true, copies: 6, start });
    Ok(())
}

/// Returns the transform of a log's rows before they are arranged.
fn transform(
    log: Option<(Derived, ChangeLog)>,
    derived: Derived,
    ranks: Arc<Ranks>,
    conform: Option<Conform>,
    as_of: Option<AsOf>,
    floats: Vec<usize>,
) -> Option<Transform> {
    let passes = log.is_none() && derived.is_empty() && as_of.is_none() && floats.is_empty();
    if passes && conform.is_none() && !ranks.do_anything() {
        return None;
    }
    Some(Arc::new(move |batch: &RecordBatch, FirstRow { row: first_row, .. }: FirstRow| {
        let (batch, ordinals) = match &log {
            Some((operation, log)) => log.apply(&operation.append(batch)?, first_row)?,
            None => (batch.clone(), None),
        };
        let row = |i: usize| match &ordinals {
            Some(ordinals) => first_row + u64::from(ordinals.value(i)),
            None => first_row + i as u64,
        };
        let batch = ranks.apply(derived.append(&batch)?, row)?;
        let batch = match &conform {
            Some(conform) => conform.apply(&batch, row)?,
            None => batch,
        };
        let batch = with_one_form(&batch, &floats).map_err(failed)?;
        as_of.as_ref().map_or(Ok(batch.clone()), |as_of| as_of(&batch))
    }))
}

/// Returns the operation as a derived column if it is in a struct of plain rows; an event's format
/// resolves the operation itself.
fn operation(spec: &CompactSpec, inputs: &Inputs) -> Derived {
    let (schema, name) = (inputs.schema(), spec.op_column.as_deref());
    let is_raw = spec.op_preset.is_some_and(Preset::is_raw);
    Derived::of(schema, name.filter(|name| !is_raw && Paths::of(schema).is_path(name)))
}

/// The operation column of a Snowflake stream.
const SNOWFLAKE_ACTION: &str = "METADATA$ACTION";

/// Returns the format of the changes, bound to the inputs; `None` for plain rows without
/// operations.
fn change_log(
    spec: &CompactSpec,
    inputs: &Inputs,
    operation: &Derived,
) -> Result<Option<(ChangeLog, Preset)>> {
    if spec.op_preset.is_none() && spec.op_column.is_none() {
        return match &spec.op_map {
            None => Ok(None),
            Some(_) => Err(Error::usage(format!(
                "{} says what the words of operations mean: name their column with {}, or the log's \
                 format with {}",
                Setting::OpMap,
                Setting::OpColumn,
                Setting::OpPreset
            ))),
        };
    }
    let schema = &operation.schema;
    let told = inputs.log();
    let is_snowflake = spec.op_column.as_deref() == Some(SNOWFLAKE_ACTION);
    let preset = match told.map(|told| told.preset).or(spec.op_preset).unwrap_or_default() {
        // No other producer has this column, and its changes are an unordered set.
        Preset::Generic if is_snowflake => Preset::Snowflake,
        Preset::Auto => Preset::told_by(schema)?.0,
        preset => preset,
    };
    let op_column = spec.op_column.as_deref();
    let op_column = op_column.or_else(|| told.and_then(|told| told.op_column.as_deref()));
    let said = Said {
        preset,
        op_column,
        op_map: spec.op_map.as_ref(),
        unchanged: spec.unchanged,
        tables_are_named: !spec.tables.is_empty(),
    };
    let log = ChangeLog::bind(schema, &said)?.keyed_by(&names(&spec.key));
    Ok(Some((log, preset)))
}

/// Arranges a log of diffs: sums the diffs of rows equal in all other columns.
fn diff_log(spec: &CompactSpec, inputs: &Inputs, diff: &str) -> Result<Arrangement> {
    let schema = inputs.schema();
    let required = required(schema, &[&spec.diff, &spec.time])?;
    let as_of = match (&spec.as_of, &spec.time) {
        (Some(text), Some(time)) => Some(as_of_filter(schema, time, text)?),
        (Some(_), None) => return Err(Error::usage("`as_of` needs `time`")),
        (None, _) => None,
    };
    // A snapshot covers all changes so far: the time is dropped, so that rows of different times
    // are summed.
    let (kept, schema) = match (&spec.time, spec.mode) {
        (Some(time), Mode::Snapshot) => {
            let time = find(schema, time)?;
            let kept: Vec<usize> = (0..schema.fields().len()).filter(|&i| i != time).collect();
            let schema = schema.project(&kept).map_err(failed)?;
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
        (as_of, kept) => Some(Arc::new(move |batch: &RecordBatch, _| {
            let batch = as_of.as_ref().map_or(Ok(batch.clone()), |as_of| as_of(batch))?;
            match &kept {
                Some(kept) => batch.project(kept).map_err(failed),
                None => Ok(batch),
            }
        })),
    };
    Ok(Arrangement { transform, finish, projection, required, ..Arrangement::of(layout) })
}

fn finish(spec: &CompactSpec) -> Finish {
    match (spec.mode, spec.keep_bookkeeping) {
        (Mode::Log, _) => Finish::Log,
        (Mode::Snapshot, false) => Finish::Snapshot,
        (Mode::Snapshot, true) => Finish::Counts,
    }
}

/// A filter for rows at or before a time.
type AsOf = Box<dyn Fn(&RecordBatch) -> Result<RecordBatch> + Send + Sync>;

fn as_of_filter(schema: &SchemaRef, name: &str, text: &str) -> Result<AsOf> {
    let column = schema.index_of(name).map_err(|error| Error::usage(error.to_string()))?;
    let data_type = schema.field(column).data_type();
    let limit = Scalar::new(literal(text, data_type).ok_or_else(|| {
        Error::usage(format!(
            "`as_of`: {text:?} is no value of column {name:?}, which is {data_type}"
        ))
    })?);
    Ok(Box::new(move |batch| {
        let times: &dyn Datum = batch.column(column);
        let kept = lt_eq(times, &limit).and_then(|kept| filter_record_batch(batch, &kept));
        kept.map_err(failed)
    }))
}
