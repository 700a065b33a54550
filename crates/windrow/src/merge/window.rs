//! Windows: the current chunk of a run and the position in it; blocks may extend into the next
//! chunk.
//!
//! ```text
//! chunk | . . . . x x x |     next | x x x x |        position 7 is the next one's first row
//!                 ^ at
//! ```
//! If the run has rows outside the merged range, [`Between`] bounds the window.

use std::ops::Range;
use std::sync::Arc;

use super::chunks::ChunkSource;
use super::source::Source;
use crate::chunk::{Chunk, Starts, View, body_of};
use windrow_rows::Result;

/// One chunk of a run; the rows from `at` on are left.
pub(super) struct Window {
    source: Source,
    chunk: Option<Portion>,
    /// The next chunk, if it was in memory when needed.
    next: Option<Portion>,
    pub(super) at: usize,
    /// Whether nothing was prefetched since this chunk arrived.
    pub(super) fresh: bool,
    /// The bounds of the window's rows.
    between: Arc<Between>,
}

/// Bounds as prefixes of rows: `lower` is inclusive, `upper` exclusive.
#[derive(Debug, Default)]
pub(super) struct Between {
    pub(super) lower: Option<Vec<u8>>,
    pub(super) upper: Option<Vec<u8>>,
}

/// The first rows of a chunk, up to `end`.
struct Portion {
    chunk: Arc<Chunk>,
    end: usize,
}

impl Portion {
    fn of(chunk: Arc<Chunk>, between: &Between) -> Self {
        let rows = chunk.rows();
        let end = match &between.upper {
            Some(upper) if rows.last() >= &upper[..] => {
                rows.partition_point(0..rows.len(), |row| row < &upper[..])
            }
            _ => rows.len(),
        };
        Self { chunk, end }
    }

    fn rows(&self) -> View<'_> {
        let rows = self.chunk.rows();
        if self.end == rows.len() { rows } else { rows.part(0..self.end) }
    }
}

impl Window {
    /// Returns the window on the rows of `source` within `between`.
    pub(super) fn new(source: Source, between: &Arc<Between>) -> Self {
        let between = Arc::clone(between);
        Self { source, chunk: None, next: None, at: 0, fresh: false, between }
    }

