//! Tables with a key: the current rows of a change stream, readable at every time not yet
//! forgotten.
//!
//! ```text
//! upsert    (row, time, +1)                \
//! delete    (key and blanks, time, -1)      >--> batcher --seal--> spine
//! get, scan, at a time <------------------------------ cursor <------+
//! ```
//! Each call that changes rows has its own time, one more than the time of the previous call. No
//! call looks up old rows: of the rows of a key, the newest counts, and a merge drops older ones
//! (`merge/newest.rs`). A deletion vanishes in a merge with the oldest batch.
//!
//! Invariant: at any time, a key has at most one row of that time.

mod blank;
mod scan;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::take::take_record_batch;

use crate::batch::{Batch, Decoder};
use crate::batcher::Batcher;
use crate::chunk::word_at;
use crate::cursor::TakenRows;
use crate::spine::{Mergers, Spine};
use blank::blank;
pub use scan::{Scan, Scanned};
use windrow_pool::Pool;
use windrow_rows::engine::check_fields;
use windrow_rows::{Antichain, Error, IntoColumns, Layout, Order, Result, RowEncoder, Rows};

/// Number of columns of a table beyond the caller's: a time, and whether the row is live.
#[cfg(feature = "ipc")]
const OWN: usize = 2;

/// Diffs of rows and of deletions.
const LIVE: i64 = 1;
const DELETED: i64 = -1;

/// Rows with a key, in the memory of a pool and beyond it on disk.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
/// use windrow::{Budget, Pool, Table};
///
/// # let users = |ids: &[i64], names: &[&str]| RecordBatch::try_from_iter([
/// #     ("id", Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef),
/// #     ("name", Arc::new(StringArray::from(names.to_vec())) as ArrayRef),
/// # ]).unwrap();
/// # let ids = |ids: &[i64]| users(ids, &vec![""; ids.len()]).project(&[0]).unwrap();
/// let pool = Pool::in_dir(std::env::temp_dir(), Budget::bytes(256 << 20))?;
/// let mut table = Table::new(&users(&[], &[]).schema(), "id", &pool)?;
/// let before = table.upsert(&users(&[1, 2], &["ann", "bob"]))?;
/// table.upsert(&users(&[2, 3], &["rob", "cid"]))?;
/// table.delete(&ids(&[1]))?;
///
/// assert_eq!(table.get(&ids(&[1, 2]))?, users(&[2], &["rob"]));
/// let all = table.scan().batches(1024)?.collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(all, [users(&[2, 3], &["rob", "cid"])]);
/// let then = table.scan().at(before).batches(1024)?.collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(then, [users(&[1, 2], &["ann", "bob"])]);
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Table {
    /// The caller's columns.
    schema: SchemaRef,
    /// The caller's columns, a time, and a diff that is 1 for a row and -1 for a deletion.
    layout: Layout,
    /// The columns of the key, in key order.
    key: Vec<usize>,
    keys: RowEncoder,
    batcher: Batcher,
    spine: Spine,
    /// The next time: all changes have lesser times.
    next: u64,
}

impl Table {
    /// Creates an empty table of rows of `schema`. The columns of `key` identify and order the
    /// rows.
    ///
    /// # Errors
    /// [`Error::MissingColumn`] and [`Error::UnsupportedColumn`] for columns of the key,
    /// [`Error::InvalidOrder`] if the key has no columns.
    pub fn new(schema: &SchemaRef, key: impl IntoColumns, pool: &Pool) -> Result<Self> {
        let key = key.into_columns();
        if key.is_empty() {
            return Err(Error::InvalidOrder("a table needs a key".into()));
        }
        let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
        let mut own = |name: &str, data_type: DataType| {
            let mut name = name.to_owned();
            while fields.iter().any(|field| *field.name() == name) {
                name.insert(0, '_');
            }
            fields.push(Arc::new(Field::new(&name, data_type, false)));
            name
        };
        let (time, diff) = (own("_time", DataType::UInt64), own("_live", DataType::Int64));
        let all = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let layout = Order::by(key).time(time).diff(diff).bind(&all)?;
        Ok(Self {
            schema: Arc::clone(schema),
            key: layout.key().collect(),
            keys: RowEncoder::of_keys(&layout),
            batcher: Batcher::new(&layout, &pool.for_index()),
            spine: Spine::new(&layout, pool)?.keep_newest(),
            layout,
            next: 0,
        })
    }

