//! Working memory that outlives who works with it.
//!
//! ```text
//! pool   | desk | desk |   | starts | starts | ...      nobody's, for the next one who asks
//! ```
//!
//! To sort a few hundred rows takes less time than the allocator needs for the memory to do it in: with glibc
//! the first request of more than a kilobyte puts its whole heap in order, which takes 4 microseconds. Nothing
//! is kept where memory has a limit, since what is kept here is not leased.

use std::any::Any;
use std::sync::PoisonError;

use super::Pool;

/// Pieces of working memory that are kept.
const MOST: usize = 8;
/// Lists of row starts that are kept, and the entries that one of them may have room for.
const MOST_STARTS: usize = 64;
const LONGEST_STARTS: usize = 1 << 14;

/// What is kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pieces: Vec<Box<dyn Any + Send>>,
    starts: Vec<Vec<u32>>,
}

impl Pool {
    fn kept<R>(&self, with: impl FnOnce(&mut Kept) -> R) -> R {
        with(&mut self.inner.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A piece of working memory as somebody left it, or a new one.
    pub(crate) fn scratch<T: Default + Send + 'static>(&self) -> Box<T> {
        let kept = self.kept(|kept| {
            let at = kept.pieces.iter().rposition(|piece| piece.is::<T>())?;
            kept.pieces.swap_remove(at).downcast().ok()
        });
        kept.unwrap_or_default()
    }

    /// Keeps a piece of working memory for the next one who asks for its like.
    pub(crate) fn keep_scratch<T: Send + 'static>(&self, piece: Box<T>) {
        if !self.inner.budget.is_limited() {
            self.kept(|kept| {
                if kept.pieces.len() < MOST {
                    kept.pieces.push(piece);
                }
            });
        }
    }

    /// Keeps nothing of it.
    pub(super) fn release_scratch(&self) {
        let Kept { pieces, starts } = self.kept(std::mem::take);
        drop((pieces, starts));
    }

    /// A list of where rows start, which is to be filled: nothing but the zero that the first one starts at.
    pub(crate) fn starts(&self) -> Vec<u32> {
        let mut starts = self.kept(|kept| kept.starts.pop()).unwrap_or_default();
        starts.clear();
        starts.push(0);
        starts
    }

    /// Takes a list of row starts back.
    pub(crate) fn recycle_starts(&self, starts: Vec<u32>) {
        if (1..=LONGEST_STARTS).contains(&starts.capacity()) && !self.inner.budget.is_limited() {
            self.kept(|kept| {
                if kept.starts.len() < MOST_STARTS {
                    kept.starts.push(starts);
                }
            });
        }
    }
}
