//! The merge of sorted rows of a table with sorted changes.
//!
//! ```text
//!  rows     2 3 5 | 8 9          a record batch at a time
//!  changes  3: delete   4: row   8: row, equal to what is there
//!  merged   2 4 5 | 8 9          runs of rows as slices, else picked row by row
//! ```
//! A change of a key that the table has replaces or deletes the row, unless the change is older than
//! the row, or equal to it. The order of the rows is checked: in rows out of order, keys would be
//! missed.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_row::Rows as Keys;
use arrow_schema::{SchemaRef, SortOptions};
use arrow_select::interleave::interleave;

use super::changes::{ChangeBatch, Cursor};
use super::figures::Counts;
use super::hidden::Rows;
use super::homes::Move;
use super::table::Table;
use crate::error::{Error, ErrorKind, Result, failed};
use crate::nested::with_rows;
use crate::watch::Watch;

/// Maximum number of rows of a merged record batch.
const MOST_ROWS: usize = 8192;

/// The rows after the changes.
pub(super) struct Merger<'a> {
    rows: Rows<'a>,
    changes: Cursor<'a>,
    table: &'a Table,
    /// Name of the file, for messages.
    name: &'a str,
    current: Option<Current>,
    /// The last key of the rows before, and whether a change had this key.
    last: Option<(Vec<u8>, bool)>,
    compare: Option<Compare>,
    pub(super) counts: Counts,
    watch: Watch,
}

/// A record batch of the table.
struct Current {
    batch: RecordBatch,
    keys: Keys,
    order: Option<Keys>,
    at: usize,
}

/// A row of the current record batch, or of the current changes.
type Pick = (usize, usize);

const TABLE: usize = 0;
const CHANGES: usize = 1;

impl<'a> Merger<'a> {
    /// Merges rows of the file `file`.
    pub(super) fn new(
        rows: Rows<'a>,
        changes: Cursor<'a>,
        table: &'a Table,
        file: usize,
        watch: &Watch,
    ) -> Self {
        let (name, watch) = (&*table.inputs.files()[file].name, watch.clone());
        let (current, last, compare, counts) = (None, None, None, Counts::default());
        Self { rows, changes, table, name, current, last, compare, counts, watch }
    }

