//! Pages at rest in memory, for whoever needs memory more: the coldest goes first.
//!
//! ```text
//! generation 2 and up   | page | page |   asked first: merged often, so seldom needed
//! generation 1          | page |
//! generation 0          | page | page |   fresh: its first merge is soon
//! ```
//! Within a generation they are asked in the order in which they came; one that was used since it was
//! last asked goes to the end once.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::spiller::{Leave, Paged};

/// Generations that are told apart.
pub(super) const GENERATIONS: usize = 3;

/// Pages that may leave.
#[derive(Debug, Default)]
pub(super) struct Residents {
    pages: [VecDeque<Weak<dyn Paged>>; GENERATIONS],
    /// Those that died are thrown out when there are as many as this.
    prune_at: usize,
}

impl Residents {
    /// Notes a page whose rows went through `generation` merges.
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

    /// Makes the coldest page leave that can: what it says, itself, and its generation.
    pub(super) fn coldest(&mut self) -> Option<(Leave, Arc<dyn Paged>, usize)> {
        for (generation, pages) in self.pages.iter_mut().enumerate().rev() {
            // Twice round: who is spared in the first is not in the second.
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
