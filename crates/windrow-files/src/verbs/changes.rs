//! Derives the changes between two sides from the rows left of each key.
//!
//! ```text
//!  weights of a key's rows     [OLD + NEW]   the same
//!                              [NEW]         insert        [OLD]         delete
//!                              [OLD] [NEW]   update        else          a side has the key twice
//! ```
//! The rows of the last key wait for the next record batch, which may continue the key. At most two
//! rows wait.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, Field, Schema, SchemaRef, SortOptions};
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave_record_batch;

use super::diff::DiffSpec;
use super::sift::{Sift, same_key, starts};
use crate::equality::{floats, one_form};
use crate::error::{Error, Result, failed};
use crate::nested::copied;
use crate::settings::Shown;

/// The weight of a row of the old side.
pub(super) const OLD: i64 = 1;
/// The weight of a row of the new side. A sum of weights encodes both counts, up to 2^32 - 1 equal
/// rows.
pub(super) const NEW: i64 = 1 << 32;

/// The layout of the rows and the form of the output.
pub(super) struct Pairing {
    /// Positions of the key columns.
    key: Vec<usize>,
    /// Number of columns to write.
    width: usize,
    /// Position of the weight column.
    weight: usize,
    /// Whether rows with different bytes can be equal, because of floats.
    has_floats: bool,
    shown: Shown,
    /// Schema of the output.
    pub(super) schema: SchemaRef,
    /// Names of the input columns.
    names: Vec<String>,
}

impl Pairing {
    /// Returns the pairing for rows with the columns of `given`: the first `width` columns are
    /// written, the last one is the weight.
    pub(super) fn of(
        given: &Schema,
        key: Vec<usize>,
        width: usize,
        spec: &DiffSpec,
    ) -> Result<Self> {
        let names = given.fields().iter().map(|field| field.name().clone());
        let names: Vec<String> = names.collect();
        let fields = match spec.shown {
            Shown::Changes => {
                let op = &spec.op_column;
                if names[..width].contains(op) {
                    return Err(Error::usage(format!(
                        "the inputs have a column {op:?}: name the one that says what a change does \
                         with `op_column`"
                    )));
                }
                let mut fields = vec![Arc::new(Field::new(op, DataType::Utf8, false))];
                fields.extend(given.fields()[..width].iter().cloned());
                fields
            }
            Shown::Summary => [("change", false), ("column", true)]
                .map(|(name, nullable)| Field::new(name, DataType::Utf8, nullable))
                .into_iter()
                .chain([Field::new("rows", DataType::Int64, false)])
                .map(Arc::new)
                .collect(),
        };
        let metadata = given.metadata().clone();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let (weight, shown) = (names.len() - 1, spec.shown);
        let has_floats = !floats(given, 0..weight).is_empty();
        Ok(Self { key, width, weight, has_floats, shown, schema, names })
    }

    fn weights<'a>(&self, rows: &'a RecordBatch) -> &'a [i64] {
        rows.column(self.weight).as_primitive::<Int64Type>().values()
    }

    /// Returns the error of a side that has the key of the first of `rows` twice.
    fn repeated(&self, rows: &RecordBatch) -> Error {
        let old: i64 = self.weights(rows).iter().map(|weight| weight % NEW).sum();
        let value = |&column: &usize| {
            let text = array_value_to_string(rows.column(column), 0).unwrap_or_default();
            match rows.column(column).is_null(0) {
                true => format!("{} null", self.names[column]),
                false => format!("{} {text}", self.names[column]),
            }
        };
        let key: Vec<String> = self.key.iter().map(value).collect();
        Error::data(format!(
            "the {} side has more than one row with {}: differences are of one row each; name more \
             columns in `key`, or leave out rows that repeat a key first",
            if old > 1 { "old" } else { "new" },
            key.join(", ")
        ))
    }
}

/// The position of a row: record batch and row.
type RowIndex = (usize, usize);

