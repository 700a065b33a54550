//! Look-ups by a spill thread, while the caller does something else.
//!
//! ```text
//! keys --spill thread--> looked up: blocks of the store are in the system's cache from now on
//!                           | wakes the caller, who looks the keys up again
//! ```
//! The second look-ups do not wait for a disk. The cursors of the thread hold a chunk of each batch,
//! like those of the caller, until all keys are looked up.
//!
//! Invariant: the caller is woken once after reads that have begun, whether they end, fail or
//! panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use windrow_pool::{Leave, Paged, Pool, lock};
use windrow_rows::Result;

/// Look-ups by a spill thread; see [`Cursor::read_ahead`](crate::Cursor::read_ahead). Dropping it
/// cancels them, unless they have begun.
pub struct ReadAhead {
    reads: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    is_done: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl ReadAhead {
    /// Lets a spill thread of `pool` call `reads`, and `wake` afterwards. Returns `None` if the
    /// threads are busy, or if there are none.
    pub(super) fn start(
        pool: &Pool,
        reads: impl FnOnce() + Send + 'static,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Option<Arc<Self>> {
        let (reads, wake) = (Mutex::new(Some(Box::new(reads) as Box<_>)), Box::new(wake));
        let ahead = Arc::new(Self { reads, is_done: AtomicBool::new(false), wake });
        pool.read_ahead(Arc::<Self>::clone(&ahead)).then_some(ahead)
    }

    /// Returns true once the keys were looked up.
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }
}

impl Paged for ReadAhead {
    fn write_out(self: Arc<Self>) -> Result<()> {
        Ok(())
    }

    fn read_in(self: Arc<Self>) {
        let reads = lock(&self.reads).take();
        // The second look-ups meet the same panic.
        let _panic = reads.map(|reads| catch_unwind(AssertUnwindSafe(reads)));
        self.is_done.store(true, Ordering::Release);
        (self.wake)();
    }

    fn leave(&self) -> Leave {
        Leave::Cannot
    }
}

shown!(ReadAhead, it => is_done: it.is_done());
