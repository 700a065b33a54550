//! Reusable workspaces, kept in the pool between uses.
//!
//! ```text
//! pool   | desk | desk |   | starts | starts | ...      unused, for the next caller
//! ```
//!
//! Sorting a few hundred rows takes less time than allocating the workspace: the first request of
//! more than a kilobyte makes glibc consolidate its heap, which takes 4 microseconds. With a memory
//! limit nothing is kept, since workspaces have no lease.

use std::any::Any;

use super::Pool;
use crate::lock::lock;

/// Most workspaces kept.
const MOST: usize = 8;
/// Most lists of row starts kept, and the largest capacity of such a list.
const MOST_STARTS: usize = 64;
const LONGEST_STARTS: usize = 1 << 14;

/// Kept workspaces.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pieces: Vec<Box<dyn Any + Send>>,
    starts: Vec<Vec<u32>>,
}

/// For the engine.
#[doc(hidden)]
impl Pool {
    fn kept<R>(&self, with: impl FnOnce(&mut Kept) -> R) -> R {
        with(&mut lock(&self.inner.kept))
    }

    /// Returns a kept workspace with its old contents, or a new one.
    pub fn scratch<T: Default + Send + 'static>(&self) -> Box<T> {
        let kept = self.kept(|kept| {
            let at = kept.pieces.iter().rposition(|piece| piece.is::<T>())?;
            kept.pieces.swap_remove(at).downcast().ok()
        });
        kept.unwrap_or_default()
    }

    /// Keeps a workspace for the next caller of the same type.
    pub fn keep_scratch<T: Send + 'static>(&self, piece: Box<T>) {
        if !self.inner.budget.is_limited() {
            self.kept(|kept| {
                if kept.pieces.len() < MOST {
                    kept.pieces.push(piece);
                }
            });
        }
    }

    /// Frees all kept workspaces.
    pub(super) fn release_scratch(&self) {
        let Kept { pieces, starts } = self.kept(std::mem::take);
        drop((pieces, starts));
    }

    /// Returns an empty list of row starts: only the zero of the first row.
    pub fn starts(&self) -> Vec<u32> {
        let mut starts = self.kept(|kept| kept.starts.pop()).unwrap_or_default();
        starts.clear();
        starts.push(0);
        starts
    }

    /// Keeps a list of row starts for reuse.
    pub fn recycle_starts(&self, starts: Vec<u32>) {
        if (1..=LONGEST_STARTS).contains(&starts.capacity()) && !self.inner.budget.is_limited() {
            self.kept(|kept| {
                if kept.starts.len() < MOST_STARTS {
                    kept.starts.push(starts);
                }
            });
        }
    }
}
