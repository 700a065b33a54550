//! A file that appears complete or not at all.
//!
//! ```text
//!  create:  remove orphans -> .NAME.windrow-RANDOM.tmp beside NAME, locked -> owner and mode of NAME, if it exists
//!  commit:  fsync the file -> rename over NAME -> fsync the directory
//!  drop:    unlink
//! ```
//!
//! A killed process cannot unlink its temporary, but loses its lock. An orphan is a temporary of
//! the same output with a free lock; the next job with this output removes it. Invariant: the
//! temporary of a live process is never removed. A cleaner unlinks only while it holds the lock. A
//! writer starts again with another name if its lock is taken, or if its file was unlinked before
//! it got the lock.
//!
//! Known limit: orphans stay on file systems without locks, such as some network mounts.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::owner::take_over;
use crate::error::{Error, Result};
use crate::watch::{Cancel, Live, remove};

/// A temporary that replaces its target at the commit.
pub(super) struct AtomicFile {
    temporary: NamedTempFile,
    live: Live,
    target: PathBuf,
    directory: PathBuf,
}

/// Number of random characters in a temporary's name.
pub(super) const RANDOM: usize = 6;
/// Maximum number of attempts to claim a temporary. A cleaner rarely locks a new temporary, and for
/// microseconds only: further failures mean a broken lock.
pub(super) const TRIES: usize = 16;

/// Maximum length of a chain of links, the same as Linux's.
pub(super) const LINKS: usize = 40;

impl AtomicFile {
    /// Opens a temporary for `target`, whose directory must exist.
    pub(super) fn create(target: &Path, cancel: &Cancel) -> Result<Self> {
        let target = linked(target)?;
        let (directory, prefix) = parent(&target, "file")?;
        remove_orphans(&directory, &prefix);

        let failed = |error: io::Error| Error::output(&target, &error);
        // The umask applies to these permissions, as for any new file.
        let existing = fs::metadata(&target).ok();
        let mode = existing.as_ref().map_or(0o666, |existing| existing.mode() & 0o777);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".tmp").rand_bytes(RANDOM);
        builder.permissions(Permissions::from_mode(mode));
        for _ in 0..TRIES {
            let temporary = builder.tempfile_in(&directory).map_err(failed)?;
            if !claim(temporary.as_file()).map_err(failed)? {
                continue;
            }
            if let Some(existing) = &existing {
                // Permissions are set before the first byte is written, so that private data stays
                // private.
                take_over(temporary.as_file(), existing, &target)?;
            }
            let live = Live::new(cancel, temporary.path());
            return Ok(Self { temporary, live, target, directory });
        }
        Err(failed(io::Error::other("other processes keep locking its temporary files")))
    }

    /// Returns the file to write to.
    pub(super) fn file(&self) -> &File {
        self.temporary.as_file()
    }

    /// Makes the file durable, and moves it to the target's path.
    pub(super) fn commit(self) -> Result<()> {
        let Self { temporary, live, target, directory } = self;
        let failed = |error: io::Error| Error::output(&target, &error);
        temporary.as_file().sync_all().map_err(failed)?;
        temporary.persist(&target).map_err(|error| failed(error.error))?;
        drop(live);
        sync_parent(&directory);
        Ok(())
    }
}

/// Makes a rename durable; it becomes so later if the parent cannot be synced, as on some network
/// mounts.
pub(super) fn sync_parent(parent: &Path) {
    let _ = File::open(parent).and_then(|parent| parent.sync_all());
}

/// Returns the directory of a file or directory, which must exist, and the prefix of the names of
/// the target's temporaries.
pub(super) fn parent(target: &Path, kind: &str) -> Result<(PathBuf, OsString)> {
    let shown = target.display();
    let Some(name) = target.file_name() else {
        return Err(Error::usage(format!("{shown}: the output has no {kind} name")));
    };
    let named = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = named.unwrap_or(Path::new("."));
    if !parent.is_dir() {
        let parent = parent.display();
        let message = format!("{shown}: there is no directory {parent}; create it first");
        return Err(Error::usage(message));
    }
    let prefix = [OsStr::new("."), name, OsStr::new(".windrow-")].into_iter().collect();
    Ok((parent.to_owned(), prefix))
}

