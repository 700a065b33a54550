//! What the loops of a job look at once a record batch or column: is the job to go on, and is resident
//! memory near its limit?
//!
//! ```text
//! caller --> Cancel --\
//!                      Watch --> pause()        each loop, each record batch
//! limit --> resident -/      --> room_for(n)    before a large copy is made
//!                            --> kept()         before what was done counts
//! ```
//!
//! **Free blocks.** What is planned is what is in use. The allocator has more: blocks that are free, between
//! others, and fit none of those asked for. A merge of nested columns held 25 MiB, and 100 were resident. To
//! give them back takes milliseconds, so it is done where it matters: from [`MARGIN`] below the limit on,
//! each time that resident memory has grown by [`STEP`] since, and where what is about to be taken would
//! pass the limit if none of it came from free blocks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::longest::Longest;
use crate::size::Size;
use crate::system;

/// An eighth of the limit, and so much at the least: what is taken between two looks.
const MARGIN: u64 = 8 << 20;
/// Less is not worth the way through all free blocks.
const STEP: u64 = 2 << 20;

/// A request to end a job, made from any thread.
///
/// Clones are of one request. A job ends with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) at
/// the next record batch, and leaves nothing behind; a thread that waits for a pipe does not look.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Requested>);

#[derive(Debug, Default)]
struct Requested {
    flag: AtomicBool,
    /// Temporary outputs that are being written.
    outputs: Mutex<Vec<Arc<dyn Discard>>>,
}

/// What is left of an output that is being written when nobody finishes it.
pub(crate) trait Discard: std::fmt::Debug + Send + Sync {
    /// Removes it. What cannot be removed is left.
    fn discard(&self);
}

impl Discard for PathBuf {
    fn discard(&self) {
        remove(self);
    }
}

impl Cancel {
    /// No request yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the request.
    pub fn cancel(&self) {
        self.0.flag.store(true, Ordering::Relaxed);
    }

    /// Whether it was made.
    pub fn is_cancelled(&self) -> bool {
        self.0.flag.load(Ordering::Relaxed)
    }

    /// Removes the temporary outputs of the jobs that look at this request, which then fail: for a process
    /// that is about to end without waiting for them. Nothing else of a job has a name on disk, or in a store.
    pub fn discard_outputs(&self) {
        // Not under the lock: to abort an upload takes its time, and its writer may be about to do so.
        let outputs = std::mem::take(&mut *self.outputs());
        for output in outputs {
            output.discard();
        }
    }

    /// Fails if the request was made.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::interrupted()) } else { Ok(()) }
    }

    fn outputs(&self) -> MutexGuard<'_, Vec<Arc<dyn Discard>>> {
        self.0.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A temporary output, known to who cancels while it lives.
pub(crate) struct Live {
    cancel: Cancel,
    output: Arc<dyn Discard>,
}

impl Live {
    /// A temporary file or directory.
    pub(crate) fn new(cancel: &Cancel, path: &Path) -> Self {
        Self::of(cancel, Arc::new(path.to_owned()))
    }

    pub(crate) fn of(cancel: &Cancel, output: Arc<dyn Discard>) -> Self {
        cancel.outputs().push(Arc::clone(&output));
        Self { cancel: cancel.clone(), output }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.cancel.outputs().retain(|output| !Arc::ptr_eq(output, &self.output));
    }
}

/// What the loops of one job look at. Clones are of one job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) cancel: Cancel,
    /// The longest row that is planned for.
    pub(crate) longest: Longest,
    resident: Option<Arc<Resident>>,
}

/// When free blocks are given back next.
#[derive(Debug)]
struct Resident {
    /// What resident memory is to stay below.
    limit: u64,
    /// The most that was resident before the job, if that is all that the process does.
    before: Option<u64>,
    /// Resident memory at which free blocks are given back first.
    first: u64,
    /// The same, of the next time.
    next: AtomicU64,
}

impl Watch {
    /// True if memory has a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.resident.is_some()
    }

    /// Looks at `cancel`, and, if there is a limit, at resident memory; at its peak too if the job is `alone`.
    pub(crate) fn new(cancel: &Cancel, limit: Option<u64>, alone: bool) -> Self {
        let resident = limit.map(|limit| {
            let first = limit.saturating_sub(MARGIN.max(limit / 8));
            let before = alone.then(system::peak_resident);
            Arc::new(Resident { limit, before, first, next: AtomicU64::new(first) })
        });
        Self { cancel: cancel.clone(), longest: Longest::default(), resident }
    }

    /// Gives free blocks back if it is time to; fails if the job is to end.
    pub(crate) fn pause(&self) -> Result<()> {
        self.room_for(0);
        self.cancel.check()
    }

    /// Fails if a job that is alone has had more memory resident than its limit: what was planned was too little,
    /// and nobody noticed. The last thing to look at before an output appears.
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

    /// Gives free blocks back if it is time to, or if there would not be room for `bytes` more that are
    /// taken before the next look.
    pub(crate) fn room_for(&self, bytes: usize) {
        let Some(Resident { limit, first, next, .. }) = self.resident.as_deref() else { return };
        let resident = system::resident_now();
        // What is resident is known to some pages a thread, and other threads take memory meanwhile.
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

/// Removes a temporary, file or directory. What cannot be removed is left.
pub(crate) fn remove(path: &Path) {
    /// Files that a thread makes in a directory while it is being removed.
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

/// Removes a directory with one descriptor at a time; `remove_dir_all` takes one a level, and a job may end
/// because there are no more.
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
