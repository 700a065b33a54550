//! Reading of an object's ranges, all of one version.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::path::Path as Key;
use object_store::{Error as Cause, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::error::{Error, Result};
use crate::watch::Cancel;

use super::address::Address;
use super::client::{Client, Pending};
use super::fault::Fault;
use super::sizes::Look;
use super::stores::Stores;

/// An object whose length and version are known.
pub(crate) struct Object {
    address: PathBuf,
    client: Arc<Client>,
    store: Arc<dyn ObjectStore>,
    key: Key,
    version: Version,
    cancel: Cancel,
    /// The first bytes read, with their offset, until the input is opened.
    look: Mutex<Option<(u64, Bytes)>>,
    /// The first error of the store: readers of the bytes can only report damage.
    fault: Mutex<Option<Error>>,
}

/// Identity of an object's version.
#[derive(Clone, Debug, PartialEq)]
struct Version {
    len: u64,
    tag: Option<String>,
    /// Time of modification in seconds, if there is no tag.
    modified: Option<i64>,
}

impl Version {
    fn of(meta: &ObjectMeta) -> Self {
        let modified = meta.e_tag.is_none().then(|| meta.last_modified.timestamp());
        Self { len: meta.size, tag: meta.e_tag.clone(), modified }
    }
}

/// A range in flight.
pub(super) type Fetch = Pending<Bytes>;

impl Object {
    /// Finds the object, and reads the bytes at one end of it.
    ///
    /// # Errors
    /// `NotFound`; `Data` if the object is unreadable.
    pub(crate) fn open(
        stores: &Stores,
        address: &Path,
        look: Look,
        cancel: &Cancel,
    ) -> Result<Self> {
        let parsed = Address::of(address)?;
        let client = stores.client()?;
        let store = client.store(&parsed)?;
        let key = parsed.location()?;
        let listed = stores.0.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let len = listed.get(address).copied();
        drop(listed);
        let first = client.run(cancel, first(Arc::clone(&store), key.clone(), look, len));
        let (version, start, bytes) = first.map_err(|fault| fault.of_input(address, false))?;
        Ok(Self {
            address: address.to_owned(),
            client,
            store,
            key,
            version,
            cancel: cancel.clone(),
            look: Mutex::new(Some((start, bytes))),
            fault: Mutex::default(),
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.version.len
    }

    /// Releases the first bytes read.
    pub(crate) fn forget(&self) {
        *self.look.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the first bytes read, from `offset` on.
    pub(super) fn look(&self, offset: u64) -> Option<Bytes> {
        let look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, bytes) = look.as_ref()?;
        let within = usize::try_from(offset.checked_sub(*start)?).ok()?;
        (within < bytes.len()).then(|| bytes.slice(within..))
    }

    /// Returns the first error of the store.
    pub(crate) fn fault(&self) -> Option<Error> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts fetching a range.
    pub(super) fn fetch(&self, range: Range<u64>) -> Fetch {
        let (store, key, version) =
            (Arc::clone(&self.store), self.key.clone(), self.version.clone());
        self.client.start_work(async move {
            let options = GetOptions {
                if_match: version.tag.clone(),
                range: Some(GetRange::Bounded(range)),
                ..GetOptions::default()
            };
            let (found, _, bytes) = get(&*store, &key, options).await?;
            // Some servers ignore conditions.
            if found == version { Ok(bytes) } else { Err(Fault::Replaced) }
        })
    }

    /// Waits for a range, and records the first error.
    pub(super) fn wait(&self, fetch: Fetch) -> std::io::Result<Bytes> {
        fetch.wait(&self.cancel).map_err(|fault| {
            let error = fault.of_input(&self.address, true);
            let mut kept = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
            std::io::Error::other(kept.get_or_insert(error).clone())
        })
    }
}

/// Reads the first or the last bytes of an object.
async fn first(
    store: Arc<dyn ObjectStore>,
    key: Key,
    look: Look,
    len: Option<u64>,
) -> Result<(Version, u64, Bytes), Fault> {
    let last = |bytes: u64, len: u64| GetRange::Bounded(len.saturating_sub(bytes)..len);
    let range = match (look, len) {
        (Look::Head(bytes), _) => GetRange::Bounded(0..bytes),
        (Look::Tail(bytes), Some(len @ 1..)) => last(bytes, len),
        (Look::Tail(bytes), _) => GetRange::Suffix(bytes),
    };
    let options = GetOptions { range: Some(range), ..GetOptions::default() };
    let cause = match get(&*store, &key, options).await {
        Err(Fault::Store(cause @ (Cause::NotSupported { .. } | Cause::Generic { .. }))) => cause,
        Ok((version, ..)) if len.is_some_and(|len| len != version.len) => {
            return Err(Fault::Replaced);
        }
        first => return first,
    };
    // Azure does not support ranges from the end, other stores no ranges longer than the object,
    // and an empty object has no valid range.
    let version = Version::of(&store.head(&key).await?);
    match (look, version.len) {
        (_, 0) => Ok((version, 0, Bytes::new())),
        (Look::Tail(bytes), len) => {
            let range = Some(last(bytes, len));
            let if_match = version.tag.clone();
            get(&*store, &key, GetOptions { if_match, range, ..GetOptions::default() }).await
        }
        (Look::Head(_), _) => Err(Fault::Store(cause)),
    }
}

/// Reads a range. Returns its version, its offset and its bytes.
async fn get(
    store: &dyn ObjectStore,
    key: &Key,
    options: GetOptions,
) -> Result<(Version, u64, Bytes), Fault> {
    let got = store.get_opts(key, options).await?;
    let (version, range) = (Version::of(&got.meta), got.range.clone());
    let len = usize::try_from(range.end - range.start).map_err(|_| Fault::Short)?;
    // Chunks are copied at once: joining them at the end would need twice the memory.
    let mut bytes = Vec::with_capacity(len);
    let mut stream = got.into_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        if chunk.len() > len - bytes.len() {
            return Err(Fault::Replaced);
        }
        bytes.extend_from_slice(&chunk);
    }
    if bytes.len() < len {
        return Err(Fault::Short);
    }
    Ok((version, range.start, bytes.into()))
}
