//! Waiting rows of one partition: on disk, sealed, or growing.
//!
//! ```text
//!  first rows                                             last rows
//! | | extent | extent | ... | sealed | sealed | ... | growing |        all hold blocks of `flat`
//!    in the pool's store     in memory, about the target    in memory
//! ```
//!
//! Invariant: blocks are in input order; every block in memory is newer than all stored blocks.

use std::collections::VecDeque;

use super::stored;
use windrow_pool::{Extent, Pool};
use windrow_rows::Result;

/// Full buffers grow by this part of their length: at most a quarter of the leased memory is
/// unused, and bytes are copied four times on average.
const GROWTH: usize = 4;

/// Rows of one partition.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) stored: VecDeque<Extent>,
    pub(super) sealed: VecDeque<Vec<u8>>,
    growing: Vec<u8>,
    pub(super) rows: usize,
    /// Bytes of all blocks.
    pub(super) bytes: usize,
}

impl Waiting {
    /// Returns the bytes of memory.
    pub(super) fn held(&self) -> usize {
        let sealed: usize = self.sealed.iter().map(Vec::capacity).sum();
        let extents = self.stored.len() * size_of::<Extent>();
        sealed + self.growing.capacity() + extents
    }

    /// Returns the bytes of memory that [`Waiting::store`] would free.
    pub(super) fn storable(&self) -> usize {
        self.sealed.iter().map(Vec::len).sum::<usize>() + self.growing.len()
    }

    /// Adds a block of `rows` rows, and seals the blocks at `target` bytes.
    pub(super) fn push(&mut self, block: &[u8], rows: usize, target: usize) {
        if self.growing.capacity() - self.growing.len() < block.len() {
            let more = (self.growing.len() / GROWTH).min(target.saturating_sub(self.growing.len()));
            self.growing.reserve_exact(block.len().max(more));
        }
        self.growing.extend_from_slice(block);
        self.rows += rows;
        self.bytes += block.len();
        if self.growing.len() >= target {
            self.seal();
        }
    }

    /// Moves all bytes to the pool's store.
    pub(super) fn store(&mut self, pool: &Pool) -> Result<()> {
        self.seal();
        while let Some(bytes) = self.sealed.front() {
            self.stored.push_back(stored::write(pool, bytes)?);
            self.sealed.pop_front();
        }
        Ok(())
    }

    /// Moves the growing blocks to the sealed blocks.
    pub(super) fn seal(&mut self) {
        if !self.growing.is_empty() {
            let mut bytes = std::mem::take(&mut self.growing);
            bytes.shrink_to_fit();
            self.sealed.push_back(bytes);
        }
    }
}
