//! A spine: batches that follow each other in time, read while they are merged.
//!
//! ```text
//! times   0 ............... 40 ........ 52 .... 58 .. 60 61     insert: behind the others
//! batches |     level 3      | level 2   | 2 -> merging |  0 |
//!                                        \______ read until the merge is done
//! ```
//! Every batch has a level, by its bytes, each [four times](levels::FAN_IN) as large as the one below. Four neighbours of a
//! level are merged into one of the next, so a change is merged about once a level, and there are at most three batches a
//! level but for what waits. A merge is done piece by piece, by whoever inserts and whoever calls [`Spine::work`], or by
//! threads ([`Mergers`]); its inputs are read until it ends, and what is done of it in place of what it was made of.
//!
//! Invariant: the batches follow each other, the upper frontier of each is the lower of the next; the changes in them
//! are those that were inserted, as seen from [`Spine::since`]; a merge that fails leaves its inputs as they were.
//!
//! What a spine has is gone when the process ends: it is an index, not a log. With the feature `ipc` it can be saved, whole,
//! and opened again.

mod levels;
mod merge;
mod mergers;
#[cfg(feature = "ipc")]
mod saved;
mod slot;

/// What slots are synchronised by; `tests/merges_under_every_interleaving.rs` puts loom's here.
mod sync {
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
}

use std::sync::{Arc, Weak};

use crate::batch::{Batch, Merging, check_times};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::kernel::allocator::give_back_free_blocks;
use crate::order::{Layout, Rule};
use crate::pool::{Lease, Pool};
use crate::time::{Antichain, Time};
#[cfg(test)]
pub(crate) use levels::MERGES_A_LEVEL;
use levels::{Standing, group, level_of};
use merge::{Job, Merge, Merged};
pub use mergers::Mergers;
use mergers::Queue;

/// Batches beyond which an insert finishes merges before it returns, whatever its fuel.
const MOST_BATCHES: usize = 64;

/// Bytes that may come behind a merge while it goes on, if that is more than goes into it: below this a merge takes less
/// time than to wait for one.
const LEAST_BEHIND: u64 = 1 << 20;

/// One part of so many of a limit, and at most these bytes, are for what merges and look-ups take beside chunks, and what the
/// allocator keeps: some 3 MiB of 32 were resident and not leased.
const BESIDE_PART: usize = 6;
const MOST_BESIDE: usize = 6 << 20;

/// Bytes that are merged, in limits, between two looks for blocks that the allocator keeps. A merge frees what is kept of
/// each chunk of its inputs, some 2 % of their bytes, between blocks that stay: without a look the heap of a table of 5M
/// rows had 20 MiB of holes at a limit of 64 MiB.
const MERGED_TO_GIVE_BACK: u64 = 2;

/// Units of fuel that an insert has for each of its rows and each level: what the merges of one level cost, and as much
/// again to catch up.
const FUEL_A_LEVEL: i64 = 2;

/// Levels of batches of less than 16 KiB.
const SMALL_LEVELS: i64 = 4;

/// An index of changes that lives: it takes batches in, merges them bit by bit, and is read in between.
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
    work: SpineWork,
    /// The threads that merge, if there are any.
    queue: Option<Arc<Queue>>,
    /// For what merges and look-ups take beside chunks, and the allocator keeps.
    _beside: Option<Lease>,
    merged_since_given_back: u64,
}

/// What a spine has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpineWork {
    /// Rows of the batches that were inserted.
    pub inserted: u64,
    /// Units of fuel that merges took, one a row that went in.
    pub merged: u64,
    /// Merges that were finished.
    pub merges: u64,
}

/// A batch, or several that are being merged.
enum Entry<T> {
    Batch { batch: Batch<T>, bytes: u64 },
    Merging { inputs: Vec<Batch<T>>, bytes: u64, merge: Arc<Merge<T>> },
}

impl<T: Time> Entry<T> {
    /// Costs a look at every chunk; what there is afterwards is known.
    fn of(batch: Batch<T>) -> Self {
        Self::Batch { bytes: batch.bytes().unwrap_or(0), batch }
    }

