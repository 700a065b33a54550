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
//! Other programs may write to the directory without the lock. The entries are therefore compared
//! with those at the start, before the exchange and after it.
//!
//! Known limits. The file system needs hard links, locks of directories and the exchange of names
//! (Linux: not NFS, for instance).

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::atomic;
use super::directory::{AtomicDirectory, make_within, same};
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

/// The entries of a directory, at any depth.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entries(BTreeMap<PathBuf, Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    is_directory: bool,
    inode: u64,
    bytes: u64,
    mode: u32,
    /// Seconds and nanoseconds. Links change the time of the status, and not this time.
    modified: (i64, i64),
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
            if !open.metadata().map_err(failed)?.is_dir() {
                return Err(Error::usage(format!("{}: is not a directory", path.display())));
            }
            match open.try_lock() {
                // Another job may have exchanged the directory in the meantime.
                Ok(()) if same(&path, &open) => {
                    let (parent, prefix) = atomic::parent(&path, "directory")?;
                    atomic::remove_orphans(&parent, &prefix);
                    let entries = Entries::of(&path).map_err(failed)?;
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
        for (name, entry) in &old.entries.0 {
            let (from, to) = (old.path.join(name), new.path().join(name));
            let failed = |error: io::Error| Error::within(&to, &error);
            if entry.is_directory {
                make_within(new.path(), &name.join("x"))?;
                fs::set_permissions(&to, Permissions::from_mode(entry.mode & 0o7777))
                    .map_err(failed)?;
            } else if !removed.contains(name) {
                fs::hard_link(&from, &to).map_err(failed)?;
            }
        }
        new.exchange(|path| {
            let entries = Entries::of(path).map_err(|error| Error::output(path, &error))?;
            match entries == old.entries {
                true => Ok(()),
                false => Err(Error::space(format!(
                    "{}: another program changed it during the job, and it was left as it is; keep other \
                     programs away from it and run the job again",
                    old.path.display()
                ))),
            }
        })
    }
}

impl Entries {
    fn of(directory: &Path) -> io::Result<Self> {
        let mut found = BTreeMap::new();
        let mut directories = vec![PathBuf::new()];
        while let Some(below) = directories.pop() {
            for entry in fs::read_dir(directory.join(&below))? {
                let entry = entry?;
                let (about, name) = (entry.metadata()?, below.join(entry.file_name()));
                let is_directory = about.is_dir();
                if is_directory {
                    directories.push(name.clone());
                }
                // The time of a directory changes with its entries, which are compared themselves.
                let modified = match is_directory {
                    true => (0, 0),
                    false => (about.mtime(), about.mtime_nsec()),
                };
                let bytes = if is_directory { 0 } else { about.len() };
                let (inode, mode) = (about.ino(), about.mode());
                found.insert(name, Entry { is_directory, inode, bytes, mode, modified });
            }
        }
        Ok(Self(found))
    }
}
