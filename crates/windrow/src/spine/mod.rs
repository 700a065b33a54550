//! The spine: an index of batches that are consecutive in time, readable while they are merged.
//!
//! ```text
//! times   0 ............... 40 ........ 52 .... 58 .. 60 61     insert: after the others
//! batches |     level 3      | level 2   | 2 -> merging |  0 |
//!                                        \______ readable until the merge ends
//! ```
//! The level of a batch follows from its bytes; each level is [four times](levels::FAN_IN) as large
//! as the level below. Four neighbours of a level are merged into one batch of the next level, so a
//! change is merged about once per level, and each level has at most three batches that do not wait
//! for a merge. Merges proceed in slices, done by [`Spine::insert`] and [`Spine::work`] or by
//! threads ([`Mergers`]). Cursors read the inputs of a running merge, and the finished part of its
//! output in place of the inputs merged into it.
//!
//! Invariant: batches are consecutive: the upper frontier of each is the lower frontier of the
//! next. Their changes equal the inserted changes, as seen from [`Spine::since`]. A failed merge
//! leaves its inputs as they were.
//!
//! A spine is an index, not a log: its contents are gone when the process ends. With the feature
//! `ipc`, a spine can be saved as a whole and opened again.

mod compaction;
mod levels;
mod merge;
mod mergers;
#[cfg(feature = "ipc")]
mod saved;
mod slot;
mod sync;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::batch::{Batch, Merging, check_times};
use crate::cursor::Cursor;
use crate::merge::Retain;
#[cfg(test)]
pub(crate) use levels::MERGES_A_LEVEL;
use levels::{Standing, group, level_of};
use merge::{Job, Merge, Merged};
pub use mergers::Mergers;
use mergers::Queue;
use windrow_pool::{Lease, Pool};
use windrow_rows::{Antichain, Error, Layout, Result, Rule, Time};

/// With more batches, an insert finishes merges before it returns, whatever its fuel.
const MOST_BATCHES: usize = 64;

/// An insert waits for a running merge only if more bytes than this were inserted after it: a
/// smaller merge takes less time than the wait.
const LEAST_BEHIND: u64 = 1 << 20;

/// One part in `BESIDE_PART` of a limit, at most `MOST_BESIDE` bytes, is reserved for memory of
/// merges and look-ups outside chunks, and for free memory that the allocator retains: some 3 MiB
/// of 32 were resident and not leased.
const BESIDE_PART: usize = 6;
const MOST_BESIDE: usize = 6 << 20;

/// Where the newest change of a key replaces all before, the oldest batch is merged again once
/// newer batches have replaced more than one part in `REPLACED_PART` of its bytes. An insert waits
/// if that part is larger and the merge cannot begin, or if so much was replaced since it began.
const REPLACED_PART: u64 = 8;
const MOST_REPLACED_PART: u64 = 6;
const MOST_BEHIND_PART: u64 = 12;

/// Fuel of an insert per row and level: the cost of the merges of one level, and the same again to
/// catch up.
const FUEL_A_LEVEL: i64 = 2;

/// Number of levels of batches of less than 16 KiB.
const SMALL_LEVELS: i64 = 4;

/// An index of changes: accepts batches, merges them in slices, and can be read at any time.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
/// use windrow::{Antichain, Batcher, Order, Pool, Spine};
///
/// # let changes = |user: u64, time: u64, diff: i64| {
/// #     let numbers = |value: u64| Arc::new(UInt64Array::from(vec![value])) as ArrayRef;
/// #     let diffs = Arc::new(Int64Array::from(vec![diff])) as ArrayRef;
/// #     RecordBatch::try_from_iter([("user", numbers(user)), ("time", numbers(time)), ("diff", diffs)]).unwrap()
/// # };
/// let layout = Order::by("user").time("time").diff("diff").bind(&changes(0, 0, 0).schema())?;
/// let pool = Pool::unlimited();
/// let (mut batcher, mut spine) = (Batcher::new(&layout, &pool), Spine::new(&layout, &pool)?);
/// for time in 0..100 {
///     batcher.push(&changes(time % 10, time, 1))?;
///     spine.insert(batcher.seal(&Antichain::at(time + 1))?)?;
/// }
/// spine.set_since(&Antichain::at(100))?; // nobody asks for the past any more
///
/// let mut cursor = spine.cursor()?;
/// let mut users = 0;
/// while cursor.has_key() {
///     let mut count = 0;
///     cursor.map_times(|_time, diff| count += diff)?;
///     assert_eq!(count, 10);
///     users += 1;
///     cursor.step_key()?;
/// }
/// assert_eq!(users, 10);
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Spine<T = u64> {
    layout: Layout,
    pool: Pool,
    /// Oldest first.
    entries: Vec<Entry<T>>,
    upper: Antichain<T>,
    since: Antichain<T>,
    distinguish: Antichain<T>,
    /// Whether the newest change of a key replaces all before, in place of sums.
    newest: bool,
    /// The rows that merges keep.
    retain: Option<Retain>,
    work: SpineWork,
    /// Whether all batches are to be merged into one.
    compacts: bool,
    /// Queue of the merging threads, if any.
    queue: Option<Arc<Queue>>,
    #[cfg(feature = "ipc")]
    last_save: std::sync::Mutex<saved::LastSave>,
    /// Reserve for memory of merges and look-ups outside chunks, and for the allocator.
    _beside: Option<Lease>,
}

