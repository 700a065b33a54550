//! The network thread, and the means for other threads to wait for its work.
//!
//! ```text
//!  a thread of the job --start(future)--> thread `store`: runtime --> requests, retries
//!                      <--Pending::wait--
//! ```

use std::collections::HashMap;
use std::future::Future;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::ObjectStore;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::error::{Error, Result};
use crate::stats::Traffic;
use crate::watch::Cancel;

use super::address::Address;
use super::counted::Counts;
use super::fault::Fault;
use super::kinds;

/// Interval at which a waiting thread checks for cancellation.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// The stores of one set of options, and their network thread.
pub(super) struct Client {
    options: Vec<(String, String)>,
    counts: Arc<Counts>,
    /// Stores by root.
    stores: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
    handle: Handle,
    /// Dropping this sender ends the thread.
    _running: oneshot::Sender<()>,
}

impl Client {
    pub(super) fn start(options: Vec<(String, String)>) -> Result<Self> {
        let failed = |cause: std::io::Error| {
            Error::space(format!("the thread for the network cannot be started: {cause}"))
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("store".into())
            .spawn(move || {
                // An error also means the end: the sender was dropped.
                let _ = runtime.block_on(ended);
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        let (counts, stores) = (Arc::default(), Mutex::default());
        Ok(Self { options, counts, stores, handle, _running: running })
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.counts.traffic()
    }

    /// Returns the store of `address`.
    pub(super) fn store(&self, address: &Address) -> Result<Arc<dyn ObjectStore>> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(&address.root) {
            return Ok(Arc::clone(store));
        }
        // A new client looks up the current runtime.
        let _within = self.handle.enter();
        let store = kinds::store(address, &self.options, &self.counts)?;
        stores.insert(address.root.clone(), Arc::clone(&store));
        Ok(store)
    }

    /// Starts `work`.
    pub(super) fn start_work<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Pending<T> {
        let (sender, receiver) = sync_channel(1);
        let task = self.handle.spawn(async move {
            // Nobody waits any more if the receiver was dropped.
            let _ = sender.send(work.await);
        });
        Pending { receiver, task: task.abort_handle() }
    }

    /// Runs `work`, and waits for its result.
    pub(super) fn run<T: Send + 'static>(
        &self,
        cancel: &Cancel,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        self.start_work(work).wait(cancel)
    }
}

/// Running work. A dropped `Pending` aborts its work.
pub(super) struct Pending<T> {
    receiver: Receiver<Result<T, Fault>>,
    task: AbortHandle,
}

impl<T> Pending<T> {
    /// Waits for the result, unless the job is cancelled.
    pub(super) fn wait(self, cancel: &Cancel) -> Result<T, Fault> {
        loop {
            match self.within(LOOK) {
                Some(done) => return done,
                None if cancel.is_cancelled() => return Err(Fault::Cancelled),
                None => {}
            }
        }
    }

    /// Waits for the result, for at most `most`.
    pub(super) fn within(&self, most: Duration) -> Option<Result<T, Fault>> {
        match self.receiver.recv_timeout(most) {
            Ok(done) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(Fault::Cancelled)),
        }
    }

    /// Waits for the result, even if the job is cancelled: for work with its own check for
    /// cancellation.
    pub(super) fn wait_to_the_end(self) -> Result<T, Fault> {
        self.receiver.recv().unwrap_or(Err(Fault::Cancelled))
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
