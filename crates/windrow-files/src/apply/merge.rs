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

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_row::Rows;
use arrow_schema::{SchemaRef, SortOptions};
use arrow_select::interleave::interleave;

use super::changes::{ChangeBatch, Codes, Cursor};
use super::figures::Counts;
use crate::error::{Error, ErrorKind, Result, failed};
use crate::watch::Watch;

/// Rows of a table, sorted by key.
pub(super) type TableRows = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Maximum number of rows of a merged record batch.
const MOST_ROWS: usize = 8192;

/// The rows after the changes.
pub(super) struct Merger<'a> {
    rows: TableRows,
    changes: Cursor<'a>,
    codes: &'a Codes,
    schema: SchemaRef,
    /// Name of the file, for messages.
    name: &'a str,
    current: Option<Current>,
    /// The last key of the rows before, and whether a change had this key.
    last: Option<(Vec<u8>, bool)>,
    compare: Option<Compare>,
    pub(super) counts: Counts,
    watch: Watch,
    ended: bool,
}

/// A record batch of the table.
struct Current {
    batch: RecordBatch,
    keys: Rows,
    order: Option<Rows>,
    at: usize,
}

/// A row of the current record batch, or of the current changes.
type Pick = (usize, usize);

const TABLE: usize = 0;
const CHANGES: usize = 1;

impl<'a> Merger<'a> {
    pub(super) fn new(
        rows: TableRows,
        changes: Cursor<'a>,
        codes: &'a Codes,
        schema: &SchemaRef,
        name: &'a str,
        watch: &Watch,
    ) -> Self {
        Self {
            rows,
            changes,
            codes,
            schema: SchemaRef::clone(schema),
            name,
            current: None,
            last: None,
            compare: None,
            counts: Counts::default(),
            watch: watch.clone(),
            ended: false,
        }
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.watch.pause()?;
            if self.current.is_none() {
                self.load()?;
            }
            if !self.changes.settle()? && self.current.is_none() {
                return Ok(None);
            }
            let mut picks = Vec::new();
            self.pick(&mut picks)?;
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
        let keys = self.codes.key.codes(&batch)?;
        let ascends = |row: usize| keys.row(row - 1) <= keys.row(row);
        let follows = |last: &(Vec<u8>, bool)| *last.0 <= *keys.row(0).as_ref();
        if !self.last.as_ref().is_none_or(follows) || !(1..keys.num_rows()).all(ascends) {
            let message = format!("{}: its rows are not sorted by the key", self.name);
            return Err(Error::new(ErrorKind::Unsorted, message));
        }
        if let Some((key, true)) = &self.last
            && **key == *keys.row(0).as_ref()
        {
            return Err(self.repeated());
        }
        self.last = Some((keys.row(keys.num_rows() - 1).as_ref().to_vec(), false));
        self.current = Some(Current { batch, keys, order: None, at: 0 });
        Ok(())
    }

    /// Chooses rows until the record batch of either side ends.
    fn pick(&mut self, picks: &mut Vec<Pick>) -> Result<()> {
        while picks.len() < MOST_ROWS {
            let Some((changes, change)) = self.changes.row() else {
                // The next changes are read first, unless there are none.
                return self.pick_rest(picks);
            };
            let key = changes.keys.row(change);
            let rows = self.current.as_mut();
            let order = match &rows {
                Some(rows) if rows.at == rows.batch.num_rows() => return Ok(()),
                Some(rows) => rows.keys.row(rows.at).cmp(&key),
                None => std::cmp::Ordering::Greater,
            };
            match (order, rows) {
                (std::cmp::Ordering::Less, Some(rows)) => {
                    picks.push((TABLE, rows.at));
                    rows.at += 1;
                    continue;
                }
                (std::cmp::Ordering::Equal, Some(rows)) => {
                    let (row, is_last) = (rows.at, rows.at + 1 == rows.batch.num_rows());
                    if !is_last && rows.keys.row(row + 1) == key {
                        return Err(self.repeated());
                    }
                    rows.at += 1;
                    self.meet(row, picks)?;
                    if let (true, Some(last)) = (is_last, &mut self.last) {
                        last.1 = true;
                    }
                }
                _ if changes.is_delete(change) => self.counts.absent += 1,
                _ => {
                    self.counts.inserted += 1;
                    picks.push((CHANGES, change));
                }
            }
            self.changes.advance();
        }
        Ok(())
    }

