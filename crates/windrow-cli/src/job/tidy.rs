//! Free memory goes back to the system when the limit is near.
//!
//! What is planned is what is in use. The allocator has more: blocks that are free, between others, and fit
//! none of those asked for. A merge of nested columns held 25 MiB, and 100 were resident. To give them back
//! takes milliseconds, so it is done where it matters: from [`MARGIN`] below the limit on, each time that
//! resident memory has grown by [`STEP`] since, and where what is about to be taken would pass the limit
//! if none of it came from free blocks.
//!
//! Asked wherever a job comes by once a record batch or column, as [`super::interrupt`] is; before a copy of
//! a part or of a message is made; and where writing begins, which has the memory that reading had.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::system;

/// An eighth of the limit, and so much at the least: what is taken between two looks.
const MARGIN: u64 = 8 << 20;
/// Less is not worth the way through all free blocks.
const STEP: u64 = 2 << 20;

/// Resident memory at which free blocks are given back next.
static NEXT: AtomicU64 = AtomicU64::new(u64::MAX);
/// The least of it.
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
/// What resident memory is to stay below.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Starts to look at resident memory, which is to stay below `limit`.
pub(super) fn below(limit: u64) {
    let first = limit.saturating_sub(MARGIN.max(limit / 8));
    LIMIT.store(limit, Ordering::Relaxed);
    FIRST.store(first, Ordering::Relaxed);
    NEXT.store(first, Ordering::Relaxed);
}

/// Gives free blocks back if it is time to.
pub(crate) fn tidy() {
    room_for(0);
}

/// As [`tidy`], also if there would not be room for `bytes` more that are taken before the next look.
pub(crate) fn room_for(bytes: usize) {
    let (first, next) = (FIRST.load(Ordering::Relaxed), NEXT.load(Ordering::Relaxed));
    if first == u64::MAX {
        return;
    }
    let resident = system::resident_now();
    // What is resident is known to some pages a thread, and other threads take memory meanwhile.
    let wanted = resident.saturating_add(bytes as u64).saturating_add(STEP);
    if resident >= next || wanted > LIMIT.load(Ordering::Relaxed) {
        windrow::give_back_free_blocks();
        NEXT.store((system::resident_now() + STEP).max(first), Ordering::Relaxed);
    } else if resident + STEP < next {
        NEXT.store((resident + STEP).max(first), Ordering::Relaxed);
    }
}