/// The changes of some keys.
#[derive(Default)]
struct Found {
    same: u64,
    /// For each changed key: the operation, the row to write, and for an update the old row.
    changes: Vec<(&'static str, RowIndex, Option<RowIndex>)>,
}

const INSERT: &str = "insert";
const UPDATE: &str = "update";
const DELETE: &str = "delete";
const SAME: &str = "none";

impl Found {
    /// Adds a key with rows of these weights, beginning at the given place. Returns false if a side
    /// has the key twice.
    fn note(&mut self, weights: &[i64], (batch, row): RowIndex) -> bool {
        const BOTH: i64 = OLD + NEW;
        let (first, second) = ((batch, row), (batch, row + 1));
        self.changes.push(match *weights {
            [BOTH] => {
                self.same += 1;
                return true;
            }
            [OLD] => (DELETE, first, None),
            [NEW] => (INSERT, first, None),
            [OLD, NEW] => (UPDATE, second, Some(first)),
            [NEW, OLD] => (UPDATE, first, Some(second)),
            _ => return false,
        });
        true
    }

    /// Returns the rows before and after all updates.
    fn updates(&self, batches: &[&RecordBatch]) -> Result<Option<[RecordBatch; 2]>> {
        let updates = self.changes.iter().filter_map(|&(_, new, old)| Some((old?, new)));
        let (old, new): (Vec<RowIndex>, Vec<RowIndex>) = updates.unzip();
        if old.is_empty() {
            return Ok(None);
        }
        let rows = |places: &[RowIndex]| interleave_record_batch(batches, places).map_err(failed);
        Ok(Some([rows(&old)?, rows(&new)?]))
    }

    /// Removes the updates with `false` in `changed`, which has one entry per update.
    fn keep(&mut self, changed: &[bool]) {
        let mut changed = changed.iter();
        let before = self.changes.len();
        self.changes.retain(|(_, _, old)| old.is_none() || changed.next() != Some(&false));
        self.same += (before - self.changes.len()) as u64;
    }
}

/// Finds the changes between two sides.
pub(super) struct Changes {
    pairing: Arc<Pairing>,
    /// The rows so far of the last key.
    waiting: Option<RecordBatch>,
    /// Keys by the word of their change.
    counts: HashMap<&'static str, i64>,
    /// Updated rows by differing column.
    by_column: Vec<i64>,
}

impl Changes {
    pub(super) fn new(pairing: &Arc<Pairing>) -> Self {
        let (pairing, by_column) = (Arc::clone(pairing), vec![0; pairing.width]);
        Self { pairing, waiting: None, counts: HashMap::new(), by_column }
    }

    /// Returns the output for `found`, whose rows are in `batches`.
    fn shown(&mut self, mut found: Found, batches: &[&RecordBatch]) -> Result<RecordBatch> {
        let pairing = Arc::clone(&self.pairing);
        // The engine compares rows by their bytes, while floats compare as in SQL: rows that only
        // differ in the bytes of equal floats are equal here.
        if (pairing.shown == Shown::Summary || pairing.has_floats)
            && let Some([old, new]) = found.updates(batches)?
        {
            let columns = old.columns().iter().zip(new.columns()).take(pairing.weight);
            let columns: Vec<_> = columns.map(|(old, new)| differing(old, new)).collect();
            let mut changed = vec![false; old.num_rows()];
            for column in &columns {
                changed.iter_mut().zip(column).for_each(|(any, differs)| *any |= differs);
            }
            found.keep(&changed);
            for (differing, rows) in self.by_column.iter_mut().zip(&columns) {
                *differing += rows.iter().filter(|differs| **differs).count() as i64;
            }
        }
        *self.counts.entry(SAME).or_default() += found.same as i64;
        for word in [INSERT, UPDATE, DELETE] {
            let keys = found.changes.iter().filter(|(other, ..)| *other == word);
            *self.counts.entry(word).or_default() += keys.count() as i64;
        }
        if pairing.shown == Shown::Summary || found.changes.is_empty() {
            return Ok(RecordBatch::new_empty(Arc::clone(&pairing.schema)));
        }
        let rows: Vec<RowIndex> = found.changes.iter().map(|(_, row, _)| *row).collect();
        let rows = interleave_record_batch(batches, &rows).map_err(failed)?;
        let words = found.changes.iter().map(|(word, _, _)| *word);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values(words))];
        columns.extend_from_slice(&rows.columns()[..pairing.width]);
        RecordBatch::try_new(Arc::clone(&pairing.schema), columns).map_err(failed)
    }

    fn summary(&self) -> Result<RecordBatch> {
        let count = |word| (word, None, self.counts.get(word).copied().unwrap_or_default());
        let mut rows = Vec::from([INSERT, UPDATE, DELETE, SAME].map(count));
        let by_column = self.by_column.iter().enumerate().filter(|(_, rows)| **rows > 0);
        let names = &self.pairing.names;
        rows.extend(by_column.map(|(column, &rows)| (UPDATE, Some(names[column].as_str()), rows)));
        let changes = StringArray::from_iter_values(rows.iter().map(|row| row.0));
        let columns = StringArray::from_iter(rows.iter().map(|row| row.1));
        let counts = Int64Array::from_iter_values(rows.iter().map(|row| row.2));
        let values: Vec<ArrayRef> = vec![Arc::new(changes), Arc::new(columns), Arc::new(counts)];
        RecordBatch::try_new(Arc::clone(&self.pairing.schema), values).map_err(failed)
    }
}

