//! One job on a thread of its own, while the caller's thread looks out for signals and tells how far it is.
//!
//! ```text
//! caller   detach: wait POLL -> check_signals -> progress -> detach: wait POLL -> ... -> result
//!                                    | raised: Cancel, wait GRACE, raise
//! worker   work() ------------------------------------------------------------------> done
//! ```
//!
//! Python handles signals in its main thread only, and only when that is attached. A worker that waits for a
//! producer of the caller's does not see the request; it is left to end by itself, with nothing on disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use windrow_files::{Cancel, Error, Moment, Phase, Progress, Result};

use crate::errors::exception;
use crate::memory::Memory;

/// How long a signal waits at the most.
const POLL: Duration = Duration::from_millis(50);
/// How long a cancelled job is waited for: longer than it works on one record batch.
const GRACE: Duration = Duration::from_millis(120);
/// Progress is told five times a second.
const TOLD_EVERY: Duration = Duration::from_millis(200);

/// What a call has in hand while its job runs.
pub(crate) struct Task {
    pub(crate) cancel: Cancel,
    pub(crate) watch: Arc<Watch>,
    /// Called with the parts of a moment.
    progress: Option<Py<PyAny>>,
    /// The memory that was asked for, for messages.
    memory: Option<Memory>,
}

/// What a worker sends: a result, or what it panicked with.
type Done<T> = thread::Result<Result<T>>;

impl Task {
    pub(crate) fn new(progress: Option<Py<PyAny>>, memory: Option<Memory>) -> Self {
        Self { cancel: Cancel::new(), watch: Arc::default(), progress, memory }
    }

    /// Does `work` on a thread of its own, and waits for it without the interpreter.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        quiet_caught_panics();
        let (send, done) = sync_channel(1);
        let work = move || {
            // If nobody waits any more, what was made is dropped here.
            let _unheard = send.send(catch_unwind(AssertUnwindSafe(work)));
        };
        thread::Builder::new()
            .name("windrow".into())
            .spawn(work)
            .map_err(|error| PyRuntimeError::new_err(format!("no thread for the job: {error}")))?;
        let mut told = Instant::now();
        let mut done = done;
        loop {
            let (waiting, got) = py.detach(move || wait(done, POLL));
            done = waiting;
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

    /// Ends the job, and drops what it made.
    fn end<T: Send>(&self, py: Python<'_>, done: Receiver<Done<T>>, got: Option<Done<T>>) {
        self.cancel.cancel();
        py.detach(move || {
            let (_done, got) = if got.is_some() { (done, got) } else { wait(done, GRACE) };
            drop(got.map(|got| got.ok()));
        });
        self.cancel.discard_outputs();
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

    /// Calls who watches.
    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        match (&self.progress, self.watch.last()) {
            (Some(progress), Some(Seen { phase, rows, total, spilled })) => {
                progress.call1(py, (phase, rows, total, spilled)).map(drop)
            }
            _ => Ok(()),
        }
    }
}

/// Waits for a worker; hands the channel back, which only one thread may have.
fn wait<T>(done: Receiver<Done<T>>, time: Duration) -> (Receiver<Done<T>>, Option<Done<T>>) {
    let got = match done.recv_timeout(time) {
        Ok(got) => Some(got),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Ok(Err(Error::interrupted()))),
    };
    (done, got)
}

/// The last moment of a job that was seen.
#[derive(Default)]
pub(crate) struct Watch {
    seen: Mutex<Option<Seen>>,
    /// Whether bytes spilled are those of a moment since the last was wanted: to ask for them takes more locks.
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
    /// The last moment, and asks for another one.
    fn last(&self) -> Option<Seen> {
        self.fresh.store(false, Ordering::Relaxed);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a moment. Threads come in any order: of one phase the later moment has more rows.
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

/// Keeps panics that become errors of an input from being printed as well. Other panics are printed as before.
fn quiet_caught_panics() {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !windrow_files::panics_are_caught() {
                others(panic);
            }
        }));
    });
}
