//! Cursors: the changes of batches by key, value and time, wherever the chunks are.
//!
//! ```text
//! batch  | a 1 | a 2 | c 1 |             key   a        c     d
//! batch  | a 2 | c 1 | d 5 |             value 1  2     1     5      each once, even if in both
//!                                        times of (a, 2): from both batches
//! row = key | value | time | diff
//! ```
//! Keys and values are bytes that compare as the columns do. A cursor holds one chunk of each batch
//! at a time: moves read chunks on arrival and release them afterwards, so a scan of any length
//! takes constant memory. A look-up in a store reads only part of a chunk.
//!
//! Invariant: readers with the current key are at the current value or at the next value after it.
//! All other readers are at a greater key or at their end, unless the cursor is scattered: then
//! their positions are arbitrary.

mod ahead;
mod back;
mod block;
mod changes;
mod hash;
mod heap;
mod hints;
mod probe;
mod reader;
mod taken;

use std::marker::PhantomData;

pub use ahead::ReadAhead;
pub use block::KeyBlock;
pub use hash::FilterTests;

use crate::batch::{Batch, check_times};
use crate::chunk::{begins, time_width};
use hash::Hash;
use heap::Heap;
use hints::Hints;
use reader::{Place, Reader};
pub use taken::TakenRows;
use windrow_rows::{Diff, Error, Layout, Result, Rows, Rule, Time, key_len};

/// Iterates over the changes of batches, or looks up keys in them.
///
/// Moves can fail, since a spilled chunk must be read back. After an error the cursor has no key;
/// seek or rewind to continue.
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
    /// The key, then the value.
    body: Vec<u8>,
    key_len: usize,
    /// Readers with the key, each with the position of the key's first value.
    with_key: Vec<(usize, Place)>,
    /// Readers with the value.
    with_value: Vec<usize>,
    /// Whether readers without the key have arbitrary positions, because the key was looked up.
    scattered: bool,
    /// Whether look-ups end with the last batch that has the key.
    pub(crate) last_only: bool,
    /// Of the last block of keys.
    hints: Hints,
    tested: FilterTests,
    /// Probe key, or row to return.
    wanted: Vec<u8>,
    times: PhantomData<T>,
}

impl<T: Time> Cursor<T> {
    /// Returns a cursor at the first key of `batches`, which share one layout with diffs. The
    /// cursor keeps their chunks alive. Reads the metadata of every chunk, and the first chunk of
    /// each batch.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if there is no batch, if a batch has several runs (see
    /// [`Batch::settle`]), or if the layout has no diffs; [`Error::SchemaMismatch`] if layouts
    /// differ; errors of reading a chunk.
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

    /// Does the same as [`Cursor::new`] for any number of batches of `layout`.
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

