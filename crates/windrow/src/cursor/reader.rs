//! One run, and a place in it.
//!
//! ```text
//! run   | chunk | chunk | chunk | ...      their first and last rows stay in memory, wherever they are
//!                   ^ chunk, row           the chunk that is looked at is held, no other
//! ```
//!
//! Invariant: there is a row at the place, and its chunk is held; or the place is behind the last row.

use std::ops::Range;
use std::sync::Arc;

use crate::chunk::{Chunk, View};
use crate::error::Result;
use crate::merge::Run;

/// Where a row stands in its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    chunk: usize,
    row: usize,
}

/// A run that is read from anywhere.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    run: Run,
    place: Place,
    chunk: Option<Arc<Chunk>>,
}

impl Reader {
    /// At the first row of `run`.
    pub(super) fn new(run: Run) -> Result<Self> {
        let mut reader = Self { run, place: Place::default(), chunk: None };
        reader.go_to(Place::default())?;
        Ok(reader)
    }

    /// The row at the place; none behind the last one.
    #[inline]
    pub(super) fn row(&self) -> Option<&[u8]> {
        self.chunk.as_ref().map(|chunk| chunk.rows().row(self.place.row))
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Goes to a place that it was at before, or to the first one.
    pub(super) fn go_to(&mut self, place: Place) -> Result<()> {
        if self.chunk.is_none() || place.chunk != self.place.chunk {
            self.chunk = None;
            if place.chunk < self.run.chunks() {
                self.chunk = Some(self.run.read(place.chunk)?);
            }
        }
        self.place = place;
        Ok(())
    }

    /// Goes to the next row.
    pub(super) fn step(&mut self) -> Result<()> {
        let Some(chunk) = &self.chunk else { return Ok(()) };
        let Place { chunk: at, row } = self.place;
        if row + 1 < chunk.len() {
            self.place.row += 1;
            return Ok(());
        }
        self.go_to(Place { chunk: at + 1, row: 0 })
    }

    /// Goes to the first row of all for which `below`, true for the rows up to some one, is false. Costs a few
    /// comparisons if that is the place or close behind it, else as many as the number of rows has binary digits; one
    /// chunk is read at the most, but for those with a last row that is not kept.
    pub(super) fn seek(&mut self, below: impl Fn(&[u8]) -> bool) -> Result<()> {
        let Some(rows) = self.chunk.as_ref().map(|chunk| chunk.rows()) else {
            return self.seek_chunk(0, below);
        };
        let Place { chunk, row } = self.place;
        if !below(rows.row(row)) {
            let before = match row.checked_sub(1) {
                Some(before) => Some(rows.row(before)),
                None => chunk.checked_sub(1).and_then(|before| self.run.last_row_of(before)),
            };
            return if before.is_some_and(&below) { Ok(()) } else { self.seek_chunk(0, below) };
        }
        if below(rows.last()) {
            return self.seek_chunk(chunk + 1, below);
        }
        self.place.row = gallop(rows, row..rows.len(), below);
        Ok(())
    }

    /// Goes on to the first row for which `below` is false, from the place on.
    pub(super) fn skip(&mut self, below: impl Fn(&[u8]) -> bool) -> Result<()> {
        match self.row() {
            Some(row) if below(row) => self.seek(below),
            _ => Ok(()),
        }
    }

    /// As [`Reader::seek`], in the chunks from `first` on.
    fn seek_chunk(&mut self, first: usize, below: impl Fn(&[u8]) -> bool) -> Result<()> {
        let (mut low, mut high) = (first, self.run.chunks());
        while low < high {
            let middle = low + (high - low) / 2;
            let is_below = match self.run.last_row_of(middle) {
                Some(last) => below(last),
                None => below(self.run.read(middle)?.rows().last()),
            };
            if is_below {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.go_to(Place { chunk: low, row: 0 })?;
        if let Some(chunk) = &self.chunk {
            let rows = chunk.rows();
            self.place.row = rows.partition_point(0..rows.len(), below);
        }
        Ok(())
    }
}

/// The first row of `range`, which starts with one that is `below`, for which that is false: found in as many
/// comparisons as twice the distance has binary digits.
fn gallop(rows: View<'_>, range: Range<usize>, below: impl Fn(&[u8]) -> bool) -> usize {
    let (mut low, mut step) = (range.start, 1);
    while low + step < range.end && below(rows.row(low + step)) {
        low += step;
        step *= 2;
    }
    rows.partition_point(low + 1..(low + step).min(range.end), below)
}
