//! From the rows that are left of each key to what changed.
//!
//! ```text
//!  weights of a key's rows     [OLD + NEW]   the same
//!                              [NEW]         insert        [OLD]         delete
//!                              [OLD] [NEW]   update        else          a side has the key twice
//! ```
//! The rows of the last key wait for the next record batch: they may not be all. There are two of them at the most.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use arrow_ord::ord::make_comparator;
use arrow_schema::SortOptions;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave_record_batch;

use super::diff::{DiffSpec, Shown};
use super::sift::{Sift, copied, failed, same_key, starts};
use crate::equality::{floats, one_form};
use crate::error::{Error, Result};

/// The weight of a row of the old side.
pub(super) const OLD: i64 = 1;
/// That of the new one: a sum tells how many of each there were, up to 2^32 - 1 rows that are equal.
pub(super) const NEW: i64 = 1 << 32;

/// What becomes of the rows.
pub(super) struct Pairing {
    /// Places of the key's columns.
    key: Vec<usize>,
    /// How many columns are written.
    width: usize,
    /// Place of the weight.
    weight: usize,
    /// Whether rows that differ may be equal: in floats.
    has_floats: bool,
    shown: Shown,
    /// Of what comes out.
    schema: SchemaRef,
    /// Names of the columns that come in.
    names: Vec<String>,
}

impl Pairing {
    /// For rows of the columns of `given`, the first `width` of which are written, and the last of which is the weight.
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

    /// The schema of what comes out.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn weights<'a>(&self, rows: &'a RecordBatch) -> &'a [i64] {
        rows.column(self.weight).as_primitive::<Int64Type>().values()
    }

    /// That a side has a key twice, which is that of the first of `rows`.
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

/// A row of one of two record batches: which, and its place there.
type RowIndex = (usize, usize);

/// What changed, of some keys.
#[derive(Default)]
struct Found {
    same: u64,
    /// What becomes of a key, the row that says how, and of an update the row before.
    changes: Vec<(&'static str, RowIndex, Option<RowIndex>)>,
}

const INSERT: &str = "insert";
const UPDATE: &str = "update";
const DELETE: &str = "delete";

impl Found {
    /// Notes a key whose rows, the first of them at `first`, have these weights; false if it cannot be.
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

    /// The rows before and behind all updates.
    fn updates(&self, batches: &[&RecordBatch]) -> Result<Option<[RecordBatch; 2]>> {
        let updates = self.changes.iter().filter_map(|&(_, new, old)| Some((old?, new)));
        let (old, new): (Vec<RowIndex>, Vec<RowIndex>) = updates.unzip();
        if old.is_empty() {
            return Ok(None);
        }
        let rows = |places: &[RowIndex]| interleave_record_batch(batches, places).map_err(failed);
        Ok(Some([rows(&old)?, rows(&new)?]))
    }

    /// Leaves out the updates that `changed` says no of, in their order.
    fn keep(&mut self, changed: &[bool]) {
        let mut changed = changed.iter();
        let before = self.changes.len();
        self.changes.retain(|(_, _, old)| old.is_none() || changed.next() != Some(&false));
        self.same += (before - self.changes.len()) as u64;
    }
}

/// Figures of what changed.
#[derive(Default)]
struct Figures {
    inserted: i64,
    updated: i64,
    deleted: i64,
    same: i64,
    /// Updated rows that differ, by column.
    by_column: Vec<i64>,
}

/// Has what changed between two sides.
pub(super) struct Changes {
    pairing: Arc<Pairing>,
    /// The rows of the last key so far.
    waiting: Option<RecordBatch>,
    figures: Figures,
}

impl Changes {
    pub(super) fn new(pairing: &Arc<Pairing>) -> Self {
        let figures = Figures { by_column: vec![0; pairing.width], ..Figures::default() };
        Self { pairing: Arc::clone(pairing), waiting: None, figures }
    }

    /// What is written of `found` in these record batches.
    fn shown(&mut self, mut found: Found, batches: &[&RecordBatch]) -> Result<RecordBatch> {
        let pairing = Arc::clone(&self.pairing);
        // Rows are equal by their bytes, and floats as in SQL: rows that differ in nothing else are equal here.
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
            for (differing, rows) in self.figures.by_column.iter_mut().zip(&columns) {
                *differing += rows.iter().filter(|differs| **differs).count() as i64;
            }
        }
        let figures = &mut self.figures;
        figures.same += found.same as i64;
        if pairing.shown == Shown::Summary {
            for (word, _, _) in &found.changes {
                match *word {
                    INSERT => figures.inserted += 1,
                    UPDATE => figures.updated += 1,
                    _ => figures.deleted += 1,
                }
            }
            return Ok(RecordBatch::new_empty(Arc::clone(&pairing.schema)));
        }
        if found.changes.is_empty() {
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
        let figures = &self.figures;
        let mut rows = vec![
            (INSERT, None, figures.inserted),
            (UPDATE, None, figures.updated),
            (DELETE, None, figures.deleted),
            ("none", None, figures.same),
        ];
        let by_column = figures.by_column.iter().enumerate().filter(|(_, rows)| **rows > 0);
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
        // The rows that belong to the key that waits.
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
        // A copy: a slice would keep the whole of it.
        self.waiting = Some(copied(&batch.slice(first, rows - first))?);
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

/// Whether each row of two columns differs.
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
