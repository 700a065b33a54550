//! An output directory that takes the place of one with files.
//!
//! ```text
//!  overwrite            new files
//!  append               new files, under free names       + links to the old files
//!  replace_partitions   new files                         + links to the old files of other directories
//!                       -> both directories change places at once -> the old directory is removed
//! ```
//! If another program changes the old directory during the job, the job fails ([`super::entries`]).
//!
//! The lock on the old directory keeps other jobs from taking it for an orphan while it has a temporary name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::atomic;
use super::entries::{Entries, entries, exchange};
use crate::error::{Error, Result};
use crate::settings::{Existing, Format, Setting};

/// Replaces `target`, which had the files `old` when the output began, by `new`, which then has the files of `target`, to
/// be removed.
pub(super) fn replace(target: &Path, old: &Entries, new: &Path, existing: Existing) -> Result<()> {
    let failed = |error: io::Error| Error::output(target, &error);
    // Cleaners pass a locked directory by, under any name.
    let open = fs::File::open(target).map_err(failed)?;
    if !atomic::claim(&open).map_err(failed)? {
        return Err(Error::space(format!(
            "{}: another job writes to it; run this one again when it has ended",
            target.display()
        )));
    }
    let made = entries(new).map_err(failed)?;
    let replaced: BTreeSet<_> = files(&made).map(|name| name.parent()).collect();
    let kept = files(old).filter(|name| match existing {
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
    exchange(target, new, old)
}

fn files(entries: &Entries) -> impl Iterator<Item = &PathBuf> {
    entries.iter().filter(|(_, entry)| entry.file.is_some()).map(|(name, _)| name)
}

/// Returns the entries of a directory. Refuses one with more than files of data, which is not an output of a job.
pub(super) fn check(target: &Path, existing: Existing) -> Result<Entries> {
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
    let entries = entries(target).map_err(failed)?;
    let other = files(&entries).find(|name| !is_data(name)).cloned();
    match other {
        None => Ok(entries),
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