    /// Returns true if there is a row at `at`.
    pub(super) fn has_rows(&self) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| self.at < chunk.end)
    }

    /// Releases a consumed chunk, which may be as large as its one row.
    pub(super) fn let_go(&mut self) {
        if !self.has_rows() {
            self.at -= self.len();
            self.chunk = None;
        }
    }

    /// Ensures a row at `at`. Returns false at the end of the run.
    pub(super) fn fill(&mut self) -> Result<bool> {
        while !self.has_rows() {
            self.at -= self.len();
            // Frees the consumed chunk's memory for the next chunk.
            self.chunk = None;
            self.chunk = match self.next.take() {
                Some(next) => Some(next),
                None => {
                    let chunk = self.source.next_chunk()?;
                    chunk.map(|chunk| Portion::of(chunk, &self.between))
                }
            };
            self.fresh = self.chunk.is_some();
            if !self.fresh {
                return Ok(false);
            }
            self.skip();
        }
        Ok(true)
    }

    /// Skips from the start of a chunk to the first row of the window.
    fn skip(&mut self) {
        if let Some(lower) = &self.between.lower
            && self.at == 0
            && self.has_rows()
            && self.head() < &lower[..]
        {
            self.at = self.rows().partition_point(self.left(), |row| row < &lower[..]);
        }
    }

    /// Returns true if the remaining rows sort before the head of `other`, without comparing the
    /// last `tail` bytes.
    pub(super) fn stands_before(&self, other: &Self, tail: usize) -> bool {
        body_of(self.last(), tail) < body_of(other.head(), tail)
    }

    /// Returns the remaining rows that sort before the head of `other`, if the rest of the other
    /// chunk sorts before the next row here and can be passed on whole.
    pub(super) fn makes_way(&self, other: &Self, tail: usize) -> Option<Range<usize>> {
        let (rows, head, last) = (self.rows(), other.head(), body_of(other.last(), tail));
        let before = |row: &[u8]| body_of(row, tail) < body_of(head, tail);
        let end = rows.partition_point(self.left(), before);
        let next = (end < self.len()).then(|| body_of(rows.row(end), tail))?;
        (end > self.at && last < next).then_some(self.at..end)
    }

    /// Prefetches the next chunk.
    pub(super) fn read_ahead(&mut self) {
        self.fresh = false;
        self.source.read_ahead();
    }

    /// Returns the remaining rows. An unshared chunk releases the rows before, if these are at most
    /// half of the chunk.
    pub(super) fn rest(&mut self) -> Range<usize> {
        let left = self.left();
        let greater = self.at > 0 && 2 * left.len() >= self.len();
        if greater
            && let Some(portion) = &mut self.chunk
            && let Some(chunk) = Arc::get_mut(&mut portion.chunk)
            && chunk.let_go(left.start)
        {
            portion.end -= left.start;
            self.at = 0;
        }
        self.left()
    }

    /// Loads the next chunk if `rows` rows from `at` on extend into it, without disk access.
    pub(super) fn reach(&mut self, rows: usize) {
        if self.next.is_none() && self.at + rows > self.len() {
            let next = self.source.next_resident();
            self.next = next.map(|chunk| Portion::of(chunk, &self.between));
        }
    }

    /// Returns the position `rows` rows after `at`, or the end of the loaded rows.
    pub(super) fn ahead(&self, rows: usize) -> usize {
        let next = self.next.as_ref().map_or(0, |next| next.end);
        (self.at + rows).min(self.len() + next)
    }

    /// Returns the row at `position`, which must be loaded.
    pub(super) fn row(&self, position: usize) -> &[u8] {
        match (&self.next, position.checked_sub(self.len())) {
            (Some(next), Some(index)) => next.rows().row(index),
            _ => self.rows().row(position),
        }
    }

    /// Returns the rows from `at` up to position `end`, in two parts; the second may be empty.
    pub(super) fn parts(&self, end: usize) -> [View<'_>; 2] {
        let len = self.len();
        let own = self.rows().part(self.at..end.min(len));
        let next = match &self.next {
            Some(next) if end > len => next.rows().part(0..end - len),
            _ => own.part(0..0),
        };
        [own, next]
    }

    /// Returns the bytes of up to `rows` loaded rows from position `start` on.
    pub(super) fn rows_behind(&self, start: usize, rows: usize) -> impl Iterator<Item = &[u8]> {
        let len = self.len();
        let own = self.rows().span(start.min(len)..(start + rows).min(len));
        let next = self.next.as_ref().filter(|_| start + rows > len).map(|next| {
            let range = start.saturating_sub(len)..(start + rows - len).min(next.end);
            next.rows().span(range)
        });
        std::iter::once(own).chain(next)
    }

    pub(super) fn chunk(&self) -> Option<&Arc<Chunk>> {
        self.chunk.as_ref().map(|portion| &portion.chunk)
    }

    pub(super) fn rows(&self) -> View<'_> {
        let none = View { bytes: &[], starts: Starts::Every(1) };
        self.chunk.as_ref().map_or(none, Portion::rows)
    }

    pub(super) fn len(&self) -> usize {
        self.chunk.as_ref().map_or(0, |portion| portion.end)
    }

    /// Returns the range of the remaining rows.
    pub(super) fn left(&self) -> Range<usize> {
        self.at..self.len()
    }

    /// Returns the first remaining row.
    pub(super) fn head(&self) -> &[u8] {
        self.rows().row(self.at)
    }

    /// Returns the last row.
    pub(super) fn last(&self) -> &[u8] {
        self.rows().row(self.len() - 1)
    }
}
