//! Change-log formats: what a preset takes for the row, its operation and its deletion.
//!
//! The engine compacts rows by key and order; a row may be a tombstone. A [`Preset`] names a
//! format of change logs. Bound to an input's schema it is a [`ChangeLog`], which turns every
//! record batch of that input into one that the engine can take:
//!
//! ```text
//!  input batch ---- op.rs: what each row does ----> upsert | snapshot | delete | ignore
//!       |                                                          |
//!  plain presets: the columns as they are, in place                |
//!  debezium: envelope.rs: `after` (of a delete: `before`)          |
//!            unwrapped, then the rest of the envelope              |
//!       v                                                          v
//!  row columns .. bookkeeping columns .. __windrow_deleted [.. __windrow_class]
//! ```
//!
//! | preset | operation in | row in | upsert | delete | ignored |
//! |---|---|---|---|---|---|
//! | generic | `op_column` | plain columns | I U c r u +I +U insert update upsert ... false | D -D delete true | -U update_preimage |
//! | delta-cdf | `_change_type` | plain columns | insert, update_postimage | delete; update_preimage, by commit | else it |
//! | paimon | `_ROW_KIND`, `rowkind`, `_VALUE_KIND` | plain columns | +I +U 0 2 | -D 3 | -U 1 |
//! | wal2json | `action`, `kind` | plain columns | I U | D | B C M |
//! | debezium | `op` | `after`, `before` | c u, snapshot: r | d | m, records without a value |
//!
//! A commit of a Delta table is a set: what it deletes was there before it, what it inserts is there after it,
//! and the two images of an update may have different keys. So with `_commit_version` in `order_by` the old
//! side of a commit comes before the new one, whatever the order of the rows, and an `update_preimage` is a
//! delete: one that shows where no new row has its key.
//!
//! A truncate is an error in every format: it deletes rows that the log does not list.
//!
//! Bookkeeping columns are those that a snapshot does not show: the operation, what the format
//! adds (`_commit_version`, `_SEQUENCE_NUMBER`, Debezium's `source.lsn`), and the two of ours.
//! They can all be named in `order_by`.

