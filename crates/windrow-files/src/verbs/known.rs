//! Coalesces partial updates: fills the columns missing from an update with their last known
//! values.
//!
//! ```text
//!  a key's rows, in order      id  name  bio           -->   id  name  bio
//!    insert                     1  ann   long
//!    update, without bio        1  bob   (unknown)            1  bob   long
//! ```
//! The rows of a key, deletes included, arrive in the order in which they happened, and the last
//! row is written. A delete clears all known values. The last key of a record batch may continue in
//! the next batch: one row of the key waits, filled as far as known.
//!
//! A snapshot row after changes of its key is newer than the changes, unless it was written before
//! the last of them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, Int8Array, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, SchemaRef};
use arrow_select::interleave::{interleave, interleave_record_batch};

use super::sift::{Sift, same_key, starts};
use crate::error::{Error, Result, failed};
use crate::settings::Setting;

/// The layout of the rows for the sift.
pub(super) struct Filling {
    /// Positions of the key columns.
    pub(super) key: Vec<usize>,
    /// Number of columns to write, the first ones.
    pub(super) width: usize,
    /// For each input column, its bit among the marks of missing columns. A column without a bit is
    /// never missing.
    pub(super) marks: Vec<usize>,
    /// Position of the column with the marks: a bit per column, null for a row with all columns.
    pub(super) unknown: usize,
    /// Position of the column that marks deletes.
    pub(super) deleted: usize,
    /// Position of the column that marks snapshot rows, if such a row may follow other rows of its
    /// key.
    pub(super) late: Option<usize>,
    /// Position of the column with the time at which a row was written.
    pub(super) written: Option<usize>,
    /// Whether deletes are written.
    pub(super) keeps_deletes: bool,
    /// Schema of the output.
    pub(super) schema: SchemaRef,
}

/// The position of a row: record batch and row.
type RowIndex = (usize, usize);

/// The position of the row that waits for the next record batch.
const WAITING: RowIndex = (1, 0);

/// The origin of the last row of a key.
#[derive(Clone, Copy, Default)]
struct Origin {
    of_snapshot: bool,
    /// Whether any row of the key comes from a change instead of a snapshot.
    changed: bool,
    /// When the last change was written.
    written: Option<i64>,
}

/// The known values of a key so far.
struct State {
    /// The last row of the key.
    row: RowIndex,
    deleted: bool,
    origin: Origin,
    /// The position of each column's value, `None` if unknown; absent if `row` has all values.
    values: Option<Vec<Option<RowIndex>>>,
}

/// Returns the last row of each key, with the last known value of each column.
pub(super) struct Known {
    filling: Arc<Filling>,
    /// The state of a key that may continue, with all values in its last row, and this row.
    waiting: Option<(State, RecordBatch)>,
    deleted: u64,
    /// Keys whose last row comes from a snapshot taken after changes of the key.
    renewed: u64,
    /// The number of rows with unknown values, and a description of the first such row.
    incomplete: u64,
    first: Option<String>,
}

impl Known {
    pub(super) fn new(filling: &Arc<Filling>) -> Self {
        let filling = Arc::clone(filling);
        Self { filling, waiting: None, deleted: 0, renewed: 0, incomplete: 0, first: None }
    }

    /// Returns the state of a key after the row at `row`, given the state `before` that row.
    fn next(&self, before: Option<State>, row: RowIndex, marks: &Marks<'_>) -> State {
        let deleted = marks.deleted.value(row.1);
        let last = before.as_ref().map(|before| before.origin).unwrap_or_default();
        let origin = marks.origin(row.1, last);
        if origin.of_snapshot
            && let Some(before) = before.as_ref().filter(|_| marks.is_behind(row.1, last))
        {
            return State { values: before.values.clone(), ..*before };
        }
        if deleted || marks.unknown.is_null(row.1) {
            return State { row, deleted, origin, values: None };
        }
        let bits = marks.unknown.value(row.1);
        let value = |column: usize| {
            let bit = self.filling.marks[column];
            let is_unknown = bits.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1);
            match &before {
                _ if !is_unknown => Some(row),
                None | Some(State { deleted: true, .. }) => None,
                Some(State { values: None, row, .. }) => Some(*row),
                Some(State { values: Some(values), .. }) => values[column],
            }
        };
        let values = (0..self.filling.marks.len()).map(value).collect();
        State { row, deleted, origin, values: Some(values) }
    }

    /// Returns the rows of `states`, with all input columns.
    fn rows(&self, states: &[State], batches: &[&RecordBatch]) -> Result<RecordBatch> {
        let rows: Vec<RowIndex> = states.iter().map(|state| state.row).collect();
        let whole = interleave_record_batch(batches, &rows).map_err(failed)?;
        if states.iter().all(|state| state.values.is_none()) {
            return Ok(whole);
        }
        let mut columns: Vec<ArrayRef> = whole.columns().to_vec();
        for (column, values) in columns.iter_mut().enumerate() {
            let place = |state: &State| match &state.values {
                Some(values) => values[column].unwrap_or(state.row),
                None => state.row,
            };
            let places: Vec<RowIndex> = states.iter().map(place).collect();
            if places != rows {
                let arrays: Vec<&dyn Array> =
                    batches.iter().map(|batch| batch.column(column).as_ref()).collect();
                *values = interleave(&arrays, &places).map_err(failed)?;
            }
        }
        RecordBatch::try_new(whole.schema(), columns).map_err(failed)
    }

    /// Returns the output for keys that have ended.
    fn written(&mut self, mut states: Vec<State>, batches: &[&RecordBatch]) -> Result<RecordBatch> {
        let renewed = states.iter().map(|state| state.origin);
        let renewed = renewed.filter(|origin| origin.of_snapshot && origin.changed);
        self.renewed += renewed.count() as u64;
        if !self.filling.keeps_deletes {
            let all = states.len();
            states.retain(|state| !state.deleted);
            self.deleted += (all - states.len()) as u64;
        }
        if states.is_empty() {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.filling.schema)));
        }
        let rows = self.rows(&states, batches)?;
        for (row, state) in states.iter().enumerate() {
            if let Some(values) = &state.values
                && values.iter().any(Option::is_none)
            {
                self.incomplete += 1;
                if self.first.is_none() {
                    self.first = Some(self.described(&rows, row, values));
                }
            }
        }
        let columns = rows.columns()[..self.filling.width].to_vec();
        RecordBatch::try_new(Arc::clone(&self.filling.schema), columns).map_err(failed)
    }

    /// Describes a row by its key and its unknown columns.
    fn described(&self, rows: &RecordBatch, row: usize, values: &[Option<RowIndex>]) -> String {
        let schema = rows.schema_ref();
        let key = self.filling.key.iter().map(|&column| {
            let text = array_value_to_string(rows.column(column), row).unwrap_or_default();
            format!("{} {text}", schema.field(column).name())
        });
        let missing = (0..values.len()).filter(|&column| values[column].is_none());
        let missing: Vec<String> =
            missing.map(|column| format!("{:?}", schema.field(column).name())).collect();
        format!("{}: {}", key.collect::<Vec<_>>().join(", "), missing.join(", "))
    }
}

