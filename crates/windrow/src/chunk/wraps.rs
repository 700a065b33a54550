//! Sums that did not fit, until all of their parts have met.
//!
//! Whether the diffs of a row add up to more than 64 bits hold must not depend on which of them meet
//! first. So a sum that does not fit wraps, as a sum modulo 2^64 does, which is the same in any order;
//! and it is noted here, for the row, how many times 2^64 are missing:
//!
//! ```text
//! all diffs of the row  =  the diff that is stored (0 if there is none)  +  2^64 * noted
//! ```
//!
//! When everything has been merged, a row with a note is one whose sum does not fit. Nearly always
//! there is no note at all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::order::Layout;
use crate::pool::{Lease, Pool};

/// What a note takes beside the bytes of its row, about.
const NOTE_BYTES: usize = 96;

/// Notes of sums that wrapped. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wraps {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// True once there was a note: what every sum looks at first.
    any: AtomicBool,
    notes: Mutex<BTreeMap<Vec<u8>, Note>>,
}

#[derive(Debug)]
struct Note {
    /// Of each lane, up to the last one that is not zero.
    wraps: SmallVec<[i64; 1]>,
    _lease: Lease,
}

impl Wraps {
    fn notes(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Note>> {
        self.inner.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a sum of the row `body` (without its diffs), in a lane, is `wraps` times 2^64 more than stored.
    #[cold]
    pub(crate) fn note(&self, pool: &Pool, body: &[u8], lane: usize, wraps: i64) {
        self.inner.any.store(true, Ordering::Release);
        let mut notes = self.notes();
        let note = notes.entry(body.to_vec()).or_insert_with(|| Note {
            wraps: SmallVec::new(),
            _lease: pool.budget().lease(body.len() + NOTE_BYTES),
        });
        if note.wraps.len() <= lane {
            note.wraps.resize(lane + 1, 0);
        }
        note.wraps[lane] += wraps;
        if note.wraps.iter().all(|&wraps| wraps == 0) {
            notes.remove(body);
        }
    }

    fn note_lanes(&self, pool: &Pool, body: &[u8], lanes: &[i64]) {
        for (lane, &wraps) in lanes.iter().enumerate().filter(|(_, wraps)| **wraps != 0) {
            self.note(pool, body, lane, wraps);
        }
    }

    /// True if there may be notes.
    pub(crate) fn any(&self) -> bool {
        self.inner.any.load(Ordering::Acquire)
    }

    /// True if the sum of the row `body` is not what is stored.
    pub(crate) fn has(&self, body: &[u8]) -> bool {
        self.any() && self.notes().contains_key(body)
    }

    /// Takes the notes of `other` in.
    pub(crate) fn absorb(&self, pool: &Pool, other: &Self) {
        if !other.any() || Arc::ptr_eq(&self.inner, &other.inner) {
            return;
        }
        let notes: Vec<_> =
            other.notes().iter().map(|(body, note)| (body.clone(), note.wraps.clone())).collect();
        for (body, wraps) in notes {
            self.note_lanes(pool, &body, &wraps);
        }
    }

    /// Takes the notes of rows out for which `wanted` is true.
    pub(crate) fn split(&self, pool: &Pool, wanted: impl Fn(&[u8]) -> bool) -> Self {
        let out = Self::default();
        if self.any() {
            let mut notes = self.notes();
            let bodies: Vec<Vec<u8>> = notes.keys().filter(|body| wanted(body)).cloned().collect();
            for body in bodies {
                if let Some(note) = notes.remove(&body) {
                    out.note_lanes(pool, &body, &note.wraps);
                }
            }
        }
        out
    }

    /// Calls `see` with every row that has a note.
    pub(crate) fn each(&self, see: impl FnMut(&[u8])) {
        if self.any() {
            self.notes().keys().map(Vec::as_slice).for_each(see);
        }
    }

    /// Changes rows in place, as `change` does with each.
    pub(crate) fn map(&self, pool: &Pool, change: impl Fn(&mut [u8])) -> Self {
        let out = Self::default();
        if self.any() {
            for (body, note) in self.notes().iter() {
                let mut body = body.clone();
                change(&mut body);
                out.note_lanes(pool, &body, &note.wraps);
            }
        }
        out
    }

    /// Fails for the least row whose sum does not fit, everything having been merged.
    pub(crate) fn check(&self, layout: &Layout) -> Result<()> {
        if self.any()
            && let Some(body) = self.notes().keys().next()
        {
            return Err(overflow(layout, body));
        }
        Ok(())
    }
}

/// The error for the row `body`, which is without its diff.
pub(crate) fn overflow(layout: &Layout, body: &[u8]) -> Error {
    Error::DiffOverflow { row: describe(layout, &[body, &vec![0; layout.tail().len()]].concat()) }
}

/// The columns of a row as text, for messages.
pub(crate) fn describe(layout: &Layout, row: &[u8]) -> String {
    let decoded = crate::rows::Decoder::of_all(layout).and_then(|d| d.decode(&[row]));
    match decoded {
        Ok(batch) => {
            let fields = layout.schema().fields().iter().zip(batch.columns());
            let parts: Vec<String> = fields
                .map(|(field, array)| format!("{}={}", field.name(), crate::rows::show(array, 0)))
                .collect();
            parts.join(" ")
        }
        Err(error) => format!("(row that cannot be decoded: {error})"),
    }
}
