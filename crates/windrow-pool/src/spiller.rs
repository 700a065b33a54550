//! Spill threads: write pages out and read pages ahead, concurrently with the workers.
//!
//! ```text
//! workers --write--> | page | page |  --> spill thread: compress, write, free the memory
//!         --read---> | page |         --> spill thread: read and decompress; before any write
//! ```
//! Queues hold weak references: a page dropped while queued costs nothing. A worker that finds no
//! memory, or a full queue, writes the oldest queued page itself, so no worker sleeps while pages
//! wait to be written. Threads start on demand and end with their pool.
//!
//! Invariant: a page is in memory until it is in the store. A page whose write fails stays in
//! memory, and the error is reported to the next worker that spills or waits.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use crate::lock::lock;
use windrow_rows::{Error, Result};

/// Queued writes per thread: a third of the pages that a budget is divided into. A worker that runs
/// out of memory earlier writes the oldest of them.
const QUEUED: usize = 32;

/// Rows in memory or in a store.
pub trait Paged: Debug + Send + Sync {
    /// Writes the page out, unless it is in the store already, and frees its memory.
    fn write_out(self: Arc<Self>) -> Result<()>;

    /// Reads the page, if it is still needed and fits into the budget.
    fn read_in(self: Arc<Self>);

    /// Requests the eviction of the page.
    fn leave(&self) -> Leave;
}

/// Response of a page to an eviction request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// The page has no memory, or is being evicted already.
    Cannot,
    /// The page is in use, or was used since the last request: evict another page.
    Later,
    /// The page was in the store already, and has freed its memory.
    Left,
    /// The page must be written.
    Write,
}

/// Threads that write and read pages.
#[derive(Debug)]
pub(super) struct Spiller {
    shared: Arc<Shared>,
    /// The maximum number of threads.
    pub(super) most: usize,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    writes: VecDeque<Weak<dyn Paged>>,
    reads: VecDeque<Weak<dyn Paged>>,
    /// Number of pages being written, and being read.
    writing: usize,
    reading: usize,
    threads: usize,
    idle: usize,
    failed: Option<Error>,
    closed: bool,
}

impl Spiller {
    /// Starts up to `most` threads, on demand. With none, workers write pages themselves, and
    /// nothing is read ahead.
    pub(super) fn new(most: usize) -> Self {
        Self { shared: Arc::default(), most }
    }

    /// Queues `page` for writing. If the queue is full or no thread runs, writes the oldest queued
    /// page. Reports an earlier failure.
    pub(super) fn write(&self, page: Arc<dyn Paged>) -> Result<()> {
        let mut state = lock(&self.shared.state);
        state.writes.push_back(Arc::downgrade(&page));
        // Also before a failure is reported: nobody else may wake a thread for this page.
        let has_thread = self.has_thread(&mut state);
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if has_thread && state.writes.len() <= QUEUED * self.most {
            return Ok(());
        }
        self.help(state).map(|_| ())
    }

    /// Queues `page` for reading ahead. Returns false if the threads are busy reading.
    pub(super) fn read(&self, page: &Arc<dyn Paged>) -> bool {
        let mut state = lock(&self.shared.state);
        if state.reads.len() >= self.most {
            return false;
        }
        state.reads.push_back(Arc::downgrade(page));
        let has_thread = self.has_thread(&mut state);
        if !has_thread {
            state.reads.pop_back();
        }
        has_thread
    }

    /// Writes the oldest queued page, or waits until a write ends; false if there are no writes.
    /// Reports an earlier failure.
    pub(super) fn wait_for_one(&self) -> Result<bool> {
        let mut state = lock(&self.shared.state);
        if state.writes.is_empty() && state.writing > 0 && state.failed.is_none() {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            return state.failed.take().map_or(Ok(true), Err);
        }
        match state.failed.take() {
            Some(error) => Err(error),
            None => self.help(state),
        }
    }

    /// Writes the oldest queued page on this thread; false if the queue is empty.
    fn help(&self, mut state: MutexGuard<'_, State>) -> Result<bool> {
        let Some(page) = state.writes.pop_front() else { return Ok(false) };
        state.writing += 1;
        drop(state);
        let _ended = Ended { shared: &self.shared, reads: false, failed: None };
        page.upgrade().map_or(Ok(()), Paged::write_out).map(|()| true)
    }

