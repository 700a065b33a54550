//! The hand-over of a merge under every interleaving of threads that do parts of it and one that waits for it.
//!
//! The file of the slot is compiled here once more, with loom's locks in the place of the standard library's.

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}

#[path = "../src/spine/slot.rs"]
mod slot;

use loom::sync::Arc;
use loom::thread;
use slot::Slot;

/// Parts that the work takes.
const PARTS: u32 = 2;

/// Does one part, if nobody else is at it.
fn work(slot: &Slot<u32, u32>) {
    match slot.take() {
        Some(done) if done + 1 == PARTS => slot.end(done + 1),
        Some(done) => slot.put(done + 1),
        None => {}
    }
}

#[test]
fn every_part_is_done_once_whoever_does_it() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(0));
        let worker = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || (0..PARTS).for_each(|_| work(&slot)))
        };
        // The one who waits helps, and waits where somebody else is at it.
        let outcome = loop {
            if let Some(outcome) = slot.outcome() {
                break outcome;
            }
            work(&slot);
            slot.wait();
        };
        assert_eq!(outcome, PARTS);
        assert!(slot.is_over() && slot.outcome().is_none() && slot.take().is_none());
        worker.join().unwrap();
        assert!(slot.is_over() && slot.outcome().is_none());
    });
}

#[test]
fn two_threads_do_not_do_the_same_part() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(0));
        let threads = [0; 2].map(|_| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || work(&slot))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // One may have found the other at it, and left it.
        let done = slot.take();
        assert!(slot.outcome() == Some(PARTS) || done == Some(1));
    });
}

#[test]
fn who_waits_is_told() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(0));
        let mine = slot.take().unwrap();
        let waits = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                slot.wait();
                assert!(slot.is_over());
            })
        };
        slot.end(mine);
        waits.join().unwrap();
    });
}