mod envelope;
mod lsn;
mod op;
mod preset;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int8Array, RecordBatch, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{filter_record_batch, interleave_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use windrow::SortColumn as Column;

use self::envelope::{Envelope, Moved};
use self::op::{Change, Operations};
pub use self::preset::Preset;
use crate::error::{Error, Result};

/// True where the row deletes its key.
const DELETED: &str = "__windrow_deleted";
/// 0 for rows of an initial snapshot, 1 for events of the stream that followed it.
const CLASS: &str = "__windrow_class";
/// 0 for the old side of a commit, deletes and old images; 1 for the new one.
const SIDE: &str = "__windrow_side";
/// The column of Delta's change data feed that tells the commits apart.
const COMMIT: &str = "_commit_version";
/// Numbers that order by log sequence numbers: those of wal2json's two columns of them.
const LSNS: [(&str, &str); 2] = [("lsn", "__windrow_lsn"), ("nextlsn", "__windrow_nextlsn")];

/// Whether a column is of our own, which the user does not see.
pub(crate) fn is_own(name: &str) -> bool {
    [DELETED, CLASS, SIDE].contains(&name) || LSNS.iter().any(|(_, own)| *own == name)
}

/// A preset bound to the schema of an input.
pub(crate) struct ChangeLog {
    input: SchemaRef,
    schema: SchemaRef,
    bookkeeping: Vec<String>,
    operations: Operations,
    rows: RowsIn,
    /// Input columns of log sequence numbers as text, each of which becomes a column of numbers.
    lsns: Vec<usize>,
    /// Whether rows have a [`SIDE`].
    sided: bool,
}

/// Where the columns of the output come from.
enum RowsIn {
    /// The input's own columns; the operation is the one of this ordinal.
    Plain {
        op: usize,
    },
    Envelope(Envelope),
}

impl ChangeLog {
    /// Finds the format's columns in the schema. `op_column` overrides where the operation is.
    pub(crate) fn bind(
        schema: &SchemaRef,
        preset: Preset,
        op_column: Option<&str>,
    ) -> Result<Self> {
        if let Some(field) = schema.fields().iter().find(|field| is_own(field.name())) {
            return Err(Error::usage(format!(
                "the input has a column {:?}, a name that windrow keeps for itself; rename it",
                field.name()
            )));
        }
        if preset == Preset::Debezium {
            return Self::bind_envelope(schema, op_column);
        }
        if preset == Preset::Wal2json {
            refuse_raw_wal2json(schema)?;
        }
        let op = find_op(schema, preset, op_column)?;
        let operations = Operations::bind(preset, schema.field(op))?;
        let mut bookkeeping: Vec<String> = schema
            .fields()
            .iter()
            .enumerate()
            .filter(|(i, field)| *i == op || preset.adds(field.name(), schema))
            .map(|(_, field)| field.name().clone())
            .collect();
        bookkeeping.push(DELETED.to_owned());
        let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(DELETED, DataType::Boolean, false)));
        Ok(Self {
            input: schema.clone(),
            schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
            bookkeeping,
            operations,
            rows: RowsIn::Plain { op },
            lsns: Vec::new(),
            sided: false,
        })
    }

    fn bind_envelope(schema: &SchemaRef, op_column: Option<&str>) -> Result<Self> {
        let op_column = op_column.unwrap_or(Preset::Debezium.op_columns()[0]);
        let (envelope, mut fields) = Envelope::bind(schema, op_column)?;
        let operations = Operations::bind(Preset::Debezium, envelope.op_field(schema))?;
        fields.push(Arc::new(Field::new(DELETED, DataType::Boolean, false)));
        fields.push(Arc::new(Field::new(CLASS, DataType::Int8, false)));
        let bookkeeping =
            fields[envelope.row_width()..].iter().map(|field| field.name().clone()).collect();
        Ok(Self {
            input: schema.clone(),
            // The metadata describes the envelope, not the row.
            schema: Arc::new(Schema::new(fields)),
            bookkeeping,
            operations,
            rows: RowsIn::Envelope(envelope),
            lsns: Vec::new(),
            sided: false,
        })
    }

    /// Says which columns are the key, so that a delete whose old row lacks one of them is
    /// reported. Only an envelope can lack them: a plain row has its columns.
    pub(crate) fn keyed_by(mut self, keys: &[String]) -> Self {
        if let RowsIn::Envelope(envelope) = &mut self.rows {
            envelope.keyed_by(keys);
        }
        self
    }

    /// Orders by the numbers that columns stand for: wal2json writes its log sequence numbers as text.
    /// The names in `order_by` become those of columns with the numbers, and `as_of`, a value of the
    /// first of them, a number. Behind the number of a Delta commit comes the side of it.
    pub(crate) fn ordered_by(
        mut self,
        order_by: &mut Vec<Column>,
        as_of: Option<&mut String>,
    ) -> Result<Self> {
        let mut fields: Vec<Arc<Field>> = self.schema.fields().iter().cloned().collect();
        for column in order_by.iter_mut() {
            let Some((name, own)) = LSNS.iter().find(|(name, _)| *name == column.name) else {
                continue;
            };
            let found = self.input.fields().find(name);
            let Some((i, _)) = found.filter(|(_, field)| self.operations.has_lsns(field)) else {
                continue;
            };
            column.name = (*own).to_owned();
            if !self.lsns.contains(&i) {
                self.lsns.push(i);
                self.bookkeeping.push(column.name.clone());
                fields.push(Arc::new(Field::new(&column.name, DataType::UInt64, true)));
            }
        }
        let is_commit = |column: &Column| column.name == COMMIT && !column.descending;
        if self.operations.preset() == Preset::DeltaCdf
            && let Some(commit) = order_by.iter().position(is_commit)
        {
            order_by.insert(commit + 1, windrow::asc(SIDE));
            self.bookkeeping.push(SIDE.to_owned());
            fields.push(Arc::new(Field::new(SIDE, DataType::Int8, false)));
            self.sided = true;
        }
        if let (Some(as_of), Some(first)) = (as_of, order_by.first())
            && is_own(&first.name)
        {
            let number = lsn::number(as_of).ok_or_else(|| {
                Error::usage(format!(
                    "`as_of`: {as_of:?} is no log sequence number such as 16/B374D848"
                ))
            })?;
            *as_of = number.to_string();
        }
        self.schema = Arc::new(Schema::new_with_metadata(fields, self.schema.metadata().clone()));
        Ok(self)
    }

    /// The schema of what [`apply`](Self::apply) returns. Plain presets keep the input's
    /// columns where they are; of an envelope the row's columns come first.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns of [`schema`](Self::schema) that are not part of the row, in order.
    pub(crate) fn bookkeeping(&self) -> &[String] {
        &self.bookkeeping
    }

    /// The Boolean column, never null, that is true where a row deletes its key.
    pub(crate) fn tombstone(&self) -> &str {
        DELETED
    }

    /// The Int8 column, never null, by which rows of one key are ordered before all else:
    /// 0 for a row of the initial snapshot, 1 for an event of the stream. None if the format
    /// does not tell them apart.
    pub(crate) fn class(&self) -> Option<&str> {
        match self.rows {
            RowsIn::Plain { .. } => None,
            RowsIn::Envelope(_) => Some(CLASS),
        }
    }

    /// Turns a record batch of the input into one of [`schema`](Self::schema), without the rows
    /// to ignore, and with a delete of each key that an update changed. If there were any, the
    /// second value has the ordinal in `batch` of each row. `first_row` is the ordinal of the
    /// batch's first row in its input, for messages.
    pub(crate) fn apply(
        &self,
        batch: &RecordBatch,
        first_row: u64,
    ) -> Result<(RecordBatch, Option<UInt32Array>)> {
        if batch.num_columns() != self.input.fields().len() {
            return Err(Error::data(format!(
                "the record batch at row {first_row} has {} columns, the input's schema {}",
                batch.num_columns(),
                self.input.fields().len()
            )));
        }
        let mut moved = None;
        let (changes, mut columns) = match &self.rows {
            RowsIn::Plain { op } => {
                let mut changes = self.operations.read(batch.column(*op), first_row)?;
                reject_unsaid(&changes, self.operations.column(), first_row)?;
                if self.sided {
                    let old = changes.iter_mut().filter(|change| **change == Change::Ignore);
                    old.for_each(|change| *change = Change::Delete);
                }
                (changes, batch.columns().to_vec())
            }
            RowsIn::Envelope(envelope) => {
                let op = envelope.op(batch).map_err(misfit)?;
                let mut changes = self.operations.read(&op, first_row)?;
                let columns = envelope.unwrap(batch, &mut changes, first_row)?;
                moved = envelope.moved(batch, &changes)?;
                (changes, columns)
            }
        };
        columns.push(flags(&changes, Change::Delete));
        if self.class().is_some() {
            let class = |change: &Change| i8::from(*change != Change::Snapshot);
            columns.push(Arc::new(Int8Array::from_iter_values(changes.iter().map(class))));
        }
        for &i in &self.lsns {
            let name = self.input.field(i).name();
            columns.push(lsn::numbers(batch.column(i), name, first_row)?);
        }
        if self.sided {
            let side = |change: &Change| i8::from(*change != Change::Delete);
            columns.push(Arc::new(Int8Array::from_iter_values(changes.iter().map(side))));
        }
        let whole = RecordBatch::try_new(self.schema.clone(), columns).map_err(misfit)?;
        if let Some(moved) = moved {
            return Self::with_moved(&whole, moved, &changes);
        }
        if !changes.contains(&Change::Ignore) {
            return Ok((whole, None));
        }
        let kept = BooleanBuffer::collect_bool(changes.len(), |i| changes[i] != Change::Ignore);
        let ordinals = UInt32Array::from_iter_values(kept.set_indices().map(|i| i as u32));
        let rows = filter_record_batch(&whole, &BooleanArray::new(kept, None)).map_err(misfit)?;
        Ok((rows, Some(ordinals)))
    }
}