/// Counters of a spine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpineWork {
    /// Number of rows in inserted batches.
    pub inserted: u64,
    /// Fuel consumed by merges, one unit per input row.
    pub merged: u64,
    /// Number of finished merges.
    pub merges: u64,
    /// Number of rows in the outputs of finished merges.
    pub written: u64,
    /// Number of rows that finished merges dropped by [`Spine::set_retain`]. The other rows that
    /// were merged and not written were added to equal rows.
    pub dropped: u64,
    /// Time of finished merges, of all threads, in nanoseconds.
    pub nanoseconds: u64,
}

/// A batch, or the inputs of a running merge.
struct Entry<T> {
    /// One, unless they are merged.
    batches: Vec<Batch<T>>,
    /// An identifier for each of the batches. While inputs of a merge are replaced by parts of its
    /// output, saved inputs keep theirs.
    ids: Vec<u64>,
    size: Size,
    merge: Option<Arc<Merge<T>>>,
}

/// Bytes of rows.
#[derive(Clone, Copy, Default)]
struct Size {
    bytes: u64,
    /// The part that replaces rows of the oldest batch, about, if newer rows do.
    replacing: u64,
}

/// Returns an identifier of a batch.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<T: Time> Entry<T> {
    /// Visits every chunk to count the bytes; the entry keeps the count.
    fn of(batch: Batch<T>) -> Self {
        let size = Size { bytes: batch.bytes().unwrap_or(0), replacing: 0 };
        Self { batches: vec![batch], ids: vec![next_id()], size, merge: None }
    }
}

impl<T: Time> Spine<T> {
    /// Creates a spine for changes of `layout`, whose merges take memory from `pool`.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the layout has no times or no diffs, [`Error::UnsupportedColumn`]
    /// if its times are not `T`.
    pub fn new(layout: &Layout, pool: &Pool) -> Result<Self> {
        if layout.rule() != Rule::Sum {
            return Err(Error::InvalidOrder("a spine needs an order with diffs".into()));
        }
        check_times::<T>(layout)?;
        Ok(Self {
            layout: layout.clone(),
            pool: pool.for_index(),
            entries: Vec::new(),
            upper: Antichain::least(),
            since: Antichain::least(),
            distinguish: Antichain::new(),
            newest: false,
            retain: None,
            work: SpineWork::default(),
            compacts: false,
            queue: None,
            #[cfg(feature = "ipc")]
            last_save: std::sync::Mutex::default(),
            _beside: beside(pool),
        })
    }

    /// Lets the newest change of a key replace all before. At any time, a key has one change.
    pub(crate) fn keep_newest(mut self) -> Self {
        self.newest = true;
        (0..self.entries.len()).for_each(|at| self.count_replacing(at));
        self
    }

    /// Returns the layout of the rows.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the upper frontier: all changes inserted so far are before it.
    pub fn upper(&self) -> &Antichain<T> {
        &self.upper
    }

    /// Returns the frontier from which on times are exact: at any time at or beyond it, the sums of
    /// changes equal the sums of the inserted changes.
    pub fn since(&self) -> &Antichain<T> {
        &self.since
    }

    /// Returns the counters of the spine.
    pub fn work_done(&self) -> SpineWork {
        self.work
    }

    /// Returns the batches, oldest first, with the inputs of running merges in place of their
    /// outputs.
    pub fn batches(&self) -> impl Iterator<Item = &Batch<T>> {
        self.entries.iter().flat_map(|entry| &entry.batches)
    }

