//! Upload of an object in parts. The object becomes visible after its last part.
//!
//! ```text
//!  write --> part being filled --full--> two parts on their way --> complete: it is there
//!                                              \--> error, drop, discard: abort, no parts are left
//! ```
//! `object_store`'s own `WriteMultipart` has parts of one size, which ends an object at 10,000 of
//! them, and its abort can leave parts that are in flight.
//!
//! An object within the size of one part is put whole. Known limit: the parts of a killed process
//! stay, and cost money. A store's rule for incomplete multipart uploads removes them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fmt, io};

use futures_util::future::{Either, select};
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode};

use crate::error::{Error, Result};
use crate::lock::lock;
use crate::watch::{Cancel, Discard, Live};

use super::address::Address;
use super::client::{Client, LOOK, Pending};
use super::fault::Fault;
use super::sizes::PARTS;
use super::stores::Stores;

/// Maximum number of parts in flight.
const UNDER_WAY: usize = 2;
/// Interval of growth: from [`PARTS`] parts on, parts grow by half every 1,000 parts, to stay below
/// the stores' limit of 10,000 parts.
const GROWS_EVERY: u64 = 1000;
/// Maximum wait for parts in flight before an abort: a part that arrives after the abort may stay.
const SETTLE: Duration = Duration::from_secs(2);
/// Maximum wait for an abort.
const ABORT: Duration = Duration::from_secs(5);

/// The destination of an object.
#[derive(Clone)]
pub(super) struct UploadTarget {
    pub(super) address: PathBuf,
    pub(super) client: Arc<Client>,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) key: Key,
}

impl UploadTarget {
    pub(super) fn of(stores: &Stores, address: &Path) -> Result<Self> {
        let parsed = Address::of(address)?;
        let client = stores.client()?;
        let (store, key) = (client.store(&parsed)?, parsed.location()?);
        Ok(Self { address: address.to_owned(), client, store, key })
    }

    pub(super) fn error(&self, fault: &Fault) -> Error {
        fault.of_output(&self.address)
    }

    /// Starts an upload in parts.
    fn begin(&self, cancel: &Cancel) -> Result<Box<dyn MultipartUpload>> {
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        let begun = self.client.run(cancel, async move { Ok(store.put_multipart(&key).await?) });
        begun.map_err(|fault| self.error(&fault))
    }

    /// Puts a whole object.
    pub(super) fn put(&self, bytes: Vec<u8>, cancel: &Cancel) -> Result<()> {
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        let put = async move { Ok(store.put(&key, bytes.into()).await.map(drop)?) };
        self.client.run(cancel, put).map_err(|fault| self.error(&fault))
    }
}

impl Stores {
    /// Tests write access before any data exists: starts an upload, and aborts it.
    pub(crate) fn probe(&self, address: &Path, cancel: &Cancel) -> Result<()> {
        let place = UploadTarget::of(self, address)?;
        if place.key.as_ref().is_empty() || address.as_os_str().as_encoded_bytes().ends_with(b"/") {
            let address = address.display();
            return Err(Error::usage(format!("{address}: the output has no name in its bucket")));
        }
        Begun::new(place.clone(), place.begin(cancel)?).discard();
        Ok(())
    }

    /// Puts an object, unless there is one at `address`. Returns true if it was put.
    ///
    /// # Errors
    /// `Output` if the store refuses it, or knows no such condition.
    pub fn put_new(&self, address: &Path, bytes: Vec<u8>) -> Result<bool> {
        let place = UploadTarget::of(self, address)?;
        let (store, key) = (Arc::clone(&place.store), place.key.clone());
        let put = async move {
            match store.put_opts(&key, bytes.into(), PutMode::Create.into()).await {
                Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                put => Ok(put.map(|_| true)?),
            }
        };
        place.client.run(&Cancel::new(), put).map_err(|fault| place.error(&fault))
    }
}

/// A started upload, until it is completed or aborted.
pub(super) struct Begun {
    pub(super) place: UploadTarget,
    upload: Mutex<Option<Box<dyn MultipartUpload>>>,
    under_way: Mutex<VecDeque<Pending<()>>>,
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.address.fmt(f)
    }
}

impl Begun {
    fn new(place: UploadTarget, upload: Box<dyn MultipartUpload>) -> Self {
        Self { place, upload: Mutex::new(Some(upload)), under_way: Mutex::default() }
    }

    /// Sends a part.
    fn send(&self, bytes: Vec<u8>) -> Result<()> {
        let mut upload = lock(&self.upload);
        let upload = upload.as_mut().ok_or_else(Error::interrupted)?;
        let sent = upload.put_part(bytes.into());
        let sent = self.place.client.start_work(async move { Ok(sent.await?) });
        lock(&self.under_way).push_back(sent);
        Ok(())
    }

    /// Waits until at most `most` parts are in flight. If the job is cancelled, the remaining parts
    /// stay in flight.
    fn wait(&self, most: usize, cancel: &Cancel) -> Result<()> {
        loop {
            let mut parts = lock(&self.under_way);
            let Some(first) = parts.front().filter(|_| parts.len() > most) else { return Ok(()) };
            if let Some(done) = first.within(LOOK) {
                parts.pop_front();
                done.map_err(|fault| self.place.error(&fault))?;
            }
            drop(parts);
            cancel.check()?;
        }
    }