    /// Returns a cursor without a key on any number of batches of `layout`, without reading chunks:
    /// for [`Cursor::find_key`] and [`Cursor::probe`].
    ///
    /// # Errors As for [`Cursor::new`], except that `batches` may be empty.
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
            last_only: false,
            hints: Hints::default(),
            tested: FilterTests::default(),
            wanted: Vec::new(),
            times: PhantomData,
        })
    }

    /// Returns the layout of the rows.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns how many filters look-ups of this cursor tested.
    pub fn filter_tests(&self) -> FilterTests {
        self.tested
    }

    /// Returns true unless the cursor is after the last key.
    pub fn has_key(&self) -> bool {
        !self.with_key.is_empty()
    }

    /// Returns true unless the cursor is after the last value of its key.
    pub fn has_value(&self) -> bool {
        !self.with_value.is_empty()
    }

    /// Returns the key, or `None` after the last one.
    pub fn key(&self) -> Option<&[u8]> {
        self.has_key().then(|| &self.body[..self.key_len])
    }

    /// Returns the value, or `None` after the last one of the key.
    pub fn value(&self) -> Option<&[u8]> {
        self.has_value().then(|| &self.body[self.key_len..])
    }

    /// Returns a row with the key and the value, the first such row of one batch, with its least
    /// time there; for [`Decoder::decode_rows`](crate::Decoder::decode_rows). Copies the row.
    pub fn row(&mut self) -> Option<&[u8]> {
        let Self { readers, with_value, wanted, .. } = self;
        let reader = &readers[*with_value.first()?];
        reader.body().clone_into(wanted);
        wanted.extend_from_slice(reader.end());
        Some(wanted)
    }

    /// Moves to the next key.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn step_key(&mut self) -> Result<()> {
        let key = &self.body[..self.key_len];
        let with_key = std::mem::take(&mut self.with_key);
        self.with_value.clear();
        if with_key.is_empty() {
            return Ok(());
        }
        if self.scattered {
            let behind = |row: &[u8]| row < key || begins(row, key);
            self.readers.iter_mut().try_for_each(|reader| reader.seek(behind))?;
            self.gather();
            return Ok(());
        }
        for &(at, _) in &with_key {
            self.readers[at].skip(|row| begins(row, key))?;
        }
        self.with_key = with_key;
        self.heap.go_on(&self.readers);
        self.take_key();
        Ok(())
    }

    /// Moves to the first key that is not less than `key`, forwards or backwards. `key` may be a
    /// prefix of the key columns.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn seek_key(&mut self, key: &[u8]) -> Result<()> {
        self.with_key.clear();
        self.with_value.clear();
        for reader in &mut self.readers {
            reader.seek(|row| row < key)?;
        }
        self.gather();
        Ok(())
    }

    /// Moves to `key`, which has all key columns. Returns false if the key is absent; the cursor
    /// then has no key. If batches have [filters](Batch::filtered), as in a
    /// [`Spine`](crate::Spine), most absent keys are detected without reading rows.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn find_key(&mut self, key: &[u8]) -> Result<bool> {
        self.leave_keys();
        let mut hash = Hash::default();
        let Self { readers, with_key, tested, .. } = self;
        for (at, reader) in readers.iter_mut().enumerate() {
            match reader.find(key, &mut hash, tested) {
                Ok(true) => with_key.push((at, reader.place)),
                Ok(false) => {}
                Err(error) => {
                    with_key.clear();
                    return Err(error);
                }
            }
        }
        Ok(self.take_found(key))
    }

    /// Leaves the key; readers may have arbitrary positions from now on.
    fn leave_keys(&mut self) {
        self.with_key.clear();
        self.with_value.clear();
        self.scattered = true;
    }

    /// Moves to `key`, the key of the readers in `with_key`; false if there are no such readers.
    fn take_found(&mut self, key: &[u8]) -> bool {
        let Self { readers, body, with_key, with_value, .. } = self;
        if with_key.is_empty() {
            return false;
        }
        body.clear();
        self.key_len = key.len();
        match &with_key[..] {
            // The common case: the reader is at the first value.
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

    /// Moves to the first key.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn rewind_keys(&mut self) -> Result<()> {
        self.with_key.clear();
        self.with_value.clear();
        self.readers.iter_mut().try_for_each(|reader| reader.go_to(Place::default()))?;
        self.gather();
        Ok(())
    }

    /// Moves to the next value of the key, or after the last one.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn step_value(&mut self) -> Result<()> {
        let Self { readers, body, with_value, .. } = self;
        let moved =
            with_value.drain(..).try_for_each(|at| readers[at].skip(|row| begins(row, body)));
        self.take_value(moved)
    }

    /// Moves to the first value of the key that is not less than `value`, forwards or backwards.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn seek_value(&mut self, value: &[u8]) -> Result<()> {
        self.with_value.clear();
        self.want(self.key_len, value);
        let Self { readers, with_key, wanted, .. } = self;
        let moved =
            with_key.iter().try_for_each(|&(at, _)| readers[at].seek(|row| row < &wanted[..]));
        self.take_value(moved)
    }

    /// Moves to the first value of the key.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn rewind_values(&mut self) -> Result<()> {
        self.with_value.clear();
        let Self { readers, with_key, .. } = self;
        let moved = with_key.iter().try_for_each(|&(at, place)| readers[at].go_to(place));
        self.take_value(moved)
    }

    /// Calls `change` with the time and the diff of every change of the key and the value: batch by
    /// batch, in the order of the time codes within a batch. Without a time column the time is
    /// [`Time::least`]. The cursor does not move.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the order has several diffs; errors of reading a chunk.
    pub fn map_times(&mut self, change: impl FnMut(T, i64)) -> Result<()> {
        self.map_diffs(change)
    }

    /// Does the same as [`Cursor::map_times`] for diffs of any number of lanes.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the order's number of diffs is not the number of lanes of `D`;
    /// errors of reading a chunk.
    pub fn map_diffs<D: Diff>(&mut self, mut change: impl FnMut(T, D)) -> Result<()> {
        self.check_lanes::<D>()?;
        self.visit_times(|time, diff| change(time, D::decode(diff)))
    }

    /// Fails unless `D` has as many lanes as the layout.
    fn check_lanes<D: Diff>(&self) -> Result<()> {
        let lanes = self.layout.tail().lanes();
        if lanes == D::LANES {
            return Ok(());
        }
        let message = format!("an order with {lanes} diffs is read as one with {}", D::LANES);
        Err(Error::InvalidOrder(message))
    }

    /// Calls `change` with the time and the lanes of the diff of every change of the key and the
    /// value.
    fn visit_times(&mut self, change: impl FnMut(T, &[u8])) -> Result<()> {
        let mapped = self.try_visit(change);
        self.or_nowhere(mapped)
    }

    /// Leaves key and value if `done` is an error.
    fn or_nowhere<R>(&mut self, done: Result<R>) -> Result<R> {
        if done.is_err() {
            self.leave_keys();
            self.key_len = 0;
        }
        done
    }

    /// Moves to the least value of the readers, all of which `moved` within the key.
    fn take_value(&mut self, moved: Result<()>) -> Result<()> {
        self.or_nowhere(moved)?;
        self.find_value();
        Ok(())
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
            let place = reader.place;
            reader.go_to(next)?;
            while reader.is_at(body) {
                change(reader.end());
                reader.step()?;
            }
            reader.go_to(place)?;
        }
        Ok(())
    }

    /// Looks up many keys, encoded by [`RowEncoder::of_keys`](crate::RowEncoder::of_keys), and
    /// calls `found` with the number of each key that is present. The cursor is then at the key's
    /// first value, and `found` may move it. Ascending keys are found in one pass; any other order
    /// works, too. See [`Cursor::find_key`].
    ///
    /// # Errors
    /// Errors of reading a chunk and of `found`.
    pub fn probe(
        &mut self,
        keys: &Rows,
        found: impl FnMut(usize, &mut Self) -> Result<()>,
    ) -> Result<()> {
        self.probe_each(keys.iter(), found)
    }

    /// Rebuilds the heap after all readers moved, and moves to the least key.
    fn gather(&mut self) {
        self.scattered = false;
        self.heap.build(&self.readers);
        self.take_key();
    }

    /// Moves to the least key of all readers.
    fn take_key(&mut self) {
        let Self { layout, readers, heap, body, with_key, .. } = self;
        with_key.clear();
        self.with_value.clear();
        let Some(least) = heap.least(readers) else { return };
        let key = &least[..key_len(layout, least)];
        key.clone_into(body);
        self.key_len = key.len();
        let found = heap.starting_with(body, readers);
        with_key.extend(found.map(|at| (at, readers[at].place)));
        with_key.sort_unstable_by_key(|&(at, _)| at);
        self.find_value();
    }

    /// Moves to the least value of the readers with the key.
    fn find_value(&mut self) {
        let Self { readers, body, with_key, with_value, .. } = self;
        body.truncate(self.key_len);
        if let &[(at, _)] = &with_key[..] {
            let row = readers[at].body();
            if begins(row, body) && readers[at].row().is_some() {
                body.extend_from_slice(&row[self.key_len..]);
                with_value.push(at);
            }
            return;
        }
        let at_rows = with_key.iter().filter(|&&(at, _)| readers[at].row().is_some());
        let rows = at_rows.map(|&(at, _)| readers[at].body());
        let Some(least) = rows.filter(|row| begins(row, body)).min() else { return };
        body.extend_from_slice(&least[self.key_len..]);
        with_value.extend(with_key.iter().map(|&(at, _)| at).filter(|&at| readers[at].is_at(body)));
    }
}

/// Splits the end of a row into its time, of `width` bytes, and its diffs.
#[inline(always)]
fn time_and_diff<T: Time>(end: &[u8], width: usize) -> (T, &[u8]) {
    let (time, diff) = end.split_at(width);
    (if width == 0 { T::least() } else { T::decode(time) }, diff)
}

shown!(Cursor<T>, it => order: it.layout.order(), batches: it.readers.len());
