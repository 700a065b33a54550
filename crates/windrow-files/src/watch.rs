//! Checks made by the loops of a job once per record batch or column: cancellation, and resident
//! memory near the limit.
//!
//! ```text
//! caller --> Cancel --\
//!                      Watch --> pause()        each loop, each record batch
//! limit --> resident -/      --> room_for(n)    before a large copy is made
//!                            --> kept()         before what was done counts
//! ```
//!
//! **Free blocks.** The plan counts memory in use. The allocator holds more: free blocks between
//! blocks in use, too small for new requests. A merge of nested columns used 25 MiB while 100 MiB
//! were resident. Returning free blocks to the system takes milliseconds, so the guard does so only
//! near the limit: from [`MARGIN`] below the limit on, each time resident memory has grown by
//! [`STEP`] since, and where a large allocation would exceed the limit if no part came from free
//! blocks.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::{fs, io};

use crate::error::{Error, Result};
use crate::lock::lock;
use crate::longest::Longest;
use crate::size::Size;
use crate::system;

/// Minimum of the margin below the limit, which is otherwise 1/8 of the limit: memory taken between
/// two checks.
const MARGIN: u64 = 8 << 20;
/// Minimum growth that is worth a scan of all free blocks.
const STEP: u64 = 2 << 20;

/// A request to end a job, made from any thread.
///
/// Clones share one request. A job ends with
/// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) at the next record batch, and leaves
/// nothing behind. A thread blocked by a pipe does not notice the request.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Requested>);

#[derive(Debug, Default)]
struct Requested {
    flag: AtomicBool,
    /// Temporary outputs being written.
    outputs: Mutex<Vec<Arc<dyn Discard>>>,
}

/// An unfinished output, to be removed if its job does not finish.
pub(crate) trait Discard: std::fmt::Debug + Send + Sync {
    /// Removes the output. Errors are ignored.
    fn discard(&self);
}

impl Discard for PathBuf {
    fn discard(&self) {
        remove(self);
    }
}

impl Cancel {
    /// Returns a new, unset request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the request.
    pub fn cancel(&self) {
        self.0.flag.store(true, Ordering::Relaxed);
    }

    /// Returns true if the request is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.flag.load(Ordering::Relaxed)
    }

    /// Removes the temporary outputs of the jobs with this request; the jobs then fail. For a
    /// process that is about to exit without waiting for its jobs. A job has nothing else with a
    /// name on disk or in a store.
    pub fn discard_outputs(&self) {
        // Not under the lock: aborting an upload takes time, and the upload's writer may be about
        // to abort it.
        let outputs = std::mem::take(&mut *lock(&self.0.outputs));
        for output in outputs {
            output.discard();
        }
    }

    /// Returns an error if the request is set.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::interrupted()) } else { Ok(()) }
    }
}

/// A temporary output, registered with `cancel` for the lifetime of the value.
pub(crate) struct Live {
    cancel: Cancel,
    output: Arc<dyn Discard>,
}

impl Live {
    /// Registers a temporary file or directory.
    pub(crate) fn new(cancel: &Cancel, path: &Path) -> Self {
        Self::of(cancel, Arc::new(path.to_owned()))
    }

    pub(crate) fn of(cancel: &Cancel, output: Arc<dyn Discard>) -> Self {
        lock(&cancel.0.outputs).push(Arc::clone(&output));
        Self { cancel: cancel.clone(), output }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        lock(&self.cancel.0.outputs).retain(|output| !Arc::ptr_eq(output, &self.output));
    }
}

/// The checks of one job. Clones share their state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) cancel: Cancel,
    /// The longest row covered by the plan.
    pub(crate) longest: Longest,
    resident: Option<Arc<Resident>>,
}

/// The guard of resident memory: schedules the return of free blocks.
#[derive(Debug)]
struct Resident {
    /// The memory limit.
    limit: u64,
    /// Peak resident memory before the job; `None` unless the process runs nothing else.
    before: Option<u64>,
    /// Resident memory from which free blocks are returned for the first time.
    first: u64,
    /// Resident memory from which free blocks are returned the next time.
    next: AtomicU64,
}

