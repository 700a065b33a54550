//! A part of an extent: the blocks around a byte range, each with its own checksum.
//!
//! ```text
//! extent   | block | block | block | block |
//! read             | block | block |                at an address that is a multiple of the block
//! part                 ^^^^^^^^                     size, as reads past the page cache require
//! ```

use std::ops::{Deref, Range};

use super::{BLOCK, Extent, Store};
use crate::budget::Lease;
use windrow_rows::Result;

/// Bytes of an extent, in a buffer of whole blocks.
#[derive(Debug)]
pub struct Part {
    blocks: Vec<u8>,
    range: Range<usize>,
    _lease: Lease,
}

impl Deref for Part {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.blocks[self.range.clone()]
    }
}

/// Rounds `range`, in an extent of `len` bytes, to block boundaries.
fn around(range: &Range<usize>, len: usize) -> Range<usize> {
    let block = BLOCK as usize;
    range.start - range.start % block..range.end.next_multiple_of(block).min(len)
}

impl Store {
    /// Reads bytes `range` of `extent`, which [has parts](Extent::has_parts). The range lies within
    /// the extent. May exceed the budget.
    pub(crate) fn read_part(&self, extent: &Extent, range: Range<usize>) -> Result<Part> {
        debug_assert!(extent.has_parts() && range.end <= extent.len, "a part that there is");
        let around = around(&range, extent.stored_len);
        let block = BLOCK as usize;
        let lease = self.budget.lease(around.len() + block);
        let mut blocks = vec![0; around.len() + block];
        let skipped = blocks.as_ptr().align_offset(block).min(block);
        let stored = &mut blocks[skipped..][..around.len()];
        extent.volume.read(stored, extent.offset + around.start as u64)?;
        extent.check(stored, around.start / block)?;
        let start = skipped + range.start - around.start;
        Ok(Part { blocks, range: start..start + range.len(), _lease: lease })
    }
}

impl Extent {
    /// Starts reading the extent.
    pub fn prefetch(&self) {
        self.volume.medium.prefetch(self.offset, self.stored_len);
    }

    /// Starts reading bytes `range` of the extent.
    pub fn prefetch_part(&self, range: &Range<usize>) {
        let around = around(range, self.stored_len);
        self.volume.medium.prefetch(self.offset + around.start as u64, around.len());
    }
}
