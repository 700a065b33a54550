//! Spill threads: pages are written out and read ahead beside the workers.
//!
//! ```text
//! workers --write--> | page | page |  --> spill thread: compress, write, give the memory back
//!         --read---> | page |         --> spill thread, first: read and decompress what is merged next
//! ```
//! Queues hold pages weakly: one that dies in the queue costs nothing. A worker that finds no memory, or
//! the queue full, writes the page that waits longest itself: nobody sleeps while there is something to
//! write. Threads start when there is something to do, and end with their pool.
//!
//! Invariant: a page is in memory until it is in the store; what fails to be written stays, and the
//! failure is reported to the next worker that spills or waits.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use crate::error::{Error, Result};

/// Pages that wait to be written, for each thread: a third of what a budget is divided into. Who runs out
/// of memory before that writes the first of them.
const QUEUED: usize = 32;

/// Rows that are in memory or in a store.
pub(crate) trait Paged: Debug + Send + Sync {
    /// Writes it out, if it still has to; its memory is then free.
    fn write_out(self: Arc<Self>) -> Result<()>;

    /// Reads it, if that is still of use and the budget has room.
    fn read_in(self: Arc<Self>);

    /// Asks it to leave memory.
    fn leave(&self) -> Leave;
}

/// What a page says when it is asked to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It has no memory, or leaves already.
    Cannot,
    /// Somebody works with it, or did since it was last asked: another one should go.
    Later,
    /// It was in the store already, and has left.
    Left,
    /// It is to be written.
    Write,
}

/// Threads that write and read pages.
#[derive(Debug)]
pub(super) struct Spiller {
    shared: Arc<Shared>,
    most: usize,
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
    /// Pages that are being written, and read.
    writing: usize,
    reading: usize,
    threads: usize,
    idle: usize,
    failed: Option<Error>,
    closed: bool,
}

enum Job {
    Write(Weak<dyn Paged>),
    Read(Weak<dyn Paged>),
}

impl Spiller {
    /// Up to `most` threads; with none, workers write for themselves and nothing is read ahead.
    pub(super) fn new(most: usize) -> Self {
        Self { shared: Arc::default(), most }
    }

    /// Threads at the most.
    pub(super) fn threads(&self) -> usize {
        self.most
    }

    /// Has `page` written out. Writes one itself while many others are to be written first.
    pub(super) fn write(&self, page: Arc<dyn Paged>) -> Result<()> {
        let mut state = self.shared.state();
        state.writes.push_back(Arc::downgrade(&page));
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if self.has_thread(&mut state) && state.writes.len() <= QUEUED * self.most {
            return Ok(());
        }
        self.help(state).map(|_| ())
    }

    /// Has `page` read ahead, unless the threads are busy reading.
    pub(super) fn read(&self, page: &Arc<dyn Paged>) {
        let mut state = self.shared.state();
        if state.reads.len() >= self.most {
            return;
        }
        state.reads.push_back(Arc::downgrade(page));
        if !self.has_thread(&mut state) {
            state.reads.pop_back();
        }
    }

    /// Writes what waits longest, or waits until a write ends; false if there is neither. Reports what
    /// failed so far.
    pub(super) fn wait_for_one(&self) -> Result<bool> {
        let mut state = self.shared.state();
        if state.writes.is_empty() && state.writing > 0 && state.failed.is_none() {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            return state.failed.take().map_or(Ok(true), Err);
        }
        match state.failed.take() {
            Some(error) => Err(error),
            None => self.help(state),
        }
    }

    /// Writes what waits longest, here and now; false if nothing waits.
    fn help(&self, mut state: MutexGuard<'_, State>) -> Result<bool> {
        let Some(page) = state.writes.pop_front() else { return Ok(false) };
        state.writing += 1;
        drop(state);
        let _ended = Ended { shared: &self.shared, reads: false, failed: None };
        page.upgrade().map_or(Ok(()), Paged::write_out).map(|()| true)
    }

    /// Waits until nothing is being written or read.
    pub(super) fn wait_for_all(&self) {
        let mut state = self.shared.state();
        while state.is_busy() {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What failed and was not reported yet.
    pub(super) fn failure(&self) -> Option<Error> {
        self.shared.state().failed.take()
    }

    /// Makes sure that somebody takes what was just queued; false if there are no threads.
    fn has_thread(&self, state: &mut State) -> bool {
        let queued = state.writes.len() + state.reads.len();
        if queued > state.idle && state.threads < self.most {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("windrow-spill".to_owned());
            // Without another thread those that are there do it, or the worker itself.
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
        // Not joined: the last page of a pool, and so the pool, may go on one of the threads.
        self.shared.state().closed = true;
        self.shared.work.notify_all();
    }
}

impl State {
    fn is_busy(&self) -> bool {
        self.writing + self.reading > 0 || !self.writes.is_empty() || !self.reads.is_empty()
    }

    fn next(&mut self) -> Option<Job> {
        if let Some(page) = self.reads.pop_front() {
            self.reading += 1;
            return Some(Job::Read(page));
        }
        let page = self.writes.pop_front()?;
        self.writing += 1;
        Some(Job::Write(page))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a thread does until the pool is gone.
    fn serve(&self) {
        let mut state = self.state();
        loop {
            let Some(job) = state.next() else {
                if state.closed {
                    return;
                }
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            drop(state);
            let mut ended = Ended { shared: self, reads: false, failed: None };
            match job {
                Job::Read(page) => {
                    ended.reads = true;
                    if let Some(page) = page.upgrade() {
                        page.read_in();
                    }
                }
                Job::Write(page) => {
                    ended.failed = page.upgrade().and_then(|page| page.write_out().err());
                }
            }
            drop(ended);
            state = self.state();
        }
    }
}

/// Notes that a page is done with, also when that panics: nobody is to wait for ever.
struct Ended<'a> {
    shared: &'a Shared,
    reads: bool,
    failed: Option<Error>,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
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

    /// A page that is written when it is told to, and fails if it is told so.
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

    #[test]
    fn the_queue_is_short() {
        let (spiller, written) = (Spiller::new(1), Arc::<AtomicUsize>::default());
        let pages: Vec<_> = (0..2 * QUEUED).map(|_| slow(&written)).collect();
        pages.iter().for_each(|(go, _)| go.send(true).unwrap());
        for (_, page) in &pages {
            spiller.write(Arc::clone(page)).unwrap();
            assert!(spiller.shared.state().writes.len() <= QUEUED);
        }
        spiller.wait_for_all();
        assert_eq!(written.load(Ordering::SeqCst), 2 * QUEUED);
    }
}
