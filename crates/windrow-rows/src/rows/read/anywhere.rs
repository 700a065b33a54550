//! Readers of rows at any place, one tile after the other.
//!
//! ```text
//! rows one after another        read in place
//! rows anywhere                 | row | row | row |    copied together, unless long: kernels read
//!                                                      positions of one slice
//! ```

use super::{Reader, Tile};
use crate::error::Result;
use crate::rows::stretch::Stretch;
use windrow_kernel::copy::copy_rows;

/// Rows of a tile, for rows of different lengths: their positions stay in the first-level cache.
pub(in crate::rows) const TILE: usize = 1024;
/// Bytes of a tile, for rows of one length: a quarter of a second-level cache, so that each column
/// is written long enough for prefetching. 20 % faster than 16 KiB for 50 columns.
const TILE_BYTES: usize = 256 << 10;
/// Maximum bytes of rows that are copied together; a longer row is read in place.
const COPIED: usize = 64 << 10;
/// Bytes after copied rows: texts at the end are read by the same steps as texts in front.
const BEHIND: usize = 128;

/// Rows in a word of bits: tiles have whole words if possible, so that bits need no shifts.
const WORD: usize = 64;

impl Reader<'_> {
    /// Reads rows that lie anywhere. `stride` is the length of all rows, if known.
    pub(in crate::rows) fn read_anywhere(
        &mut self,
        rows: &[&[u8]],
        stride: Option<usize>,
    ) -> Result<()> {
        let mut copied = Vec::new();
        let mut tile = Tile::new(TILE.min(rows.len()));
        let mut left = rows;
        while let Some(&first) = left.first() {
            if first.len() > COPIED {
                tile = tile.set_ended(first, 0, std::iter::once(first.len()));
                self.read(&mut tile)?;
                left = &left[1..];
                continue;
            }
            let mut bytes = 0;
            let fits = |row: &&&[u8]| {
                bytes += row.len();
                bytes <= COPIED
            };
            let count = left.iter().take(TILE).take_while(fits).count();
            let is_last = count == left.len();
            let count = if is_last || count < WORD { count } else { count / WORD * WORD };
            let (these, behind) = left.split_at(count);
            left = behind;
            let mut end = 0;
            let ends = these.iter().map(|row| {
                end += row.len();
                end
            });
            let ends: Vec<usize> = ends.collect();
            copied.resize(copied.len().max(end + BEHIND), 0);
            copy_rows(&mut copied, these);
            let stride = stride.filter(|&stride| these.iter().all(|row| row.len() == stride));
            let mut own = match stride {
                Some(stride) => tile.set_strided(&copied, stride, these.len()),
                None => tile.set_ended(&copied, 0, ends.into_iter()),
            };
            self.read(&mut own)?;
            tile = own.set_ended(&[], 0, std::iter::empty());
        }
        Ok(())
    }

    /// Reads consecutive rows.
    pub(in crate::rows) fn read_stretch(&mut self, rows: &Stretch<'_>) -> Result<()> {
        match *rows {
            Stretch::Strided { bytes, stride, count } => self.read_strided(bytes, stride, count),
            Stretch::Ended { bytes, start, ends } => self.read_ended(bytes, start, ends),
        }
    }

    /// Reads the first `count` consecutive rows, of `stride` bytes each.
    ///
    /// # Panics
    /// If `bytes` is too short.
    pub(in crate::rows) fn read_strided(
        &mut self,
        bytes: &[u8],
        stride: usize,
        count: usize,
    ) -> Result<()> {
        let most = (TILE_BYTES / stride.max(1)).next_multiple_of(WORD).max(WORD);
        let mut tile = Tile::new(0);
        for first in (0..count).step_by(most) {
            let count = most.min(count - first);
            tile = tile.set_strided(&bytes[first * stride..], stride, count);
            self.read(&mut tile)?;
        }
        Ok(())
    }

    /// Reads consecutive rows from `start` of `bytes` on, which end at `ends`.
    ///
    /// # Panics
    /// If the ends descend, or the last end lies beyond the bytes.
    pub(in crate::rows) fn read_ended(
        &mut self,
        bytes: &[u8],
        start: usize,
        ends: &[u32],
    ) -> Result<()> {
        let mut tile = Tile::new(TILE.min(ends.len()));
        let mut start = start;
        for ends in ends.chunks(TILE) {
            tile = tile.set_ended(bytes, start, ends.iter().map(|&end| end as usize));
            self.read(&mut tile)?;
            start = ends.last().map_or(start, |&end| end as usize);
        }
        Ok(())
    }
}
