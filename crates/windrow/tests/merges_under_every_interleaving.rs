//! Model check of the hand-over of a merge: every interleaving of threads that work on it and one
//! that waits for its end.
//!
//! The source file of the slot is compiled a second time here, with loom's locks in place of the
//! standard library's.

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}

#[path = "../src/spine/slot.rs"]
mod slot;

use loom::sync::Arc;
use loom::thread;
use slot::Slot;

/// Number of parts of the work.
const PARTS: u32 = 2;

/// Does one part, unless another thread has taken the work.
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
        // The waiting thread helps, and waits while another thread has the work.
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
        // A thread may have found the work taken, and left.
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
