//! Access to stores: settings, and a client that the first address starts.

#[cfg(feature = "cloud")]
use std::collections::HashMap;
use std::fmt;
#[cfg(feature = "cloud")]
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::stats::Traffic;

#[cfg(not(feature = "cloud"))]
use super::without::{Client, check};
#[cfg(feature = "cloud")]
use super::{client::Client, kinds::check};

/// Access to object stores by their addresses: S3, Google Cloud Storage, Azure, HTTP servers.
///
/// Settings come from the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`), then from options. An
/// option has the name of such a variable, in lower case, with or without its prefix: `endpoint`,
/// `region`, `skip_signature` for anonymous access, `timeout`. Further options are `max_retries`
/// and `retry_timeout`. Clones share connections and statistics. Nothing is started before the
/// first address is used.
///
/// ```
/// use windrow_files::{ReadOptions, Stores};
///
/// # #[cfg(feature = "cloud")]
/// # {
/// let stores = Stores::with_options([("region", "eu-west-1"), ("skip_signature", "true")])?;
/// let read = ReadOptions::default().stores(&stores);
/// # }
/// assert!(Stores::with_options([("regoin", "eu-west-1")]).is_err());
/// # Ok::<(), windrow_files::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Stores(pub(super) Arc<Inner>);

#[derive(Default)]
pub(super) struct Inner {
    options: Vec<(String, String)>,
    client: Mutex<Option<Arc<Client>>>,
    /// Lengths of listed objects: the end of such an object can be requested by its position.
    #[cfg(feature = "cloud")]
    pub(super) listed: Mutex<HashMap<PathBuf, u64>>,
}

impl fmt::Debug for Stores {
    /// Omits the options, since some are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").finish_non_exhaustive()
    }
}

impl Stores {
    /// Makes stores with `options`.
    ///
    /// # Errors
    /// `Usage` for an unknown name; without the feature `cloud`, for any name.
    pub fn with_options<K: Into<String>, V: Into<String>>(
        options: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self> {
        let options = options.into_iter().map(|(key, value)| (key.into(), value.into()));
        let options: Vec<(String, String)> = options.collect();
        check(&options)?;
        Ok(Self(Arc::new(Inner { options, ..Inner::default() })))
    }

    /// Returns the network traffic so far; `None` before the first use.
    pub(crate) fn traffic(&self) -> Option<Traffic> {
        let client = self.0.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.as_deref().map(Client::traffic)
    }

    /// Returns the client, and starts it first if necessary.
    pub(super) fn client(&self) -> Result<Arc<Client>> {
        let mut client = self.0.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*client {
            return Ok(Arc::clone(client));
        }
        let started = Arc::new(Client::start(self.0.options.clone())?);
        Ok(Arc::clone(client.insert(started)))
    }
}
