//! Cursors: the rows of settled batches by key, value and time, wherever their chunks are.
//!
//! ```text
//! batch  | a 1 | a 2 | c 1 |             key   a        c     d
//! batch  | a 2 | c 1 | d 5 |             value 1  2     1     5      each once, though several batches have it
//!                                        times of (a, 2): those of both batches
//! row = key | value | time | diff
//! ```
//! Keys and values are bytes that compare as the columns do. A cursor holds one chunk of each batch at a time, which it
//! reads when it gets there and lets go of when it leaves: a scan of any length takes no more memory than that. Of a key
//! that is looked up in a store it reads a part of the chunk.
//!
//! Invariant: of the readers, those with the current key stand at the current value, or at the first one behind it;
//! all others stand at a greater key or at their end, unless the cursor is scattered: then they stand anywhere.

mod changes;
mod heap;
mod probe;
mod reader;
mod taken;

use std::marker::PhantomData;

use crate::batch::{Batch, check_times};
use crate::chunk::time_width;
use crate::error::{Error, Result};
use crate::order::{Layout, Rule};
use crate::rows::{Rows, key_len};
use crate::time::{Diff, Time};
use heap::Heap;
use probe::Hash;
use reader::{Place, Reader};
pub use taken::TakenRows;

/// Goes through the changes of some batches, or looks keys up in them.
///
/// Moves can fail: a chunk that has left memory is read back. After an error the cursor is at no key; seek or rewind
/// it to go on.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
/// use windrow::{Antichain, Batcher, Cursor, Order, Pool, RowEncoder};
///
/// # let numbers = |values: &[u64]| Arc::new(UInt64Array::from(values.to_vec())) as ArrayRef;
/// # let changes = RecordBatch::try_from_iter([
/// #     ("user", numbers(&[7, 7, 9])),
/// #     ("item", numbers(&[1, 1, 4])),
/// #     ("time", numbers(&[0, 2, 1])),
/// #     ("diff", Arc::new(Int64Array::from(vec![1, -1, 1])) as ArrayRef),
/// # ])?;
/// # let users = RecordBatch::try_from_iter([("user", numbers(&[7, 8]))])?;
/// let layout = Order::by("user").time("time").diff("diff").bind(&changes.schema())?;
/// let mut batcher = Batcher::new(&layout, &Pool::unlimited());
/// batcher.push(&changes)?;
/// let batch = batcher.seal(&Antichain::at(3))?;
///
/// let mut cursor = Cursor::new([&batch])?;
/// let mut sums = Vec::new();
/// cursor.probe(&RowEncoder::of_keys(&layout).encode(&users)?, |user, cursor| {
///     while cursor.has_value() {
///         let mut sum = 0;
///         cursor.map_times(|_time, diff| sum += diff)?;
///         sums.push((user, sum));
///         cursor.step_value()?;
///     }
///     Ok(())
/// })?;
/// assert_eq!(sums, [(0, 0)]); // user 7 had an item and gave it back; there is no user 8
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Cursor<T = u64> {
    layout: Layout,
    time_width: usize,
    readers: Vec<Reader>,
    heap: Heap,
    /// The key, and the value behind it.
    body: Vec<u8>,
    key_len: usize,
    /// The readers with the key, and where they have its first value.
    with_key: Vec<(usize, Place)>,
    /// Those of them with the value.
    with_value: Vec<usize>,
    /// Readers without the key may stand anywhere: it was looked up, and not gone to.
    scattered: bool,
    /// What is looked for, or shown.
    wanted: Vec<u8>,
    times: PhantomData<T>,
}

