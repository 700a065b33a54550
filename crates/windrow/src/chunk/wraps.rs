//! Overflow carries of sums, kept until all diffs of a row have met.
//!
//! Whether the diffs of a row exceed 64 bits must not depend on the order of merges. So an
//! overflowing sum wraps modulo 2^64, with the same result in any order, and `Wraps` counts for the
//! row how many times 2^64 are missing:
//!
//! ```text
//! sum of the row's diffs  =  the stored diff (0 if there is none)  +  2^64 * noted
//! ```
//!
//! After the last merge, the sum of a row with a note does not fit. Most inputs cause no notes at
//! all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use windrow_pool::{Lease, Pool, lock};
use windrow_rows::{Error, Layout, Result};

/// Approximate bytes of a note beside the bytes of its row.
const NOTE_BYTES: usize = 96;

/// Overflow notes. Cheap to clone; all clones share the notes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wraps {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// True after the first note; every sum checks this flag first.
    any: AtomicBool,
    notes: Mutex<BTreeMap<Vec<u8>, Note>>,
}

#[derive(Debug)]
struct Note {
    /// Overflow carries of each lane, up to the highest lane noted.
    wraps: SmallVec<[i64; 1]>,
    _lease: Lease,
}

impl Wraps {
    /// Records that a sum of the row `body` (without its diffs), in a lane, is `wraps` times 2^64
    /// more than stored.
    #[cold]
    pub(crate) fn note(&self, pool: &Pool, body: &[u8], lane: usize, wraps: i64) {
        self.inner.any.store(true, Ordering::Release);
        let mut notes = lock(&self.inner.notes);
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

    /// Returns true if there may be notes.
    pub(crate) fn any(&self) -> bool {
        self.inner.any.load(Ordering::Acquire)
    }

    /// Returns true if the stored sum of the row `body` is not its true sum.
    pub(crate) fn has(&self, body: &[u8]) -> bool {
        self.any() && lock(&self.inner.notes).contains_key(body)
    }

    /// Adds the notes of `other`.
    pub(crate) fn absorb(&self, pool: &Pool, other: &Self) {
        if !other.any() || Arc::ptr_eq(&self.inner, &other.inner) {
            return;
        }
        let notes: Vec<_> = lock(&other.inner.notes)
            .iter()
            .map(|(body, note)| (body.clone(), note.wraps.clone()))
            .collect();
        for (body, wraps) in notes {
            self.note_lanes(pool, &body, &wraps);
        }
    }

    /// Removes and returns the notes of rows for which `wanted` is true.
    pub(crate) fn split(&self, pool: &Pool, wanted: impl Fn(&[u8]) -> bool) -> Self {
        let out = Self::default();
        if self.any() {
            let mut notes = lock(&self.inner.notes);
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
            lock(&self.inner.notes).keys().map(Vec::as_slice).for_each(see);
        }
    }

    /// Returns the notes of the rows after `change`.
    pub(crate) fn map(&self, pool: &Pool, change: impl Fn(&mut [u8])) -> Self {
        let out = Self::default();
        if self.any() {
            for (body, note) in lock(&self.inner.notes).iter() {
                let mut body = body.clone();
                change(&mut body);
                out.note_lanes(pool, &body, &note.wraps);
            }
        }
        out
    }

    /// Fails for the first row whose sum does not fit. Valid after everything is merged.
    pub(crate) fn check(&self, layout: &Layout) -> Result<()> {
        if self.any()
            && let Some(body) = lock(&self.inner.notes).keys().next()
        {
            return Err(overflow(layout, body));
        }
        Ok(())
    }
}

/// Returns the error for the row `body`, given without its diff.
pub(crate) fn overflow(layout: &Layout, body: &[u8]) -> Error {
    Error::DiffOverflow { row: describe(layout, &[body, &vec![0; layout.tail().len()]].concat()) }
}

/// Formats the columns of a row for messages.
pub(crate) fn describe(layout: &Layout, row: &[u8]) -> String {
    let decoded = windrow_rows::engine::Decoder::of_all(layout).and_then(|d| d.decode(&[row]));
    match decoded {
        Ok(batch) => {
            let fields = layout.schema().fields().iter().zip(batch.columns());
            let parts: Vec<String> = fields
                .map(|(field, array)| {
                    format!("{}={}", field.name(), windrow_rows::engine::show(array, 0))
                })
                .collect();
            parts.join(" ")
        }
        Err(error) => format!("(row that cannot be decoded: {error})"),
    }
}
