//! Look-ups by a spill thread, while the caller does something else.
//!
//! ```text
//! blocks of keys --spill thread--> looked up: what they read of stores is in the system's cache
//!                                     | wakes the caller, who looks them up again
//! ```
//! The second look-ups do not wait for a disk. Rows that are read ahead take memory of the budget
//! as those of any cursor do, and only while the thread is at them.
//!
//! Invariant: the caller is woken once for a read that a thread has begun, after errors and panics,
//! too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::{Cursor, KeyBlock};
use windrow_pool::{Leave, Paged, Pool, lock};
use windrow_rows::{Result, Time};

/// Look-ups by a spill thread; see [`Cursor::read_ahead`]. Dropping it cancels them, unless they
/// have begun.
pub struct ReadAhead<T = u64> {
    keys: Mutex<Option<(Cursor<T>, Vec<KeyBlock>)>>,
    is_done: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl<T: Time> ReadAhead<T> {
    /// Returns true once the keys were looked up.
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }
}

impl<T: Time> Paged for ReadAhead<T> {
    fn write_out(self: Arc<Self>) -> Result<()> {
        Ok(())
    }

    fn read_in(self: Arc<Self>) {
        let keys = lock(&self.keys).take();
        // The second look-ups meet the same error or panic.
        let _failed = catch_unwind(AssertUnwindSafe(|| {
            let (mut cursor, blocks) = keys?;
            blocks.iter().try_for_each(|block| cursor.pass_over(block)).ok()
        }));
        self.is_done.store(true, Ordering::Release);
        (self.wake)();
    }

    fn leave(&self) -> Leave {
        Leave::Cannot
    }
}

impl<T: Time> Cursor<T> {
    /// Lets a spill thread of `pool` look `blocks` of keys up and read their rows, and call `wake`
    /// afterwards. Returns `None` if the pool's threads are busy, or if it has none.
    pub fn read_ahead(
        self,
        pool: &Pool,
        blocks: Vec<KeyBlock>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Option<Arc<ReadAhead<T>>> {
        let (keys, is_done) = (Mutex::new(Some((self, blocks))), AtomicBool::new(false));
        let ahead = Arc::new(ReadAhead { keys, is_done, wake: Box::new(wake) });
        pool.read_ahead(Arc::<ReadAhead<T>>::clone(&ahead)).then_some(ahead)
    }

    /// Looks up the keys of `block`, and reads all their rows.
    fn pass_over(&mut self, block: &KeyBlock) -> Result<()> {
        self.locate(block);
        let hints = std::mem::take(&mut self.hints);
        for number in 0..block.len() {
            let key = block.key(number);
            self.go_to_spots(&hints, number, key)?;
            for &(at, _) in &self.with_key {
                self.readers[at].pass(key, |_, _| {})?;
            }
        }
        self.hints = hints;
        Ok(())
    }
}

shown!(ReadAhead<T: Time>, it => is_done: it.is_done());
