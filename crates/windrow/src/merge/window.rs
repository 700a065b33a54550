//! Windows: the chunk of a run that is being read, and how far.

use std::ops::Range;
use std::sync::Arc;

use super::ChunkSource;
use crate::chunk::{Chunk, Starts, View};
use crate::error::Result;

/// One chunk of a run, of which the rows from `at` on are left.
pub(super) struct Window {
    source: Box<dyn ChunkSource>,
    chunk: Option<Arc<Chunk>>,
    pub(super) at: usize,
    /// Nothing was read ahead since this chunk came.
    fresh: bool,
}

impl Window {
    pub(super) fn new(source: Box<dyn ChunkSource>) -> Self {
        Self { source, chunk: None, at: 0, fresh: false }
    }

    /// True if there is a row at `at`.
    pub(super) fn has_rows(&self) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| self.at < chunk.len())
    }

    /// Lets go of a chunk that is used up: it may be as large as its one row.
    pub(super) fn let_go(&mut self) {
        if !self.has_rows() {
            self.chunk = None;
        }
    }

    /// Makes sure that there is a row at `at`; false at the end of the run.
    pub(super) fn fill(&mut self) -> Result<bool> {
        if self.has_rows() {
            return Ok(true);
        }
        // The spent chunk's memory is there for the next one.
        self.chunk = None;
        self.at = 0;
        self.chunk = self.source.next_chunk()?;
        self.fresh = self.chunk.is_some();
        Ok(self.fresh)
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
