//! Decodes record batches ahead of the consumer, on separate threads.
//!
//! ```text
//! thread A  [merge ahead][take 0][decode 0......][take 2][decode 2......]
//! thread B  [merge ahead........][take 1][decode 1......][take 3]...
//!                            |
//!           waiting   [0][1][2]  --in order--> caller
//! ```
//!
//! Invariant: each of `n` threads works on one batch, and at most `n` batches wait for the caller.
//! Batches arrive in the order of their rows; an error arrives after all batches before it.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use arrow_array::RecordBatch;
use windrow::MergeHelper;

use super::decode::RowDecoder;
use super::plan::{BATCH_BYTES, BATCH_ROWS};
use super::rows::{Rows, Taken};
use super::tally::Tally;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::watch::Watch;

/// The decoding threads and their shared state. Dropping the value ends the threads.
pub(super) struct Ahead {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    source: Mutex<Unmerged>,
    helper: Option<MergeHelper>,
    /// Bytes of rows to merge ahead.
    ahead: usize,
    line: Mutex<Line>,
    changed: Condvar,
    watch: Watch,
    tally: Arc<Tally>,
}

/// The unmerged rows; `None` at the end and after an error.
struct Unmerged {
    rows: Option<Rows>,
    /// The number of the next batch.
    next: usize,
}

/// Batches ready for the caller.
#[derive(Default)]
struct Line {
    waiting: BTreeMap<usize, Result<RecordBatch>>,
    /// The number of the batch that the caller takes next.
    wanted: usize,
    /// Capacity of `waiting`: one batch for each thread.
    room: usize,
    /// The number of running threads, and whether one panicked and lost its batch.
    at_work: usize,
    lost: bool,
    closed: bool,
}

impl Ahead {
    /// Decodes `rows` on one thread for each of `decoders`.
    pub(super) fn start(
        rows: Rows,
        decoders: Vec<RowDecoder>,
        watch: &Watch,
        tally: &Arc<Tally>,
    ) -> Result<Self> {
        let most = decoders.len();
        let shared = Arc::new(Shared {
            helper: rows.helper.clone(),
            ahead: 2 * most * BATCH_BYTES,
            source: Mutex::new(Unmerged { rows: Some(rows), next: 0 }),
            line: Mutex::new(Line { room: most, at_work: most, ..Line::default() }),
            changed: Condvar::new(),
            watch: watch.clone(),
            tally: Arc::clone(tally),
        });
        let mut ahead = Self { shared: Arc::clone(&shared), threads: Vec::with_capacity(most) };
        for decoder in decoders {
            let leaves = Leaves(Arc::clone(&shared));
            let work = move || leaves.0.work(decoder);
            let thread = Builder::new().name("windrow-decode".into()).spawn(work);
            // One thread is enough. `leaves` was dropped for each thread not started.
            match thread {
                Ok(thread) => ahead.threads.push(thread),
                Err(cause) if ahead.threads.is_empty() => {
                    return Err(Error::data(format!("no thread for the rows: {cause}")));
                }
                Err(_) => {}
            }
        }
        Ok(ahead)
    }

    /// Returns the next batch; `None` at the end.
    pub(super) fn next(&self) -> Result<Option<RecordBatch>> {
        let mut line = lock(&self.shared.line);
        loop {
            let wanted = line.wanted;
            if let Some(batch) = line.waiting.remove(&wanted) {
                line.wanted += 1;
                self.shared.changed.notify_all();
                return batch.map(Some);
            }
            if line.lost {
                return Err(Error::data("a worker failed unexpectedly; please report this"));
            }
            if line.at_work == 0 {
                return Ok(None);
            }
            line = self.shared.changed.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        lock(&self.shared.line).closed = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // The caller of `next` has already received an error for the panic.
            let _panicked = thread.join();
        }
    }
}

impl Shared {
    fn work(&self, mut decoder: RowDecoder) {
        while let Some((number, taken)) = self.take() {
            let batch = taken.and_then(|taken| taken.decode(&mut decoder));
            if !self.hand_over(number, batch) {
                return;
            }
        }
    }

    /// Merges rows ahead, unless enough merged rows wait, then takes the next ones; `None` at the
    /// end and after an error.
    fn take(&self) -> Option<(usize, Result<Taken>)> {
        if let Some(helper) = &self.helper {
            helper.help(self.ahead);
        }
        let mut source = lock(&self.source);
        // Put back below if more rows may follow.
        let mut rows = source.rows.take()?;
        let taken = self.watch.pause().and_then(|()| rows.next(BATCH_ROWS, BATCH_BYTES));
        match &taken {
            Ok(Some(_)) => source.rows = Some(rows),
            Ok(None) => self.tally.outcome().keys = rows.keys(),
            Err(_) => {}
        }
        let number = source.next;
        source.next += 1;
        taken.transpose().map(|taken| (number, taken))
    }

    /// Queues a batch for the caller, after waiting for capacity. Returns false if the thread is to
    /// end.
    fn hand_over(&self, number: usize, batch: Result<RecordBatch>) -> bool {
        let failed = batch.is_err();
        let mut line = lock(&self.line);
        while !line.closed && number >= line.wanted + line.room {
            line = self.changed.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        if line.closed {
            return false;
        }
        line.waiting.insert(number, batch);
        self.changed.notify_all();
        drop(line);
        if failed {
            // Rows after an error are of no use.
            lock(&self.source).rows = None;
        }
        !failed
    }
}

/// Records the end of a thread, even after a panic, so that the caller does not wait for the
/// thread.
struct Leaves(Arc<Shared>);

impl Drop for Leaves {
    fn drop(&mut self) {
        let mut line = lock(&self.0.line);
        line.at_work -= 1;
        line.lost |= std::thread::panicking();
        drop(line);
        self.0.changed.notify_all();
    }
}