    /// Writes the table to `directory`, with its history as far as it is not forgotten: see
    /// [`Spine::save`].
    ///
    /// # Errors
    /// Errors as of [`Spine::save`].
    #[cfg(feature = "ipc")]
    pub fn save(&self, directory: impl AsRef<std::path::Path>) -> Result<()> {
        self.spine.save(directory)
    }

    /// Opens the table that was saved to `directory`, in the memory of `pool`: see [`Spine::open`].
    ///
    /// # Errors
    /// Errors as of [`Spine::open`]; [`Error::SchemaMismatch`] if `directory` holds no table.
    #[cfg(feature = "ipc")]
    pub fn open(directory: impl AsRef<std::path::Path>, pool: &Pool) -> Result<Self> {
        let spine = Spine::open(directory, pool)?;
        let fields = spine.layout().schema().fields();
        let own = fields.len().saturating_sub(OWN);
        let schema = Schema::new_with_metadata(
            fields[..own].to_vec(),
            spine.layout().schema().metadata().clone(),
        );
        let mut table = Self::new(&Arc::new(schema), spine.layout().order().to_vec(), pool)?;
        table.layout.check_same(spine.layout())?;
        if spine.upper().is_empty() {
            return Err(Error::InvalidOrder("changes to which none can be added any more".into()));
        }
        table.spine = spine.keep_newest();
        table.go_on()?;
        Ok(table)
    }

    /// Returns the columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the spine of the table's changes: rows with diff 1, and deletions of keys, with diff
    /// -1 and blank values. Diffs do not add up: the newest change of a key counts.
    pub fn spine(&self) -> &Spine {
        &self.spine
    }

    /// Inserts rows and replaces present rows with the same keys. Of several rows with one key, the
    /// last counts. Returns the time from which on the rows are present. Reads no old rows.
    ///
    /// The call includes due merges. A failed merge, of a full disk for instance, loses nothing and
    /// does not fail the call: the next call retries, and [`Table::work`] reports the error.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if the rows have other columns; errors of encoding and spilling.
    /// After an error the table is as before the call and remains usable.
    pub fn upsert(&mut self, rows: &RecordBatch) -> Result<u64> {
        let rows = self.last_of_each(rows)?;
        self.change(rows, LIVE)
    }

    /// Inserts rows as [`Table::upsert`] does, and also returns the replaced rows, in the order of
    /// the rows in their places. Looks up every key.
    ///
    /// # Errors
    /// Errors as of [`Table::upsert`] and [`Table::get`].
    pub fn upsert_returning(&mut self, rows: &RecordBatch) -> Result<(u64, RecordBatch)> {
        let rows = self.last_of_each(rows)?;
        let replaced = self.get(&rows.project(&self.key)?)?;
        Ok((self.change(rows, LIVE)?, replaced))
    }

    /// Deletes rows by key. `keys` has the columns of the key alone, in key order; absent keys are
    /// ignored. Returns the time from which on the rows are absent. Reads no old rows: each key
    /// takes the place of a row of blanks until it is merged with all older rows.
    ///
    /// # Errors
    /// Errors as of [`Table::upsert`].
    pub fn delete(&mut self, keys: &RecordBatch) -> Result<u64> {
        check_fields(&self.schema.project(&self.key)?, keys.schema_ref())?;
        let columns = self.schema.fields().iter().enumerate().map(|(at, field)| {
            match self.key.iter().position(|&key| key == at) {
                Some(key) => Ok(Arc::clone(keys.column(key))),
                None => blank(field.data_type(), keys.num_rows()),
            }
        });
        let columns = columns.collect::<Result<_, ArrowError>>()?;
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        let rows = self.last_of_each(&rows)?;
        self.change(rows, DELETED)
    }

    /// Returns the rows with these keys, as far as present, in the order of the keys.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if `keys` does not have the columns of the key; errors of reading
    /// a chunk.
    pub fn get(&self, keys: &RecordBatch) -> Result<RecordBatch> {
        self.get_at(keys, self.now())
    }

    /// Returns rows as [`Table::get`] does, from the table as of `time`.
    ///
    /// # Errors
    /// Errors as of [`Table::get`]; [`Error::InvalidOrder`] if `time` is forgotten.
    pub fn get_at(&self, keys: &RecordBatch, time: u64) -> Result<RecordBatch> {
        self.check_time(time)?;
        let mut found = TakenRows::new();
        let keys = self.keys.encode(keys)?;
        let mut cursor = self.spine.idle_cursor()?;
        cursor.last_only = time == self.now();
        cursor.probe(&keys, |_, cursor| cursor.take_newest(time, &mut found))?;
        found.decode(&mut self.decoder()?)
    }

