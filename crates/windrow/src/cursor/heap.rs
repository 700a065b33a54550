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
use crate::chunk::word_at;

/// A heap of readers by their rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    nodes: Vec<Node>,
    /// Nodes with the least key, at the top.
    top: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The first bytes of the row, which mostly decide; the greatest word at the end.
    word: u64,
    reader: usize,
}

impl Node {
    fn new(reader: usize, readers: &[Reader]) -> Self {
        Self { word: readers[reader].row().map_or(u64::MAX, |row| word_at(row, 0)), reader }
    }

    fn is_before(self, other: Self, readers: &[Reader]) -> bool {
        if self.word != other.word {
            return self.word < other.word;
        }
        match (readers[self.reader].row(), readers[other.reader].row()) {
            (Some(a), Some(b)) => a < b,
            (a, _) => a.is_some(),
        }
    }
}

impl Heap {
    /// Rebuilds the heap. Costs about two comparisons per reader.
    pub(super) fn build(&mut self, readers: &[Reader]) {
        self.nodes.clear();
        self.nodes.extend((0..readers.len()).map(|reader| Node::new(reader, readers)));
        for node in (0..readers.len() / 2).rev() {
            self.sift(node, readers);
        }
    }

    /// Returns the least row.
    pub(super) fn least<'a>(&self, readers: &'a [Reader]) -> Option<&'a [u8]> {
        readers[self.nodes.first()?.reader].row()
    }

    /// Returns the readers whose rows start with `key`, the key of the least row. The next
    /// [`Heap::go_on`] repositions these readers.
    pub(super) fn starting_with(
        &mut self,
        key: &[u8],
        readers: &[Reader],
    ) -> impl Iterator<Item = usize> {
        let Self { nodes, top } = self;
        let least = nodes.first().map(|node| node.word);
        let has = |node: &usize| {
            nodes.get(*node).is_some_and(|node| {
                (key.len() < size_of::<u64>() || Some(node.word) == least)
                    && readers[node.reader].is_at(key)
            })
        };
        top.clear();
        top.extend(Some(0).filter(has));
        let mut next = 0;
        while let Some(&node) = top.get(next) {
            top.extend([2 * node + 1, 2 * node + 2].into_iter().filter(has));
            next += 1;
        }
        top.iter().map(|&node| nodes[node].reader)
    }

    /// Repositions the readers of the last [`Heap::starting_with`] after their moves.
    pub(super) fn go_on(&mut self, readers: &[Reader]) {
        // Nodes were collected from the top down.
        let top = std::mem::take(&mut self.top);
        for &node in top.iter().rev() {
            self.nodes[node] = Node::new(self.nodes[node].reader, readers);
            self.sift(node, readers);
        }
        self.top = top;
    }

    fn sift(&mut self, mut node: usize, readers: &[Reader]) {
        loop {
            let mut least = node;
            for inner in [2 * node + 1, 2 * node + 2] {
                if inner < self.nodes.len()
                    && self.nodes[inner].is_before(self.nodes[least], readers)
                {
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
