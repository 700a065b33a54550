//! Listing of the objects below a prefix.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use futures_util::StreamExt;

use crate::error::{Error, Result};
use crate::watch::Cancel;

use super::address::Address;
use super::fault::Fault;
use super::local::Kind;
use super::stores::Stores;

impl Stores {
    /// Returns the addresses of the objects below `prefix`, in any order.
    ///
    /// # Errors
    /// `Usage` for a prefix without listings, `Data` if the store refuses.
    pub(crate) fn list(&self, prefix: &Path, cancel: &Cancel) -> Result<Vec<PathBuf>> {
        self.listed(prefix, usize::MAX, cancel, |fault| fault.of_input(prefix, false))
    }

    /// Returns at most `most` addresses of the objects below `prefix`, as [`list`](Self::list)
    /// does. `failed` makes the error of a store.
    pub(super) fn listed(
        &self,
        prefix: &Path,
        most: usize,
        cancel: &Cancel,
        failed: impl FnOnce(Fault) -> Error,
    ) -> Result<Vec<PathBuf>> {
        let address = Address::of(prefix)?;
        if address.kind == Kind::Http {
            return Err(Error::usage(format!(
                "{}: a web server does not list what it has; name the files one by one",
                prefix.display()
            )));
        }
        let client = self.client()?;
        let (store, below) = (client.store(&address)?, address.location()?);
        let found = client.run(cancel, async move {
            let store = Arc::clone(&store);
            let below = (!below.as_ref().is_empty()).then_some(&below);
            let mut objects = store.list(below);
            let mut found = Vec::new();
            while let Some(object) = objects.next().await {
                let object = object?;
                found.push((object.location.to_string(), object.size));
                if found.len() == most {
                    break;
                }
            }
            Ok(found)
        });
        let found = found.map_err(failed)?;
        let found = found.into_iter().map(|(key, len)| (address.with_key(&key), len));
        let found: HashMap<PathBuf, u64> = found.collect();
        let paths = found.keys().cloned().collect();
        self.0.listed.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
        Ok(paths)
    }
}
