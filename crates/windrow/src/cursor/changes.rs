//! All changes of a key, batch by batch.
//!
//! ```text
//! batch  | a 1 | a 2 | c 1 |        changes of a    1, 2 of the first batch,
//! batch  | a 2 | c 1 | d 5 |                        then 2 of the second
//! ```
//! Moving from value to value consults all batches at each step. `map_changes` passes over the rows
//! of a key once.

use super::{Cursor, time_and_diff};
use windrow_rows::{Diff, Result, Time};

impl<T: Time> Cursor<T> {
    /// Calls `change` with the value, the time and the diff of every change of the key: batch by
    /// batch, sorted by value and then by time code within a batch. Without a time column the time
    /// is [`Time::least`]. The cursor is then after the last value. Costs one comparison per
    /// change.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
    /// use windrow::{Antichain, Batcher, Cursor, Order, Pool};
    ///
    /// # let changes = |rows: &[(u64, u64, u64, i64)]| {
    /// #     let numbers = |of: fn(&(u64, u64, u64, i64)) -> u64| Arc::new(UInt64Array::from_iter_values(rows.iter().map(of))) as ArrayRef;
    /// #     let diffs = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.3))) as ArrayRef;
    /// #     RecordBatch::try_from_iter([("user", numbers(|r| r.0)), ("item", numbers(|r| r.1)), ("time", numbers(|r| r.2)), ("diff", diffs)]).unwrap()
    /// # };
    /// // User, item, time, diff.
    /// let log = changes(&[(7, 1, 0, 1), (7, 1, 2, -1), (7, 2, 1, 1), (9, 4, 1, 2)]);
    /// let layout = Order::by("user").time("time").diff("diff").bind(&log.schema())?;
    /// let mut batcher = Batcher::new(&layout, &Pool::unlimited());
    /// batcher.push(&log)?;
    /// let batch = batcher.seal(&Antichain::at(3))?;
    ///
    /// let (mut cursor, mut seen) = (Cursor::new([&batch])?, Vec::new());
    /// cursor.map_changes(|_item, time, diff: i64| seen.push((time, diff)))?;
    /// assert_eq!(seen, [(0, 1), (2, -1), (1, 1)]);
    /// assert!(!cursor.has_value());
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors As for [`Cursor::map_diffs`].
    pub fn map_changes<D: Diff>(&mut self, change: impl FnMut(&[u8], T, D)) -> Result<()> {
        self.check_lanes::<D>()?;
        self.with_value.clear();
        let passed = self.pass_key(change);
        self.or_nowhere(passed)
    }

    fn pass_key<D: Diff>(&mut self, mut change: impl FnMut(&[u8], T, D)) -> Result<()> {
        let Self { readers, with_key, body, key_len, time_width: width, .. } = self;
        let (width, key) = (*width, &body[..*key_len]);
        for &(at, place) in &*with_key {
            readers[at].go_to(place)?;
            readers[at].pass(key, |row, end| {
                let (time, diff) = time_and_diff(end, width);
                change(&row[key.len()..], time, D::decode(diff));
            })?;
        }
        Ok(())
    }
}
