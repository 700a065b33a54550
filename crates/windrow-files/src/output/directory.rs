//! A directory of files that appears complete or not at all.
//!
//! ```text
//!  check:   DIR is not there, or empty, unless its files are to be replaced or kept (see [`super::existing`])
//!  create:  remove orphans -> .NAME.windrow-RANDOM.tmp/ beside DIR, locked -> owner and mode of DIR, if it exists
//!  commit:  sync the file system -> all files are there -> rename over DIR, which fails unless it is still
//!           empty -> sync again
//!  drop:    remove with all files
//! ```
//!
//! A mount point and the working directory cannot be replaced and stay in place. The temporary
//! directory is then made inside, and at the end its entries are moved up one by one. Known limit:
//! during this moment, readers see some of the entries.
//!
//! Orphans and locks work as in [`super::atomic`]; the lock is on the directory itself, which stays
//! open. The files inside need no protection: they become visible with the rename.
//!
//! Another program may remove or move the temporary directory, or parts of it, while files are
//! written. Directories are therefore only made inside ([`make_within`]), and the temporary
//! directory itself is never made again. Before the rename, `commit` checks that the path still
//! names the open directory, with the number of files and bytes written.
//!
//! A single sync serves all files, perhaps thousands: an fsync per file would wait for the disk
//! each time. The sync also waits for other dirty data on the file system.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::atomic::{self, RANDOM, TRIES};
use super::entries::{Contents, Entries, exchange};
use super::existing;
use super::owner::take_over;
use crate::error::{Error, Result};
use crate::settings::{Existing, Setting};
use crate::watch::{Cancel, Live, remove};

/// A temporary directory that becomes its target on commit.
pub(crate) struct AtomicDirectory {
    /// Holds the lock. Closed first: removing a directory takes a descriptor, and the job may have
    /// ended for lack of descriptors.
    open: File,
    temporary: Temporary,
    live: Live,
    place: Place,
}

/// Removes the directory with its content on drop, even if only one more file can be opened.
struct Temporary(Option<TempDir>);

impl Temporary {
    fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Gives up the directory: the name now belongs to another owner.
    fn keep(mut self) {
        let _ = self.0.take().map(TempDir::keep);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(directory) = &self.0 {
            remove(directory.path());
        }
    }
}

/// The location of a directory.
struct Place {
    /// The path of the directory, with links resolved.
    target: PathBuf,
    /// The parent of the temporary directory: the target's parent, or the target if it stays in
    /// place.
    parent: PathBuf,
    /// Start of the temporary directory's name.
    prefix: OsString,
    kept: bool,
    /// What becomes of the files that the target has.
    existing: Existing,
    /// The entries of the target, unless it must be new or empty.
    old: Option<Entries>,
}

impl AtomicDirectory {
    /// Returns an error for a target that [`AtomicDirectory::create`] would reject.
    ///
    /// # Errors
    /// `Usage` if the target is a file or a directory with content that has to stay, or if its
    /// parent is missing.
    pub(crate) fn check(target: &Path, existing: Existing) -> Result<()> {
        Place::of(target, existing).map(drop)
    }

    /// Creates a temporary directory for `target`.
    pub(crate) fn create(target: &Path, existing: Existing, cancel: &Cancel) -> Result<Self> {
        Self::create_at(Place::of(target, existing)?, cancel)
    }

    /// Creates a temporary directory to [take the place](Self::exchange) of `target`, which exists.
    ///
    /// # Errors
    /// `Usage` for a mount point and for the working directory, which keep their place.
    pub(super) fn beside(target: &Path, cancel: &Cancel) -> Result<Self> {
        let target = atomic::linked(target)?;
        let (parent, prefix) = atomic::parent(&target, "directory")?;
        let shown = target.display();
        if keeps_its_place(&target, &parent) {
            return Err(Error::usage(format!(
                "{shown}: is a mount point or the working directory, and cannot be replaced as a whole; run \
                 the job elsewhere, or put the files into a directory below it"
            )));
        }
        if rustix::fs::access(&parent, rustix::fs::Access::WRITE_OK).is_err() {
            return Err(Error::space(format!(
                "{shown}: the new content is made beside it, and the directory with it cannot be written to; \
                 get the right to, or put the table into a directory of its own"
            )));
        }
        let (kept, existing) = (false, Existing::Error);
        Self::create_at(Place { target, parent, prefix, kept, existing, old: None }, cancel)
    }

    /// Creates a temporary directory inside `target`, to [add](Self::add) files to it.
    pub(crate) fn inside(target: &Path, cancel: &Cancel) -> Result<Self> {
        let target = atomic::linked(target)?;
        let (_, prefix) = atomic::parent(&target, "directory")?;
        let (parent, kept, existing) = (target.clone(), true, Existing::Error);
        Self::create_at(Place { target, parent, prefix, kept, existing, old: None }, cancel)
    }

