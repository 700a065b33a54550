//! Copies of rows at cursors, taken one by one and decoded many at a time.
//!
//! ```text
//! changes of (a, 1)   time 0 +1, time 2 -1         at time 1   a | 1 | 1 | +1
//! changes of (a, 2)   time 1 +1, time 1 +2         at time 1   a | 2 | 1 | +3
//! ```

use arrow_array::RecordBatch;

use super::{Cursor, time_and_diff};
use crate::batch::Decoder;
use crate::chunk::describe;
use windrow_rows::{Diff, Error, Result, Time};

/// Encoded rows, one after the other; see [`Cursor::take_rows`].
#[derive(Clone, Debug, Default)]
pub struct TakenRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// By lane: overflow carries of the current sum.
    wraps: Vec<i64>,
}

impl TakenRows {
    /// Returns an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the bytes of the rows.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Iterates over the rows in the order of taking.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }

    /// Decodes the columns of `decoder` of all rows.
    ///
    /// # Errors As for [`Decoder::decode`].
    pub fn decode(&self, decoder: &mut Decoder) -> Result<RecordBatch> {
        decoder.decode_rows(self.iter())
    }

    /// Removes the rows and keeps their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl<T: Time> Cursor<T> {
    /// Takes the rows of the key, from the current value on, as of `time`: one row per value with
    /// the sum of its diffs up to `time`, unless the sum is zero, and with `time` in the time
    /// column. The cursor is then after the last value. The copies stay in memory, whatever the
    /// budget.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
    /// use windrow::{Antichain, Batcher, Cursor, Decoder, Order, Pool, TakenRows};
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
    /// let (mut cursor, mut taken) = (Cursor::new([&batch])?, TakenRows::new());
    /// while cursor.has_key() {
    ///     cursor.take_rows(2, &mut taken)?;
    ///     cursor.step_key()?;
    /// }
    /// let mut decoder = Decoder::new(&layout, &[0, 1, 2, 3])?;
    /// assert_eq!(taken.decode(&mut decoder)?, changes(&[(7, 2, 2, 1), (9, 4, 2, 2)]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DiffOverflow`] if a sum overflows; errors of reading a chunk. Rows taken before the
    /// error remain.
    pub fn take_rows(&mut self, time: T, taken: &mut TakenRows) -> Result<()> {
        let (tail, width) = (self.layout.tail().len(), self.time_width);
        while self.has_value() {
            let TakenRows { bytes, ends, wraps } = taken;
            let start = bytes.len();
            bytes.extend_from_slice(&self.body);
            let code = bytes.len();
            bytes.resize(code + width + tail, 0);
            if width > 0 {
                time.encode(&mut bytes[code..code + width]);
            }
            wraps.clear();
            wraps.resize(self.layout.tail().lanes(), 0);
            let sum = &mut bytes[code + width..];
            let (layout, mut is_there) = (self.layout.clone(), false);
            let visited = self.visit_times(|at, diff| {
                if at.less_equal(time) {
                    match std::mem::replace(&mut is_there, true) {
                        true => layout.tail().add(sum, diff, |lane, times| wraps[lane] += times),
                        false => sum.copy_from_slice(diff),
                    }
                }
            });
            if visited.is_err() {
                bytes.truncate(start);
                return visited;
            }
            if wraps.iter().any(|&times| times != 0) {
                let row = describe(&self.layout, &bytes[start..]);
                bytes.truncate(start);
                return Err(Error::DiffOverflow { row });
            }
            match is_there && !layout.tail().is_zero(sum) {
                true => ends.push(bytes.len()),
                false => bytes.truncate(start),
            }
            self.step_value()?;
        }
        Ok(())
    }
    /// Takes the newest row of the key up to `time`, unless its diff is negative; batches are the
    /// newer ones the later they stand in the cursor. The cursor is then after the last value.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub(crate) fn take_newest(&mut self, time: T, taken: &mut TakenRows) -> Result<()> {
        let start = taken.bytes.len();
        let found = self.find_newest(time, taken);
        self.with_value.clear();
        match found {
            Ok(true) => taken.ends.push(taken.bytes.len()),
            _ => taken.bytes.truncate(start),
        }
        self.or_nowhere(found).map(drop)
    }

    /// Copies the newest row of the key up to `time`; true if it is not a deletion.
    fn find_newest(&mut self, time: T, taken: &mut TakenRows) -> Result<bool> {
        let Self { readers, with_key, body, key_len, time_width: width, .. } = self;
        let (key, start) = (&body[..*key_len], taken.bytes.len());
        for &(at, place) in with_key.iter().rev() {
            let mut newest: Option<(T, i64)> = None;
            readers[at].go_to(place)?;
            readers[at].pass(key, |body, end| {
                let (at, diff) = time_and_diff(end, *width);
                if at <= time && newest.is_none_or(|(newest, _)| at > newest) {
                    newest = Some((at, <i64 as Diff>::decode(diff)));
                    taken.bytes.truncate(start);
                    taken.bytes.extend_from_slice(body);
                    taken.bytes.extend_from_slice(end);
                }
            })?;
            if let Some((_, diff)) = newest {
                return Ok(diff > 0);
            }
        }
        Ok(false)
    }
}
