//! Where the files of many partitions go: a directory, or objects below a prefix.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::directory::{AtomicDirectory, Contents, make_within};
use super::{Destination, OutputOptions};
use crate::error::Result;
use crate::store::{Prefix, is_far};

/// Files that appear together, or as good as.
pub(crate) enum Directory {
    Disk(AtomicDirectory),
    Store(Arc<Prefix>),
}

/// Where one of them goes.
#[derive(Clone)]
pub(crate) enum Folder {
    Disk(PathBuf),
    Store(Arc<Prefix>),
}

impl Directory {
    /// Refuses a target that [`create`](Self::create) would refuse, and one that cannot be written to.
    ///
    /// # Errors
    /// `Usage` if anything is there.
    pub(crate) fn check(target: &Path, options: &OutputOptions) -> Result<()> {
        if !is_far(target) {
            return AtomicDirectory::check(target);
        }
        let (stores, cancel) = (&options.stores, &options.watch.cancel);
        Prefix::check(stores, target, cancel)?;
        stores.probe(&target.join("_SUCCESS"), cancel)
    }

    /// Begins to write to `target`.
    pub(crate) fn create(target: &Path, options: &OutputOptions) -> Result<Self> {
        let cancel = &options.watch.cancel;
        if !is_far(target) {
            return AtomicDirectory::create(target, cancel).map(Self::Disk);
        }
        let part = options.upload.map_or(0, |upload| upload.part);
        let prefix = Prefix::create(&options.stores, target, part, cancel)?;
        Ok(Self::Store(Arc::new(prefix)))
    }

    pub(crate) fn folder(&self) -> Folder {
        match self {
            Self::Disk(directory) => Folder::Disk(directory.path().to_owned()),
            Self::Store(prefix) => Folder::Store(Arc::clone(prefix)),
        }
    }

    /// Puts what was written in place.
    pub(crate) fn commit(self, written: Contents) -> Result<()> {
        match self {
            Self::Disk(directory) => directory.commit(written),
            Self::Store(prefix) => prefix.commit(written.files),
        }
    }
}

impl Folder {
    /// The place of the file `name`; directories on the way to it are made.
    pub(crate) fn file(&self, name: &Path) -> Result<Destination> {
        match self {
            Self::Disk(directory) => {
                make_within(directory, name)?;
                Ok(Destination::Within(directory.join(name)))
            }
            Self::Store(prefix) => Ok(Destination::Below(Arc::clone(prefix), name.to_owned())),
        }
    }
}
