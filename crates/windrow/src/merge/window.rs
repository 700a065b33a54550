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
}

impl Window {
    pub(super) fn new(source: Box<dyn ChunkSource>) -> Self {
        Self { source, chunk: None, at: 0 }
    }

    /// Makes sure that there is a row at `at`; false at the end of the run.
    pub(super) fn fill(&mut self) -> Result<bool> {
        if self.chunk.as_ref().is_some_and(|chunk| self.at < chunk.len()) {
            return Ok(true);
        }
        // The spent chunk's memory is there for the next one.
        self.chunk = None;
        self.at = 0;
        self.chunk = self.source.next_chunk()?;
        Ok(self.chunk.is_some())
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
