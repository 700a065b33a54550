//! Which of any number of readers stand first.
//!
//! ```text
//!        a 1            no reader stands before the one above it, so those with the least key
//!      /     \          are a tree at the top
//!    a 2     c 1
//!   /  \
//! d 5  (end)
//! ```
//! Invariant: every reader is in the heap once, and does not stand before the one above it; those at their end are
//! behind all others. It holds again after readers were moved when [`Heap::go_on`] or [`Heap::build`] has been called.

use super::reader::Reader;

/// Readers by their rows, the least on top.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    /// Positions of readers.
    nodes: Vec<usize>,
    /// The nodes at the top that have the least key.
    top: Vec<usize>,
}

impl Heap {
    /// Builds it anew. Costs about two comparisons a reader.
    pub(super) fn build(&mut self, readers: &[Reader]) {
        self.nodes.clear();
        self.nodes.extend(0..readers.len());
        for node in (0..readers.len() / 2).rev() {
            self.sift(node, readers);
        }
    }

    /// The least row.
    pub(super) fn least<'a>(&self, readers: &'a [Reader]) -> Option<&'a [u8]> {
        readers[*self.nodes.first()?].row()
    }

    /// The readers whose rows start with `key`, which is that of the least row. The next call of [`Heap::go_on`] is about
    /// these.
    pub(super) fn starting_with(
        &mut self,
        key: &[u8],
        readers: &[Reader],
    ) -> impl Iterator<Item = usize> {
        let Self { nodes, top } = self;
        let has = |node: &usize| {
            let reader = nodes.get(*node).map(|&at| &readers[at]);
            reader.and_then(Reader::row).is_some_and(|row| row.starts_with(key))
        };
        top.clear();
        top.extend(Some(0).filter(has));
        let mut next = 0;
        while let Some(&node) = top.get(next) {
            top.extend([2 * node + 1, 2 * node + 2].into_iter().filter(has));
            next += 1;
        }
        top.iter().map(|&node| nodes[node])
    }

    /// Moves the readers to their places that had the least key, and have gone on since.
    pub(super) fn go_on(&mut self, readers: &[Reader]) {
        // Nodes were found from the top down.
        let top = std::mem::take(&mut self.top);
        top.iter().rev().for_each(|&node| self.sift(node, readers));
        self.top = top;
    }

    fn sift(&mut self, mut node: usize, readers: &[Reader]) {
        let is_before = |a: usize, b: usize| match (readers[a].row(), readers[b].row()) {
            (Some(a), Some(b)) => a < b,
            (a, _) => a.is_some(),
        };
        loop {
            let mut least = node;
            for inner in [2 * node + 1, 2 * node + 2] {
                if inner < self.nodes.len() && is_before(self.nodes[inner], self.nodes[least]) {
                    least = inner;
                }
            }
            if least == node {
                return;
            }
            self.nodes.swap(node, least);
            node = least;
        }
    }
}