    /// Returns a scan of all rows, or of a range of keys, in key order.
    pub fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    /// Returns the time of the last change, or 0 without any change.
    pub fn now(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    /// Forgets the history before `time`. Later merges free its memory and files.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if a later time was forgotten before.
    pub fn forget_before(&mut self, time: u64) -> Result<()> {
        self.spine.set_since(&Antichain::at(time.min(self.now())))
    }

    /// Moves merging to the threads of `mergers`; see [`Spine::merge_on`].
    pub fn merge_on(&mut self, mergers: &Mergers) {
        self.spine.merge_on(mergers);
    }

    /// Merges until the fuel is used up; see [`Spine::work`]. Useful when idle: changes do their
    /// share of merging by themselves.
    ///
    /// # Errors
    /// Errors of merging; the rows are unchanged.
    pub fn work(&mut self, fuel: &mut i64) -> Result<bool> {
        self.spine.work(fuel)
    }

    /// Returns a decoder of rows to the caller's columns.
    fn decoder(&self) -> Result<Decoder> {
        let columns: Vec<usize> = (0..self.schema.fields().len()).collect();
        Decoder::new(&self.layout, &columns)
    }

    fn check_time(&self, time: u64) -> Result<()> {
        if self.spine.since().less_equal(time) {
            return Ok(());
        }
        Err(Error::InvalidOrder(format!("what was there at time {time} is forgotten")))
    }

    /// Returns the last row of each key of `rows`, in the order of the rows.
    fn last_of_each(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        check_fields(&self.schema, rows.schema_ref())?;
        let keys = self.keys.encode(&rows.project(&self.key)?)?;
        let mut last = last_of_each(&keys);
        if last.len() == keys.len() {
            return Ok(rows.clone());
        }
        last.sort_unstable();
        Ok(take_record_batch(rows, &UInt32Array::from(last))?)
    }

    /// Inserts `rows` with `diff` at the next time.
    fn change(&mut self, rows: RecordBatch, diff: i64) -> Result<u64> {
        let time = self.next;
        let changed = self.sealed(rows, diff, time).and_then(|batch| self.spine.insert(batch));
        if self.spine.upper().less_equal(time) {
            // The batcher may hold some of the changes.
            self.go_on()?;
            return changed.map(|()| time);
        }
        // A possible error is of a merge; the next call retries.
        self.next = time + 1;
        Ok(time)
    }

    /// Continues at the upper frontier of the spine, with an empty batcher.
    fn go_on(&mut self) -> Result<()> {
        let upper = self.spine.upper();
        self.batcher = Batcher::new(&self.layout, self.batcher.pool());
        drop(self.batcher.seal(upper)?);
        self.next = upper.elements().first().copied().unwrap_or(u64::MAX);
        Ok(())
    }

    /// Returns the batch of changes of one time.
    fn sealed(&mut self, rows: RecordBatch, diff: i64, time: u64) -> Result<Batch> {
        let count = rows.num_rows();
        let times: ArrayRef = Arc::new(UInt64Array::from_value(time, count));
        let diffs: ArrayRef = Arc::new(Int64Array::from_value(diff, count));
        let columns = rows.columns().iter().cloned().chain([times, diffs]).collect();
        let schema = Arc::clone(self.layout.schema());
        self.batcher.push(&RecordBatch::try_new(schema, columns)?)?;
        self.batcher.seal(&Antichain::at(time + 1))
    }
}

/// Returns the ordinal of the last row of each key, in key order.
fn last_of_each(keys: &Rows) -> Vec<u32> {
    let words = keys.iter().map(|key| word_at(key, 0));
    let mut all: Vec<(u64, u32)> = words.zip(0..).collect();
    let key = |row: u32| keys.row(row as usize);
    all.sort_unstable_by(|&(a, row), &(b, other)| {
        a.cmp(&b).then_with(|| key(row).cmp(key(other))).then(row.cmp(&other))
    });
    // Of two equal keys, the later row stays.
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0 && key(next.1) == key(kept.1);
        if same {
            kept.1 = next.1;
        }
        same
    });
    all.into_iter().map(|(_, row)| row).collect()
}

shown!(Table, it => schema: it.schema, now: it.now(), spine: it.spine);