/// Follows the links of `target`. The file at their end is replaced, not the link, and need not
/// exist.
pub(super) fn linked(target: &Path) -> Result<PathBuf> {
    let mut path = target.to_owned();
    for _ in 0..LINKS {
        if let Ok(found) = fs::canonicalize(&path) {
            return Ok(found);
        }
        let Ok(next) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(Error::usage(format!("{}: the link leads back to itself", target.display())))
}

/// Locks a new temporary. Returns false if a cleaner got it first.
pub(super) fn claim(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(file.metadata()?.nlink() > 0),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes temporaries of this output whose writers are gone. Failures are ignored.
pub(super) fn remove_orphans(directory: &Path, prefix: &OsString) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let random = name
            .as_encoded_bytes()
            .strip_prefix(prefix.as_encoded_bytes())
            .and_then(|rest| rest.strip_suffix(b".tmp"));
        let ours = random.is_some_and(|random| {
            random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric)
        });
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        if let Ok(file) = OpenOptions::new().read(true).open(&path)
            && file.try_lock().is_ok()
        {
            remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::error::ErrorKind;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn replaces_only_on_commit_and_keeps_the_mode() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("out");
        fs::write(&target, "old").expect("written");
        fs::set_permissions(&target, Permissions::from_mode(0o640)).expect("changed");

        let atomic = AtomicFile::create(&target, &Cancel::new()).expect("created");
        atomic.file().write_all(b"new").expect("written");
        assert_eq!(fs::read(&target).expect("read"), b"old");
        atomic.commit().expect("committed");
        assert_eq!(fs::read(&target).expect("read"), b"new");
        let mode = fs::metadata(&target).expect("there").mode() & 0o777;
        assert_eq!(mode, 0o640);
        assert_eq!(names(directory.path()), ["out"]);
    }

    #[test]
    fn a_new_file_gets_the_mode_of_any_new_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let plain = directory.path().join("plain");
        File::create(&plain).expect("created");
        let target = directory.path().join("out");
        let atomic = AtomicFile::create(&target, &Cancel::new()).expect("created");
        atomic.commit().expect("committed");
        let mode = |path: &Path| fs::metadata(path).expect("there").mode();
        assert_eq!(mode(&target), mode(&plain));
    }

    #[test]
    fn dropping_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let atomic =
            AtomicFile::create(&directory.path().join("out"), &Cancel::new()).expect("created");
        assert_eq!(names(directory.path()).len(), 1);
        drop(atomic);
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn removes_the_orphans_of_this_output_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("out");
        let living = AtomicFile::create(&target, &Cancel::new()).expect("created");
        let living_name = living.temporary.path().file_name().expect("a name");
        let living_name = living_name.to_str().expect("UTF-8").to_owned();
        let kept = [
            ".other.windrow-abcdef.tmp",
            ".out.windrow-ab.def.tmp",
            ".out.windrow-abcdef.bak",
            "x.out.windrow-abcdef.tmp",
        ];
        for name in kept.iter().chain(&[".out.windrow-abcdef.tmp"]) {
            fs::write(directory.path().join(name), "").expect("written");
        }
        let second = AtomicFile::create(&target, &Cancel::new()).expect("created");
        drop(second);
        let mut expected: Vec<String> = kept.iter().map(ToString::to_string).collect();
        expected.push(living_name);
        expected.sort();
        assert_eq!(names(directory.path()), expected);
    }

    #[test]
    fn follows_links() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        let atomic = AtomicFile::create(&link, &Cancel::new()).expect("created");
        atomic.file().write_all(b"new").expect("written");
        atomic.commit().expect("committed");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read(&file).expect("read"), b"new");

        let far = directory.path().join("far");
        fs::create_dir(&far).expect("created");
        let (first, second) = (directory.path().join("first"), far.join("second"));
        std::os::unix::fs::symlink("far/second", &first).expect("linked");
        std::os::unix::fs::symlink("third", &second).expect("linked");
        let atomic = AtomicFile::create(&first, &Cancel::new()).expect("created");
        atomic.commit().expect("committed");
        assert!(fs::symlink_metadata(&second).expect("there").is_symlink());
        assert!(far.join("third").is_file());

        let round = directory.path().join("round");
        std::os::unix::fs::symlink("round", &round).expect("linked");
        assert!(
            AtomicFile::create(&round, &Cancel::new())
                .is_err_and(|error| error.kind() == ErrorKind::Usage)
        );
    }
}
