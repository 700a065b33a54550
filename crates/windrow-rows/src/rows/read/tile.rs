//! Tiles: rows that are read together, with their read positions.
//!
//! ```text
//! bytes   | row 0      | row 1   | row 2       | of any other rows
//!           ^ cursor     ^ cursor  ^ cursor
//!           |------|     |------|  |------|           distance: the same for all
//! ```

use super::part::Bits;
use crate::error::Result;
use crate::rows::row_ref::{Rest, RowRef, corrupt, left};
use windrow_kernel::rows::{Places, Scattered, Strided};

/// Consecutive rows.
pub(in crate::rows) struct Tile<'a> {
    bytes: &'a [u8],
    len: usize,
    /// Bytes of every row, if all rows have one length and the first row starts with `bytes`.
    stride: Option<usize>,
    /// Otherwise the start of each row, and the end of the last.
    bounds: Vec<usize>,
    cursors: Vec<usize>,
    /// Distance of the next part from the cursors, or from the start of every row.
    distance: usize,
}

/// Positions of the next part in all rows.
pub(in crate::rows) enum Next<'a> {
    Strided(Strided),
    Scattered(Scattered<'a>),
}

impl<'a> Tile<'a> {
    /// Creates an empty tile, with capacity for `rows` rows.
    pub(in crate::rows) fn new(rows: usize) -> Self {
        Self {
            bytes: &[],
            len: 0,
            stride: None,
            bounds: Vec::with_capacity(rows + 1),
            cursors: Vec::with_capacity(rows),
            distance: 0,
        }
    }

    /// Replaces the rows by the first `len` rows of `bytes`, of `stride` bytes each.
    ///
    /// # Panics
    /// If `bytes` is too short.
    pub(in crate::rows) fn set_strided<'b>(
        self,
        bytes: &'b [u8],
        stride: usize,
        len: usize,
    ) -> Tile<'b> {
        assert!(stride.checked_mul(len).is_some_and(|all| all <= bytes.len()), "rows in bytes");
        let stride = Some(stride);
        Tile { bytes, len, stride, distance: 0, bounds: self.bounds, cursors: self.cursors }
    }

    /// Replaces the rows by the rows of `bytes` that start at `start` and each end at the next of
    /// `ends`.
    ///
    /// # Panics
    /// If the ends descend, or the last end lies beyond the bytes.
    pub(in crate::rows) fn set_ended<'b>(
        mut self,
        bytes: &'b [u8],
        start: usize,
        ends: impl ExactSizeIterator<Item = usize>,
    ) -> Tile<'b> {
        let len = ends.len();
        self.bounds.clear();
        self.bounds.push(start);
        self.bounds.extend(ends);
        // No early exit, so that the loop is vectorized. Valid lengths do not have the highest bit
        // set.
        let pairs = self.bounds.iter().zip(&self.bounds[1..]);
        let wrong = pairs.fold(start, |wrong, (a, b)| wrong | b.wrapping_sub(*a) | b);
        let is_within = wrong.cast_signed() >= 0 && self.bounds[len] <= bytes.len();
        assert!(is_within, "rows in bytes");
        self.cursors.clear();
        self.cursors.extend_from_slice(&self.bounds[..len]);
        let (bounds, cursors) = (self.bounds, self.cursors);
        Tile { bytes, len, stride: None, bounds, cursors, distance: 0 }
    }

    pub(in crate::rows) fn len(&self) -> usize {
        self.len
    }

    pub(in crate::rows) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns true if all rows are known to have one length.
    pub(in crate::rows) fn is_strided(&self) -> bool {
        self.stride.is_some()
    }

    /// Returns the positions of the next part, `bytes` further on.
    pub(in crate::rows) fn next(&mut self, bytes: usize) -> Next<'_> {
        let distance = self.distance + bytes;
        match self.stride {
            Some(stride) => Next::Strided(Strided { first: distance, stride }),
            None => Next::Scattered(Scattered { cursors: &self.cursors, distance }),
        }
    }

    /// Moves past `bytes` of every row.
    pub(in crate::rows) fn pass(&mut self, bytes: usize) {
        self.distance += bytes;
    }

    /// Checks that at least `bytes` follow all positions. In rows of different lengths, the bytes
    /// may belong to another row.
    pub(in crate::rows) fn require(&mut self, bytes: usize) -> Result<()> {
        let end = self.distance + bytes;
        let places = Scattered { cursors: &self.cursors, distance: end };
        let fits = match self.stride {
            Some(stride) => end <= stride,
            None => self.len == 0 || places.furthest(self.len) <= self.bytes.len(),
        };
        if fits { Ok(()) } else { Err(corrupt("a row ends inside one of its columns")) }
    }

    /// Returns the cursors at the next part, of varying length, and the ends of the rows. The
    /// caller moves the cursors past the part.
    pub(in crate::rows) fn cursors(&mut self) -> (&mut [usize], &[usize]) {
        if let Some(stride) = self.stride.take() {
            self.bounds.clear();
            self.bounds.extend((0..=self.len).map(|row| row * stride));
            self.cursors.clear();
            self.cursors.extend_from_slice(&self.bounds[..self.len]);
        }
        let cursors = &mut self.cursors[..];
        if self.distance > 0 {
            cursors.iter_mut().for_each(|cursor| *cursor += self.distance);
            self.distance = 0;
        }
        (cursors, &self.bounds[1..])
    }

    /// Reads the next part row by row: `read` receives the rest of a row, and returns the length of
    /// the part.
    pub(in crate::rows) fn for_each(
        &mut self,
        mut read: impl FnMut(RowRef<'a>) -> Result<usize>,
    ) -> Result<()> {
        let bytes = self.bytes;
        let (cursors, ends) = self.cursors();
        for (cursor, &end) in cursors.iter_mut().zip(ends) {
            *cursor += read(left(bytes, *cursor, end))?;
        }
        Ok(())
    }

    /// Reads a part like [`Tile::for_each`]. `read` also returns the validity of the row, for
    /// `valid`.
    #[inline(always)]
    pub(in crate::rows) fn for_each_valid(
        &mut self,
        valid: &mut Bits,
        mut read: impl FnMut(RowRef<'a>) -> Result<(usize, bool)>,
    ) -> Result<()> {
        let rows = self.len;
        valid.add(rows, |words| {
            let (mut word, mut at) = (0u64, 0);
            self.for_each(|row| {
                let (len, is_valid) = read(row)?;
                word |= u64::from(is_valid) << (at % 64);
                at += 1;
                if at % 64 == 0 || at == rows {
                    words.push(std::mem::take(&mut word));
                }
                Ok(len)
            })
        })
    }

    /// Returns the rests of all rows.
    pub(in crate::rows) fn rest(&mut self) -> Rest<'a, '_> {
        let bytes = self.bytes;
        let (cursors, ends) = self.cursors();
        Rest { bytes, cursors, ends }
    }

    /// Returns true if every row ends at its read position.
    pub(in crate::rows) fn is_read(&self) -> bool {
        match self.stride {
            Some(stride) => self.distance == stride,
            None => {
                let rows = self.cursors.iter().zip(&self.bounds[1..]);
                rows.fold(0, |left, (cursor, end)| left | (cursor + self.distance) ^ end) == 0
            }
        }
    }
}

/// Runs `$body` with `$places` as the positions of [`Next`].
macro_rules! with_places {
    ($next:expr, $places:ident => $body:expr) => {
        match $next {
            $crate::rows::read::Next::Strided($places) => $body,
            $crate::rows::read::Next::Scattered($places) => $body,
        }
    };
}
pub(in crate::rows) use with_places;
