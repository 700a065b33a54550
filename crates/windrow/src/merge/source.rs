//! Inputs of a merge.
//!
//! ```text
//! run      [chunk][chunk][chunk]       all present
//! stream   [chunk] ...                 made on demand, by a merge or from record batches
//! ```

use std::sync::Arc;

use super::chunks::ChunkSource;
use super::run::Run;
use crate::chunk::Chunk;
use windrow_rows::Result;

/// A sequence of chunks.
pub(crate) enum Source {
    /// Existing chunks.
    Run(Run),
    /// Chunks produced on demand.
    Stream(Box<dyn ChunkSource>),
}

impl Source {
    /// Returns the bytes of chunks in memory.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.run().map_or(0, Run::resident_bytes)
    }

    pub(crate) fn run(&self) -> Option<&Run> {
        match self {
            Self::Run(run) => Some(run),
            Self::Stream(_) => None,
        }
    }

    pub(crate) fn into_run(self) -> Option<Run> {
        match self {
            Self::Run(run) => Some(run),
            Self::Stream(_) => None,
        }
    }
}

impl ChunkSource for Source {
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        match self {
            Self::Run(run) => run.next_chunk(),
            Self::Stream(stream) => stream.next_chunk(),
        }
    }

    fn next_resident(&mut self) -> Option<Arc<Chunk>> {
        match self {
            Self::Run(run) => run.next_resident(),
            Self::Stream(stream) => stream.next_resident(),
        }
    }

    fn read_ahead(&self) {
        match self {
            Self::Run(run) => run.read_ahead(),
            Self::Stream(stream) => stream.read_ahead(),
        }
    }
}
