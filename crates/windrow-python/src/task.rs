//! Runs a job on its own thread, while the caller's thread checks signals and reports progress.
//!
//! ```text
//! caller   detach: wait POLL -> check_signals -> progress -> detach: wait POLL -> ... -> result
//!                                    | raised: Cancel, wait GRACE, raise
//! worker   work() ------------------------------------------------------------------> done
//! ```
//!
//! Python handles signals only in its main thread, and only while attached. A worker waiting for
//! the caller's producer does not notice cancellation; such a worker is abandoned, with nothing
//! left on disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use windrow_files::{Cancel, Error, Moment, Phase, Progress, Result};

use crate::errors::exception;
use crate::memory::Memory;

/// Maximum delay of a signal.
const POLL: Duration = Duration::from_millis(50);
/// Time to wait for a cancelled job: longer than its work on one record batch.
const GRACE: Duration = Duration::from_millis(120);
/// Progress is reported five times a second.
const TOLD_EVERY: Duration = Duration::from_millis(200);

/// The state of a call while its job runs.
pub(crate) struct Task {
    pub(crate) watch: Arc<Watch>,
    /// The Python callback for progress.
    progress: Option<Py<PyAny>>,
    /// The requested memory, for messages.
    memory: Option<Memory>,
}

/// The message of a worker: a result, or a panic.
type Done<T> = thread::Result<Result<T>>;
type Waiting<T> = Mutex<Receiver<Done<T>>>;

impl Task {
    pub(crate) fn new(progress: Option<Py<PyAny>>, memory: Option<Memory>) -> Self {
        Self { watch: Arc::default(), progress, memory }
    }

    /// Runs `work` on a new thread, and waits detached from the interpreter.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        windrow_files::silence_caught_panics();
        let (send, done) = sync_channel(1);
        // A receiver alone cannot be shared with a detached thread.
        let done = Mutex::new(done);
        let work = move || {
            // Without a receiver, the result is dropped here.
            let _unheard = send.send(catch_unwind(AssertUnwindSafe(work)));
        };
        thread::Builder::new()
            .name("windrow".into())
            .spawn(work)
            .map_err(|error| PyRuntimeError::new_err(format!("no thread for the job: {error}")))?;
        let mut told = Instant::now();
        loop {
            let got = py.detach(|| wait(&done, POLL));
            let heard = py.check_signals().and_then(|()| match got {
                None if told.elapsed() >= TOLD_EVERY => {
                    told = Instant::now();
                    self.tell(py)
                }
                _ => Ok(()),
            });
            match (heard, got) {
                (Ok(()), None) => {}
                (Ok(()), Some(got)) => return self.result(py, got),
                (Err(raised), got) => {
                    self.end(py, done, got);
                    return Err(raised);
                }
            }
        }
    }

    /// Cancels the job, and drops its result.
    fn end<T: Send>(&self, py: Python<'_>, done: Waiting<T>, got: Option<Done<T>>) {
        self.watch.cancel.cancel();
        // The receiver, and what it still holds, is dropped detached, too.
        py.detach(move || drop(got.or_else(|| wait(&done, GRACE)).map(|got| got.ok())));
        self.watch.cancel.discard_outputs();
    }

    fn result<T>(&self, py: Python<'_>, got: Done<T>) -> PyResult<T> {
        match got {
            Ok(Ok(made)) => {
                self.tell(py)?;
                Ok(made)
            }
            Ok(Err(error)) => Err(exception(py, &error, self.memory.as_ref())),
            Err(panic) => {
                let what = panic.downcast_ref::<String>().map(String::as_str);
                let what = what.or_else(|| panic.downcast_ref::<&str>().copied());
                let what = what.unwrap_or("a panic");
                Err(PyRuntimeError::new_err(format!("internal error of windrow: {what}")))
            }
        }
    }

    /// Calls the progress callback.
    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        match (&self.progress, self.watch.last()) {
            (Some(progress), Some(Seen { phase, rows, total, spilled })) => {
                progress.call1(py, (phase, rows, total, spilled)).map(drop)
            }
            _ => Ok(()),
        }
    }
}

/// Waits for the message of a worker.
fn wait<T>(done: &Waiting<T>, time: Duration) -> Option<Done<T>> {
    match done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time) {
        Ok(got) => Some(got),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Ok(Err(Error::interrupted()))),
    }
}

/// The worker's end of a [`Task`]: its cancellation, and the last observed progress.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) cancel: Cancel,
    seen: Mutex<Option<Seen>>,
    /// False if the spilled bytes are to be updated; reading the number takes more locks.
    fresh: AtomicBool,
}

#[derive(Clone, Copy)]
struct Seen {
    phase: &'static str,
    rows: u64,
    total: Option<u64>,
    spilled: u64,
}

impl Watch {
    /// Returns the last progress, and requests fresh spilled bytes.
    fn last(&self) -> Option<Seen> {
        self.fresh.store(false, Ordering::Relaxed);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a moment. Threads report in any order; within a phase, the largest number of rows is
    /// the latest.
    fn take(&self, moment: &Moment<'_>, spilled: Option<u64>) {
        let phase = match moment.phase {
            Phase::Read => "read",
            Phase::Settle => "settle",
            Phase::Write => "write",
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = seen.unwrap_or(Seen { phase, rows: 0, total: None, spilled: 0 });
        let rows = if before.phase == phase { before.rows.max(moment.rows) } else { moment.rows };
        let spilled = spilled.unwrap_or(before.spilled);
        *seen = Some(Seen { phase, rows, total: moment.total, spilled });
    }
}

impl Progress for Watch {
    fn begins(&self, moment: &Moment<'_>) {
        self.take(moment, Some(moment.spilled_bytes()));
    }

    fn advances(&self, moment: &Moment<'_>) {
        let is_wanted = !self.fresh.swap(true, Ordering::Relaxed);
        self.take(moment, is_wanted.then(|| moment.spilled_bytes()));
    }
}
