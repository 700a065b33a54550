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

use crate::kernel::rows::Scattered;

/// Rows of a tile: their cursors, and most of their bytes, stay in the first-level cache.
pub(super) const TILE: usize = 128;

/// Where the rows of a tile are being written.
pub(super) struct Tile<'a> {
    /// The rows of the record batch.
    pub(super) rows: Range<usize>,
    /// The cursors of each part.
    pub(super) parts: &'a mut Vec<[usize; TILE]>,
    /// The part that is being written.
    pub(super) part: usize,
    /// From its cursors to the next field.
    pub(super) distance: usize,
    pub(super) out: &'a mut [u8],
}

impl Tile<'_> {
    /// Where the next field of each row stands, and the bytes.
    pub(super) fn places(&mut self) -> (Scattered<'_>, &mut [u8]) {
        let cursors = &self.parts[self.part][..self.rows.len()];
        (Scattered { cursors, distance: self.distance }, self.out)
    }

    /// Goes on to the next part, for a field that varies: its cursors stand at that field, to be moved
    /// behind it.
    pub(super) fn next_part(&mut self) -> (&mut [usize], &mut [u8]) {
        let distance = std::mem::take(&mut self.distance);
        self.part += 1;
        if self.parts.len() == self.part {
            self.parts.push([0; TILE]);
        }
        let (before, after) = self.parts.split_at_mut(self.part);
        let cursors = &mut after[0][..self.rows.len()];
        for (cursor, before) in cursors.iter_mut().zip(&before[self.part - 1]) {
            *cursor = before + distance;
        }
        (cursors, self.out)
    }
}
