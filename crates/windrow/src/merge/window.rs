//! Windows: the chunk of a run that is being read, and how far; blocks may reach into the next one.
//!
//! ```text
//! chunk | . . . . x x x |     next | x x x x |        position 7 is the next one's first row
//!                 ^ at
//! ```
//! Of a run that has rows beyond what is merged, a window begins and ends between two of them ([`Between`]).

use std::ops::Range;
use std::sync::Arc;

use super::chunks::ChunkSource;
use super::source::Source;
use crate::chunk::{Chunk, Starts, View};
use crate::error::Result;

/// One chunk of a run, of which the rows from `at` on are left.
pub(super) struct Window {
    source: Source,
    chunk: Option<Portion>,
    /// The chunk behind it, if it was in memory when it was looked for.
    next: Option<Portion>,
    pub(super) at: usize,
    /// Nothing was read ahead since this chunk came.
    fresh: bool,
    /// Rows that are not in it stand before the lower one of these, or not before the upper.
    between: Arc<Between>,
}

/// Beginnings of rows: there are no rows before the first, and none from the second on.
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
    /// The rows of `source` that are between two.
    pub(super) fn new(source: Source, between: &Arc<Between>) -> Self {
        let between = Arc::clone(between);
        Self { source, chunk: None, next: None, at: 0, fresh: false, between }
    }

    /// True if there is a row at `at`.
    pub(super) fn has_rows(&self) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| self.at < chunk.end)
    }

    /// Lets go of a chunk that is used up: it may be as large as its one row.
    pub(super) fn let_go(&mut self) {
        if !self.has_rows() {
            self.at -= self.len();
            self.chunk = None;
        }
    }

    /// Makes sure that there is a row at `at`; false at the end of the run.
    pub(super) fn fill(&mut self) -> Result<bool> {
        while !self.has_rows() {
            self.at -= self.len();
            // The spent chunk's memory is there for the next one.
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

    /// Goes on from the beginning of a chunk to the first row that is in the window.
    fn skip(&mut self) {
        if let Some(lower) = &self.between.lower
            && self.at == 0
            && self.has_rows()
            && self.head() < &lower[..]
        {
            self.at = self.rows().partition_point(self.left(), |row| row < &lower[..]);
        }
    }

    /// True if the rows that are left stand before the head of `other`; rows end in `tail` bytes that are not
    /// compared.
    pub(super) fn stands_before(&self, other: &Self, tail: usize) -> bool {
        let body = |row: &'_ [u8]| row.len() - tail;
        let (last, head) = (self.last(), other.head());
        last[..body(last)] < head[..body(head)]
    }

    /// The rows that are left and stand before the head of `other`, if the next row here stands behind all that is left of
    /// its chunk, which can then be passed whole.
    pub(super) fn makes_way(&self, other: &Self, tail: usize) -> Option<Range<usize>> {
        let body = |row: &'_ [u8]| row.len() - tail;
        let (rows, head, last) = (self.rows(), other.head(), other.last());
        let before = |row: &[u8]| row[..body(row)] < head[..body(head)];
        let end = rows.partition_point(self.left(), before);
        let next = (end < self.len()).then(|| rows.row(end))?;
        (end > self.at && last[..body(last)] < next[..body(next)]).then_some(self.at..end)
    }

    /// True if the chunk behind this one was not asked for yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Has the chunk behind this one read ahead.
    pub(super) fn read_ahead(&mut self) {
        self.fresh = false;
        self.source.read_ahead();
    }

    /// The rows that are left: all of the chunk, if it can let those before them go and they are the greater part.
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

    /// Looks for the chunk behind this one, if `rows` rows from `at` on reach beyond it and no disk has
    /// to be read for it.
    pub(super) fn reach(&mut self, rows: usize) {
        if self.next.is_none() && self.at + rows > self.len() {
            let next = self.source.next_resident();
            self.next = next.map(|chunk| Portion::of(chunk, &self.between));
        }
    }

    /// The position `rows` rows from `at` on, or the end of what is there.
    pub(super) fn ahead(&self, rows: usize) -> usize {
        let next = self.next.as_ref().map_or(0, |next| next.end);
        (self.at + rows).min(self.len() + next)
    }

    /// The row at a position that there is.
    pub(super) fn row(&self, position: usize) -> &[u8] {
        match (&self.next, position.checked_sub(self.len())) {
            (Some(next), Some(index)) => next.rows().row(index),
            _ => self.rows().row(position),
        }
    }

    /// The rows from `at` up to position `end`, in two parts of which the second may be empty.
    pub(super) fn parts(&self, end: usize) -> [View<'_>; 2] {
        let len = self.len();
        let own = self.rows().part(self.at..end.min(len));
        let next = match &self.next {
            Some(next) if end > len => next.rows().part(0..end - len),
            _ => own.part(0..0),
        };
        [own, next]
    }

    /// The bytes of `rows` rows from position `start` on, or of those that are there.
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

    /// The rows that are left.
    pub(super) fn left(&self) -> Range<usize> {
        self.at..self.len()
    }

    /// The first row that is left.
    pub(super) fn head(&self) -> &[u8] {
        self.rows().row(self.at)
    }

    /// The last row.
    pub(super) fn last(&self) -> &[u8] {
        self.rows().row(self.len() - 1)
    }
}
