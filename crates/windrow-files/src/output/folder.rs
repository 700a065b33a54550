//! The destination of a partitioned output: a directory, or objects below a prefix.

use std::path::Path;
use std::sync::Arc;

use super::directory::{AtomicDirectory, make_within};
use super::entries::Contents;
use super::options::OutputOptions;
use super::target::Destination;
use crate::error::{Error, Result};
use crate::settings::{Existing, Setting};
use crate::store::{Prefix, is_far};

/// Files that appear together, as far as the destination allows.
pub(crate) enum Directory {
    Disk(AtomicDirectory),
    Store(Arc<Prefix>),
}

impl Directory {
    /// Refuses an unwritable target, and any target that [`create`](Self::create) would refuse.
    ///
    /// # Errors
    /// `Usage` if the target already exists.
    pub(crate) fn check(target: &Path, options: &OutputOptions) -> Result<()> {
        if !is_far(target) {
            return AtomicDirectory::check(target, options.write.existing);
        }
        if options.write.existing != Existing::Error {
            return Err(Error::usage(format!(
                "{}: objects of a store cannot be replaced at once; name a prefix that has none, without {}",
                target.display(),
                Setting::IfExists
            )));
        }
        let (stores, cancel) = (&options.stores, &options.watch.cancel);
        Prefix::check(stores, target, cancel)?;
        stores.probe(&target.join("_SUCCESS"), cancel)
    }

    /// Starts an output at `target`.
    pub(crate) fn create(target: &Path, options: &OutputOptions) -> Result<Self> {
        let cancel = &options.watch.cancel;
        if !is_far(target) {
            return AtomicDirectory::create(target, options.write.existing, cancel).map(Self::Disk);
        }
        let part = options.upload.map_or(0, |upload| upload.part);
        let prefix = Prefix::create(&options.stores, target, part, cancel)?;
        Ok(Self::Store(Arc::new(prefix)))
    }

    /// Returns the destination of the file `name`, and creates its directories.
    pub(crate) fn file(&self, name: &Path) -> Result<Destination> {
        match self {
            Self::Disk(directory) => {
                make_within(directory.path(), name)?;
                Ok(Destination::Within(directory.path().join(name)))
            }
            Self::Store(prefix) => Ok(Destination::Below(Arc::clone(prefix), name.to_owned())),
        }
    }

    /// Makes the written files visible.
    pub(crate) fn commit(self, written: Contents) -> Result<()> {
        match self {
            Self::Disk(directory) => directory.commit(written),
            Self::Store(prefix) => prefix.commit(written.files),
        }
    }
}