    /// Inserts a batch of changes from [`Spine::upper`] on, and merges a bounded number of rows per
    /// inserted row. Merging is unbounded only if more than 64 batches are present, or if the bytes
    /// inserted after a running merge exceed both its input and 1 MiB. With
    /// [threads](Spine::merge_on), the threads merge, and a call waits for them or helps only in
    /// these two cases.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the batch does not begin at the upper frontier or was read in
    /// part, [`Error::SchemaMismatch`] if the batch has another layout: the spine is unchanged.
    /// Errors of merging: the batch is inserted, and the next call retries the merges.
    pub fn insert(&mut self, batch: Batch<T>) -> Result<()> {
        self.layout.check_same(batch.layout())?;
        if batch.lower() != &self.upper {
            let (got, upper) = (batch.lower().elements(), self.upper.elements());
            return Err(Error::InvalidOrder(format!("a batch from {got:?} on behind {upper:?}")));
        }
        let batch = batch.settle()?;
        // Batches on disk get their filters from a merge.
        batch.make_filters(false)?;
        let rows = batch.rows().unwrap_or(0);
        let level = i64::from(level_of(batch.bytes().unwrap_or(0)));
        self.upper = batch.upper().clone();
        self.work.inserted += rows;
        self.push(batch);
        let mut fuel = match self.queue.as_ref().filter(|queue| !queue.is_closed()) {
            Some(_) => 0,
            None => {
                let rows = i64::try_from(rows).unwrap_or(i64::MAX);
                // The batch takes no part in the merges of levels below its own.
                let levels = self.levels() - level.min(SMALL_LEVELS);
                rows.saturating_mul(FUEL_A_LEVEL * levels)
            }
        };
        self.work(&mut fuel)?;
        while let Some(merge) = self.overdue() {
            if !merge.work(&mut i64::MAX.clone()) {
                // A thread works on the merge.
                merge.wait();
            }
            self.work(&mut 0)?;
        }
        while self.batches().count() > MOST_BATCHES {
            let before = self.work;
            let done = self.work(&mut i64::MAX.clone())?;
            match self.merges().next() {
                // A thread works on the merge.
                Some(merge) if !done => merge.wait(),
                // Readers need to distinguish all of the batches.
                _ if self.work == before => break,
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns a running merge after which more bytes were inserted than it has as input; or one
    /// for which the oldest batch waits, of which newer changes have replaced more than there is
    /// space for.
    fn overdue(&self) -> Option<Arc<Merge<T>>> {
        let (mut newer, mut oldest_merge) = (Size::default(), None);
        for (at, entry) in self.entries.iter().enumerate().rev() {
            let waiting = if entry.merge.is_some() { newer.bytes } else { 0 };
            oldest_merge = entry.merge.as_ref().or(oldest_merge);
            let part = if waiting > 0 { MOST_BEHIND_PART } else { MOST_REPLACED_PART };
            let bytes = entry.size.bytes;
            if waiting > LEAST_BEHIND.max(bytes)
                || at == 0 && newer.replacing > LEAST_BEHIND.max(bytes / part)
            {
                return oldest_merge.cloned();
            }
            newer.bytes += bytes;
            newer.replacing += entry.size.replacing;
        }
        None
    }

    /// Estimates how much of the oldest batch the batch at `at` replaces.
    fn count_replacing(&mut self, at: usize) {
        let Some((oldest, newer)) = self.entries.split_first_mut() else { return };
        if let (true, Some(at)) = (self.newest, at.checked_sub(1))
            && let Entry { batches, size, merge: None, .. } = &mut newer[at]
            && let (Some(batch), Some(oldest)) = (batches.first(), oldest.batches.first())
        {
            size.replacing = batch.bytes_also_in(oldest);
        }
    }

    /// Returns the running merges, the newest and smallest first.
    fn merges(&self) -> impl Iterator<Item = &Arc<Merge<T>>> {
        self.entries.iter().rev().filter_map(|entry| entry.merge.as_ref())
    }

    /// Moves merging, including running merges, to the threads of `mergers`. When the threads have
    /// ended, calls of the spine merge again.
    pub fn merge_on(&mut self, mergers: &Mergers) {
        for merge in self.merges() {
            mergers.queue.push(Arc::<Merge<T>>::downgrade(merge));
        }
        self.queue = Some(Arc::clone(&mergers.queue));
    }

    /// Appends a batch. An empty batch extends the last batch instead, unless readers need to
    /// distinguish the two.
    fn push(&mut self, batch: Batch<T>) {
        if let Some(Entry { batches, merge: None, .. }) = self.entries.last_mut()
            && let Some(last) = batches.last_mut()
            && batch.rows() == Some(0)
            && last.upper().before(&self.distinguish)
        {
            last.reach(batch.upper());
            return;
        }
        self.entries.push(Entry::of(batch));
        self.count_replacing(self.entries.len() - 1);
    }

    /// Returns the number of levels of the present bytes.
    pub(crate) fn levels(&self) -> i64 {
        let bytes: u64 = self.entries.iter().map(|entry| entry.size.bytes).sum();
        i64::from(level_of(bytes)) + 1
    }

    /// Merges until the fuel is used up, one unit per input row, and installs the outputs of
    /// threads. Returns true if no merge is left.
    ///
    /// # Errors
    /// Errors of merging; the inputs of a failed merge are as they were.
    pub fn work(&mut self, fuel: &mut i64) -> Result<bool> {
        loop {
            self.begin()?;
            if self.collect()? {
                continue;
            }
            if self.merges().next().is_none() {
                return Ok(true);
            }
            if *fuel <= 0 || !self.merges().any(|merge| merge.work(fuel)) {
                return Ok(false);
            }
        }
    }

    /// Replaces the inputs of each ended merge by its output. Returns true if a merge had ended.
    fn collect(&mut self) -> Result<bool> {
        let mut any = false;
        for at in 0..self.entries.len() {
            let is_saved = self.are_saved(&self.entries[at].ids);
            let Entry { batches, ids, merge: Some(merge), .. } = &mut self.entries[at] else {
                continue;
            };
            let Some(Merged { batch, spent }) = merge.outcome() else {
                // If the chunk at the boundary cannot be read, all inputs stay.
                if let Some(part) = merge.done()
                    && let Ok(Some(left)) = Batch::let_go(batches, &part)
                {
                    *batches = left;
                    if !is_saved {
                        ids.fill_with(next_id);
                    }
                }
                continue;
            };
            any = true;
            self.work.merged += spent.fuel;
            self.work.nanoseconds += spent.nanoseconds;
            match batch {
                Ok((batch, dropped)) => {
                    self.work.written += batch.rows().unwrap_or(0);
                    self.work.dropped += dropped;
                    self.entries[at] = Entry::of(batch);
                    self.count_replacing(at);
                    self.work.merges += 1;
                }
                Err(error) => {
                    let inputs = self.entries.remove(at).batches;
                    self.entries.splice(at..at, inputs.into_iter().map(Entry::of));
                    return Err(error);
                }
            }
        }
        Ok(any)
    }

    #[cfg(not(feature = "ipc"))]
    fn are_saved(&self, _ids: &[u64]) -> bool {
        false
    }

    /// Begins the merges that are due.
    fn begin(&mut self) -> Result<()> {
        loop {
            let is_past = |batch: &Batch<T>| batch.upper().before(&self.distinguish);
            let standing = |entry: &Entry<T>| match entry.merge {
                Some(_) => Standing::Merging(level_of(entry.size.bytes)),
                None if entry.batches.iter().all(is_past) => {
                    Standing::Batch(level_of(entry.size.bytes))
                }
                None => Standing::Apart,
            };
            let standing: Vec<Standing> = self.entries.iter().map(standing).collect();
            let range = match self.compacts {
                true => self.compaction(&standing),
                false => group(&standing).or_else(|| self.replacing(&standing)),
            };
            let Some(range) = range else { return Ok(()) };
            let all: Option<Vec<Batch<T>>> = self.entries[range.clone()]
                .iter()
                .flat_map(|entry| &entry.batches)
                .map(Batch::try_clone)
                .collect();
            // Always `Some`: inserted batches are settled.
            let Some(inputs) = all else { return Ok(()) };
            let merging = Merging::new(&self.layout, &self.pool, inputs).filtered();
            let merging = match self.since == Antichain::least() {
                true => merging,
                false if self.newest => merging.newest(&self.since)?,
                false => merging.advancing(&self.since)?,
            };
            let merging = match &self.retain {
                Some(retain) => merging.retaining(retain)?,
                None => merging,
            };
            let (mut batches, mut size, mut ids) = (Vec::new(), Size::default(), Vec::new());
            for entry in self.entries.drain(range.clone()) {
                size.bytes += entry.size.bytes;
                size.replacing += entry.size.replacing;
                ids.extend(entry.ids);
                batches.extend(entry.batches);
            }
            let rows = batches.iter().filter_map(Batch::rows).sum();
            let merge = Arc::new(Merge::new(merging, rows));
            if let Some(queue) = &self.queue {
                queue.push(Arc::<Merge<T>>::downgrade(&merge));
            }
            self.entries.insert(range.start, Entry { batches, ids, size, merge: Some(merge) });
        }
    }

    /// Returns the batches to merge next if newer changes have replaced much of the oldest batch.
    fn replacing(&self, standing: &[Standing]) -> Option<Range<usize>> {
        let oldest = self.entries.first().filter(|_| self.since != Antichain::least())?;
        let bytes = oldest.size.bytes;
        let is_batch = |at: &usize| matches!(standing[*at], Standing::Batch(_));
        let mut replaced = 0;
        // Small new batches stay apart: a merge holds a chunk of each of its inputs.
        let last = (0..standing.len()).take_while(is_batch).find(|&at| {
            replaced += self.entries[at].size.replacing;
            replaced > bytes / REPLACED_PART
        });
        Some(0..last? + 1)
    }

    /// Advances the `since` frontier. The caller promises to read only at times at or beyond
    /// `since`. Merges that begin afterwards advance earlier times to `since`, and consolidate
    /// changes that become equal.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the frontier goes back.
    pub fn set_since(&mut self, since: &Antichain<T>) -> Result<()> {
        go_on(&mut self.since, since)
    }

    /// Keeps batches separate whose upper frontier is not before `distinguish`, so that
    /// [`Spine::cursor_through`] can end at each of them. Without a call, all batches may be
    /// merged. The first call must precede the first insert and may name any frontier; later
    /// frontiers must not go back.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the frontier goes back.
    pub fn set_distinguish(&mut self, distinguish: &Antichain<T>) -> Result<()> {
        if self.distinguish.is_empty() && self.entries.is_empty() {
            self.distinguish = distinguish.clone();
            return Ok(());
        }
        go_on(&mut self.distinguish, distinguish)
    }

    /// Returns a cursor over all changes. The cursor keeps its batches alive and does not see later
    /// inserts.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn cursor(&self) -> Result<Cursor<T>> {
        Cursor::of(&self.layout, self.batches())
    }

    /// Returns a cursor as [`Spine::cursor`] does, without a current key: it has read nothing. For
    /// [`Cursor::find_key`] and [`Cursor::probe`].
    ///
    /// # Errors
    /// Errors as of [`Spine::cursor`].
    pub fn idle_cursor(&self) -> Result<Cursor<T>> {
        Cursor::idle(&self.layout, self.batches())
    }

    /// Returns a cursor over the changes before `upper`, or `None` if a batch has changes on both
    /// sides of `upper`.
    ///
    /// # Errors
    /// Errors of reading a chunk.
    pub fn cursor_through(&self, upper: &Antichain<T>) -> Result<Option<Cursor<T>>> {
        let within = |batch: &&Batch<T>| batch.upper().before(upper);
        if self.batches().any(|batch| !within(&batch) && !upper.before(batch.lower())) {
            return Ok(None);
        }
        Cursor::of(&self.layout, self.batches().filter(within)).map(Some)
    }
}

/// Leases the reserve for memory that is not accounted for, if there is a limit.
fn beside(pool: &Pool) -> Option<Lease> {
    let budget = pool.budget();
    let bytes = (budget.limit() / BESIDE_PART).min(MOST_BESIDE);
    if budget.is_limited() { budget.try_lease(bytes) } else { None }
}

/// Sets `frontier` to `to`, unless that would go back.
fn go_on<T: Time>(frontier: &mut Antichain<T>, to: &Antichain<T>) -> Result<()> {
    if !frontier.before(to) {
        let (from, to) = (frontier.elements(), to.elements());
        return Err(Error::InvalidOrder(format!("a frontier goes back from {from:?} to {to:?}")));
    }
    *frontier = to.clone();
    Ok(())
}

shown!(
    Spine<T: Time>,
    it => order: it.layout.order(), batches: it.batches().count(), upper: it.upper, since: it.since
);
