//! Output of many objects below one prefix, which takes the place of a directory.
//!
//! ```text
//!  check:   nothing is below the prefix
//!  upload:  every object in parts, invisible
//!  commit:  nothing is below the prefix still -> complete, one object after the other -> _SUCCESS
//!  drop:    abort what is not completed, remove what is
//! ```
//! Known limit: a listing of the prefix during the commit shows only some of the objects.
//! `_SUCCESS` appears last.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use object_store::ObjectStoreExt;

use crate::error::{Error, Result};
use crate::watch::{Cancel, Discard};

use super::stores::Stores;
use super::upload::{Ready, Upload, UploadTarget, Whole};

/// Name of the object that marks the output as complete.
const MARK: &str = "_SUCCESS";
/// Maximum wait for the removal of an object.
const REMOVAL: Duration = Duration::from_secs(5);

/// A prefix during its output.
pub(crate) struct Prefix {
    stores: Stores,
    /// Address of the prefix, with a slash at its end.
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
    /// Refuses a prefix with objects below it.
    ///
    /// # Errors
    /// `Usage`, or an error of the store.
    pub(crate) fn check(stores: &Stores, address: &Path, cancel: &Cancel) -> Result<()> {
        let first = stores.listed(address, 1, cancel, |fault| fault.of_output(address))?;
        match first.first() {
            None => Ok(()),
            Some(first) => Err(Error::usage(format!(
                "{}: there are objects below it, as {}; name a prefix that has none, or remove them",
                address.display(),
                first.display()
            ))),
        }
    }

    /// Starts an output below `address`.
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

    /// Starts an upload of an object below the prefix.
    pub(crate) fn upload(&self, name: &Path) -> Result<Upload> {
        let address = self.address.join(name);
        let mut upload = Upload::to(&self.stores, &address, self.part, &self.cancel)?;
        upload.ready = Some(Arc::clone(&self.ready));
        Ok(upload)
    }

    /// Makes all `files` objects visible.
    ///
    /// # Errors
    /// If an object cannot be completed, all objects are removed.
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
        let mut completed: Vec<UploadTarget> = Vec::with_capacity(ready.len());
        let mut all = Ok(());
        // One at a time, so that the remaining uploads can still be aborted.
        while all.is_ok()
            && let Some(whole) = ready.pop()
        {
            // A failed object may exist all the same, if the store's answer was lost.
            all = match &whole {
                Whole::Parts(begun, _live) => {
                    completed.push(begun.place.clone());
                    begun.complete(&self.cancel)
                }
                Whole::Empty(place) => {
                    completed.push(place.clone());
                    place.put(Vec::new(), &self.cancel)
                }
            };
        }
        let mark = UploadTarget::of(&self.stores, &self.address.join(MARK))?;
        completed.push(mark.clone());
        let all = all.and_then(|()| mark.put(Vec::new(), &self.cancel));
        all.inspect_err(|_| {
            for UploadTarget { client, store, key, .. } in completed {
                // An object that cannot be removed stays without the mark of a complete output.
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
