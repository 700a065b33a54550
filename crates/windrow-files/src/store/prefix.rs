//! Many objects below one prefix, the directory of stores.
//!
//! ```text
//!  check:   nothing is below the prefix
//!  upload:  every object in parts, invisible
//!  commit:  nothing is below the prefix still -> complete, one object after the other -> _SUCCESS
//!  drop:    abort what is not completed, remove what is
//! ```
//! Known limit: who lists the prefix while it is committed sees some of the objects. `_SUCCESS` is there last.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use object_store::ObjectStoreExt;

use crate::error::{Error, Result};
use crate::watch::{Cancel, Discard};

use super::Stores;
use super::listing::Unlisted;
use super::upload::{Place, Ready, Upload, Whole};

/// The object that says that all others are there.
const MARK: &str = "_SUCCESS";
/// How long the removal of an object is waited for.
const REMOVAL: Duration = Duration::from_secs(5);

/// A prefix that is being written to.
pub(crate) struct Prefix {
    stores: Stores,
    /// Ends with a slash.
    address: PathBuf,
    part: usize,
    cancel: Cancel,
    ready: Ready,
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Prefix {
    /// Refuses a prefix below which there are objects.
    ///
    /// # Errors
    /// `Usage`, or that of the store.
    pub(crate) fn check(stores: &Stores, address: &Path, cancel: &Cancel) -> Result<()> {
        let first = stores.listed(address, 1, cancel).map_err(|fault| match fault {
            Unlisted::Address(error) => error,
            Unlisted::Fault(fault) => fault.of_output(address),
        })?;
        match first.first() {
            None => Ok(()),
            Some(first) => Err(Error::usage(format!(
                "{}: there are objects below it, as {}; name a prefix that has none, or remove them",
                address.display(),
                first.display()
            ))),
        }
    }

    /// Begins to write below `address`.
    pub(crate) fn create(
        stores: &Stores,
        address: &Path,
        part: usize,
        cancel: &Cancel,
    ) -> Result<Self> {
        let text = address.display().to_string();
        Ok(Self {
            stores: stores.clone(),
            address: format!("{}/", text.trim_end_matches('/')).into(),
            part,
            cancel: cancel.clone(),
            ready: Ready::default(),
        })
    }

    fn place(&self, name: &Path) -> Result<Place> {
        Place::of(&self.stores, &self.address.join(name))
    }

    /// An object below the prefix.
    pub(crate) fn upload(&self, name: &Path) -> Result<Upload> {
        let place = self.place(name)?;
        Ok(Upload::at(place, self.part, &self.cancel, Some(Arc::clone(&self.ready))))
    }

    /// Makes all objects visible, of which there are so many.
    ///
    /// # Errors
    /// Where one of them cannot be completed none is left.
    pub(crate) fn commit(&self, files: u64) -> Result<()> {
        Self::check(&self.stores, &self.address, &self.cancel)?;
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if ready.len() as u64 != files {
            return Err(Error::space(format!(
                "{}: {} objects of {files} were written; nothing is left there: run the job again",
                self.address.display(),
                ready.len()
            )));
        }
        let mut completed: Vec<Place> = Vec::with_capacity(ready.len());
        let mut all = Ok(());
        // One at a time, so that what is not come to is still there to be aborted.
        while all.is_ok()
            && let Some(whole) = ready.pop()
        {
            // One that failed may be there all the same, if its answer was lost.
            all = match &whole {
                Whole::Parts(begun, _live) => {
                    completed.push(begun.place().clone());
                    begun.complete(&self.cancel)
                }
                Whole::Empty(place) => {
                    completed.push(place.clone());
                    place.put(Vec::new(), &self.cancel)
                }
            };
        }
        let mark = self.place(Path::new(MARK))?;
        completed.push(mark.clone());
        let all = all.and_then(|()| mark.put(Vec::new(), &self.cancel));
        all.inspect_err(|_| {
            for Place { client, store, key, .. } in completed {
                // What cannot be removed is not marked as whole either.
                let removed = async move { Ok(store.delete(&key).await?) };
                let _ = client.start_work(removed).within(REMOVAL);
            }
        })
    }
}

impl Drop for Prefix {
    fn drop(&mut self) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        for whole in ready.drain(..) {
            if let Whole::Parts(begun, _live) = whole {
                begun.discard();
            }
        }
    }
}
