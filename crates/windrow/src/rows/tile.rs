//! A tile: the rows that are written column by column before going on to the next ones.
//!
//! ```text
//! row         | fixed fields | varying | fixed | varying | fixed |
//! part 0      ^ cursor
//! part 1                               ^ cursor
//! part 2                                                 ^ cursor
//! ```
//!
//! Fields of fixed width stand at a distance from a cursor. Each field that varies ends one part and
//! begins the next.

use std::ops::Range;

use crate::kernel::rows::{Cursors, Reached};

/// Rows of a tile: their cursors, and most of their bytes, stay in the first-level cache.
pub(super) const TILE: usize = 128;

/// Where the rows of a tile are being written.
pub(super) struct Tile<'a> {
    /// The rows of the record batch.
    pub(super) rows: Range<usize>,
    /// The cursors of each part.
    pub(super) parts: &'a mut Vec<Cursors>,
    /// The part that is being written.
    pub(super) part: usize,
    /// From its cursors to the next field.
    pub(super) distance: usize,
    pub(super) out: &'a mut [u8],
}

impl Tile<'_> {
    /// Where the next field of each row stands, and the bytes.
    pub(super) fn places(&mut self) -> (Reached<'_>, &mut [u8]) {
        (self.parts[self.part].places(self.distance), self.out)
    }

    /// Goes on to the next part, for a field that varies: its cursors stand at that field, to be moved
    /// behind it.
    pub(super) fn next_part(&mut self) -> (&mut [usize], &mut [u8]) {
        let distance = std::mem::take(&mut self.distance);
        self.part += 1;
        if self.parts.len() == self.part {
            self.parts.push(Cursors::with_capacity(TILE));
        }
        let (before, after) = self.parts.split_at_mut(self.part);
        let cursors = &mut after[0];
        cursors.set(before[self.part - 1].all().iter().map(|cursor| cursor + distance));
        (cursors.all_mut(), self.out)
    }
}