    /// Chooses the rest of the table's record batch if no change is left.
    fn pick_rest(&mut self, picks: &mut Vec<Pick>) -> Result<()> {
        if self.changes.batch().is_some() {
            return Ok(());
        }
        if let Some(rows) = &mut self.current {
            picks.extend((rows.at..rows.batch.num_rows()).map(|row| (TABLE, row)));
            rows.at = rows.batch.num_rows();
        }
        Ok(())
    }

    /// Decides between the row of the table and the current change, which have the same key.
    fn meet(&mut self, row: usize, picks: &mut Vec<Pick>) -> Result<()> {
        let (Some(rows), Some((changes, change))) = (&mut self.current, self.changes.row()) else {
            return Ok(());
        };
        if let (Some(code), Some(theirs)) = (&self.codes.order, &changes.order) {
            let ours = match &mut rows.order {
                Some(ours) => ours,
                empty => empty.insert(code.of_rows(&rows.batch)?),
            };
            if theirs.row(change).as_ref() < ours.row(row).as_ref() {
                self.counts.stale += 1;
                picks.push((TABLE, row));
                return Ok(());
            }
        }
        if changes.is_delete(change) {
            self.counts.deleted += 1;
            return Ok(());
        }
        let compare = self.compare.get_or_insert_with(|| Compare::new(&rows.batch, changes));
        if compare.is_same(row, change) {
            self.counts.unchanged += 1;
            picks.push((TABLE, row));
        } else {
            self.counts.updated += 1;
            picks.push((CHANGES, change));
        }
        Ok(())
    }

    /// Returns the chosen rows.
    fn picked(&self, picks: &[Pick]) -> Result<RecordBatch> {
        let table = self.current.as_ref().map(|rows| &rows.batch);
        let changes = self.changes.batch().map(|changes| &changes.rows);
        if let (Some(table), Some(&(TABLE, first))) = (table, picks.first())
            && picks.iter().zip(first..).all(|(pick, row)| *pick == (TABLE, row))
        {
            return Ok(table.slice(first, picks.len()));
        }
        let (Some(table), Some(changes)) = (table.or(changes), changes.or(table)) else {
            return Ok(RecordBatch::new_empty(SchemaRef::clone(&self.schema)));
        };
        let columns = table.columns().iter().zip(changes.columns());
        let columns = columns.map(|(a, b)| interleave(&[a.as_ref(), b.as_ref()], picks));
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>().map_err(failed)?;
        let count = RecordBatchOptions::new().with_row_count(Some(picks.len()));
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &count)
            .map_err(failed)
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

impl Iterator for Merger<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The comparison of rows of the table with changes, to the last bit.
struct Compare {
    columns: Vec<(ArrayRef, ArrayRef, Option<DynComparator>)>,
}

impl Compare {
    fn new(rows: &RecordBatch, changes: &ChangeBatch) -> Self {
        let pairs = rows.columns().iter().zip(changes.rows.columns());
        let columns = pairs.map(|(ours, theirs)| {
            let compare = make_comparator(ours, theirs, SortOptions::default()).ok();
            (ArrayRef::clone(ours), ArrayRef::clone(theirs), compare)
        });
        Self { columns: columns.collect() }
    }

    fn is_same(&self, row: usize, change: usize) -> bool {
        self.columns.iter().all(|(ours, theirs, compare)| match compare {
            Some(compare) => compare(row, change).is_eq(),
            // A type without an order.
            None => ours.slice(row, 1).to_data() == theirs.slice(change, 1).to_data(),
        })
    }
}
