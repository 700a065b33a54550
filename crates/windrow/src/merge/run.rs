//! Runs: sorted sequences of chunks, in memory or on disk.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Merger;
use crate::chunk::{Chunk, SpilledChunk, TimeCodes};
use crate::error::Result;
use crate::order::Layout;
use crate::pool::Pool;

/// Chunks of the budget that are left free for whoever works.
const SPARE_CHUNKS: usize = 4;

/// Where the chunks of one run come from, in order.
pub(crate) trait ChunkSource: Send {
    /// The next chunk, or `None` at the end of the run.
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>>;
}

/// A run whose chunks are all there. Cheap to clone: clones share the chunks.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pool: Pool,
    pieces: VecDeque<Piece>,
}

/// One chunk of a run.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Resident(Arc<Chunk>),
    Spilled(Arc<SpilledChunk>),
}

impl Piece {
    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.len(),
            Self::Spilled(chunk) => chunk.len(),
        }
    }

    /// Bytes that the rows take.
    fn bytes(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.bytes(),
            Self::Spilled(chunk) => chunk.bytes(),
        }
    }

    /// Bytes of memory that the piece holds.
    fn resident_bytes(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.leased_bytes(),
            Self::Spilled(_) => 0,
        }
    }

    /// The first row and the last, if no disk has to be read for them.
    fn ends(&self) -> Option<[&[u8]; 2]> {
        match self {
            Self::Resident(chunk) => {
                let rows = chunk.rows();
                Some([rows.row(0), rows.row(rows.len() - 1)])
            }
            Self::Spilled(chunk) => chunk.ends(),
        }
    }

    /// The least and the greatest time code, if no disk has to be read for them.
    pub(super) fn times(&self, layout: &Layout, width: usize) -> Option<TimeCodes> {
        match self {
            Self::Resident(chunk) => Some(chunk.times(layout, width)),
            Self::Spilled(chunk) => chunk.times(),
        }
    }

    pub(super) fn load(self, pool: &Pool) -> Result<Arc<Chunk>> {
        match self {
            Self::Resident(chunk) => Ok(chunk),
            Self::Spilled(chunk) => Ok(Arc::new(chunk.load(pool)?)),
        }
    }
}

impl Run {
    pub(crate) fn new(pool: &Pool) -> Self {
        Self { pool: pool.clone(), pieces: VecDeque::new() }
    }

    /// A run of one chunk.
    pub(crate) fn of(pool: &Pool, chunk: Arc<Chunk>) -> Self {
        let mut run = Self::new(pool);
        run.push(chunk);
        run
    }

    /// Puts a chunk behind the others.
    pub(crate) fn push(&mut self, chunk: Arc<Chunk>) {
        self.pieces.push_back(Piece::Resident(chunk));
    }

    /// Puts a chunk behind the others: in memory, unless the budget is about used up.
    pub(crate) fn push_within(&mut self, pool: &Pool, chunk: Arc<Chunk>) -> Result<()> {
        let (budget, spare) = (pool.budget(), SPARE_CHUNKS * pool.chunk_bytes());
        if budget.used().saturating_add(spare) > budget.limit() {
            pool.release_recycled();
            if budget.used().saturating_add(spare) > budget.limit() {
                return self.push_spilled(chunk);
            }
        }
        self.push(chunk);
        Ok(())
    }

    /// Puts a chunk behind the others, on disk.
    pub(crate) fn push_spilled(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        self.pieces.push_back(Piece::Spilled(Arc::new(Chunk::spill(chunk)?)));
        Ok(())
    }

    pub(super) fn push_piece(&mut self, piece: Piece) {
        self.pieces.push_back(piece);
    }

    pub(super) fn pop(&mut self) -> Option<Piece> {
        self.pieces.pop_front()
    }

    /// Everything that `merger` yields, on disk; the memory of its runs is free as it is read.
    pub(crate) fn spilled(pool: &Pool, merger: &mut Merger) -> Result<Self> {
        let mut run = Self::new(pool);
        while let Some(chunk) = merger.next_chunk()? {
            run.push_spilled(chunk)?;
        }
        Ok(run)
    }

    /// Everything that `merger` yields, in memory.
    pub(crate) fn merged(pool: &Pool, merger: &mut Merger) -> Result<Self> {
        let mut run = Self::new(pool);
        while let Some(chunk) = merger.next_chunk()? {
            run.push(chunk);
        }
        Ok(run)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.pieces.len()
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.pieces.iter().map(Piece::rows).sum()
    }

    /// Bytes that the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(Piece::bytes).sum()
    }

    /// Bytes of memory that the run holds.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.pieces.iter().map(Piece::resident_bytes).sum()
    }

    /// Chunks that are in memory.
    pub(crate) fn resident_chunks(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece, Piece::Resident(_))).count()
    }

    /// The bytes of its largest chunk.
    pub(crate) fn largest_chunk(&self) -> usize {
        self.pieces.iter().map(Piece::bytes).max().unwrap_or(0)
    }

    /// The first row and the last, if there are any and they are in memory.
    pub(crate) fn ends(&self) -> Option<[&[u8]; 2]> {
        let (first, last) = (self.pieces.front()?, self.pieces.back()?);
        Some([first.ends()?[0], last.ends()?[1]])
    }
}

impl ChunkSource for Run {
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        let Some(piece) = self.pop() else { return Ok(None) };
        if let (Piece::Spilled(_), Some(Piece::Spilled(next))) = (&piece, self.pieces.front()) {
            next.prefetch(&self.pool);
        }
        piece.load(&self.pool).map(Some)
    }
}