    fn batches(&self) -> &[Batch<T>] {
        match self {
            Self::Batch { batch, .. } => std::slice::from_ref(batch),
            Self::Merging { inputs, .. } => inputs,
        }
    }

    fn into_batches(self) -> Vec<Batch<T>> {
        match self {
            Self::Batch { batch, .. } => vec![batch],
            Self::Merging { inputs, .. } => inputs,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Batch { bytes, .. } | Self::Merging { bytes, .. } => *bytes,
        }
    }
}

impl<T: Time> Spine<T> {
    /// A spine of changes of `layout`, whose merges take memory from `pool`.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the layout has no times or no diffs, [`Error::UnsupportedColumn`] if its times are
    /// not `T`.
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
            work: SpineWork::default(),
            queue: None,
            _beside: beside(pool),
            merged_since_given_back: 0,
        })
    }

    /// The layout of the rows.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The changes inserted so far are those before this frontier.
    pub fn upper(&self) -> &Antichain<T> {
        &self.upper
    }

    /// The changes add up to what was inserted at any time at or beyond this frontier.
    pub fn since(&self) -> &Antichain<T> {
        &self.since
    }

    /// What the spine has done so far.
    pub fn work_done(&self) -> SpineWork {
        self.work
    }

    /// The batches, oldest first; what is being merged counts as what it is merged from.
    pub fn batches(&self) -> impl Iterator<Item = &Batch<T>> {
        self.entries.iter().flat_map(|entry| entry.batches())
    }

    /// Takes in the changes from [`Spine::upper`] on, and does as much merging as so many rows pay for: a bounded number
    /// of rows a row, and unbounded only where more than 64 batches wait, or more bytes have come behind a merge than go
    /// into it, and more than 1 MiB. If there are [threads](Spine::merge_on) for it they do it, and a call waits for
    /// them, or helps, only then.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if the batch does not begin where the others end, or is read in part,
    /// [`Error::SchemaMismatch`] if it is of another layout: the spine is as it was. What merging reports: the batch
    /// is in, and merges are tried again by the next call.
    pub fn insert(&mut self, batch: Batch<T>) -> Result<()> {
        self.layout.check_same(batch.layout())?;
        if batch.lower() != &self.upper {
            let (got, upper) = (batch.lower().elements(), self.upper.elements());
            return Err(Error::InvalidOrder(format!("a batch from {got:?} on behind {upper:?}")));
        }
        let batch = batch.settle()?;
        // Those that are on disk get theirs when they are merged.
        batch.make_filters(false)?;
        let rows = batch.rows().unwrap_or(0);
        let level = i64::from(level_of(batch.bytes().unwrap_or(0)));
        self.upper = batch.upper().clone();
        self.work.inserted += rows;
        self.push(batch);
        let mut fuel = match self.threads() {
            Some(_) => 0,
            None => {
                let rows = i64::try_from(rows).unwrap_or(i64::MAX);
                // A larger batch is in no merge of these.
                let levels = self.levels() - level.min(SMALL_LEVELS);
                rows.saturating_mul(FUEL_A_LEVEL * levels)
            }
        };
        self.work(&mut fuel)?;
        while let Some(merge) = self.overdue() {
            if !merge.work(&mut i64::MAX.clone()) {
                // A thread is at it.
                merge.wait();
            }
            self.work(&mut 0)?;
        }
        while self.batches().count() > MOST_BATCHES {
            let before = self.work;
            let done = self.work(&mut i64::MAX.clone())?;
            match self.merges().next() {
                // A thread is at it.
                Some(merge) if !done => merge.wait(),
                // Readers want to tell all of them apart.
                _ if self.work == before => break,
                _ => {}
            }
        }
        Ok(())
    }

    /// A merge that more has come behind of than goes into it.
    fn overdue(&self) -> Option<Arc<Merge<T>>> {
        let mut behind = 0;
        self.entries.iter().rev().find_map(|entry| {
            let newer = behind;
            behind += entry.bytes();
            match entry {
                Entry::Merging { bytes, merge, .. } if newer > LEAST_BEHIND.max(*bytes) => {
                    Some(Arc::clone(merge))
                }
                _ => None,
            }
        })
    }

    /// The merges under way, the newest first, which is the smallest.
    fn merges(&self) -> impl Iterator<Item = &Arc<Merge<T>>> {
        self.entries.iter().rev().filter_map(|entry| match entry {
            Entry::Batch { .. } => None,
            Entry::Merging { merge, .. } => Some(merge),
        })
    }

    /// Has merges done by the threads of `mergers` from now on, those under way too; by the calls of the spine again when
    /// the threads are gone.
    pub fn merge_on(&mut self, mergers: &Mergers) {
        for merge in self.merges() {
            mergers.queue().push(weak(merge));
        }
        self.queue = Some(Arc::clone(mergers.queue()));
    }

    /// The threads, if there are any.
    fn threads(&self) -> Option<&Arc<Queue>> {
        self.queue.as_ref().filter(|queue| !queue.is_closed())
    }

    /// Puts a batch behind the others; one without changes into the one before it, if nobody wants to tell them apart.
    fn push(&mut self, batch: Batch<T>) {
        if let Some(Entry::Batch { batch: last, .. }) = self.entries.last_mut()
            && batch.rows() == Some(0)
            && last.upper().before(&self.distinguish)
        {
            last.reach(batch.upper());
            return;
        }
        self.entries.push(Entry::of(batch));
    }

    /// Levels of what is there.
    pub(crate) fn levels(&self) -> i64 {
        let bytes: u64 = self.entries.iter().map(Entry::bytes).sum();
        i64::from(level_of(bytes)) + 1
    }

    /// Merges until the fuel is used up, one unit a row that goes in, and takes over what threads have merged; true if there
    /// is nothing left to merge.
    ///
    /// # Errors
    /// What merging reports; what was being merged is as it was before.
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

    /// Puts the outcome of each merge that has ended in place of its inputs; true if there was one.
    fn collect(&mut self) -> Result<bool> {
        let mut any = false;
        for at in 0..self.entries.len() {
            let Entry::Merging { merge, inputs, .. } = &mut self.entries[at] else { continue };
            let Some(Merged { batch, fuel }) = merge.outcome() else {
                // Where a chunk cannot be read that is cut, all stay as they are.
                if let Some(part) = merge.done()
                    && let Ok(Some(left)) = Batch::let_go(inputs, &part)
                {
                    *inputs = left;
                }
                continue;
            };
            any = true;
            self.work.merged += fuel;
            match batch {
                Ok(batch) => {
                    self.entries[at] = Entry::of(batch);
                    self.work.merges += 1;
                    self.give_back(self.entries[at].bytes());
                }
                Err(error) => {
                    self.give_up(at);
                    return Err(error);
                }
            }
        }
        Ok(any)
    }

    /// Gives back what the allocator keeps of the inputs of merges, once `merged` bytes more make it worth a look.
    fn give_back(&mut self, merged: u64) {
        let budget = self.pool.budget();
        self.merged_since_given_back += merged;
        if budget.is_limited()
            && self.merged_since_given_back / MERGED_TO_GIVE_BACK >= budget.limit() as u64
        {
            self.merged_since_given_back = 0;
            give_back_free_blocks();
        }
    }

    /// Puts the inputs of the merge at `at` in its place.
    fn give_up(&mut self, at: usize) {
        let inputs = self.entries.remove(at).into_batches();
        self.entries.splice(at..at, inputs.into_iter().map(Entry::of));
    }

    /// Begins the merges that are due.
    fn begin(&mut self) -> Result<()> {
        loop {
            let standing = |entry: &Entry<T>| match entry {
                Entry::Batch { batch, bytes } if batch.upper().before(&self.distinguish) => {
                    Standing::Batch(level_of(*bytes))
                }
                Entry::Batch { .. } => Standing::Apart,
                Entry::Merging { bytes, .. } => Standing::Merging(level_of(*bytes)),
            };
            let standing: Vec<Standing> = self.entries.iter().map(standing).collect();
            let Some(range) = group(&standing) else { return Ok(()) };
            let all: Option<Vec<Batch<T>>> = self.entries[range.clone()]
                .iter()
                .flat_map(Entry::batches)
                .map(Batch::try_clone)
                .collect();
            // All of them are settled.
            let Some(inputs) = all else { return Ok(()) };
            let merging = Merging::new(&self.layout, &self.pool, inputs).filtered();
            let merging = match self.since == Antichain::least() {
                true => merging,
                false => merging.advancing(&self.since)?,
            };
            let entries = self.entries.splice(range.clone(), std::iter::empty());
            let (mut inputs, mut bytes) = (Vec::new(), 0);
            for entry in entries {
                bytes += entry.bytes();
                inputs.extend(entry.into_batches());
            }
            let rows = inputs.iter().filter_map(Batch::rows).sum();
            let merge = Arc::new(Merge::new(merging, rows));
            if let Some(queue) = &self.queue {
                queue.push(weak(&merge));
            }
            self.entries.insert(range.start, Entry::Merging { inputs, bytes, merge });
        }
    }

    /// By this the caller promises not to ask for times that are not at or beyond `since` any more: merges that begin
    /// from now on move times up to it, and add up what that makes equal.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if it goes back.
    pub fn set_since(&mut self, since: &Antichain<T>) -> Result<()> {
        go_on(&mut self.since, since)
    }

    /// Keeps batches apart whose upper frontier is not before `distinguish`, so that [`Spine::cursor_through`] can end
    /// at each of them. Without a call all may be merged. The first frontier is named before anything is inserted, and
    /// may be any; those behind it go on.
    ///
    /// # Errors
    /// [`Error::InvalidOrder`] if it goes back.
    pub fn set_distinguish(&mut self, distinguish: &Antichain<T>) -> Result<()> {
        if self.distinguish.is_empty() && self.entries.is_empty() {
            self.distinguish = distinguish.clone();
            return Ok(());
        }
        go_on(&mut self.distinguish, distinguish)
    }

    /// A cursor over all changes. It keeps what it reads alive, and does not see what comes later.
    ///
    /// # Errors
    /// What reading a chunk reports.
    pub fn cursor(&self) -> Result<Cursor<T>> {
        Cursor::of(&self.layout, self.batches())
    }

    /// As [`Spine::cursor`], at no key, having read nothing: for [`Cursor::find_key`] and [`Cursor::probe`].
    ///
    /// # Errors
    /// As [`Spine::cursor`].
    pub fn idle_cursor(&self) -> Result<Cursor<T>> {
        Cursor::idle(&self.layout, self.batches())
    }

    /// A cursor over the changes before `upper`; none if a batch has changes on both sides of it.
    ///
    /// # Errors
    /// What reading a chunk reports.
    pub fn cursor_through(&self, upper: &Antichain<T>) -> Result<Option<Cursor<T>>> {
        let within = |batch: &&Batch<T>| batch.upper().before(upper);
        if self.batches().any(|batch| !within(&batch) && !upper.before(batch.lower())) {
            return Ok(None);
        }
        Cursor::of(&self.layout, self.batches().filter(within)).map(Some)
    }
}

/// Memory of a limit for what is not counted piece by piece.
fn beside(pool: &Pool) -> Option<Lease> {
    let budget = pool.budget();
    let bytes = (budget.limit() / BESIDE_PART).min(MOST_BESIDE);
    if budget.is_limited() { budget.try_lease(bytes) } else { None }
}

/// The merge as threads take it.
fn weak<T: Time>(merge: &Arc<Merge<T>>) -> Weak<dyn Job> {
    let job: Arc<dyn Job> = Arc::<Merge<T>>::clone(merge);
    Arc::downgrade(&job)
}

/// Sets `frontier` to `to`, unless that goes back.
fn go_on<T: Time>(frontier: &mut Antichain<T>, to: &Antichain<T>) -> Result<()> {
    if !frontier.before(to) {
        let (from, to) = (frontier.elements(), to.elements());
        return Err(Error::InvalidOrder(format!("a frontier goes back from {from:?} to {to:?}")));
    }
    *frontier = to.clone();
    Ok(())
}

impl<T: Time> std::fmt::Debug for Spine<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Spine");
        out.field("order", &self.layout.order()).field("batches", &self.batches().count());
        out.field("upper", &self.upper).field("since", &self.since);
        out.finish_non_exhaustive()
    }
}