impl ChangeLog {
    /// The rows of `whole` that are not to ignore, and before each that moved a delete of its old key.
    fn with_moved(
        whole: &RecordBatch,
        moved: Moved,
        changes: &[Change],
    ) -> Result<(RecordBatch, Option<UInt32Array>)> {
        let mut columns = moved.columns;
        columns.extend_from_slice(&whole.columns()[columns.len()..]);
        let deleted = whole.schema().index_of(DELETED).map_err(misfit)?;
        let all = BooleanBuffer::new_set(changes.len());
        columns[deleted] = Arc::new(BooleanArray::new(all, None));
        let old = RecordBatch::try_new(whole.schema(), columns).map_err(misfit)?;
        let mut places = Vec::with_capacity(changes.len() + moved.rows.len());
        let mut rows = moved.rows.into_iter().peekable();
        for (row, change) in changes.iter().enumerate() {
            if rows.next_if_eq(&row).is_some() {
                places.push((1, row));
            }
            if *change != Change::Ignore {
                places.push((0, row));
            }
        }
        let ordinals = UInt32Array::from_iter_values(places.iter().map(|(_, row)| *row as u32));
        let rows = interleave_record_batch(&[whole, &old], &places).map_err(misfit)?;
        Ok((rows, Some(ordinals)))
    }
}

