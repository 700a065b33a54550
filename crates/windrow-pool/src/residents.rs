//! Pages at rest in memory, evicted under memory pressure, the coldest first.
//!
//! ```text
//! generation 2 and up   | page | page |   evicted first: merged often, so seldom needed
//! generation 1          | page |
//! generation 0          | page | page |   fresh: its first merge is soon
//! ```
//! Within a generation, pages leave in the order of arrival. A page used since its last turn is
//! moved to the end once.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use crate::spiller::{Leave, Paged};

/// Number of distinguished generations.
pub(super) const GENERATIONS: usize = 3;

/// Evictable pages.
#[derive(Debug, Default)]
pub(super) struct Residents {
    pages: [VecDeque<Weak<dyn Paged>>; GENERATIONS],
    /// Number of entries from which on dropped pages are removed.
    prune_at: usize,
}

impl Residents {
    /// Adds a page whose rows went through `generation` merges.
    pub(super) fn push(&mut self, page: Weak<dyn Paged>, generation: u8) {
        let count: usize = self.pages.iter().map(VecDeque::len).sum();
        if count >= self.prune_at.max(64) {
            for pages in &mut self.pages {
                pages.retain(|page| page.strong_count() > 0);
            }
            self.prune_at = 2 * self.pages.iter().map(VecDeque::len).sum::<usize>();
        }
        self.pages[usize::from(generation).min(GENERATIONS - 1)].push_back(page);
    }

    /// Evicts the coldest evictable page. Returns the kind of eviction, the page, and its
    /// generation.
    pub(super) fn coldest(&mut self) -> Option<(Leave, Arc<dyn Paged>, usize)> {
        for (generation, pages) in self.pages.iter_mut().enumerate().rev() {
            // Two rounds: a page spared in the first is not spared in the second.
            for _ in 0..2 * pages.len() {
                let Some(weak) = pages.pop_front() else { break };
                let Some(page) = weak.upgrade() else { continue };
                match page.leave() {
                    Leave::Cannot => {}
                    Leave::Later => pages.push_back(weak),
                    left => return Some((left, page, generation)),
                }
            }
        }
        None
    }
}
