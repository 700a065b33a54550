//! Tiles: groups of rows that are written column by column.
//!
//! ```text
//! row         | fixed fields | varying | fixed | varying | fixed |
//!             ^ cursor       ^ a distance from it
//!                                      ^ cursor, after the first varying field
//! ```
//!
//! Fields of fixed width have a distance from a cursor. Each field that varies moves the cursors
//! past itself.

use std::ops::Range;

use super::lines::Line;
use windrow_kernel::rows::Scattered;

/// Rows of a tile: cursors, and most bytes of the rows, stay in the first-level cache.
pub(super) const TILE: usize = 128;

/// Write positions in the rows of a tile.
pub(super) struct Tile<'a> {
    /// Rows of the record batch.
    pub(super) rows: Range<usize>,
    pub(super) cursors: &'a mut Vec<usize>,
    /// Distance from the cursors to the next field.
    pub(super) distance: usize,
    pub(super) out: &'a mut [u8],
}

impl Tile<'_> {
    /// Returns the position of the next field in each row, and the output.
    pub(super) fn places(&mut self) -> (Scattered<'_>, &mut [u8]) {
        (Scattered { cursors: self.cursors, distance: self.distance }, self.out)
    }

    /// Writes adjacent fields. Returns true if a value has no code of its width.
    pub(super) fn put_line(&mut self, line: &Line<'_>) -> bool {
        let rows = self.rows.clone();
        let (places, out) = self.places();
        let escaped = line.put(rows, places, out);
        self.distance += line.bytes();
        escaped
    }

    /// Returns the cursors at a field that varies. The caller moves the cursors past the field.
    pub(super) fn next_part(&mut self) -> (&mut [usize], &mut [u8]) {
        let distance = std::mem::take(&mut self.distance);
        if distance > 0 {
            self.cursors.iter_mut().for_each(|cursor| *cursor += distance);
        }
        (self.cursors, self.out)
    }
}
