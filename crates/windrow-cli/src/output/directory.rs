//! A directory of files that appears whole or not at all.
//!
//! ```text
//!  check:   DIR is not there, or empty; nothing else is ever replaced
//!  create:  remove orphans -> .NAME.windrow-RANDOM.tmp/ beside DIR, locked -> mode of DIR, if it exists
//!  commit:  sync the file system -> rename over DIR, which fails unless it is still empty -> sync again
//!  drop:    remove with all files
//! ```
//!
//! A mount point and the working directory cannot be replaced: they keep their place. The temporary is made
//! in such a directory, and at the end its entries are moved up, one after the other. Known limit: who looks
//! in that moment sees some of them.
//!
//! Orphans and locks are those of [`super::atomic`]; the lock is that of the directory itself, which
//! stays open. The files in it need no care of their own: nobody sees them before the rename.
//!
//! One sync serves all files, thousands perhaps: an fsync for each would wait for the disk as often.
//! It waits for what else is dirty on the file system, too.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::atomic::{self, Live, RANDOM, TRIES};
use crate::error::{CliError, Result};

/// A temporary directory that becomes its target when it is committed.
pub(crate) struct AtomicDirectory {
    temporary: TempDir,
    /// Holds the lock.
    open: File,
    live: Live,
    place: Place,
}

/// Where a directory goes.
struct Place {
    /// Its path, links followed.
    target: PathBuf,
    /// Where the temporary is made: the parent, or the directory itself if that is kept.
    parent: PathBuf,
    kept: bool,
}

impl AtomicDirectory {
    /// Refuses a target that [`AtomicDirectory::create`] would refuse.
    ///
    /// # Errors
    /// `Usage` if the target is a file, a directory with anything in it, or in none.
    pub(crate) fn check(target: &Path) -> Result<()> {
        Place::of(target).map(drop)
    }

    /// Makes a temporary for `target`.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        let place = Place::of(target)?;
        let prefix = prefix(&place.target);
        atomic::remove_orphans(&place.parent, &prefix);

        let failed = |error: io::Error| CliError::output(&place.target, &error);
        let existing = fs::metadata(&place.target).ok().map(|found| found.mode() & 0o777);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".tmp").rand_bytes(RANDOM);
        builder.permissions(Permissions::from_mode(existing.unwrap_or(0o777)));
        for _ in 0..TRIES {
            let temporary = builder.tempdir_in(&place.parent).map_err(failed)?;
            let Ok(open) = File::open(temporary.path()) else { continue };
            // Its link count does not tell on every file system whether a cleaner was faster.
            let there = || fs::metadata(temporary.path()).is_ok_and(|found| same(&found, &open));
            if !atomic::claim(&open).map_err(failed)? || !there() {
                continue;
            }
            if let Some(mode) = existing {
                open.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
            }
            let live = Live::new(temporary.path());
            return Ok(Self { temporary, open, live, place });
        }
        Err(failed(io::Error::other("other processes keep locking its temporary directories")))
    }

    /// Where the files go.
    pub(crate) fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Makes everything durable and puts it in place of the target.
    pub(crate) fn commit(self) -> Result<()> {
        let Self { temporary, open, live, place: Place { target, parent, kept } } = self;
        let failed = |error: io::Error| CliError::output(&target, &error);
        sync(&open).map_err(failed)?;
        if kept {
            move_up(temporary.path(), &target).map_err(failed)?;
            drop(live);
        } else {
            fs::rename(temporary.path(), &target).map_err(failed)?;
            drop(live);
            // What has the old name now is not ours.
            let _ = temporary.keep();
        }
        // The rename is done; a parent that cannot be synced only delays it.
        if let Ok(parent) = File::open(parent) {
            let _ = parent.sync_all();
        }
        Ok(())
    }
}

impl Place {
    fn of(target: &Path) -> Result<Self> {
        let usage = |message: String| Err(CliError::Usage(message));
        let target = atomic::linked(target)?;
        let shown = target.display();
        if target.file_name().is_none() {
            return usage(format!("{shown}: the output has no directory name"));
        }
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        if !parent.is_dir() {
            let parent = parent.display();
            return usage(format!("{shown}: there is no directory {parent}; create it first"));
        }
        let kept = keeps_its_place(&target, &parent);
        let parent = if kept { target.clone() } else { parent };
        if kept {
            atomic::remove_orphans(&parent, &prefix(&target));
        }
        match fs::read_dir(&target).map(|mut entries| entries.next().is_some()) {
            Ok(true) => usage(format!(
                "{shown}: the directory is not empty, and nothing in it is overwritten; name a new \
                 one, or empty it first"
            )),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                usage(format!("{shown}: is not a directory, and partitions are many files"))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(CliError::output(&target, &error))
            }
            _ => Ok(Self { target, parent, kept }),
        }
    }
}

/// How the temporaries of `target` begin.
fn prefix(target: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().unwrap_or_default());
    prefix.push(".windrow-");
    prefix
}

