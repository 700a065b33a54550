//! One run, and a place in it.
//!
//! ```text
//! run   | chunk | chunk | chunk | ...      their first and last rows stay in memory, wherever they are
//!                   ^ chunk, row           the chunk that is looked at is held, no other
//! ```
//!
//! Invariant: there is a row at the place, and its chunk is held; or the place is behind the last row. A reader that did
//! not find a key is at neither: it is moved before it is read.

use std::ops::Range;
use std::sync::Arc;

use crate::chunk::{Chunk, KeyHash, View};
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
    run: Arc<Run>,
    place: Place,
    chunk: Option<Arc<Chunk>>,
}

impl Reader {
    /// Nowhere in `run`, of which nothing is read.
    pub(super) fn new(run: Arc<Run>) -> Self {
        Self { run, place: Place::default(), chunk: None }
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

    /// Goes to the first row with `key`, of which `hash` is the hash; false if there is none, and then it may be anywhere.
    /// A key that is not there is nearly always told from what is in memory of the chunks. Where many readers hold more
    /// than the budget has, one that does not find the key lets go of what it held for the one before.
    pub(super) fn find(&mut self, key: &[u8], hash: KeyHash) -> Result<bool> {
        let found = self.look_up(key, hash)?;
        if !found && self.chunk.as_ref().is_some_and(|chunk| chunk.is_beyond_limit()) {
            self.chunk = None;
        }
        Ok(found)
    }

    fn look_up(&mut self, key: &[u8], hash: KeyHash) -> Result<bool> {
        let below = |row: &[u8]| row < key;
        if let Some(rows) = self.chunk.as_ref().map(|chunk| chunk.rows()) {
            let Place { chunk, row } = self.place;
            let at_hand = below(rows.row(0)) && !below(rows.last());
            if at_hand && !self.run.may_have(chunk, hash) {
                return Ok(false);
            }
            if at_hand {
                let is_ahead = below(rows.row(row));
                self.place.row = match is_ahead {
                    true => gallop(rows, row..rows.len(), below),
                    false => rows.partition_point(0..row, below),
                };
                return Ok(rows.row(self.place.row).starts_with(key));
            }
        }
        let at = self.chunk_of(0, below)?;
        let before = |first: &[u8]| first > key && !first.starts_with(key);
        if at == self.run.chunks()
            || self.run.first_row_of(at).is_some_and(before)
            || !self.run.may_have(at, hash)
        {
            return Ok(false);
        }
        self.go_to(Place { chunk: at, row: 0 })?;
        if let Some(chunk) = &self.chunk {
            let rows = chunk.rows();
            self.place.row = rows.partition_point(0..rows.len(), below);
        }
        Ok(self.row().is_some_and(|row| row.starts_with(key)))
    }

    /// As [`Reader::seek`], in the chunks from `first` on.
    fn seek_chunk(&mut self, first: usize, below: impl Fn(&[u8]) -> bool) -> Result<()> {
        let chunk = self.chunk_of(first, &below)?;
        self.go_to(Place { chunk, row: 0 })?;
        if let Some(chunk) = &self.chunk {
            let rows = chunk.rows();
            self.place.row = rows.partition_point(0..rows.len(), below);
        }
        Ok(())
    }

    /// The first chunk from `first` on whose last row is not `below`; their number if there is none.
    fn chunk_of(&self, first: usize, below: impl Fn(&[u8]) -> bool) -> Result<usize> {
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
        Ok(low)
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
