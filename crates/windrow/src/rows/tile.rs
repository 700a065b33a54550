//! A tile: the rows that are written column by column before going on to the next ones.
//!
//! ```text
//! row         | fixed fields | varying | fixed | varying | fixed |
//!             ^ cursor       ^ a distance from it
//!                                      ^ cursor, behind the first that varies
//! ```
//!
//! Fields of fixed width stand at a distance from a cursor. Each field that varies moves the cursors behind it.

use std::ops::Range;

use super::lines::Line;
use crate::kernel::rows::Scattered;

/// Rows of a tile: their cursors, and most of their bytes, stay in the first-level cache.
pub(super) const TILE: usize = 128;

/// Where the rows of a tile are being written.
pub(super) struct Tile<'a> {
    /// The rows of the record batch.
    pub(super) rows: Range<usize>,
    pub(super) cursors: &'a mut Vec<usize>,
    /// From the cursors to the next field.
    pub(super) distance: usize,
    pub(super) out: &'a mut [u8],
}

impl Tile<'_> {
    /// Where the next field of each row stands, and the bytes.
    pub(super) fn places(&mut self) -> (Scattered<'_>, &mut [u8]) {
        (Scattered { cursors: self.cursors, distance: self.distance }, self.out)
    }

    /// Writes adjacent fields; true if a value has no code of its width.
    pub(super) fn put_line(&mut self, line: &Line<'_>) -> bool {
        let rows = self.rows.clone();
        let (places, out) = self.places();
        let escaped = line.put(rows, places, out);
        self.distance += line.bytes();
        escaped
    }

    /// The cursors at a field that varies, to be moved behind it.
    pub(super) fn next_part(&mut self) -> (&mut [usize], &mut [u8]) {
        let distance = std::mem::take(&mut self.distance);
        if distance > 0 {
            self.cursors.iter_mut().for_each(|cursor| *cursor += distance);
        }
        (self.cursors, self.out)
    }
}