/// The columns with a batch's marks.
struct Marks<'a> {
    unknown: &'a BinaryArray,
    deleted: &'a BooleanArray,
    late: Option<&'a Int8Array>,
    written: Option<Int64Array>,
}

impl Marks<'_> {
    fn written(&self, row: usize) -> Option<i64> {
        self.written.as_ref().filter(|written| written.is_valid(row)).map(|w| w.value(row))
    }

    /// Returns the origin of a key after the row; `last` is the origin before it.
    fn origin(&self, row: usize, last: Origin) -> Origin {
        let of_snapshot = self.late.is_some_and(|late| late.value(row) == 0);
        match of_snapshot {
            true => Origin { of_snapshot, ..last },
            false => {
                let written = self.written(row).max(last.written);
                Origin { of_snapshot, changed: true, written }
            }
        }
    }

    /// Returns true if the snapshot row was written before a change with an earlier position: a
    /// change by a transaction still open when the snapshot was taken.
    fn is_behind(&self, row: usize, last: Origin) -> bool {
        let both = self.written(row).zip(last.written);
        last.changed && both.is_some_and(|(row, last)| row <= last)
    }
}

fn numbers(column: &ArrayRef) -> Result<Int64Array> {
    let numbers = cast(column, &DataType::Int64).map_err(failed)?;
    Ok(numbers.as_primitive::<Int64Type>().clone())
}

impl Sift for Known {
    fn push(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let filling = Arc::clone(&self.filling);
        let starts = starts(batch, &filling.key)?;
        let marks = Marks {
            unknown: batch.column(filling.unknown).as_binary(),
            deleted: batch.column(filling.deleted).as_boolean(),
            late: filling.late.map(|late| batch.column(late).as_primitive::<Int8Type>()),
            written: filling.written.map(|written| numbers(batch.column(written))).transpose()?,
        };
        let (mut state, waiting) = self.waiting.take().unzip();
        let mut ended = Vec::new();
        if let Some(waiting) = &waiting
            && !same_key(waiting, batch, &filling.key)?
        {
            ended.extend(state.take());
        }
        for (row, starts) in starts.into_iter().enumerate() {
            if row > 0 && starts {
                ended.extend(state.take());
            }
            state = Some(self.next(state, (0, row), &marks));
        }
        let batches: Vec<&RecordBatch> = [batch].into_iter().chain(&waiting).collect();
        if let Some(mut state) = state {
            let row = self.rows(std::slice::from_ref(&state), &batches)?;
            state.row = WAITING;
            state.values.iter_mut().flatten().flatten().for_each(|place| *place = WAITING);
            self.waiting = Some((state, row));
        }
        self.written(ended, &batches)
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        let mut left = None;
        if let Some((state, row)) = self.waiting.take() {
            let none = row.slice(0, 0);
            left = Some(self.written(vec![state], &[&none, &row])?);
        }
        match &self.first {
            None => Ok(left),
            Some(first) => Err(Error::data(format!(
                "of {} rows not all columns are known: their last update does not carry them, and the log \
                 has no row of theirs before it that does; the first is {first}; {} keep takes them as \
                 they are",
                self.incomplete,
                Setting::Unchanged
            ))),
        }
    }

    fn deleted(&self) -> u64 {
        self.deleted
    }

    fn renewed(&self) -> u64 {
        self.renewed
    }
}