    fn create_at(place: Place, cancel: &Cancel) -> Result<Self> {
        atomic::remove_orphans(&place.parent, &place.prefix);

        let failed = |error: io::Error| Error::output(&place.target, &error);
        let existing = fs::metadata(&place.target).ok();
        let mode = existing.as_ref().map_or(0o777, |existing| existing.mode() & 0o777);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&place.prefix).suffix(".tmp").rand_bytes(RANDOM);
        builder.permissions(Permissions::from_mode(mode));
        for _ in 0..TRIES {
            let temporary = builder.tempdir_in(&place.parent).map_err(failed)?;
            let Ok(open) = File::open(temporary.path()) else { continue };
            // On some file systems the link count does not reveal a removal by another process.
            if !atomic::claim(&open).map_err(failed)? || !same(temporary.path(), &open) {
                continue;
            }
            if let Some(existing) = &existing {
                take_over(&open, existing, &place.target)?;
            }
            let live = Live::new(cancel, temporary.path());
            return Ok(Self { open, temporary: Temporary(Some(temporary)), live, place });
        }
        Err(failed(io::Error::other("other processes keep locking its temporary directories")))
    }

    /// Makes all files durable and exchanges the directory for its target, which had the entries `old`;
    /// then removes the target's old content.
    pub(super) fn exchange(self, old: &Entries) -> Result<()> {
        let Self { temporary, open, live, place: Place { target, parent, .. } } = self;
        sync(&open).map_err(|error| Error::output(&target, &error))?;
        exchange(&target, temporary.path(), old)?;
        atomic::sync_parent(&parent);
        drop((temporary, live));
        Ok(())
    }

    /// Makes all files durable and links `files`, whose paths are below the directory, to the same
    /// paths below the target: all of them or none. Nothing is overwritten.
    pub(crate) fn add<'a>(self, files: impl Iterator<Item = &'a Path>) -> Result<()> {
        sync(&self.open).map_err(|error| Error::output(&self.place.target, &error))?;
        let mut linked = Vec::<PathBuf>::new();
        for name in files {
            let to = self.place.target.join(name);
            let made = fs::create_dir_all(to.parent().unwrap_or(&self.place.target));
            if let Err(error) = made.and_then(|()| fs::hard_link(self.path().join(name), &to)) {
                linked.iter().for_each(|path| remove(path));
                return Err(Error::output(&to, &error));
            }
            linked.push(to);
        }
        let synced = File::open(&self.place.target).and_then(|target| target.sync_all());
        synced.map_err(|error| Error::output(&self.place.target, &error))
    }

    /// Returns the directory for the files.
    pub(crate) fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Makes all files durable and replaces the target by the directory.
    ///
    /// # Errors
    /// `Space` if the temporary directory was moved, or its content differs from `written`.
    pub(crate) fn commit(self, written: Contents) -> Result<()> {
        let Self {
            temporary,
            open,
            live,
            place: Place { target, parent, kept, existing, old, .. },
        } = self;
        let failed = |error: io::Error| Error::output(&target, &error);
        sync(&open).map_err(failed)?;
        let path = temporary.path();
        let lost = |what: String| {
            Err(Error::space(format!(
                "{}: {what}; nothing was put in its place: keep other programs away from {} and run the \
                 job again",
                target.display(),
                path.display()
            )))
        };
        if !same(path, &open) {
            let error =
                lost("its temporary directory was removed or moved during the job".to_owned());
            // An entry of this name now belongs to another owner.
            temporary.keep();
            return error;
        }
        let found = Contents::of(path).map_err(failed)?;
        if found != written {
            return lost(format!(
                "its temporary directory has {} files of {} bytes, and {} of {} were written",
                found.files, found.bytes, written.files, written.bytes
            ));
        }
        if let Some(old) = old {
            existing::replace(&target, &old, path, existing)?;
            drop((temporary, live));
        } else if kept {
            move_up(temporary.path(), &target).map_err(failed)?;
            drop(live);
        } else {
            fs::rename(temporary.path(), &target).map_err(failed)?;
            drop(live);
            // An entry of the old name now belongs to another owner.
            temporary.keep();
        }
        atomic::sync_parent(&parent);
        Ok(())
    }
}

/// Creates the parent directories of the file `name` in `directory`, which must exist.
pub(crate) fn make_within(directory: &Path, name: &Path) -> Result<()> {
    let mut path = directory.to_owned();
    for part in name.parent().into_iter().flat_map(Path::components) {
        path.push(part);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::within(&path, &error));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Place {
    fn of(target: &Path, existing: Existing) -> Result<Self> {
        let usage = |message: String| Err(Error::usage(message));
        let target = atomic::linked(target)?;
        let shown = target.display();
        let (parent, prefix) = atomic::parent(&target, "directory")?;
        let kept = keeps_its_place(&target, &parent);
        let parent = if kept { target.clone() } else { parent };
        if kept {
            atomic::remove_orphans(&parent, &prefix);
        }
        match has_content(&target) {
            Ok(true) if existing == Existing::Error => usage(format!(
                "{shown}: the directory is not empty, and nothing in it is overwritten; name a new \
                 one, empty it first, or say with {} what becomes of its files",
                Setting::IfExists
            )),
            Ok(true) if kept => usage(format!(
                "{shown}: a mount point or the working directory cannot be replaced at once; name a \
                 directory in it"
            )),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                usage(format!("{shown}: is not a directory, and partitions are many files"))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::output(&target, &error))
            }
            found => {
                let old = found.is_ok_and(|has_content| has_content);
                let old = old.then(|| existing::check(&target, existing)).transpose()?;
                Ok(Self { target, parent, prefix, kept, existing, old })
            }
        }
    }
}

