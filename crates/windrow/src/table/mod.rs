//! A table with a key, kept up to date: what a change stream comes to, read at any time that is not forgotten.
//!
//! ```text
//! upsert, delete --old rows looked up--> changes (row, time, +1 or -1) --> batcher --sealed--> spine
//!                      ^                                                                        |
//! get, scan, at a time +------------------------------- cursor <--------------------------------+
//! ```
//! Every call that changes rows has a time of its own, one more than that of the call before it.
//!
//! Invariant: at every time there is at most one row of a key; a row that is there has diffs that sum up to one.

mod scan;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take_record_batch;

use crate::batch::{Batch, Decoder};
use crate::batcher::Batcher;
use crate::chunk::word_at;
use crate::cursor::{Cursor, TakenRows};
use crate::error::{Error, Result};
use crate::order::{IntoColumns, Layout, Order, check_fields};
use crate::pool::Pool;
use crate::rows::{RowEncoder, Rows};
use crate::spine::{Mergers, Spine};
use crate::time::Antichain;
pub use scan::{Scan, Scanned};

/// Columns of a table beside those of the caller: a time and a diff.
#[cfg(feature = "ipc")]
const OWN: usize = 2;

/// Rows with a key, in the memory of a pool and on disk beyond it.
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
    /// The columns of the caller.
    schema: SchemaRef,
    /// Those, a time and a diff.
    layout: Layout,
    /// The columns of the key, in its order.
    key: Vec<usize>,
    keys: RowEncoder,
    batcher: Batcher,
    spine: Spine,
    /// Times of changes are less than this.
    next: u64,
}