impl<T: Time> Cursor<T> {
    /// At the first key of `batches`, all of which are of one layout, with diffs. They stay as they are; their chunks
    /// live as long as the cursor. Costs a look at every chunk, of which none is read but the first of each batch.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if there is no batch, or one that is not settled (see [`Batch::settle`]), or if the
    /// layout has no diffs; [`Error::SchemaMismatch`] if they are of several layouts; what reading a chunk reports.
    pub fn new<'a>(batches: impl IntoIterator<Item = &'a Batch<T>>) -> Result<Self>
    where
        T: 'a,
    {
        let mut batches = batches.into_iter().peekable();
        let Some(layout) = batches.peek().map(|batch| batch.layout().clone()) else {
            return Err(Error::InvalidOrder("a cursor needs a batch".into()));
        };
        Self::of(&layout, batches)
    }

    /// As [`Cursor::new`], of any number of batches of `layout`.
    pub(crate) fn of<'a>(
        layout: &Layout,
        batches: impl Iterator<Item = &'a Batch<T>>,
    ) -> Result<Self>
    where
        T: 'a,
    {
        let mut cursor = Self::idle(layout, batches)?;
        cursor.rewind_keys()?;
        Ok(cursor)
    }

    /// As [`Cursor::new`], of any number of batches of `layout`, at no key, having read nothing: for
    /// [`Cursor::find_key`] and [`Cursor::probe`].
    ///
    /// # Errors
    /// As [`Cursor::new`], but that there may be no batch.
    pub fn idle<'a>(
        layout: &Layout,
        batches: impl IntoIterator<Item = &'a Batch<T>>,
    ) -> Result<Self>
    where
        T: 'a,
    {
        if layout.rule() != Rule::Sum {
            return Err(Error::InvalidOrder("a cursor needs an order with diffs".into()));
        }
        if layout.time().is_some() {
            check_times::<T>(layout)?;
        }
        let mut readers = Vec::new();
        for batch in batches {
            layout.check_same(batch.layout())?;
            readers.extend(batch.settled_run()?.map(|run| Reader::new(layout, run)));
        }
        Ok(Self {
            time_width: time_width(layout),
            layout: layout.clone(),
            readers,
            heap: Heap::default(),
            body: Vec::new(),
            key_len: 0,
            with_key: Vec::new(),
            with_value: Vec::new(),
            scattered: true,
            wanted: Vec::new(),
            times: PhantomData,
        })
    }

    /// The layout of the rows.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// True unless the cursor is behind the last key.
    pub fn has_key(&self) -> bool {
        !self.with_key.is_empty()
    }

    /// True unless the cursor is behind the last value of its key.
    pub fn has_value(&self) -> bool {
        !self.with_value.is_empty()
    }

    /// The key; none behind the last one.
    pub fn key(&self) -> Option<&[u8]> {
        self.has_key().then(|| &self.body[..self.key_len])
    }

    /// The value; none behind the last one of the key.
    pub fn value(&self) -> Option<&[u8]> {
        self.has_value().then(|| &self.body[self.key_len..])
    }

    /// A row with the key and the value, the first one of those with its least time in a batch; for
    /// [`Decoder::decode_rows`](crate::Decoder::decode_rows). Costs a copy of it.
    pub fn row(&mut self) -> Option<&[u8]> {
        let Self { readers, with_value, wanted, .. } = self;
        let reader = &readers[*with_value.first()?];
        wanted.clear();
        wanted.extend_from_slice(reader.body());
        wanted.extend_from_slice(reader.end());
        Some(wanted)
    }

    /// Goes to the next key.
    ///
    /// # Errors
    /// What reading a chunk reports.
    pub fn step_key(&mut self) -> Result<()> {
        let key = &self.body[..self.key_len];
        let with_key = std::mem::take(&mut self.with_key);
        self.with_value.clear();
        if with_key.is_empty() {
            return Ok(());
        }
        if self.scattered {
            let behind = |row: &[u8]| row < key || row.starts_with(key);
            self.readers.iter_mut().try_for_each(|reader| reader.seek(behind))?;
            self.gather();
            return Ok(());
        }
        for &(at, _) in &with_key {
            self.readers[at].skip(|row| row.starts_with(key))?;
        }
        self.with_key = with_key;
        self.heap.go_on(&self.readers);
        self.take_key();
        Ok(())
    }

    /// Goes to the first key that is not less than `key`, forwards or backwards. The bytes may be a key, or its
    /// first columns alone.
    ///
    /// # Errors
    /// What reading a chunk reports.
    pub fn seek_key(&mut self, key: &[u8]) -> Result<()> {
        self.with_key.clear();
        self.with_value.clear();
        for reader in &mut self.readers {
            reader.seek(|row| row < key)?;
        }
        self.gather();
        Ok(())
    }

    /// Goes to `key`, all of its columns; if it is not there, false, and the cursor is at no key. Where batches have
    /// [filters](Batch::filtered), as those in a [`Spine`](crate::Spine) have, that a key is not there is nearly
    /// always found out without a look at their rows.
    ///
    /// # Errors
    /// What reading a chunk reports.
    pub fn find_key(&mut self, key: &[u8]) -> Result<bool> {
        self.leave_keys();
        let mut hash = Hash::default();
        let Self { readers, with_key, .. } = self;
        for (at, reader) in readers.iter_mut().enumerate() {
            match reader.find(key, &mut hash) {
                Ok(true) => with_key.push((at, reader.place())),
                Ok(false) => {}
                Err(error) => {
                    with_key.clear();
                    return Err(error);
                }
            }
        }
        Ok(self.take_found(key))
    }

    /// Is at no key, and readers may stand anywhere from now on.
    fn leave_keys(&mut self) {
        self.with_key.clear();
        self.with_value.clear();
        self.scattered = true;
    }

    /// Is at `key`, which the readers have that are noted; false if there are none.
    fn take_found(&mut self, key: &[u8]) -> bool {
        let Self { readers, body, with_key, with_value, .. } = self;
        if with_key.is_empty() {
            return false;
        }
        body.clear();
        self.key_len = key.len();
        match &with_key[..] {
            // Nearly always: it is at the first value that there is.
            &[(at, _)] => {
                body.extend_from_slice(readers[at].body());
                with_value.push(at);
            }
            _ => {
                body.extend_from_slice(key);
                self.find_value();
            }
        }
        true
    }

    /// Goes to the first key.
    ///
    /// # Errors
    /// What reading a chunk reports.
    pub fn rewind_keys(&mut self) -> Result<()> {
        self.with_key.clear();
        self.with_value.clear();
        self.readers.iter_mut().try_for_each(|reader| reader.go_to(Place::default()))?;
        self.gather();
        Ok(())
    }

    /// Goes to the next value of the key; behind the last one there is none.
    ///
    /// # Errors
    /// What reading a chunk reports.
    pub fn step_value(&mut self) -> Result<()> {
        let Self { readers, body, with_value, .. } = self;
        for at in std::mem::take(with_value) {
            readers[at].skip(|row| row.starts_with(body))?;
        }
        self.find_value();
        Ok(())
    }

    /// Goes to the first value of the key that is not less than `value`, forwards or backwards.
    ///
    /// # Errors
    /// What reading a chunk reports.
    pub fn seek_value(&mut self, value: &[u8]) -> Result<()> {
        self.with_value.clear();
        self.wanted.clear();
        self.wanted.extend_from_slice(&self.body[..self.key_len]);
        self.wanted.extend_from_slice(value);
        let Self { readers, with_key, wanted, .. } = self;
        for &(at, _) in &*with_key {
            readers[at].seek(|row| row < &wanted[..])?;
        }
        self.find_value();
        Ok(())
    }

    /// Goes to the first value of the key.
    ///
    /// # Errors
    /// What reading a chunk reports.
    pub fn rewind_values(&mut self) -> Result<()> {
        self.with_value.clear();
        for &(at, place) in &self.with_key {
            self.readers[at].go_to(place)?;
        }
        self.find_value();
        Ok(())
    }

    /// Calls `change` with the time and the diff of every change of the key and the value, batch by batch, and
    /// ascending by their code within each. Without a time column the time is [`Time::least`]. The cursor stays where
    /// it is.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the order has several diffs; what reading a chunk reports.
    pub fn map_times(&mut self, change: impl FnMut(T, i64)) -> Result<()> {
        self.map_diffs(change)
    }

    /// As [`Cursor::map_times`], of diffs of any number of lanes.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the order has more or fewer diffs than `D` has lanes; what reading a chunk reports.
    pub fn map_diffs<D: Diff>(&mut self, mut change: impl FnMut(T, D)) -> Result<()> {
        self.check_lanes::<D>()?;
        self.visit_times(|time, diff| change(time, D::decode(diff)))
    }

    /// An error unless diffs are read as what they are.
    fn check_lanes<D: Diff>(&self) -> Result<()> {
        let lanes = self.layout.tail().lanes();
        if lanes == D::LANES {
            return Ok(());
        }
        let message = format!("an order with {lanes} diffs is read as one with {}", D::LANES);
        Err(Error::InvalidOrder(message))
    }

    /// Calls `change` with the time and the lanes of the diff of every change of the key and the value.
    fn visit_times(&mut self, change: impl FnMut(T, &[u8])) -> Result<()> {
        let mapped = self.try_visit(change);
        if mapped.is_err() {
            self.with_key.clear();
            self.with_value.clear();
        }
        mapped
    }

    fn try_visit(&mut self, mut change: impl FnMut(T, &[u8])) -> Result<()> {
        let (width, body) = (self.time_width, &self.body[..]);
        let mut change = |end: &[u8]| {
            let (time, diff) = time_and_diff(end, width);
            change(time, diff);
        };
        for &at in &self.with_value {
            let reader = &mut self.readers[at];
            let Some(next) = reader.each_in_held(body, &mut change) else { continue };
            let place = reader.place();
            reader.go_to(next)?;
            while reader.row().is_some_and(|row| row.starts_with(body)) {
                change(reader.end());
                reader.step()?;
            }
            reader.go_to(place)?;
        }
        Ok(())
    }

    /// Looks up many keys, which [`RowEncoder::of_keys`](crate::RowEncoder::of_keys) has made, and calls `found` with
    /// the number of each that is there; the cursor is at its first value then, and may be moved. Keys that
    /// ascend are found in one pass, from each to the next; others are found as well. See [`Cursor::find_key`].
    ///
    /// # Errors
    /// What reading a chunk reports, and whatever `found` does.
    pub fn probe(
        &mut self,
        keys: &Rows,
        found: impl FnMut(usize, &mut Self) -> Result<()>,
    ) -> Result<()> {
        self.probe_each(keys.iter(), found)
    }

    /// Takes the least key, all readers having been moved.
    fn gather(&mut self) {
        self.scattered = false;
        self.heap.build(&self.readers);
        self.take_key();
    }

    /// Takes the least key that a reader stands at.
    fn take_key(&mut self) {
        let Self { layout, readers, heap, body, with_key, .. } = self;
        with_key.clear();
        self.with_value.clear();
        let Some(least) = heap.least(readers) else { return };
        let key = &least[..key_len(layout, least)];
        body.clear();
        body.extend_from_slice(key);
        self.key_len = key.len();
        let found = heap.starting_with(body, readers);
        with_key.extend(found.map(|at| (at, readers[at].place())));
        with_key.sort_unstable_by_key(|&(at, _)| at);
        self.find_value();
    }

    /// Takes the least value that a reader with the key stands at.
    fn find_value(&mut self) {
        let Self { readers, body, with_key, with_value, .. } = self;
        body.truncate(self.key_len);
        if let &[(at, _)] = &with_key[..] {
            let row = readers[at].body();
            if row.starts_with(body) && readers[at].row().is_some() {
                body.extend_from_slice(&row[self.key_len..]);
                with_value.push(at);
            }
            return;
        }
        let at_rows = with_key.iter().filter(|&&(at, _)| readers[at].row().is_some());
        let rows = at_rows.map(|&(at, _)| readers[at].body());
        let Some(least) = rows.filter(|row| row.starts_with(body)).min() else { return };
        body.extend_from_slice(&least[self.key_len..]);
        let has = |at: &usize| readers[*at].row().is_some_and(|row| row.starts_with(body));
        with_value.extend(with_key.iter().map(|&(at, _)| at).filter(has));
    }
}

/// What a row ends with: its time, of so many bytes, and its diffs.
#[inline(always)]
fn time_and_diff<T: Time>(end: &[u8], width: usize) -> (T, &[u8]) {
    let (time, diff) = end.split_at(width);
    (if width == 0 { T::least() } else { T::decode(time) }, diff)
}

impl<T> std::fmt::Debug for Cursor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Cursor");
        out.field("order", &self.layout.order()).field("batches", &self.readers.len());
        out.finish_non_exhaustive()
    }
}