/// Returns true if a directory has entries.
fn has_content(directory: &Path) -> io::Result<bool> {
    fs::read_dir(directory).map(|mut entries| entries.next().is_some())
}

/// Returns true if `target` is a mount point or the working directory.
fn keeps_its_place(target: &Path, parent: &Path) -> bool {
    let here = std::env::current_dir().and_then(fs::canonicalize);
    target.is_dir() && (here.is_ok_and(|here| here == target) || mount(target) != mount(parent))
}

/// Returns the identity of the mount with `path`: the device, and the mount's number if the kernel
/// has one.
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

/// Moves the entries of `temporary` to its parent `target`, which must have no other entries.
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
        moved.iter().for_each(|path| remove(path));
    }
    done
}

/// Returns true if `path` still names the file in `open`.
pub(super) fn same(path: &Path, open: &File) -> bool {
    let identity = |about: fs::Metadata| (about.dev(), about.ino());
    let found = fs::metadata(path).map(identity).ok();
    found.is_some() && found == open.metadata().map(identity).ok()
}

/// Waits until all data on the file system of `directory` is on disk.
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
    use crate::error::ErrorKind;

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
        let made =
            AtomicDirectory::create(&target, Existing::Error, &Cancel::new()).expect("created");
        fs::write(made.path().join("a"), "1").expect("written");
        assert!(!target.exists());
        made.commit(Contents { files: 1, bytes: 1 }).expect("committed");
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
        let none = Contents { files: 0, bytes: 0 };
        AtomicDirectory::create(&target, Existing::Error, &Cancel::new())
            .expect("created")
            .commit(none)
            .expect("committed");
        assert_eq!(fs::metadata(&target).expect("there").mode() & 0o777, 0o750);
        let made =
            AtomicDirectory::create(&target, Existing::Error, &Cancel::new()).expect("created");
        fs::write(target.join("late"), "").expect("written");
        assert!(AtomicDirectory::check(&target, Existing::Error).is_err());
        assert!(AtomicDirectory::create(&target, Existing::Error, &Cancel::new()).is_err());
        made.commit(none).expect_err("no longer empty");
        assert_eq!(names(&target), ["late"]);
        assert_eq!(names(parent.path()), ["parts"]);
        assert!(AtomicDirectory::check(&target.join("late"), Existing::Error).is_err());
        assert!(AtomicDirectory::check(&parent.path().join("no/parts"), Existing::Error).is_err());
    }

    #[test]
    fn what_vanished_or_is_another_is_not_put_in_place() {
        let parent = tempfile::tempdir().expect("a directory");
        let target = parent.path().join("parts");
        let written = Contents { files: 2, bytes: 3 };
        let made = || {
            let made =
                AtomicDirectory::create(&target, Existing::Error, &Cancel::new()).expect("created");
            make_within(made.path(), Path::new("x=1/y=2/a")).expect("made");
            fs::write(made.path().join("x=1/y=2/a"), "12").expect("written");
            fs::write(made.path().join("b"), "3").expect("written");
            made
        };
        let away = parent.path().join("away");
        let moved = made();
        fs::rename(moved.path(), &away).expect("moved");
        assert!(make_within(moved.path(), Path::new("x=2/a")).is_err());
        fs::create_dir(moved.path()).expect("created");
        let another = moved.path().to_owned();
        assert!(moved.commit(written).is_err_and(|error| error.kind() == ErrorKind::Space));
        assert!(another.is_dir());
        fs::remove_dir(another).expect("removed");
        let lacking = made();
        fs::remove_dir_all(lacking.path().join("x=1/y=2")).expect("removed");
        assert!(lacking.commit(written).is_err_and(|error| error.kind() == ErrorKind::Space));
        let cut = made();
        fs::write(cut.path().join("b"), "").expect("written");
        assert!(cut.commit(written).is_err_and(|error| error.kind() == ErrorKind::Space));
        assert_eq!(names(parent.path()), ["away"]);
        made().commit(written).expect("committed");
        assert_eq!(names(parent.path()), ["away", "parts"]);
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
        let living =
            AtomicDirectory::create(&target, Existing::Error, &Cancel::new()).expect("created");
        fs::create_dir(living.path().join("x=1")).expect("created");
        drop(AtomicDirectory::create(&target, Existing::Error, &Cancel::new()).expect("created"));
        assert!(living.path().join("x=1").exists());
        drop(living);
        assert_eq!(names(parent.path()), [".other.windrow-abcdef.tmp"]);
    }
}
