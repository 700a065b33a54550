//! Runs: sorted sequences of chunks, in memory or on disk.

use std::collections::VecDeque;

use crate::chunk::{Chunk, SpilledChunk};
use crate::error::Result;
use crate::pool::Pool;

/// Where the chunks of one run come from, in order.
pub(crate) trait ChunkSource: Send {
    /// The next chunk, or `None` at the end of the run.
    fn next_chunk(&mut self) -> Result<Option<Chunk>>;
}

/// A run whose chunks are all there.
#[derive(Debug)]
pub(crate) struct Run {
    pool: Pool,
    pieces: VecDeque<Piece>,
}

#[derive(Debug)]
enum Piece {
    Resident(Chunk),
    Spilled(SpilledChunk),
}

impl Run {
    pub(crate) fn new(pool: &Pool) -> Self {
        Self { pool: pool.clone(), pieces: VecDeque::new() }
    }

    pub(crate) fn of(pool: &Pool, chunk: Chunk) -> Self {
        let mut run = Self::new(pool);
        run.push(chunk);
        run
    }

    /// Appends a chunk that sorts behind all others.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.pieces.push_back(Piece::Resident(chunk));
    }

    pub(crate) fn push_spilled(&mut self, chunk: SpilledChunk) {
        self.pieces.push_back(Piece::Spilled(chunk));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        let rows = |piece: &Piece| match piece {
            Piece::Resident(chunk) => chunk.len(),
            Piece::Spilled(chunk) => chunk.len(),
        };
        self.pieces.iter().map(rows).sum()
    }

    /// Bytes of memory that the run holds.
    pub(crate) fn resident_bytes(&self) -> usize {
        let bytes = |piece: &Piece| match piece {
            Piece::Resident(chunk) => chunk.leased_bytes(),
            Piece::Spilled(_) => 0,
        };
        self.pieces.iter().map(bytes).sum()
    }
}

impl ChunkSource for Run {
    fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        match self.pieces.pop_front() {
            None => Ok(None),
            Some(Piece::Resident(chunk)) => Ok(Some(chunk)),
            Some(Piece::Spilled(chunk)) => {
                if let Some(Piece::Spilled(next)) = self.pieces.front() {
                    next.prefetch(&self.pool);
                }
                chunk.load(&self.pool).map(Some)
            }
        }
    }
}