impl Watch {
    /// Returns true if memory is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.resident.is_some()
    }

    /// Returns the checks of `cancel` and, if there is a limit, of resident memory. A job that is
    /// `alone` also has its peak checked.
    pub(crate) fn new(cancel: &Cancel, limit: Option<u64>, alone: bool) -> Self {
        let resident = limit.map(|limit| {
            let first = limit.saturating_sub(MARGIN.max(limit / 8));
            let before = alone.then(system::peak_resident);
            Arc::new(Resident { limit, before, first, next: AtomicU64::new(first) })
        });
        Self { cancel: cancel.clone(), longest: Longest::default(), resident }
    }

    /// Returns free blocks to the system if due; fails if the job is cancelled.
    pub(crate) fn pause(&self) -> Result<()> {
        self.room_for(0);
        self.cancel.check()
    }

    /// Fails if a job that is alone has exceeded its limit: the plan was too low and no check
    /// noticed. To be called last, before an output appears.
    pub(crate) fn kept(&self) -> Result<()> {
        let Some(Resident { limit, before: Some(before), .. }) = self.resident.as_deref() else {
            return Ok(());
        };
        let peak = system::peak_resident();
        if peak <= *limit.max(before) {
            return Ok(());
        }
        let enough = Size(peak + peak / 8).rounded_up();
        let message = format!(
            "the job had {} resident, where it may have {}: its rows are more uneven than the plan knew; raise \
             `memory_limit` to {enough}",
            Size(peak).exactly(),
            Size(*limit).exactly(),
        );
        Err(Error::memory_floor(message, enough.0, *limit))
    }

    /// Returns free blocks to the system if due, or if `bytes` more, allocated before the next
    /// check, would exceed the limit.
    pub(crate) fn room_for(&self, bytes: usize) {
        let Some(Resident { limit, first, next, .. }) = self.resident.as_deref() else { return };
        let resident = system::resident_now();
        // The figure is exact to some pages a thread, and other threads allocate meanwhile.
        let wanted = resident.saturating_add(bytes as u64).saturating_add(STEP);
        let due = next.load(Ordering::Relaxed);
        if resident >= due || wanted > *limit {
            windrow::give_back_free_blocks();
            next.store((system::resident_now() + STEP).max(*first), Ordering::Relaxed);
        } else if resident + STEP < due {
            next.store((resident + STEP).max(*first), Ordering::Relaxed);
        }
    }
}

/// Removes a temporary file or directory. Errors are ignored.
pub(crate) fn remove(path: &Path) {
    /// Attempts: a thread may create files in a directory during its removal.
    const LATE: usize = 8;
    if !path.is_dir() {
        let _ = fs::remove_file(path);
        return;
    }
    for _ in 0..LATE {
        if fs::remove_dir_all(path).is_ok() || remove_by_path(path).is_ok() {
            return;
        }
    }
}

/// Removes a directory with a single open descriptor; `remove_dir_all` needs one per level, and a
/// job may have ended for lack of descriptors.
fn remove_by_path(directory: &Path) -> io::Result<()> {
    // Entries keep their directory open.
    let named = |entry: io::Result<fs::DirEntry>| {
        entry.and_then(|entry| Ok((entry.path(), entry.file_type()?.is_dir())))
    };
    let entries: Vec<_> = fs::read_dir(directory)?.map(named).collect::<io::Result<_>>()?;
    for (path, is_directory) in entries {
        if is_directory {
            remove_by_path(&path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    fs::remove_dir(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_request_reaches_all_clones_and_takes_their_outputs() {
        let (cancel, other) = (Cancel::new(), Cancel::new());
        let watch = Watch::new(&cancel, Some(1 << 40), false);
        assert!(watch.pause().is_ok());
        let directory = tempfile::tempdir().unwrap();
        let paths = ["a", "b", "c"].map(|name| directory.path().join(name));
        paths.iter().for_each(|path| std::fs::write(path, "").unwrap());
        let _first = Live::new(&cancel, &paths[0]);
        let _foreign = Live::new(&other, &paths[1]);
        drop(Live::new(&cancel, &paths[2]));
        cancel.clone().cancel();
        assert!(watch.pause().is_err_and(|error| error.kind() == ErrorKind::Interrupted));
        assert!(!other.is_cancelled());
        cancel.discard_outputs();
        assert_eq!(paths.map(|path| path.exists()), [false, true, true]);
    }
}
