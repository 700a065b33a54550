//! A runtime of DBSP with one worker, the thread of all measurements.

use std::sync::mpsc;

use dbsp::Runtime;
use dbsp::circuit::{CircuitConfig, CircuitStorageConfig};
use feldera_types::config::dev_tweaks::DevTweaks;
use feldera_types::config::{StorageCacheConfig, StorageConfig, StorageOptions};

use crate::Result;

/// Runs `work` on the worker. With `storage`, batches can be files in a temporary directory, read
/// through the system's page cache and DBSP's own. With `filters`, DBSP may add key bitmaps to
/// batches.
pub(crate) fn run<T: Send + 'static>(
    storage: Option<StorageOptions>,
    filters: bool,
    work: impl FnOnce() -> Result<T> + Clone + Send + 'static,
) -> Result<T> {
    let place = tempfile::tempdir()?;
    let storage = storage.map(|options| {
        let path = place.path().to_string_lossy().into_owned();
        let config = StorageConfig { path, cache: StorageCacheConfig::PageCache };
        CircuitStorageConfig::for_config(config, options)
    });
    let tweaks = DevTweaks { enable_roaring: Some(filters), ..DevTweaks::default() };
    let config =
        CircuitConfig::with_workers(1).with_storage(storage.transpose()?).with_dev_tweaks(tweaks);
    let (sender, receiver) = mpsc::channel();
    let handle = Runtime::run(config, move |_parker| {
        // The receiver waits below.
        sender.send(work()).ok();
    })?;
    let done = receiver.recv();
    handle.kill().map_err(|_| "a thread of DBSP's runtime panicked")?;
    done?
}