    /// Waits until all reads and writes have ended.
    pub(super) fn wait_for_all(&self) {
        let mut state = lock(&self.shared.state);
        while state.in_flight() > 0 {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the number of queued and running reads and writes.
    pub(super) fn in_flight(&self) -> usize {
        lock(&self.shared.state).in_flight()
    }

    /// Takes the unreported failure, if any.
    pub(super) fn failure(&self) -> Option<Error> {
        lock(&self.shared.state).failed.take()
    }

    /// Wakes or starts a thread for newly queued pages; false if there are no threads.
    fn has_thread(&self, state: &mut State) -> bool {
        let queued = state.writes.len() + state.reads.len();
        if queued > state.idle && state.threads < self.most {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("windrow-spill".to_owned());
            // On failure, the running threads or the worker itself do the work.
            if thread.spawn(move || shared.serve()).is_ok() {
                state.threads += 1;
            }
        }
        self.shared.work.notify_one();
        state.threads > 0
    }
}

impl Drop for Spiller {
    fn drop(&mut self) {
        // Not joined: a spill thread may drop the last page of a pool, and with it the pool.
        lock(&self.shared.state).closed = true;
        self.shared.work.notify_all();
    }
}

impl State {
    fn in_flight(&self) -> usize {
        self.writing + self.reading + self.writes.len() + self.reads.len()
    }

    /// Takes the next queued page; true if it is to be read, false if written.
    fn next(&mut self) -> Option<(Weak<dyn Paged>, bool)> {
        if let Some(page) = self.reads.pop_front() {
            self.reading += 1;
            return Some((page, true));
        }
        let page = self.writes.pop_front()?;
        self.writing += 1;
        Some((page, false))
    }
}

impl Shared {
    /// Works on queued pages until the pool is gone.
    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            let Some((page, reads)) = state.next() else {
                if state.closed {
                    return;
                }
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            drop(state);
            let mut ended = Ended { shared: self, reads, failed: None };
            // A panic is reported by its hook. The thread stays, for those who wait for its work.
            let _panic = catch_unwind(AssertUnwindSafe(|| match page.upgrade() {
                Some(page) if reads => page.read_in(),
                Some(page) => ended.failed = page.write_out().err(),
                None => {}
            }));
            drop(ended);
            state = lock(&self.state);
        }
    }
}

/// Records the end of a read or write, also on panic, so that no worker waits for ever.
struct Ended<'a> {
    shared: &'a Shared,
    reads: bool,
    failed: Option<Error>,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        if self.reads {
            state.reading -= 1;
        } else {
            state.writing -= 1;
        }
        if let Some(error) = self.failed.take() {
            state.failed.get_or_insert(error);
        }
        self.shared.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A page whose write waits for a message: true to succeed, false to fail.
    #[derive(Debug)]
    struct Slow {
        go: Mutex<Receiver<bool>>,
        written: Arc<AtomicUsize>,
    }

    fn slow(written: &Arc<AtomicUsize>) -> (Sender<bool>, Arc<dyn Paged>) {
        let (sender, receiver) = channel();
        let page = Slow { go: Mutex::new(receiver), written: Arc::clone(written) };
        (sender, Arc::new(page))
    }

    impl Paged for Slow {
        fn write_out(self: Arc<Self>) -> Result<()> {
            if self.go.lock().unwrap().recv() != Ok(true) {
                return Err(Error::TempSpace { dir: "here".into(), message: "full".into() });
            }
            self.written.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }

        fn read_in(self: Arc<Self>) {}

        fn leave(&self) -> Leave {
            Leave::Cannot
        }
    }

    #[test]
    fn a_page_that_dies_in_the_queue_is_not_written() {
        let (spiller, written) = (Spiller::new(1), Arc::default());
        let (go, first) = slow(&written);
        let (_never, second) = slow(&written);
        spiller.write(Arc::clone(&first)).unwrap();
        spiller.write(Arc::clone(&second)).unwrap();
        drop(second);
        go.send(true).unwrap();
        spiller.wait_for_all();
        assert_eq!(written.load(Ordering::SeqCst), 1);
        assert!(!spiller.wait_for_one().unwrap(), "nothing is left to wait for");
    }

