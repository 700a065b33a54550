//! Windows: the chunk of a run that is being read, and how far; blocks may reach into the next one.
//!
//! ```text
//! chunk | . . . . x x x |     next | x x x x |        position 7 is the next one's first row
//!                 ^ at
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::chunks::ChunkSource;
use super::source::Source;
use crate::chunk::{Chunk, Starts, View};
use crate::error::Result;

/// One chunk of a run, of which the rows from `at` on are left.
pub(super) struct Window {
    source: Source,
    chunk: Option<Arc<Chunk>>,
    /// The chunk behind it, if it was in memory when it was looked for.
    next: Option<Arc<Chunk>>,
    pub(super) at: usize,
    /// Nothing was read ahead since this chunk came.
    fresh: bool,
}

impl Window {
    pub(super) fn new(source: Source) -> Self {
        Self { source, chunk: None, next: None, at: 0, fresh: false }
    }

    /// True if there is a row at `at`.
    pub(super) fn has_rows(&self) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| self.at < chunk.len())
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
                None => self.source.next_chunk()?,
            };
            self.fresh = self.chunk.is_some();
            if !self.fresh {
                return Ok(false);
            }
        }
        Ok(true)
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
            && let Some(chunk) = self.chunk.as_mut().and_then(Arc::get_mut)
            && chunk.let_go(left.start)
        {
            self.at = 0;
        }
        self.left()
    }

    /// Looks for the chunk behind this one, if `rows` rows from `at` on reach beyond it and no disk has
    /// to be read for it.
    pub(super) fn reach(&mut self, rows: usize) {
        if self.next.is_none() && self.at + rows > self.len() {
            self.next = self.source.next_resident();
        }
    }

    /// The position `rows` rows from `at` on, or the end of what is there.
    pub(super) fn ahead(&self, rows: usize) -> usize {
        let next = self.next.as_ref().map_or(0, |next| next.len());
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
            let next = next.rows();
            let range = start.saturating_sub(len)..(start + rows - len).min(next.len());
            next.span(range)
        });
        std::iter::once(own).chain(next)
    }

    pub(super) fn chunk(&self) -> Option<&Arc<Chunk>> {
        self.chunk.as_ref()
    }

    pub(super) fn rows(&self) -> View<'_> {
        let none = View { bytes: &[], starts: Starts::Every(1) };
        self.chunk.as_ref().map_or(none, |chunk| chunk.rows())
    }

    pub(super) fn len(&self) -> usize {
        self.rows().len()
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