/// Whether `target` is a directory in which something is mounted, or the one that we are in.
fn keeps_its_place(target: &Path, parent: &Path) -> bool {
    let here = std::env::current_dir().and_then(fs::canonicalize);
    target.is_dir() && (here.is_ok_and(|here| here == target) || mount(target) != mount(parent))
}

/// What tells the mount that `path` is in: its number where the kernel has one, and the device.
fn mount(path: &Path) -> Option<(u64, u64)> {
    let device = fs::metadata(path).ok()?.dev();
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
        let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok();
        Some((device, found.map_or(0, |found| found.stx_mnt_id)))
    }
    #[cfg(not(target_os = "linux"))]
    Some((device, 0))
}

/// Moves the entries of `temporary` to `target`, the directory that it is in and that has nothing else.
fn move_up(temporary: &Path, target: &Path) -> io::Result<()> {
    for entry in fs::read_dir(target)? {
        if entry?.path().file_name() != temporary.file_name() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
    }
    let mut moved = Vec::new();
    let done = fs::read_dir(temporary)?.try_for_each(|entry| {
        let from = entry?.path();
        let to = target.join(from.file_name().unwrap_or_default());
        fs::rename(&from, &to)?;
        moved.push(to);
        Ok(())
    });
    if done.is_err() {
        moved.iter().for_each(|path| atomic::remove(path));
    }
    done
}

fn same(found: &fs::Metadata, open: &File) -> bool {
    open.metadata().is_ok_and(|open| (open.dev(), open.ino()) == (found.dev(), found.ino()))
}

/// Waits until everything on the file system of `directory` is on disk.
#[cfg(target_os = "linux")]
fn sync(directory: &File) -> io::Result<()> {
    rustix::fs::syncfs(directory).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn sync(directory: &File) -> io::Result<()> {
    directory.sync_all()?;
    rustix::fs::sync();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    #[test]
    fn appears_only_on_commit() {
        let parent = tempfile::tempdir().expect("a directory");
        let target = parent.path().join("parts");
        let made = AtomicDirectory::create(&target).expect("created");
        fs::write(made.path().join("a"), "1").expect("written");
        assert!(!target.exists());
        made.commit().expect("committed");
        assert_eq!(names(parent.path()), ["parts"]);
        assert_eq!(names(&target), ["a"]);
        let mode = |path: &Path| fs::metadata(path).expect("there").mode();
        fs::create_dir(parent.path().join("plain")).expect("created");
        assert_eq!(mode(&target), mode(&parent.path().join("plain")));
    }

    #[test]
    fn takes_the_place_of_an_empty_directory_only() {
        let parent = tempfile::tempdir().expect("a directory");
        let target = parent.path().join("parts");
        fs::create_dir(&target).expect("created");
        fs::set_permissions(&target, Permissions::from_mode(0o750)).expect("changed");
        AtomicDirectory::create(&target).expect("created").commit().expect("committed");
        assert_eq!(fs::metadata(&target).expect("there").mode() & 0o777, 0o750);
        let made = AtomicDirectory::create(&target).expect("created");
        fs::write(target.join("late"), "").expect("written");
        assert!(AtomicDirectory::check(&target).is_err());
        assert!(AtomicDirectory::create(&target).is_err());
        made.commit().expect_err("no longer empty");
        assert_eq!(names(&target), ["late"]);
        assert_eq!(names(parent.path()), ["parts"]);
        assert!(AtomicDirectory::check(&target.join("late")).is_err());
        assert!(AtomicDirectory::check(&parent.path().join("no/parts")).is_err());
    }

    #[test]
    fn a_directory_that_keeps_its_place_gets_the_files() {
        let parent = tempfile::tempdir().expect("a directory");
        let target = parent.path().join("mounted");
        fs::create_dir(&target).expect("created");
        assert!(!keeps_its_place(&target, parent.path()));
        assert!(keeps_its_place(Path::new("/proc"), Path::new("/")));

        let temporary = target.join(".mounted.windrow-abcdef.tmp");
        fs::create_dir_all(temporary.join("x=1")).expect("created");
        fs::write(temporary.join("a"), "1").expect("written");
        fs::write(target.join("late"), "").expect("written");
        move_up(&temporary, &target).expect_err("no longer empty");
        fs::remove_file(target.join("late")).expect("removed");
        move_up(&temporary, &target).expect("moved");
        fs::remove_dir(&temporary).expect("it is empty");
        assert_eq!(names(&target), ["a", "x=1"]);
    }

    #[test]
    fn dropping_leaves_nothing_and_orphans_go() {
        let parent = tempfile::tempdir().expect("a directory");
        let target = parent.path().join("parts");
        for name in [".parts.windrow-abcdef.tmp", ".other.windrow-abcdef.tmp"] {
            fs::create_dir_all(parent.path().join(name).join("x=1")).expect("created");
        }
        let living = AtomicDirectory::create(&target).expect("created");
        fs::create_dir(living.path().join("x=1")).expect("created");
        drop(AtomicDirectory::create(&target).expect("created"));
        assert!(living.path().join("x=1").exists());
        drop(living);
        assert_eq!(names(parent.path()), [".other.windrow-abcdef.tmp"]);
    }
}
