//! Moves of a cursor to lesser keys and values.
//!
//! ```text
//! batch  | a 1 | a 2 | c 1 |          step_key_back from c: each reader goes to its first row of c, or
//! batch  | a 2 | b 1 | d 5 |          behind it; of the rows before, (b, 1) is the greatest, so the
//!                  ^                  readers with b go to its first row
//! ```
//! A move consults all batches, a few comparisons each: there is no heap by the greatest row. The
//! positions afterwards are those of a look-up, from which every move goes on.

use super::Cursor;
use super::reader::Reader;
use windrow_rows::{Result, Time, key_len};

impl<T: Time> Cursor<T> {
    /// Moves to the first value of the previous key. Before the first key, and without a key, the
    /// cursor has no key.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
    /// use windrow::{Antichain, Batcher, Cursor, Order, Pool};
    ///
    /// # let numbers = |values: &[u64]| Arc::new(UInt64Array::from(values.to_vec())) as ArrayRef;
    /// # let changes = RecordBatch::try_from_iter([
    /// #     ("user", numbers(&[7, 7, 8, 9])),
    /// #     ("item", numbers(&[1, 2, 3, 4])),
    /// #     ("time", numbers(&[0, 2, 1, 1])),
    /// #     ("diff", Arc::new(Int64Array::from(vec![1; 4])) as ArrayRef),
    /// # ])?;
    /// let layout = Order::by("user").time("time").diff("diff").bind(&changes.schema())?;
    /// let mut batcher = Batcher::new(&layout, &Pool::unlimited());
    /// batcher.push(&changes)?; // users 7, 7, 8, 9; items 1, 2, 3, 4
    /// let batch = batcher.seal(&Antichain::at(3))?;
    ///
    /// let (mut cursor, mut items) = (Cursor::new([&batch])?, Vec::new());
    /// cursor.fast_forward_keys()?;
    /// while cursor.has_key() {
    ///     cursor.fast_forward_values()?;
    ///     while let Some(item) = cursor.value() {
    ///         items.push(item[7]);
    ///         cursor.step_value_back()?;
    ///     }
    ///     cursor.step_key_back()?;
    /// }
    /// assert_eq!(items, [4, 3, 2, 1]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn step_key_back(&mut self) -> Result<()> {
        if !self.has_key() {
            return Ok(());
        }
        self.want(self.key_len, &[]);
        self.key_before(false)
    }

    /// Moves to the first value of the last key that is not greater than `key`, forwards or
    /// backwards. `key` may be a prefix of the key columns: keys that start with it are not
    /// greater.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn seek_key_back(&mut self, key: &[u8]) -> Result<()> {
        self.want(0, key);
        self.key_before(true)
    }

    /// Moves to the first value of the last key.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn fast_forward_keys(&mut self) -> Result<()> {
        self.seek_key_back(&[])
    }

    /// Moves to the previous value of the key, or before the first one: the cursor then has no
    /// value, and [`Cursor::step_value`] moves to the first one. After the last value, moves to the
    /// last one.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn step_value_back(&mut self) -> Result<()> {
        if self.has_value() {
            self.want(self.body.len(), &[]);
            return self.value_before(false);
        }
        match self.with_key.iter().any(|&(at, first)| self.readers[at].place == first) {
            true => Ok(()),
            false => self.fast_forward_values(),
        }
    }

    /// Moves to the last value of the key that is not greater than `value`, forwards or backwards.
    /// Values that start with `value` are not greater.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn seek_value_back(&mut self, value: &[u8]) -> Result<()> {
        self.want(self.key_len, value);
        self.value_before(true)
    }

    /// Moves to the last value of the key.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn fast_forward_values(&mut self) -> Result<()> {
        self.seek_value_back(&[])
    }

    /// Sets the bound of a move: the first `len` bytes of key and value, then `rest`.
    pub(super) fn want(&mut self, len: usize, rest: &[u8]) {
        self.body[..len].clone_into(&mut self.wanted);
        self.wanted.extend_from_slice(rest);
    }

    /// Moves to the key of the greatest row below the bound; with `inclusive`, rows that start with
    /// the bound are below it.
    fn key_before(&mut self, inclusive: bool) -> Result<()> {
        self.leave_keys();
        self.key_len = 0;
        let Self { layout, readers, body, wanted, with_key, .. } = self;
        for reader in &mut *readers {
            reader.seek(|row| is_below(row, wanted, inclusive))?;
        }
        let all = 0..readers.len();
        if greatest_before(readers, all, &[], body)?.is_none() {
            return Ok(());
        }
        body.truncate(key_len(layout, body));
        for reader in &mut *readers {
            reader.seek(|row| row < &body[..])?;
        }
        let found = readers.iter().enumerate().filter(|(_, reader)| reader.is_at(body));
        with_key.extend(found.map(|(at, reader)| (at, reader.place)));
        self.key_len = self.body.len();
        self.find_value();
        Ok(())
    }

    /// Moves to the greatest value of the key below the bound, as [`Cursor::key_before`] does.
    fn value_before(&mut self, inclusive: bool) -> Result<()> {
        let moved = self.try_value_before(inclusive);
        self.or_nowhere(moved)
    }

    fn try_value_before(&mut self, inclusive: bool) -> Result<()> {
        self.with_value.clear();
        let Self { readers, body, key_len, wanted, with_key, .. } = self;
        for &(at, _) in &*with_key {
            readers[at].seek(|row| is_below(row, wanted, inclusive))?;
        }
        let ats = with_key.iter().map(|&(at, _)| at);
        let greatest = greatest_before(readers, ats, &wanted[..*key_len], body)?;
        wanted[..*key_len].clone_into(body);
        let Some(greatest) = greatest else { return Ok(()) };
        readers[greatest].step_back()?;
        readers[greatest].body().clone_into(body);
        for &(at, _) in &*with_key {
            readers[at].seek(|row| row < &body[..])?;
        }
        self.find_value();
        Ok(())
    }
}

fn is_below(row: &[u8], bound: &[u8], inclusive: bool) -> bool {
    row < bound || inclusive && row.starts_with(bound)
}

/// Copies the greatest of the rows before the positions of the readers `ats` to `row`, with or
/// without time and diffs, and returns its reader. Rows without `prefix` do not count.
fn greatest_before(
    readers: &mut [Reader],
    ats: impl Iterator<Item = usize>,
    prefix: &[u8],
    row: &mut Vec<u8>,
) -> Result<Option<usize>> {
    row.clear();
    let mut greatest = None;
    for at in ats {
        readers[at].before(|before| {
            if before.starts_with(prefix) && (greatest.is_none() || before > &row[..]) {
                before.clone_into(row);
                greatest = Some(at);
            }
        })?;
    }
    Ok(greatest)
}