    /// Returns the next rows.
    pub(super) fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.watch.pause()?;
            if self.current.is_none() {
                self.load()?;
            }
            if !self.changes.settle()? && self.current.is_none() {
                return Ok(None);
            }
            let picks = self.picks()?;
            let merged = self.picked(&picks)?;
            if self.current.as_ref().is_some_and(|rows| rows.at == rows.batch.num_rows()) {
                self.current = None;
                self.compare = None;
            }
            if self.changes.row().is_none() {
                self.compare = None;
            }
            if merged.num_rows() > 0 {
                return Ok(Some(merged));
            }
        }
    }

    /// Reads the next rows of the table and checks their order.
    fn load(&mut self) -> Result<()> {
        let batch = loop {
            let Some(batch) = self.rows.next().transpose()? else { return Ok(()) };
            if batch.num_rows() > 0 {
                break batch;
            }
        };
        let keys = self.table.code.rows(&batch)?;
        let order = match &self.last {
            Some((last, _)) => last.as_slice().cmp(keys.row(0).as_ref()),
            None => Ordering::Less,
        };
        let ascends = |row: usize| keys.row(row - 1) <= keys.row(row);
        if order.is_gt() || !(1..keys.num_rows()).all(ascends) {
            let message = format!("{}: its rows are not sorted by the key", self.name);
            return Err(Error::new(ErrorKind::Unsorted, message));
        }
        if order.is_eq() && self.last.as_ref().is_some_and(|(_, is_changed)| *is_changed) {
            return Err(self.repeated());
        }
        self.last = Some((keys.row(keys.num_rows() - 1).as_ref().to_vec(), false));
        self.current = Some(Current { batch, keys, order: None, at: 0 });
        Ok(())
    }

    /// Chooses rows until the record batch of either side ends.
    fn picks(&mut self) -> Result<Vec<Pick>> {
        let mut picks = Vec::new();
        while picks.len() < MOST_ROWS {
            let Some((changes, change)) = self.changes.row() else {
                // The next changes are read first, unless there are none.
                if let (None, Some(rows)) = (&self.changes.current, &mut self.current) {
                    picks.extend((rows.at..rows.batch.num_rows()).map(|row| (TABLE, row)));
                    rows.at = rows.batch.num_rows();
                }
                break;
            };
            let key = changes.keys.row(change);
            match &mut self.current {
                Some(rows) if rows.at == rows.batch.num_rows() => break,
                Some(rows) if rows.keys.row(rows.at) < key => {
                    picks.push((TABLE, rows.at));
                    rows.at += 1;
                    continue;
                }
                Some(rows) if rows.keys.row(rows.at) == key => {
                    let row = rows.at;
                    rows.at += 1;
                    if rows.at == rows.batch.num_rows() {
                        self.last.iter_mut().for_each(|(_, is_changed)| *is_changed = true);
                    } else if rows.keys.row(rows.at) == key {
                        return Err(self.repeated());
                    }
                    picks.extend(self.met(row)?);
                }
                _ if changes.is_delete(change) => self.counts.absent += 1,
                _ => {
                    match self.changes.moves() {
                        None => self.counts.inserted += 1,
                        Some(Move::Here) => self.counts.updated += 1,
                        Some(Move::Away) => return Err(self.moved()),
                    }
                    picks.push((CHANGES, change));
                }
            }
            self.changes.advance();
        }
        Ok(picks)
    }

    /// Decides between the row of the table and the current change, which have the same key.
    fn met(&mut self, row: usize) -> Result<Option<Pick>> {
        let (Some(rows), Some((changes, change))) = (&mut self.current, self.changes.row()) else {
            return Ok(None);
        };
        if let Some(Move::Away) = self.changes.moves() {
            self.counts.left += 1;
            return Ok(None);
        }
        if let (Some(code), Some(theirs)) = (&self.table.order, &changes.order) {
            let ours = match &mut rows.order {
                Some(ours) => ours,
                empty => empty.insert(code.rows(&rows.batch)?),
            };
            if theirs.row(change) < ours.row(row) {
                self.counts.stale += 1;
                return Ok(Some((TABLE, row)));
            }
        }
        if changes.is_delete(change) {
            self.counts.deleted += 1;
            return Ok(None);
        }
        let compare = self.compare.get_or_insert_with(|| Compare::new(&rows.batch, changes));
        if compare.is_same(row, change) {
            self.counts.unchanged += 1;
            return Ok(Some((TABLE, row)));
        }
        self.counts.updated += 1;
        Ok(Some((CHANGES, change)))
    }

    /// Returns the chosen rows.
    fn picked(&self, picks: &[Pick]) -> Result<RecordBatch> {
        let schema = self.table.schema();
        let table = self.current.as_ref().map(|rows| &rows.batch);
        let changes = self.changes.current.as_ref().map(|changes| &changes.rows);
        if let (Some(table), Some(&(TABLE, first))) = (table, picks.first())
            && picks.iter().zip(first..).all(|(pick, row)| *pick == (TABLE, row))
        {
            return Ok(table.slice(first, picks.len()));
        }
        let (Some(table), Some(changes)) = (table.or(changes), changes.or(table)) else {
            return Ok(RecordBatch::new_empty(SchemaRef::clone(schema)));
        };
        let columns = table.columns().iter().zip(changes.columns());
        let columns = columns.map(|(a, b)| interleave(&[a.as_ref(), b.as_ref()], picks));
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>().map_err(failed)?;
        with_rows(schema, columns, picks.len()).map_err(failed)
    }

    fn moved(&self) -> Error {
        Error::data(format!("{}: was changed by another program while it was read", self.name))
    }

    fn repeated(&self) -> Error {
        Error::data(format!(
            "{}: two rows have the same key, and one of the changes has this key, too; keep one row of \
             each key first, with `dedupe`",
            self.name
        ))
        .in_file(self.name)
    }
}

/// The comparison of rows of the table with changes, to the last bit.
struct Compare(Vec<(ArrayRef, ArrayRef, Option<DynComparator>)>);

impl Compare {
    fn new(rows: &RecordBatch, changes: &ChangeBatch) -> Self {
        let pairs = rows.columns().iter().zip(changes.rows.columns());
        let columns = pairs.map(|(ours, theirs)| {
            let compare = make_comparator(ours, theirs, SortOptions::default()).ok();
            (ArrayRef::clone(ours), ArrayRef::clone(theirs), compare)
        });
        Self(columns.collect())
    }

    fn is_same(&self, row: usize, change: usize) -> bool {
        self.0.iter().all(|(ours, theirs, compare)| match compare {
            Some(compare) => compare(row, change).is_eq(),
            // A type without an order.
            None => ours.slice(row, 1).to_data() == theirs.slice(change, 1).to_data(),
        })
    }
}