    #[test]
    fn a_failure_is_reported_once_to_whoever_comes_next() {
        let (spiller, written) = (Spiller::new(1), Arc::default());
        let (go, page) = slow(&written);
        spiller.write(Arc::clone(&page)).unwrap();
        go.send(false).unwrap();
        spiller.wait_for_all();
        assert!(matches!(spiller.wait_for_one(), Err(Error::TempSpace { .. })));
        assert!(spiller.failure().is_none());
        go.send(true).unwrap();
        spiller.write(Arc::clone(&page)).unwrap();
        spiller.wait_for_all();
        assert_eq!(written.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn without_threads_the_worker_writes() {
        let (spiller, written) = (Spiller::new(0), Arc::default());
        let (go, page) = slow(&written);
        go.send(true).unwrap();
        spiller.write(Arc::clone(&page)).unwrap();
        assert_eq!(written.load(Ordering::SeqCst), 1);
        go.send(false).unwrap();
        assert!(spiller.write(page).is_err());
        assert!(!spiller.wait_for_one().unwrap());
    }

    /// A page whose read panics, or counts.
    #[derive(Debug)]
    struct Read(Option<AtomicUsize>);

    impl Paged for Read {
        fn write_out(self: Arc<Self>) -> Result<()> {
            Ok(())
        }

        fn read_in(self: Arc<Self>) {
            let count = self.0.as_ref().expect("this page panics on purpose");
            count.fetch_add(1, Ordering::SeqCst);
        }

        fn leave(&self) -> Leave {
            Leave::Cannot
        }
    }

    #[test]
    fn a_thread_survives_a_page_that_panics() {
        let spiller = Spiller::new(1);
        let (bad, good) = (Arc::new(Read(None)), Arc::new(Read(Some(AtomicUsize::new(0)))));
        let pages = [bad as Arc<dyn Paged>, Arc::clone(&good) as Arc<dyn Paged>];
        for page in &pages {
            while !spiller.read(page) {
                std::thread::yield_now();
            }
        }
        spiller.wait_for_all();
        assert_eq!(good.0.as_ref().unwrap().load(Ordering::SeqCst), 1);
    }

    #[test]
    fn reads_are_refused_while_threads_are_busy() {
        let (spiller, written) = (Spiller::new(1), Arc::default());
        let (go, page) = slow(&written);
        spiller.write(Arc::clone(&page)).unwrap();
        // The thread has taken the page.
        while !lock(&spiller.shared.state).writes.is_empty() {
            std::thread::yield_now();
        }
        assert!(spiller.read(&page) && !spiller.read(&page), "one read waits, no other");
        go.send(true).unwrap();
        spiller.wait_for_all();
        assert!(spiller.read(&page));
        assert!(!Spiller::new(0).read(&page), "no thread reads");
    }

    #[test]
    fn the_queue_is_short() {
        let (spiller, written) = (Spiller::new(1), Arc::<AtomicUsize>::default());
        let pages: Vec<_> = (0..2 * QUEUED).map(|_| slow(&written)).collect();
        pages.iter().for_each(|(go, _)| go.send(true).unwrap());
        for (_, page) in &pages {
            spiller.write(Arc::clone(page)).unwrap();
            assert!(lock(&spiller.shared.state).writes.len() <= QUEUED);
        }
        spiller.wait_for_all();
        assert_eq!(written.load(Ordering::SeqCst), 2 * QUEUED);
    }

    #[test]
    fn a_write_that_is_told_of_a_failure_goes_on() {
        let written = Arc::new(AtomicUsize::new(0));
        let spiller = Spiller::new(1);
        let (go, page) = slow(&written);
        spiller.write(Arc::clone(&page)).unwrap();
        go.send(false).unwrap();
        spiller.wait_for_all();
        while lock(&spiller.shared.state).idle == 0 {
            std::thread::yield_now();
        }
        let (go, next) = slow(&written);
        go.send(true).unwrap();
        assert!(spiller.write(Arc::clone(&next)).is_err());
        spiller.wait_for_all();
        assert_eq!(written.load(Ordering::SeqCst), 1);
    }
}
