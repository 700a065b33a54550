//! Objects at addresses such as `s3://bucket/key`, read by ranges and written in parts.
//!
//! ```text
//!  address --Stores--> Object: length, identity --ranges--> Window: pieces in memory --> readers of formats
//!                 \--> Upload: parts, invisible until it is complete
//!                 \--> Prefix: many uploads, completed one after the other, then _SUCCESS
//! ```
//! Invariants. All ranges of an object belong to one version: each request is conditional on the
//! entity tag, and the response is checked as well, since some servers ignore conditions. Output is
//! visible completely or not at all; the objects of a prefix are the exception, and appear one
//! after the other at the end.
//!
//! One thread with its own runtime does all work on the network, and is started at the first
//! address. Without the feature `cloud` this thread does not exist, addresses are refused, and the
//! types have no values.

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

/// Bytes of text to fetch at a time. One range is decoded while the next is in flight.
pub(crate) const RANGE: u64 = 8 << 20;
/// Maximum bytes of a Parquet row group to fetch whole. The next row group is fetched while this
/// one is decoded.
pub(crate) const HELD: u64 = 16 << 20;
/// Bytes of an upload's part. The second constant is the minimum of stores, used if memory is
/// short.
const PART: u64 = 8 << 20;
const LEAST_PART: u64 = 5 << 20;
/// Memory limits below this one count as short.
const SHORT: u64 = 192 << 20;
/// Number of parts before parts grow. Stores accept at most 10,000.
const PARTS: u64 = 5000;
/// Bytes of the client after its first write: connections, their buffers, certificates.
const CLIENT: u64 = 6 << 20;

/// Returns the bytes of a part, for an output of about `output` bytes inside a memory limit.
pub(crate) fn part_bytes(output: Option<u64>, limit: Option<u64>) -> usize {
    let short = limit.is_some_and(|limit| limit < SHORT);
    let least = if short { LEAST_PART } else { PART };
    // Rounded up to whole mebibytes.
    let enough = output.unwrap_or(0).div_ceil(PARTS).div_ceil(1 << 20) << 20;
    usize::try_from(least.max(enough)).unwrap_or(usize::MAX)
}

/// Returns the memory of an upload: one part being filled, and two in flight.
pub(crate) fn upload_bytes(part: usize) -> usize {
    part.saturating_mul(3)
}

/// Memory for writing to a store, beside the uploads.
pub(crate) const CLIENT_BYTES: usize = CLIENT as usize;

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
pub struct Stores(Arc<Inner>);

#[derive(Default)]
struct Inner {
    options: Vec<(String, String)>,
    client: Mutex<Option<Arc<Client>>>,
    /// Lengths of listed objects: the end of such an object can be requested by its position.
    #[cfg(feature = "cloud")]
    listed: Mutex<HashMap<PathBuf, u64>>,
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
        Client::check(&options)?;
        Ok(Self(Arc::new(Inner { options, ..Inner::default() })))
    }

    /// Returns the network traffic so far; `None` before the first use.
    pub(crate) fn traffic(&self) -> Option<Traffic> {
        let client = self.0.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.as_deref().map(Client::traffic)
    }

    /// Returns the client, and starts it first if necessary.
    fn client(&self) -> Result<Arc<Client>> {
        let mut client = self.0.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*client {
            return Ok(Arc::clone(client));
        }
        let started = Arc::new(Client::start(self.0.options.clone())?);
        Ok(Arc::clone(client.insert(started)))
    }
}

/// Returns true if `path` is an address, and no local file has this name.
pub(crate) fn is_far(path: &Path) -> bool {
    is_address(path) && !path.exists()
}

/// Refuses the address of a local file.
fn refuse_local(address: &Path) -> Result<()> {
    match address.to_str().and_then(|address| address.strip_prefix("file://")) {
        None => Ok(()),
        Some(local) => Err(Error::usage(format!(
            "{}: is an address; name the file by its path, {local}",
            address.display()
        ))),
    }
}