impl Sift for Changes {
    fn push(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let pairing = Arc::clone(&self.pairing);
        let starts = starts(batch, &pairing.key)?;
        let rows = batch.num_rows();
        let mut found = Found::default();
        // The number of rows that belong to the waiting key.
        let mut lead = 0;
        let mut ended = None;
        if let Some(waiting) = self.waiting.take() {
            if same_key(&waiting, batch, &pairing.key)? {
                lead = (1..rows).find(|&row| starts[row]).unwrap_or(rows);
            }
            let whole = concat_batches(&batch.schema(), [&waiting, &batch.slice(0, lead)]);
            let whole = whole.map_err(failed)?;
            if lead == rows && whole.num_rows() <= 2 {
                self.waiting = Some(whole);
                return self.shown(found, &[batch]);
            }
            if !found.note(pairing.weights(&whole), (1, 0)) {
                return Err(pairing.repeated(&whole));
            }
            ended = Some(whole);
        }
        let weights = pairing.weights(batch);
        let mut first = lead;
        for row in lead + 1..rows {
            if starts[row] {
                if !found.note(&weights[first..row], (0, first)) {
                    return Err(pairing.repeated(&batch.slice(first, row - first)));
                }
                first = row;
            }
        }
        // A copy: a slice would keep the whole batch in memory.
        self.waiting = Some(copied(&batch.slice(first, rows - first)).map_err(failed)?);
        let ended = ended.as_ref();
        let batches: Vec<&RecordBatch> = [batch].into_iter().chain(ended).collect();
        self.shown(found, &batches)
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        let mut left = None;
        if let Some(waiting) = self.waiting.take() {
            let mut found = Found::default();
            if !found.note(self.pairing.weights(&waiting), (0, 0)) {
                return Err(self.pairing.repeated(&waiting));
            }
            left = Some(self.shown(found, &[&waiting])?);
        }
        match self.pairing.shown {
            Shown::Changes => Ok(left),
            Shown::Summary => self.summary().map(Some),
        }
    }
}

/// Returns for each row whether the two columns differ.
fn differing(old: &ArrayRef, new: &ArrayRef) -> Vec<bool> {
    let (old, new) = (one_form(old), one_form(new));
    let rows = 0..old.len();
    match make_comparator(&old, &new, SortOptions::default()) {
        Ok(compare) => rows.map(|row| compare(row, row).is_ne()).collect(),
        // A type without an order.
        Err(_) => {
            rows.map(|row| old.slice(row, 1).to_data() != new.slice(row, 1).to_data()).collect()
        }
    }
}
