//! Threads that merge for spines in the background.
//!
//! ```text
//! spine --merge--\                      thread: a slice of the smallest, put back, the next slice
//! spine --merge---> | merge | merge |   thread
//!        <--------- (a call of the spine collects the ended merges)
//! ```
//! The queue holds weak references, so merges of a dropped spine stop. Spines themselves complete
//! the merges left over when the threads end.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use super::merge::Job;
use windrow_pool::lock;
use windrow_rows::{Error, Result};

/// Rows of a slice; after a slice, a thread looks for a smaller merge.
const SLICE: i64 = 1 << 16;

/// Threads for the merges of any number of spines: see [`Spine::merge_on`](super::Spine::merge_on).
/// Dropping this value ends the threads; it waits for less than a chunk to be merged.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
/// use windrow::{Antichain, Batcher, Mergers, Order, Pool, Spine};
///
/// # let changes = |user: u64, time: u64| {
/// #     let numbers = |value: u64| Arc::new(UInt64Array::from(vec![value])) as ArrayRef;
/// #     let diffs = Arc::new(Int64Array::from(vec![1])) as ArrayRef;
/// #     RecordBatch::try_from_iter([("user", numbers(user)), ("time", numbers(time)), ("diff", diffs)]).unwrap()
/// # };
/// let layout = Order::by("user").time("time").diff("diff").bind(&changes(0, 0).schema())?;
/// let (pool, mergers) = (Pool::unlimited(), Mergers::new(2)?);
/// let (mut batcher, mut spine) = (Batcher::new(&layout, &pool), Spine::new(&layout, &pool)?);
/// spine.merge_on(&mergers);
/// for time in 0..100 {
///     batcher.push(&changes(time % 10, time))?;
///     spine.insert(batcher.seal(&Antichain::at(time + 1))?)?; // merges nothing by itself
/// }
/// assert!(spine.cursor()?.has_key());
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Mergers {
    pub(super) queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

/// Queued merges.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    jobs: Vec<Weak<dyn Job>>,
    closed: bool,
}

impl Queue {
    /// Enqueues a merge, unless the threads have ended.
    pub(super) fn push(&self, job: Weak<dyn Job>) {
        let mut state = lock(&self.state);
        if !state.closed {
            state.jobs.push(job);
            self.work.notify_one();
        }
    }

    /// Returns true once the threads have ended.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Returns the smallest live merge, waiting for one; `None` at the end.
    fn next(&self) -> Option<Arc<dyn Job>> {
        let mut state = lock(&self.state);
        loop {
            if state.closed {
                return None;
            }
            state.jobs.retain(|job| job.strong_count() > 0);
            let sizes = state.jobs.iter().map(|job| job.upgrade().map_or(0, |job| job.size()));
            let smallest = sizes.enumerate().min_by_key(|&(_, size)| size);
            if let Some((at, _)) = smallest
                && let Some(job) = state.jobs.swap_remove(at).upgrade()
            {
                return Some(job);
            }
            if smallest.is_none() {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Merges until the queue is closed.
    fn serve(&self) {
        while let Some(job) = self.next() {
            if !job.work(&mut SLICE.clone()) {
                // A call of its spine works on this merge.
                job.wait();
            }
            if !job.is_over() {
                self.push(Arc::downgrade(&job));
            }
        }
    }
}

impl Mergers {
    /// Starts `threads` threads, at least one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the system cannot start a thread.
    pub fn new(threads: usize) -> Result<Self> {
        let mut mergers = Self { queue: Arc::default(), threads: Vec::new() };
        for _ in 0..threads.max(1) {
            let queue = Arc::clone(&mergers.queue);
            let named = std::thread::Builder::new().name("windrow-merge".into());
            let thread = named.spawn(move || queue.serve());
            let context = "a thread to merge on";
            let failed = |source| Error::Io { context: context.into(), source };
            mergers.threads.push(thread.map_err(failed)?);
        }
        Ok(mergers)
    }
}

impl Drop for Mergers {
    fn drop(&mut self) {
        lock(&self.queue.state).closed = true;
        self.queue.work.notify_all();
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

shown!(Mergers, it => threads: it.threads.len());
