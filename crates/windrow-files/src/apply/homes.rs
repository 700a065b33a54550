//! The file of each change, for a table whose files overlap in their keys.

use std::sync::atomic::{AtomicU32, Ordering};

/// The file of each change, by the number of the change.
pub(super) struct Homes(Vec<AtomicU32>);

/// No file yet.
const NONE: u32 = u32::MAX;

impl Homes {
    pub(super) fn none(changes: u64) -> Self {
        Self((0..changes).map(|_| AtomicU32::new(NONE)).collect())
    }

    /// Returns the memory of the value.
    pub(super) fn bytes(&self) -> usize {
        self.0.len() * size_of::<AtomicU32>()
    }

    /// Returns the file of a change.
    pub(super) fn of(&self, change: u64) -> Option<usize> {
        let home = self.0.get(usize::try_from(change).ok()?)?.load(Ordering::Relaxed);
        (home != NONE).then_some(home as usize)
    }

    /// Sets the file of a change. Returns the other file if it has one already.
    pub(super) fn set(&self, change: u64, file: usize) -> Result<(), usize> {
        let Some(home) = usize::try_from(change).ok().and_then(|place| self.0.get(place)) else {
            return Ok(());
        };
        let file = u32::try_from(file).unwrap_or(NONE);
        let set = home.compare_exchange(NONE, file, Ordering::Relaxed, Ordering::Relaxed);
        set.map(drop).map_err(|other| other as usize)
    }
}
