//! Change-log formats: the place of the row, its operation, and its deletion in each preset.
//!
//! The engine compacts rows by key and order; a row may be a tombstone. A [`Preset`] names a
//! change-log format. Bound to an input's schema, a preset becomes a [`ChangeLog`], which converts
//! the input's record batches for the engine:
//!
//! ```text
//!  input batch ---- op.rs: what each row does ----> upsert | snapshot | delete | ignore
//!       |                                                          |
//!  plain rows: the columns as they are, in place                   |
//!  events: envelope.rs: `after` (of a delete: `before`)            |
//!          unwrapped, then the rest of the envelope                |
//!       v                                                          v
//!  row columns .. bookkeeping columns .. __windrow_deleted [.. __windrow_class] [.. __windrow_side]
//! ```
//!
//! | preset | operation in | row in | upsert | delete | ignored |
//! |---|---|---|---|---|---|
//! | generic | `op_column` | plain columns | I U c r u +I +U insert update upsert load refresh replace false | D -D delete remove true | -U update_preimage |
//! | debezium | `op`, flattened `__op`, `__deleted` | `after`, `before`; flattened plain columns | c u, snapshot: r | d | m, records without a value |
//! | wal2json | `action`, `kind` | `after`, `before` as [`raw`](crate::raw) makes them; flattened plain columns | I U | D | B C M |
//! | maxwell, canal | `type` | `after`, `before` as [`raw`](crate::raw) makes them | insert, update | delete | |
//! | goldengate | `op_type` | `after`, `before` as [`raw`](crate::raw) makes them; plain columns | I U | D | |
//! | cockroach | none: `after` is null, or not | `after`, `before` | a row | null | |
//! | sqlserver | `__$operation` | plain columns | 2 4 5 | 1 | 3 |
//! | delta-cdf | `_change_type` | plain columns | insert, update_postimage | delete; update_preimage, by commit | else it |
//! | iceberg | `_change_type` | plain columns | INSERT UPDATE_AFTER | DELETE UPDATE_BEFORE | |
//! | snowflake | `METADATA$ACTION` | plain columns | INSERT | DELETE | |
//! | dms | `Op` | plain columns | I U, snapshot: null, or no `Op` | D | |
//! | paimon | `_ROW_KIND`, `rowkind`, `_VALUE_KIND` | plain columns | +I +U 0 2 | -D 3 | -U 1 |
//! | hudi | `_hoodie_operation`, `_hoodie_is_deleted` | plain columns | I U false, null | D true | -U |
//! | airbyte | `_ab_cdc_deleted_at` | plain columns | null | a value | |
//! | qlik | `header__change_oper` | plain columns | I U, snapshot: REFRESH | D | B |
//!
//! A change of a key takes precedence over a snapshot row, whatever the order of the rows; except
//! with Debezium, if the order is by the position in the database's log (`position`).
//!
//! A commit of a Delta table is an unordered set: its deletes apply to the table before the commit,
//! its inserts to the table after it, and the two images of an update may have different keys. With
//! `_commit_version` in `order_by`, the old side of a commit therefore sorts before the new side,
//! whatever the order of the rows. An `update_preimage` counts as a delete, effective if no new row
//! has the key. A batch of a Snowflake stream is such a set as well: among rows equal in
//! `order_by`, an insert takes precedence over a delete. So is a snapshot of an Iceberg table: its
//! rows sort by side after `_change_ordinal`, which becomes the first column of the order unless
//! the caller gives it.
//!
//! A truncate is an error in every format: it deletes rows without listing them. A partial update
//! has its missing columns marked, is an error, or is taken unchanged ([`Unchanged`]).
//!
//! A snapshot omits the bookkeeping columns: the operation, columns added by the format
//! (`_commit_version`, `_SEQUENCE_NUMBER`, Debezium's `source.lsn`), and windrow's own. `order_by`
//! may name them.

mod envelope;
mod one_table;
mod op;
mod position;
mod ranks;
mod said;
#[cfg(test)]
mod tests;
mod unchanged;

use std::sync::Arc;