impl Table {
    /// An empty table of rows with these columns, of which those of `key` tell them apart and order them.
    ///
    /// # Errors
    /// [`Error::MissingColumn`] and [`Error::UnsupportedColumn`] of the key, [`Error::InvalidOrder`] if it has no columns.
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
        let (time, diff) = (own("_time", DataType::UInt64), own("_diff", DataType::Int64));
        let all = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let layout = Order::by(key).time(time).diff(diff).bind(&all)?;
        Ok(Self {
            schema: Arc::clone(schema),
            key: layout.key().collect(),
            keys: RowEncoder::of_keys(&layout),
            batcher: Batcher::new(&layout, &pool.for_index()),
            spine: Spine::new(&layout, pool)?,
            layout,
            next: 0,
        })
    }

    /// Writes the table to `directory`, with all that is not forgotten: see [`Spine::save`].
    ///
    /// # Errors
    /// As [`Spine::save`].
    #[cfg(feature = "ipc")]
    pub fn save(&self, directory: impl AsRef<std::path::Path>) -> Result<()> {
        self.spine.save(directory)
    }

    /// The table that was saved to `directory`, in the memory of `pool`: see [`Spine::open`].
    ///
    /// # Errors
    /// As [`Spine::open`]; [`Error::SchemaMismatch`] if what was saved there is not a table.
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
        table.spine = spine;
        table.go_on()?;
        Ok(table)
    }

    /// The columns of its rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The changes beneath it.
    pub fn spine(&self) -> &Spine {
        &self.spine
    }

    /// Puts rows in, in place of those with their keys; of several with one key the last counts. The time from which
    /// on they are there.
    ///
    /// Merges that are due are a part of the call. A merge that fails, of a full disk for instance, loses nothing and does
    /// not fail the call: the next call tries again, and [`Table::work`] reports the error.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if the rows have other columns, and what reading, encoding and spilling report. After an
    /// error the table is as it was before the call, and goes on.
    pub fn upsert(&mut self, rows: &RecordBatch) -> Result<u64> {
        check_fields(&self.schema, rows.schema_ref())?;
        let keys = rows.project(&self.key)?;
        let (old, kept) = self.replaced(&keys)?;
        let new = match kept {
            Some(kept) => take_record_batch(rows, &UInt32Array::from(kept))?,
            None => rows.clone(),
        };
        self.change(old, Some(new))
    }

    /// Takes rows out by their keys, which are record batches of the columns of the key alone, in its order; keys that
    /// are not there are passed over. The time from which on they are gone.
    ///
    /// # Errors
    /// As [`Table::upsert`].
    pub fn delete(&mut self, keys: &RecordBatch) -> Result<u64> {
        let (old, _) = self.replaced(keys)?;
        self.change(old, None)
    }

    /// The rows with these keys, those that there are, in the order of the keys.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if these are not the columns of the key; what reading a chunk reports.
    pub fn get(&self, keys: &RecordBatch) -> Result<RecordBatch> {
        self.get_at(keys, self.now())
    }

    /// As [`Table::get`], as the table was at `time`.
    ///
    /// # Errors
    /// As [`Table::get`]; [`Error::InvalidOrder`] if that time is forgotten.
    pub fn get_at(&self, keys: &RecordBatch, time: u64) -> Result<RecordBatch> {
        self.check_time(time)?;
        let mut found = TakenRows::new();
        let keys = self.keys.encode(keys)?;
        self.cursor()?.probe(&keys, |_, cursor| cursor.take_rows(time, &mut found))?;
        found.decode(&mut self.decoder()?)
    }

    /// All rows, or those of a range of keys, in the order of the key.
    pub fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    /// The time of the last change; 0 if there was none.
    pub fn now(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    /// Forgets what was there before `time`: memory and files of it are free as merges go on.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if that has been forgotten before.
    pub fn forget_before(&mut self, time: u64) -> Result<()> {
        self.spine.set_since(&Antichain::at(time.min(self.now())))
    }

    /// Has merges done by the threads of `mergers`; see [`Spine::merge_on`].
    pub fn merge_on(&mut self, mergers: &Mergers) {
        self.spine.merge_on(mergers);
    }

    /// Merges until the fuel is used up; see [`Spine::work`]. For idle moments: each change does its share by itself.
    ///
    /// # Errors
    /// What merging reports; the rows are as they were.
    pub fn work(&mut self, fuel: &mut i64) -> Result<bool> {
        self.spine.work(fuel)
    }

    /// At no key.
    fn cursor(&self) -> Result<Cursor> {
        self.spine.idle_cursor()
    }

    /// A decoder of rows to the columns of the caller.
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

    /// The rows that there are with these keys, and the ordinals of the last of each key if some come more than once.
    fn replaced(&self, keys: &RecordBatch) -> Result<(TakenRows, Option<Vec<u32>>)> {
        let keys = self.keys.encode(keys)?;
        let mut last = last_of_each(&keys);
        let (mut found, now) = (TakenRows::new(), self.now());
        let sorted = last.iter().map(|&row| keys.row(row as usize));
        self.cursor()?.probe_each(sorted, |_, cursor| cursor.take_rows(now, &mut found))?;
        let kept = (last.len() < keys.len()).then(|| {
            last.sort_unstable();
            last
        });
        Ok((found, kept))
    }

    /// Has `old` rows go and `new` ones come, at the next time.
    fn change(&mut self, old: TakenRows, new: Option<RecordBatch>) -> Result<u64> {
        let time = self.next;
        let changed = self.sealed(old, new, time).and_then(|batch| self.spine.insert(batch));
        if self.spine.upper().less_equal(time) {
            // Some of the changes may be in the batcher.
            self.go_on()?;
            return changed.map(|()| time);
        }
        // An error is that of a merge, which the next call tries again.
        self.next = time + 1;
        Ok(time)
    }

    /// Takes up changes where those of the spine end.
    fn go_on(&mut self) -> Result<()> {
        let upper = self.spine.upper();
        self.batcher = Batcher::new(&self.layout, self.batcher.pool());
        drop(self.batcher.seal(upper)?);
        self.next = upper.elements().first().copied().unwrap_or(u64::MAX);
        Ok(())
    }

    /// The changes of one time.
    fn sealed(&mut self, mut old: TakenRows, new: Option<RecordBatch>, time: u64) -> Result<Batch> {
        old.retract(&self.layout, time);
        for (bytes, ends) in old.pieces() {
            self.batcher.push_rows(bytes, &ends)?;
        }
        if let Some(rows) = new {
            let count = rows.num_rows();
            let times: ArrayRef = Arc::new(UInt64Array::from(vec![time; count]));
            let diffs: ArrayRef = Arc::new(Int64Array::from(vec![1; count]));
            let columns = rows.columns().iter().cloned().chain([times, diffs]).collect();
            let schema = Arc::clone(self.layout.schema());
            self.batcher.push(&RecordBatch::try_new(schema, columns)?)?;
        }
        self.batcher.seal(&Antichain::at(time + 1))
    }
}

/// The ordinals of the last row of each key, by their keys.
fn last_of_each(keys: &Rows) -> Vec<u32> {
    let words = keys.iter().map(|key| word_at(key, 0));
    let mut all: Vec<(u64, u32)> = words.zip(0..).collect();
    let key = |row: u32| keys.row(row as usize);
    all.sort_unstable_by(|&(a, row), &(b, other)| {
        a.cmp(&b).then_with(|| key(row).cmp(key(other))).then(row.cmp(&other))
    });
    // The later of two equal ones stays.
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0 && key(next.1) == key(kept.1);
        if same {
            kept.1 = next.1;
        }
        same
    });
    all.into_iter().map(|(_, row)| row).collect()
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Table");
        out.field("schema", &self.schema).field("now", &self.now()).field("spine", &self.spine);
        out.finish_non_exhaustive()
    }
}