/// Refuses what wal2json writes before it is flattened to a column for each of a table's.
fn refuse_raw_wal2json(schema: &Schema) -> Result<()> {
    let is_nested =
        |name: &str| schema.field_with_name(name).is_ok_and(|field| field.data_type().is_nested());
    if is_nested("columns") {
        return Err(Error::usage(
            "wal2json's `columns` is a list of names and values; flatten it to one column \
             each first (the preset wal2json reads plain columns and `action`)",
        ));
    }
    if is_nested("change") {
        return Err(Error::usage(
            "`change` is a list of the changes of a transaction, as wal2json writes it in format \
             version 1; have it write version 2, and flatten `columns` to one column each \
             (the preset wal2json reads plain columns and `action`)",
        ));
    }
    Ok(())
}

fn find_op(schema: &Schema, preset: Preset, op_column: Option<&str>) -> Result<usize> {
    let names = match &op_column {
        Some(name) => std::slice::from_ref(name),
        None => preset.op_columns(),
    };
    if names.is_empty() {
        return Err(Error::usage(
            "which column holds the operation? Name it with `op_column`, or the log's format \
             with `op_preset`",
        ));
    }
    names
        .iter()
        .find_map(|name| schema.index_of(name).ok())
        .ok_or_else(|| missing_op(names, preset, schema.fields().iter()))
}

fn missing_op<'a>(
    names: &[&str],
    preset: Preset,
    fields: impl Iterator<Item = &'a Arc<Field>>,
) -> Error {
    let columns: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
    Error::usage(format!(
        "no column named {} for the operation (`op_preset` {}); the columns are {}; name the \
         right one with `op_column`",
        names.join(" or "),
        preset.name(),
        columns.join(", ")
    ))
}

/// A plain row must say what it does.
fn reject_unsaid(changes: &[Change], column: &str, first_row: u64) -> Result<()> {
    match changes.iter().position(|change| *change == Change::Unsaid) {
        None => Ok(()),
        Some(row) => {
            let row = first_row + row as u64;
            let message = format!("row {row}: the operation in column {column:?} is null");
            Err(Error::data(message).at_row(row).in_column(column))
        }
    }
}

fn flags(changes: &[Change], what: Change) -> ArrayRef {
    let flags = BooleanBuffer::collect_bool(changes.len(), |i| changes[i] == what);
    Arc::new(BooleanArray::new(flags, None))
}

/// An error of a kernel on columns that `bind` has seen: the data does not have its schema.
fn misfit(error: ArrowError) -> Error {
    Error::data(format!("the rows do not fit the input's schema: {error}"))
}
