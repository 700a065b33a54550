//! A binary heap of readers, the least row on top.
//!
//! ```text
//!        a 1            no reader is before its parent, so the readers with the least key
//!      /     \          form a tree at the top
//!    a 2     c 1
//!   /  \
//! d 5  (end)
//! ```
//! Invariant: every reader is in the heap once and does not sort before its parent; readers at
//! their end sort last. After readers move, [`Heap::go_on`] or [`Heap::build`] restores the
//! invariant.

use super::reader::Reader;

/// A heap of readers by their rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    /// Indexes of readers.
    nodes: Vec<usize>,
    /// Nodes with the least key, at the top.
    top: Vec<usize>,
}

impl Heap {
    /// Rebuilds the heap. Costs about two comparisons per reader.
    pub(super) fn build(&mut self, readers: &[Reader]) {
        self.nodes.clear();
        self.nodes.extend(0..readers.len());
        for node in (0..readers.len() / 2).rev() {
            self.sift(node, readers);
        }
    }

    /// Returns the least row.
    pub(super) fn least<'a>(&self, readers: &'a [Reader]) -> Option<&'a [u8]> {
        readers[*self.nodes.first()?].row()
    }

    /// Returns the readers whose rows start with `key`, the key of the least row. The next
    /// [`Heap::go_on`] repositions these readers.
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

    /// Repositions the readers of the last [`Heap::starting_with`] after their moves.
    pub(super) fn go_on(&mut self, readers: &[Reader]) {
        // Nodes were collected from the top down.
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
