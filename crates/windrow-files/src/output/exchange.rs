//! A directory with content that is replaced as a whole.
//!
//! ```text
//!  lock:    DIR is locked; another job waits, or fails
//!  begin:   .NAME.windrow-RANDOM.tmp/ beside DIR, locked
//!  link:    files that stay, as hard links
//!  commit:  sync the file system -> exchange both names -> remove the old content
//! ```
//! Readers with open files go on. A killed process leaves the old or the new content at DIR, and the
//! other one under the temporary name, which the next job with this directory removes, as in
//! [`super::directory`].
//!
//! Other programs may write to the directory without the lock ([`super::entries`]).
//!
//! Known limits. The file system needs hard links, locks of directories and the exchange of names
//! (Linux: not NFS, for instance).

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::atomic;
use super::directory::{AtomicDirectory, make_within, same};
use super::entries::{Entries, entries};
use super::owner::take_over;
use crate::error::{Error, Result};
use crate::watch::Cancel;

/// Time between two attempts to lock a directory.
const PATIENCE: Duration = Duration::from_millis(50);

/// A directory that no other job replaces.
pub(crate) struct LockedDirectory {
    path: PathBuf,
    /// Holds the lock.
    _open: File,
    entries: Entries,
}

impl LockedDirectory {
    /// Locks the directory. If another job has the lock, waits for it if `waits` is true.
    ///
    /// # Errors
    /// `Usage` for a directory that another job writes to.
    pub(crate) fn lock(directory: &Path, waits: bool, cancel: &Cancel) -> Result<Self> {
        let path = atomic::linked(directory)?;
        let failed = |error: io::Error| Error::output(&path, &error);
        loop {
            cancel.check()?;
            let open = File::open(&path).map_err(|error| Error::input(&path, error))?;
            match open.try_lock() {
                // Another job may have exchanged the directory in the meantime.
                Ok(()) if same(&path, &open) => {
                    let (parent, prefix) = atomic::parent(&path, "directory")?;
                    atomic::remove_orphans(&parent, &prefix);
                    let entries = entries(&path).map_err(failed)?;
                    return Ok(Self { path, _open: open, entries });
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if waits => std::thread::sleep(PATIENCE),
                Err(TryLockError::WouldBlock) => {
                    let shown = path.display();
                    return Err(Error::space(format!(
                        "{shown}: another job writes to it; run this one again when it has ended"
                    )));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    /// Returns the path of the directory, with links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the directory has no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Creates a directory for the new content.
    pub(crate) fn begin(&self, cancel: &Cancel) -> Result<Replacement<'_>> {
        Ok(Replacement { old: self, new: AtomicDirectory::beside(&self.path, cancel)? })
    }
}

/// The new content of a directory.
pub(crate) struct Replacement<'a> {
    old: &'a LockedDirectory,
    new: AtomicDirectory,
}

impl Replacement<'_> {
    /// Returns the directory for new files.
    pub(crate) fn path(&self) -> &Path {
        self.new.path()
    }

    /// Puts the content in the place of the old one, of which all files stay but `removed`, whose
    /// paths are below the directory.
    ///
    /// # Errors
    /// `Space` if the directory changed since it was locked; it then keeps its content.
    pub(crate) fn commit(self, removed: &[PathBuf]) -> Result<()> {
        let Self { old, new } = self;
        for (name, entry) in &old.entries {
            let (from, to) = (old.path.join(name), new.path().join(name));
            if entry.file.is_none() {
                make_within(new.path(), &name.join("x"))?;
            } else if !removed.contains(name) {
                fs::hard_link(&from, &to).map_err(|error| {
                    Error::space(format!(
                        "{}: cannot be linked into the new content: {error}; a table needs hard links: one file \
                         system, and files that are one's own, or that one may write",
                        from.display()
                    ))
                })?;
            }
        }
        let directories = old.entries.iter().filter(|(_, entry)| entry.file.is_none());
        // The rights may forbid to link: those of inner directories, which follow, come first.
        for name in directories.map(|(name, _)| &**name).rev().chain([Path::new("")]) {
            let (from, to) = (old.path.join(name), new.path().join(name));
            let taken = || -> io::Result<_> { Ok((fs::metadata(&from)?, File::open(&to)?)) };
            let (about, open) = taken().map_err(|error| Error::within(&to, &error))?;
            take_over(&open, &about, &from)?;
            // The bits of a group that new files get, and of files that only their owner removes.
            let mode = open.metadata().map_or(0o700, |own| own.mode()) | about.mode() & 0o7000;
            open.set_permissions(Permissions::from_mode(mode & 0o7777))
                .map_err(|error| Error::within(&to, &error))?;
        }
        new.exchange(&old.entries)
    }
}