use arrow_array::{Array, BooleanArray, Int8Array, RecordBatch, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::interleave::interleave_record_batch;

use windrow::SortColumn as Column;

use self::envelope::{Envelope, Moved, column};
use self::one_table::OneTable;
use self::op::{Change, Operations};
pub(crate) use self::ranks::Ranks;
pub(crate) use self::said::Said;
use self::said::{misfit, missing_op};
use self::unchanged::Partial;
use crate::derived::OWN;
use crate::error::{Error, Result};
use crate::names::extended;
use crate::preset::ICEBERG;
use crate::raw::CARRIED;
use crate::settings::Preset;

/// True if the row deletes its key.
pub(crate) const DELETED: &str = "__windrow_deleted";
/// 0 for snapshot rows without a position, 1 for all other rows.
const CLASS: &str = "__windrow_class";
/// 0 for the old side of a commit (deletes and old images), 1 for the new side. In a log ordered by
/// position: 0 for snapshot rows, 1 for events.
const SIDE: &str = "__windrow_side";
/// A bit for each missing column of a row; null for a row with all columns.
const UNKNOWN: &str = "__windrow_unknown";
/// The commit number in Delta's change data feed.
const COMMIT: &str = "_commit_version";

/// Returns true for windrow's own columns, which are hidden from the user.
pub(crate) fn is_own(name: &str) -> bool {
    [DELETED, CLASS, SIDE, UNKNOWN, CARRIED].contains(&name) || name.starts_with(OWN)
}

/// A preset bound to the schema of an input.
pub(crate) struct ChangeLog {
    input: SchemaRef,
    /// The schema of the record batches returned by [`apply`](Self::apply). Plain presets keep the
    /// input's columns in place; an envelope has the row's columns first.
    pub(crate) schema: SchemaRef,
    /// The columns of `schema` outside the row, in order.
    pub(crate) bookkeeping: Vec<String>,
    operations: Operations,
    rows: RowsIn,
    /// Handles partial updates.
    partial: Partial,
    /// Whether rows have a [`CLASS`].
    classed: bool,
    /// Whether rows have a [`SIDE`].
    sided: bool,
    /// The first position column, if the order is by position in the producer's log.
    position: Option<usize>,
    /// Checks that Debezium's events concern one table, unless the caller names the tables.
    one_table: Option<OneTable>,
}

/// The source of the output columns.
enum RowsIn {
    /// The input's own columns; `op` is the index of the operation. Without an operation, all rows
    /// come from a snapshot.
    Plain {
        op: Option<usize>,
    },
    Envelope(Envelope),
}

impl ChangeLog {
    /// Finds the format's columns in the schema.
    pub(crate) fn bind(schema: &SchemaRef, said: &Said<'_>) -> Result<Self> {
        let turned = schema.index_of(CARRIED).is_ok() && said.preset.is_raw();
        let own = |name: &str| is_own(name) && !(turned && name == CARRIED);
        if let Some(field) = schema.fields().iter().find(|field| own(field.name())) {
            return Err(Error::usage(format!(
                "the input has a column {:?}, a name that windrow keeps for itself; rename it",
                field.name()
            )));
        }
        let (rows, row, op_field) = if has_events(schema, said, turned) {
            let (envelope, fields, op_field) = Envelope::bind(schema, said.preset, said.op_column)?;
            // The metadata describes the envelope, not the row.
            (RowsIn::Envelope(envelope), Arc::new(Schema::new(fields)), op_field.clone())
        } else {
            if said.preset == Preset::Wal2json {
                refuse_raw_wal2json(schema)?;
            }
            let op = find_op(schema, said)?;
            let none = || Field::new(said.preset.op_columns()[0], DataType::Null, true);
            let op_field = op.map_or_else(none, |op| schema.field(op).clone());
            (RowsIn::Plain { op }, schema.clone(), op_field)
        };
        let operations = Operations::bind(said.preset, &op_field, said.op_map)?;
        let width = match &rows {
            RowsIn::Envelope(envelope) => envelope.row.len(),
            RowsIn::Plain { .. } => row.fields().len() - usize::from(turned),
        };
        let is_of_format = |i: usize, name: &str| match &rows {
            RowsIn::Envelope(_) => i >= width,
            RowsIn::Plain { op } => {
                Some(i) == *op && !operations.mapped.is_of_presence()
                    || name == CARRIED
                    || said.preset.adds(name, schema)
            }
        };
        let names = row.fields().iter().map(|field| field.name()).enumerate();
        let bookkeeping = names.filter(|(i, name)| is_of_format(*i, name));
        let mut log = Self {
            input: schema.clone(),
            partial: Partial::bind(said, row.fields(), width),
            bookkeeping: bookkeeping.map(|(_, name)| name.clone()).collect(),
            schema: row,
            classed: operations.tell_snapshots(),
            operations,
            rows,
            sided: false,
            position: None,
            one_table: None,
        };
        log.add(DELETED, DataType::Boolean, false);
        if log.partial.marks() {
            log.add(UNKNOWN, DataType::Binary, true);
        }
        if log.classed {
            log.add(CLASS, DataType::Int8, false);
        }
        if said.preset == Preset::Debezium && !said.tables_are_named {
            log.one_table = OneTable::bind(&log.schema);
        }
        Ok(log)
    }

    fn add(&mut self, name: &str, kind: DataType, nullable: bool) {
        self.schema = extended(&self.schema, [Field::new(name, kind, nullable)]);
        self.bookkeeping.push(name.to_owned());
    }

    /// Sets the key columns, so that a delete without a key column in its old row is an error. Only
    /// an envelope can lack key columns; a plain row has all of them.
    pub(crate) fn keyed_by(mut self, keys: &[String]) -> Self {
        if let RowsIn::Envelope(envelope) = &mut self.rows {
            envelope.keyed_by(keys);
        }
        self
    }

    /// Adds the side of a set of changes to the order: after the number of a Delta commit or an
    /// Iceberg snapshot, or after all columns for a Snowflake stream. For Debezium's partial
    /// updates ordered by position, adds the distinction of snapshot rows after the position.
    pub(crate) fn ordered_by(mut self, order_by: &mut Vec<Column>) -> Self {
        let is_commit = |column: &Column| column.name == COMMIT && !column.descending;
        let behind = match self.operations.preset {
            Preset::DeltaCdf => order_by.iter().position(is_commit).map(|commit| commit + 1),
            Preset::Iceberg => {
                let [ordinal, _] = ICEBERG;
                let is_ordinal = |column: &Column| column.name == ordinal && !column.descending;
                if order_by.iter().all(|column| column.name != ordinal)
                    && self.schema.index_of(ordinal).is_ok()
                {
                    order_by.insert(0, windrow::asc(ordinal));
                }
                let place = order_by.iter().position(is_ordinal);
                Some(place.map_or(order_by.len(), |ordinal| ordinal + 1))
            }
            Preset::Snowflake => Some(order_by.len()),
            // Snapshot rows are recognized only when all rows of a key are at hand.
            Preset::Debezium if self.classed && self.partial.marks() => {
                let behind = position::leading(order_by);
                let first = order_by.first().filter(|_| behind > 0);
                self.position = first.and_then(|first| self.schema.index_of(&first.name).ok());
                self.position.map(|_| behind)
            }
            _ => None,
        };
        if let Some(behind) = behind {
            order_by.insert(behind, windrow::asc(SIDE));
            self.add(SIDE, DataType::Int8, false);
            self.sided = self.position.is_none();
        }
        self
    }

    /// Returns the name of the Boolean column, never null, that is true where a row deletes its
    /// key.
    pub(crate) fn tombstone(&self) -> &str {
        DELETED
    }

    /// Returns the name of the Binary column that marks missing columns: a bit for each column of
    /// `schema`, beginning with the lowest. `None` if all rows have all columns.
    pub(crate) fn unknown(&self) -> Option<&str> {
        self.partial.marks().then_some(UNKNOWN)
    }

    /// Returns the name of the Int8 column, never null, that is 0 for a snapshot row and 1 for an
    /// event of the stream. `None` if a snapshot row never follows an event of its key.
    pub(crate) fn late(&self) -> Option<&str> {
        self.position.map(|_| SIDE)
    }

    /// Returns the name of the integer column with the time at which a record was written, for a
    /// log ordered by position.
    pub(crate) fn written(&self) -> Option<&str> {
        self.position?;
        let is_time = |name: &&&str| {
            let is_of_row = !self.bookkeeping.iter().any(|other| other == **name);
            let field = self.schema.field_with_name(name);
            !is_of_row && field.is_ok_and(|field| field.data_type().is_integer())
        };
        ["ts_ms_envelope", "ts_ms", "__ts_ms"].iter().find(is_time).copied()
    }

    /// Returns the name of the Int8 column, never null, that orders the rows of a key before any
    /// other column: 0 for a snapshot row without a position, 1 for any other row. `None` if the
    /// format does not distinguish them.
    pub(crate) fn class(&self) -> Option<&str> {
        self.classed.then_some(CLASS)
    }

    /// Converts a record batch of the input to `schema`: drops ignored rows, and
    /// inserts a delete of each key changed by an update. If rows were dropped or inserted, the
    /// second value holds for each row its index in `batch`. `first_row` is the number of the
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
                let mut changes = match op {
                    Some(op) => self.operations.read(batch.column(*op), first_row)?,
                    None => vec![Change::Snapshot; batch.num_rows()],
                };
                reject_unsaid(&changes, &self.operations.column, first_row)?;
                if self.sided {
                    let old = changes.iter_mut().filter(|change| **change == Change::Ignore);
                    old.for_each(|change| *change = Change::Delete);
                }
                (changes, batch.columns().to_vec())
            }
            RowsIn::Envelope(envelope) => {
                let op = column(batch, &envelope.op)?;
                let mut changes = self.operations.read(&op, first_row)?;
                let columns = envelope.unwrap(batch, &mut changes, first_row)?;
                moved = envelope.moved(batch, &changes)?;
                (changes, columns)
            }
        };
        if let Some(one_table) = &self.one_table {
            one_table.check(&columns, first_row)?;
        }
        self.partial.refuse(&columns, &changes, first_row)?;
        let unknown = self.partial.unknown(&columns, &changes)?;
        let deleted = BooleanBuffer::collect_bool(changes.len(), |i| changes[i] == Change::Delete);
        columns.push(Arc::new(BooleanArray::new(deleted, None)));
        columns.extend(unknown);
        if self.classed {
            let place = self.position.map(|position| columns[position].clone());
            let has_place = |row| place.as_ref().is_some_and(|place| place.is_valid(row));
            let class = changes.iter().enumerate();
            let class = class.map(|(row, c)| i8::from(*c != Change::Snapshot || has_place(row)));
            columns.push(Arc::new(Int8Array::from_iter_values(class)));
        }
        if self.sided || self.position.is_some() {
            let old = if self.sided { Change::Delete } else { Change::Snapshot };
            let side = changes.iter().map(|change| i8::from(*change != old));
            columns.push(Arc::new(Int8Array::from_iter_values(side)));
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

    /// Returns the rows of `whole` without ignored ones, and a delete of the old key before each
    /// row that changed its key.
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

/// Returns true if the rows are in events: Debezium's, or events converted from raw records.
fn has_events(schema: &Schema, said: &Said<'_>, turned: bool) -> bool {
    let has = |name: &str| schema.index_of(name).is_ok();
    let has_images = has("after") && has("before");
    match said.preset {
        Preset::Debezium => {
            let op = said.op_column;
            let flat = Preset::FLATTENED.into_iter().chain(op).any(has);
            !flat || ["after", "before", "payload"].into_iter().any(has)
        }
        Preset::Wal2json | Preset::Maxwell | Preset::Canal | Preset::Cockroach => {
            turned && has_images
        }
        Preset::GoldenGate => has_images,
        _ => false,
    }
}

/// Returns an error for nested columns in wal2json's raw format: only NDJSON text can be converted
/// to events.
fn refuse_raw_wal2json(schema: &Schema) -> Result<()> {
    let is_nested =
        |name: &str| schema.field_with_name(name).is_ok_and(|field| field.data_type().is_nested());
    match ["columns", "identity", "change"].into_iter().find(|name| is_nested(name)) {
        Some(name) => Err(Error::usage(format!(
            "{name:?} has names and values of columns, as wal2json writes them; flatten it to one \
             column each first, or give the log as NDJSON"
        ))),
        None => Ok(()),
    }
}

/// Returns the index of the operation column; `None` for a full load of AWS DMS.
fn find_op(schema: &Schema, said: &Said<'_>) -> Result<Option<usize>> {
    let flattened = &Preset::FLATTENED;
    let names = match &said.op_column {
        Some(name) => std::slice::from_ref(name),
        None if said.preset == Preset::Debezium => flattened,
        None => said.preset.op_columns(),
    };
    if names.is_empty() {
        return Err(Error::usage(
            "which column holds the operation? Name it with `op_column`, or the log's format \
             with `op_preset`",
        ));
    }
    match names.iter().find_map(|name| schema.index_of(name).ok()) {
        None if said.preset == Preset::Dms && said.op_column.is_none() => Ok(None),
        None => Err(missing_op(names, said.preset, schema.fields().iter())),
        found => Ok(found),
    }
}

/// Returns an error if a plain row has no operation.
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
