//! The entries of a directory, and the exchange of two directories.
//!
//! ```text
//!  entries of DIR = those at the start? --> exchange both names --> the same? --> done
//!            | no: error                                               | no: exchange back, error
//! ```
//! A name stands for one directory or the other at any moment. Nothing keeps other programs from
//! writing to a directory, so that its entries are compared.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// The entries of a directory, at any depth, by their paths below it.
pub(super) type Entries = BTreeMap<PathBuf, Entry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) mode: u32,
    /// `None` for a directory, whose entries are compared themselves.
    pub(super) file: Option<Identity>,
}

/// The identity of a file. Links change the time of its status, and not this time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    number: u64,
    pub(super) bytes: u64,
    modified: (i64, i64),
}

pub(super) fn entries(directory: &Path) -> io::Result<Entries> {
    let (mut found, mut directories) = (Entries::new(), vec![PathBuf::new()]);
    while let Some(below) = directories.pop() {
        for entry in fs::read_dir(directory.join(&below))? {
            let entry = entry?;
            let (about, name) = (entry.metadata()?, below.join(entry.file_name()));
            let file = match about.is_dir() {
                true => {
                    directories.push(name.clone());
                    None
                }
                false => Some(Identity {
                    number: about.ino(),
                    bytes: about.len(),
                    modified: (about.mtime(), about.mtime_nsec()),
                }),
            };
            found.insert(name, Entry { mode: about.mode(), file });
        }
    }
    Ok(found)
}

/// Exchanges `target`, which had the entries `old` when the output began, and `new`.
///
/// # Errors
/// `Space` if `target` changed in the meantime, or its file system cannot exchange directories; both
/// are then as before.
pub(super) fn exchange(target: &Path, new: &Path, old: &Entries) -> Result<()> {
    let failed = |error: io::Error| Error::output(target, &error);
    let shown = target.display();
    let is_unchanged = |path: &Path| match entries(path).map_err(failed)? == *old {
        true => Ok(()),
        false => Err(Error::space(format!(
            "{shown}: another program changed it during the job, and it was left as it is; keep other \
             programs away from it and run the job again"
        ))),
    };
    let exchange = || {
        let exchanged = renameat_with(CWD, new, CWD, target, RenameFlags::EXCHANGE);
        exchanged.map_err(|error| match error {
            Errno::INVAL | Errno::NOSYS => Error::space(format!(
                "{shown}: its file system cannot exchange two directories; keep it on another one"
            )),
            error => failed(error.into()),
        })
    };
    is_unchanged(target)?;
    exchange()?;
    if let Err(error) = is_unchanged(new) {
        exchange()?;
        return Err(error);
    }
    Ok(())
}

/// The content of a directory, at any depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Contents {
    pub(super) fn of(directory: &Path) -> io::Result<Self> {
        let entries = entries(directory)?;
        let files = entries.values().filter_map(|entry| entry.file.as_ref());
        let mut found = Self { files: 0, bytes: 0 };
        for file in files {
            found.files += 1;
            found.bytes += file.bytes;
        }
        Ok(found)
    }
}