    /// Completes the upload. Aborts the upload after a failure or a cancellation.
    pub(super) fn complete(&self, cancel: &Cancel) -> Result<()> {
        let mut upload = lock(&self.upload);
        let Some(taken) = upload.take() else { return Err(Error::interrupted()) };
        let completed = completed(taken, cancel.clone());
        let completed = self.place.client.start_work(completed).wait_to_the_end();
        completed.map_err(|fault| self.place.error(&fault))
    }
}

async fn completed(mut upload: Box<dyn MultipartUpload>, cancel: Cancel) -> Result<(), Fault> {
    let fault = {
        let cancelled = async {
            while !cancel.is_cancelled() {
                tokio::time::sleep(LOOK).await;
            }
        };
        match select(upload.complete(), pin!(cancelled)).await {
            Either::Left((Ok(_), _)) => return Ok(()),
            Either::Left((Err(cause), _)) => Fault::Store(cause),
            Either::Right(_) => Fault::Cancelled,
        }
    };
    // The first cause counts, whether the abort succeeds or not.
    let _ = tokio::time::timeout(ABORT, upload.abort()).await;
    Err(fault)
}

impl Discard for Begun {
    /// Aborts the upload. A second caller waits for the first.
    fn discard(&self) {
        let mut upload = lock(&self.upload);
        if let Some(mut taken) = upload.take() {
            let end = Instant::now() + SETTLE;
            // Parts that are unfinished at `end` are cut off.
            lock(&self.under_way).drain(..).for_each(|part| {
                let _ = part.within(end.saturating_duration_since(Instant::now()));
            });
            let abort = async move { Ok(taken.abort().await?) };
            // A failed abort is not reported: the job already fails for another reason.
            let _ = self.place.client.start_work(abort).within(ABORT);
        }
    }
}

/// An object being written.
pub(crate) struct Upload {
    place: UploadTarget,
    cancel: Cancel,
    part: usize,
    buffer: Vec<u8>,
    parts: u64,
    begun: Option<(Arc<Begun>, Live)>,
    /// List of the prefix's finished uploads, if the object belongs to a prefix.
    pub(super) ready: Option<Ready>,
}

/// Objects with all bytes sent, yet to be made visible.
pub(super) type Ready = Arc<Mutex<Vec<Whole>>>;

pub(super) enum Whole {
    Parts(Arc<Begun>, Live),
    /// An object without bytes, and so without parts.
    Empty(UploadTarget),
}

impl Upload {
    /// Makes an upload to `address` in parts of `part` bytes.
    pub(crate) fn to(
        stores: &Stores,
        address: &Path,
        part: usize,
        cancel: &Cancel,
    ) -> Result<Self> {
        let (place, cancel) = (UploadTarget::of(stores, address)?, cancel.clone());
        Ok(Self { place, cancel, part, buffer: Vec::new(), parts: 0, begun: None, ready: None })
    }

    /// Appends bytes. Waits while two parts are in flight.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.buffer.capacity() == 0 {
                // Reserved memory is not resident before a write to it.
                self.buffer.reserve_exact(self.part);
            }
            let taken = bytes.len().min(self.part - self.buffer.len());
            self.buffer.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.buffer.len() == self.part {
                self.send().map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    /// Sends the filled part.
    fn send(&mut self) -> Result<()> {
        let begun = match &self.begun {
            Some((begun, _)) => begun,
            None => {
                let upload = self.place.begin(&self.cancel)?;
                let begun = Arc::new(Begun::new(self.place.clone(), upload));
                let live = Live::of(&self.cancel, Arc::clone(&begun) as _);
                &self.begun.insert((begun, live)).0
            }
        };
        begun.wait(UNDER_WAY - 1, &self.cancel)?;
        begun.send(std::mem::take(&mut self.buffer))?;
        self.parts += 1;
        if self.parts >= PARTS && self.parts.is_multiple_of(GROWS_EVERY) {
            self.part += self.part / 2;
        }
        Ok(())
    }

    /// Makes the object visible. For an object of a prefix, the prefix does so later.
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.begun.is_none() {
            match &self.ready {
                None => return self.place.put(std::mem::take(&mut self.buffer), &self.cancel),
                Some(ready) if self.buffer.is_empty() => {
                    let mut ready = lock(ready);
                    ready.push(Whole::Empty(self.place.clone()));
                    return Ok(());
                }
                Some(_) => {}
            }
        }
        if !self.buffer.is_empty() {
            self.send()?;
        }
        if let Some((begun, _)) = &self.begun {
            begun.wait(0, &self.cancel)?;
        }
        let Some((begun, live)) = self.begun.take() else { return Ok(()) };
        match &self.ready {
            None => begun.complete(&self.cancel),
            Some(ready) => {
                let mut ready = lock(ready);
                ready.push(Whole::Parts(begun, live));
                Ok(())
            }
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some((begun, _live)) = self.begun.take() {
            begun.discard();
        }
    }
}
