//! Objects: bytes at an address, `s3://bucket/key`, that are read by ranges and written in parts.
//!
//! ```text
//!  address --Stores--> Object: length, identity --ranges--> Window: pieces in memory --> readers of formats
//!                 \--> Upload: parts, invisible until it is complete
//!                 \--> Prefix: many uploads, completed one after the other, then _SUCCESS
//! ```
//! Invariants. All ranges of an object are of one version of it: each is asked for on condition of its entity tag,
//! and what comes back is compared, since some servers do not look at conditions. What is written can be seen whole
//! or not at all, but for a prefix, whose objects appear one after the other at the end.
//!
//! Everything on the network is done by one thread with a runtime of its own, which is made for the first address.
//! Without the feature `cloud` there is no such thread, addresses are refused, and the types have no values.

#[cfg(feature = "cloud")]
mod address;
#[cfg(feature = "cloud")]
mod client;
#[cfg(feature = "cloud")]
mod counted;
#[cfg(feature = "cloud")]
mod fault;
#[cfg(feature = "cloud")]
mod kinds;
#[cfg(feature = "cloud")]
mod lane;
#[cfg(feature = "cloud")]
mod listing;
#[cfg(feature = "cloud")]
mod object;
#[cfg(feature = "cloud")]
mod prefix;
#[cfg(feature = "cloud")]
mod upload;
#[cfg(feature = "cloud")]
mod window;
#[cfg(not(feature = "cloud"))]
mod without;

#[cfg(feature = "cloud")]
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
#[cfg(feature = "cloud")]
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::format::is_address;
use crate::stats::Traffic;

#[cfg(feature = "cloud")]
use client::Client;
#[cfg(not(feature = "cloud"))]
use without::Client;
#[cfg(not(feature = "cloud"))]
pub(crate) use without::{Look, Object, Prefix, Upload, Window, held_bytes};
#[cfg(feature = "cloud")]
pub(crate) use {
    object::{Look, Object},
    prefix::Prefix,
    upload::Upload,
    window::{Window, held_bytes},
};

/// Bytes of text that are asked for at a time. One range is decoded while the next is on its way.
pub(crate) const RANGE: u64 = 8 << 20;
/// A Parquet row group of so many bytes at the most is fetched whole, and the next one while it is decoded.
pub(crate) const HELD: u64 = 16 << 20;
/// The size of a part of an upload, and where memory is short the least that stores take.
const PART: u64 = 8 << 20;
const LEAST_PART: u64 = 5 << 20;
/// Limits below this are short.
const SHORT: u64 = 192 << 20;
/// Parts that a store takes are 10,000; so many are meant to be enough, and later ones grow.
const PARTS: u64 = 5000;
/// What the client takes once it has written: connections, their buffers, certificates.
const CLIENT: u64 = 6 << 20;

/// Bytes of a part of an output of about so many bytes, inside a memory limit.
pub(crate) fn part_bytes(output: Option<u64>, limit: Option<u64>) -> usize {
    let short = limit.is_some_and(|limit| limit < SHORT);
    let least = if short { LEAST_PART } else { PART };
    // In whole mebibytes.
    let enough = output.unwrap_or(0).div_ceil(PARTS).div_ceil(1 << 20) << 20;
    usize::try_from(least.max(enough)).unwrap_or(usize::MAX)
}

/// What an upload in parts of so many bytes takes: the one that is filled, and two on their way.
pub(crate) fn upload_bytes(part: usize) -> usize {
    part.saturating_mul(3)
}

/// What writing to a store takes beside its uploads.
pub(crate) const CLIENT_BYTES: usize = CLIENT as usize;

/// The stores that addresses lead to - S3, Google Cloud Storage, Azure, HTTP servers - and how they are reached.
///
/// Settings come from the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`), then from options, by the names that those
/// variables have, in lower case and with or without their prefix: `endpoint`, `region`, `skip_signature` for anonymous
/// access, `timeout`; and `max_retries` and `retry_timeout`. Clones share connections and figures. Nothing is started
/// before the first address is come to.
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
pub struct Stores(Arc<Inner>);

#[derive(Default)]
struct Inner {
    options: Vec<(String, String)>,
    client: Mutex<Option<Arc<Client>>>,
    /// Lengths of objects that were listed: the end of an object is then asked for by its place.
    #[cfg(feature = "cloud")]
    listed: Mutex<HashMap<PathBuf, u64>>,
}

impl fmt::Debug for Stores {
    /// Without the options, of which some are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").finish_non_exhaustive()
    }
}

impl Stores {
    /// Stores that are reached by `options`.
    ///
    /// # Errors
    /// `Usage` for a name that no store knows, and for all of them without the feature `cloud`.
    pub fn with_options<K: Into<String>, V: Into<String>>(
        options: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self> {
        let options = options.into_iter().map(|(key, value)| (key.into(), value.into()));
        let options: Vec<(String, String)> = options.collect();
        Client::check(&options)?;
        Ok(Self(Arc::new(Inner { options, ..Inner::default() })))
    }

    /// What went over the network so far; none if nothing did.
    pub(crate) fn traffic(&self) -> Option<Traffic> {
        let client = self.0.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.as_deref().map(Client::traffic)
    }

    /// The client, started if it is not.
    fn client(&self) -> Result<Arc<Client>> {
        let mut client = self.0.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*client {
            return Ok(Arc::clone(client));
        }
        let started = Arc::new(Client::start(self.0.options.clone())?);
        Ok(Arc::clone(client.insert(started)))
    }
}

/// Whether `path` is an address, and no file has its name.
pub(crate) fn is_far(path: &Path) -> bool {
    is_address(path) && !path.exists()
}

/// Refuses the address of a file.
fn refuse_local(address: &Path) -> Result<()> {
    match address.to_str().and_then(|address| address.strip_prefix("file://")) {
        None => Ok(()),
        Some(local) => Err(Error::usage(format!(
            "{}: is an address; name the file by its path, {local}",
            address.display()
        ))),
    }
}
