//! An output directory that takes the place of one with files.
//!
//! ```text
//!  overwrite            new files
//!  append               new files, under free names       + links to the old files
//!  replace_partitions   new files                         + links to the old files of other directories
//!                       -> both directories change places at once -> the old directory is removed
//! ```
//! The name stands for the old directory or the new one at any moment. A program that changes the old directory
//! during the job loses nothing: the directories change back, and the job fails.
//!
//! The lock on the old directory keeps other jobs from taking it for an orphan while it has a temporary name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::atomic;
use crate::error::{Error, Result};
use crate::settings::{Existing, Format, Setting};

/// The files of a directory at any depth, each with its identity.
pub(super) type Files = BTreeMap<PathBuf, (u64, u64)>;

/// Replaces `target`, which had the files `old` when the output began, by `new`, which then has the files of `target`, to
/// be removed.
pub(super) fn replace(target: &Path, old: &Files, new: &Path, existing: Existing) -> Result<()> {
    let failed = |error: io::Error| Error::output(target, &error);
    // Cleaners pass a locked directory by, under any name.
    let open = fs::File::open(target).map_err(failed)?;
    let changed = || {
        let target = target.display();
        Err(Error::space(format!(
            "{target}: another program changed the directory during the job, and it is left as that made it; run \
             the job again"
        )))
    };
    if !atomic::claim(&open).map_err(failed)? {
        return changed();
    }
    let made = files(new).map_err(failed)?;
    let replaced: BTreeSet<_> = made.keys().map(|name| name.parent()).collect();
    let kept = old.keys().filter(|name| match existing {
        Existing::Error | Existing::Overwrite => false,
        Existing::Append => true,
        Existing::ReplacePartitions => !replaced.contains(&name.parent()),
    });
    for name in kept {
        if made.contains_key(name) {
            let mut free = (1..).map(|number| numbered(name, number));
            let free = free.find(|name| !old.contains_key(name) && !made.contains_key(name));
            fs::rename(new.join(name), new.join(free.unwrap_or_default())).map_err(failed)?;
        }
        fs::create_dir_all(new.join(name.parent().unwrap_or(Path::new("")))).map_err(failed)?;
        fs::hard_link(target.join(name), new.join(name)).map_err(failed)?;
    }
    exchange(target, new).map_err(failed)?;
    if files(new).map_err(failed)? == *old {
        return Ok(());
    }
    exchange(target, new).map_err(failed)?;
    changed()
}

/// Returns the files of a directory. Refuses one with more than files of data, which is not an output of a job.
pub(super) fn check(target: &Path, existing: Existing) -> Result<Files> {
    let failed = |error: io::Error| Error::output(target, &error);
    let is_data = |name: &&PathBuf| {
        let is_log = name.components().any(|part| part.as_os_str() == "_delta_log");
        let file = name.file_name().unwrap_or_default().as_encoded_bytes();
        !is_log
            && (Format::of_path(name).is_some()
                // Marks, but no metadata of files that would then be others.
                || file.starts_with(b"_") && !file.ends_with(b"metadata")
                || file.ends_with(b".crc"))
    };
    let files = files(target).map_err(failed)?;
    match files.keys().find(|name| !is_data(name)) {
        None => Ok(files),
        Some(other) => Err(Error::usage(format!(
            "{}: {} {} takes directories of data files only, and this one has {}",
            target.display(),
            Setting::IfExists,
            existing,
            other.display()
        ))),
    }
}

/// Returns a name beside that of a file: `part-0.csv.gz` and 2 are `part-0-2.csv.gz`.
fn numbered(name: &Path, number: u64) -> PathBuf {
    let file = name.file_name().unwrap_or_default().to_string_lossy();
    let (stem, extension) = file.split_once('.').unwrap_or((&file, ""));
    let dot = if extension.is_empty() { "" } else { "." };
    name.with_file_name(format!("{stem}-{number}{dot}{extension}"))
}

fn files(directory: &Path) -> io::Result<Files> {
    use std::os::unix::fs::MetadataExt;
    let mut files = Files::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(within) = directories.pop() {
        for entry in fs::read_dir(directory.join(&within))? {
            let entry = entry?;
            let (name, about) = (within.join(entry.file_name()), entry.metadata()?);
            if about.is_dir() {
                directories.push(name);
            } else {
                files.insert(name, (about.ino(), about.len()));
            }
        }
    }
    Ok(files)
}

/// Exchanges two directories in one step.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(io::Error::from)
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
