//! Runs: sorted sequences of chunks, in memory or on disk.

use std::collections::VecDeque;

use super::Merger;
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
    fn new(pool: &Pool) -> Self {
        Self { pool: pool.clone(), pieces: VecDeque::new() }
    }

    /// A run of one chunk.
    pub(crate) fn of(pool: &Pool, chunk: Chunk) -> Self {
        let mut run = Self::new(pool);
        run.pieces.push_back(Piece::Resident(chunk));
        run
    }

    /// Everything that `merger` yields, on disk; the memory of its runs is free as it is read.
    pub(crate) fn spilled(pool: &Pool, merger: &mut Merger) -> Result<Self> {
        let mut run = Self::new(pool);
        while let Some(chunk) = merger.next_chunk()? {
            run.pieces.push_back(Piece::Spilled(chunk.spill()?));
        }
        Ok(run)
    }

    /// Everything that `merger` yields, in memory.
    pub(crate) fn merged(pool: &Pool, merger: &mut Merger) -> Result<Self> {
        let mut run = Self::new(pool);
        while let Some(chunk) = merger.next_chunk()? {
            run.pieces.push_back(Piece::Resident(chunk));
        }
        Ok(run)
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
