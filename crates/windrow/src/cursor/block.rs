//! Blocks of keys that a caller looks up in several cursors, key by key.
//!
//! ```text
//! block        a b c d            locate: all keys in all batches, side by side
//! cursor 1     a - - d            map_located: the changes of one of them, in one cursor
//! cursor 2     a b - d                         and then in the other
//! ```

use std::sync::Arc;

use smallvec::SmallVec;

use super::Cursor;
use super::ahead::ReadAhead;
use super::hints::{BLOCK, ascends};
use windrow_pool::Pool;
use windrow_rows::{Diff, Result, Time};

/// Most keys that are looked up ahead: at 4 KiB a look-up, 16 MiB of the system's cache.
const MOST_AHEAD: usize = 4096;

/// Up to 64 keys, looked up together; see [`Cursor::locate`].
#[derive(Clone, Debug, Default)]
pub struct KeyBlock {
    bytes: Vec<u8>,
    ends: SmallVec<[usize; BLOCK]>,
    /// Whether a key is not greater than the one before.
    unsorted: bool,
}

impl KeyBlock {
    /// Returns a block without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a copy of `key`, which has all key columns. Keys that ascend are found fastest.
    ///
    /// # Panics
    /// If the block is full.
    pub fn push(&mut self, key: &[u8]) {
        assert!(!self.is_full(), "a block has at most {BLOCK} keys");
        if let Some(last) = self.len().checked_sub(1) {
            self.unsorted |= !ascends(self.key(last), key);
        }
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Replaces the keys by the next ones of `cursor`; by none after the last.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn fill<T: Time>(&mut self, cursor: &mut Cursor<T>) -> Result<()> {
        self.clear();
        while !self.is_full()
            && let Some(key) = cursor.key()
        {
            self.push(key);
            cursor.step_key()?;
        }
        Ok(())
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns true if there is no place for another key.
    pub fn is_full(&self) -> bool {
        self.len() == BLOCK
    }

    /// Returns a key.
    pub fn key(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.unsorted = false;
    }
}

impl<T: Time> Cursor<T> {
    /// Looks up all keys of `block`, for [`Cursor::map_located`]. The keys' cache misses overlap,
    /// and so do the reads of their rows from a store. Does not move the cursor.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
    /// use windrow::{Antichain, Batcher, Cursor, KeyBlock, Order, Pool};
    ///
    /// # let numbers = |values: &[u64]| Arc::new(UInt64Array::from(values.to_vec())) as ArrayRef;
    /// # let changes = RecordBatch::try_from_iter([
    /// #     ("user", numbers(&[7, 7, 9])),
    /// #     ("time", numbers(&[0, 2, 1])),
    /// #     ("diff", Arc::new(Int64Array::from(vec![1, -1, 1])) as ArrayRef),
    /// # ])?;
    /// // Users 7 and 9.
    /// let layout = Order::by("user").time("time").diff("diff").bind(&changes.schema())?;
    /// let mut batcher = Batcher::new(&layout, &Pool::unlimited());
    /// batcher.push(&changes)?;
    /// let batch = batcher.seal(&Antichain::at(3))?;
    ///
    /// let (mut users, mut block) = (Cursor::new([&batch])?, KeyBlock::new());
    /// block.fill(&mut users)?;
    /// let mut cursor = Cursor::idle(&layout, [&batch])?;
    /// cursor.locate(&block);
    /// let mut seen = Vec::new();
    /// let found = cursor.map_located(&block, 1, |_, time, diff: i64| seen.push((time, diff)))?;
    /// assert!(found && seen == [(1, 1)]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn locate(&mut self, block: &KeyBlock) {
        let keys: SmallVec<[&[u8]; BLOCK]> = (0..block.len()).map(|at| block.key(at)).collect();
        self.hints.locate(&self.readers, &keys, !block.unsorted, &mut self.tested);
    }

    /// Calls `change` with every change of key `number` of `block`, the last located block, as
    /// [`Cursor::map_changes`] does. Returns false if the key is absent.
    ///
    /// # Errors As for [`Cursor::map_diffs`].
    ///
    /// # Panics
    /// If no block of so many keys was located.
    pub fn map_located<D: Diff>(
        &mut self,
        block: &KeyBlock,
        number: usize,
        change: impl FnMut(&[u8], T, D),
    ) -> Result<bool> {
        let (key, hints) = (block.key(number), std::mem::take(&mut self.hints));
        let found = self.go_to_spots(&hints, number, key);
        self.hints = hints;
        if !found? {
            return Ok(false);
        }
        key.clone_into(&mut self.body);
        self.key_len = key.len();
        self.map_changes(change).map(|()| true)
    }

    /// Lets a spill thread of `pool` look the first 4,096 keys of `keys` up and read their rows, and
    /// call `wake` afterwards. Returns `None` if the threads are busy, or if there are none.
    pub fn read_ahead<K: Time>(
        mut self,
        mut keys: Cursor<K>,
        pool: &Pool,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Option<Arc<ReadAhead>> {
        let reads = move || {
            // The second look-ups meet the same error.
            let _failed = self.pass_over(&mut keys);
        };
        ReadAhead::start(pool, reads, wake)
    }

    /// Looks up the first keys of `keys`, and reads all their rows.
    fn pass_over<K: Time>(&mut self, keys: &mut Cursor<K>) -> Result<()> {
        keys.rewind_keys()?;
        let (mut block, mut passed) = (KeyBlock::new(), 0);
        while passed < MOST_AHEAD && keys.has_key() {
            block.fill(keys)?;
            self.locate(&block);
            let hints = std::mem::take(&mut self.hints);
            for number in 0..block.len() {
                let key = block.key(number);
                self.go_to_spots(&hints, number, key)?;
                for &(at, _) in &self.with_key {
                    self.readers[at].pass(key, |_, _| {})?;
                }
            }
            passed += block.len();
        }
        Ok(())
    }
}
