//! Runs: sorted sequences of chunks, in memory or on disk.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Merger;
use crate::chunk::{Chunk, Page, TimeCodes};
use crate::error::Result;
use crate::order::Layout;
use crate::pool::{Decision, Pool};

/// Where the chunks of one run come from, in order.
pub(crate) trait ChunkSource: Send {
    /// The next chunk, or `None` at the end of the run.
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>>;

    /// The next chunk is asked for soon.
    fn read_ahead(&self) {}
}

/// A run whose chunks are all there. Cheap to clone: clones share the chunks.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pool: Pool,
    pieces: VecDeque<Piece>,
    /// How many merges the rows went through.
    generation: u8,
}

/// One chunk of a run.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Resident(Arc<Chunk>),
    Paged(Arc<Page>),
}

impl Piece {
    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.len(),
            Self::Paged(page) => page.len(),
        }
    }

    /// Bytes that the rows take.
    fn bytes(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.bytes(),
            Self::Paged(page) => page.bytes(),
        }
    }

    /// Bytes of memory that the piece holds.
    fn resident_bytes(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.leased_bytes(),
            Self::Paged(page) => page.resident_bytes(),
        }
    }

    /// The first row and the last, if no disk has to be read for them.
    fn ends(&self) -> Option<[&[u8]; 2]> {
        match self {
            Self::Resident(chunk) => {
                let rows = chunk.rows();
                Some([rows.row(0), rows.row(rows.len() - 1)])
            }
            Self::Paged(page) => page.ends(),
        }
    }

    /// The least and the greatest time code, if no disk has to be read for them.
    pub(super) fn times(&self, layout: &Layout, width: usize) -> Option<TimeCodes> {
        match self {
            Self::Resident(chunk) => Some(chunk.times(layout, width)),
            Self::Paged(page) => page.times(layout, width),
        }
    }

    pub(super) fn take(self) -> Result<Arc<Chunk>> {
        match self {
            Self::Resident(chunk) => Ok(chunk),
            Self::Paged(page) => page.take(),
        }
    }
}

impl Run {
    /// A run of rows that went through no merge.
    pub(crate) fn new(pool: &Pool) -> Self {
        Self { pool: pool.clone(), pieces: VecDeque::new(), generation: 0 }
    }

    /// A run to take what comes out of a merge of `runs`.
    pub(crate) fn after<'a>(pool: &Pool, runs: impl IntoIterator<Item = &'a Self>) -> Self {
        let oldest = runs.into_iter().map(|run| run.generation).max();
        Self { generation: oldest.unwrap_or(0).saturating_add(1), ..Self::new(pool) }
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

    /// Puts a chunk behind the others, in memory or not, as the policy wants it.
    pub(crate) fn push_within(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        self.push_decided(chunk, true)
    }

    /// Puts a chunk behind the others, out of memory.
    pub(crate) fn push_spilled(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        self.push_decided(chunk, false)
    }

    fn push_decided(&mut self, chunk: Arc<Chunk>, may_stay: bool) -> Result<()> {
        match self.pool.decide(chunk.bytes(), self.generation, may_stay) {
            Decision::Keep => self.push(chunk),
            Decision::Spill { to, codec } => {
                let page = Arc::new(Page::new(&self.pool, chunk, self.generation));
                page.spill((to, codec))?;
                self.pieces.push_back(Piece::Paged(page));
            }
        }
        Ok(())
    }

    /// Lets the chunks in memory go when it is needed for something else: those at the end first.
    pub(crate) fn rest(&mut self) {
        for piece in self.pieces.iter_mut().rev() {
            if let Piece::Resident(chunk) = piece {
                let page = Arc::new(Page::new(&self.pool, Arc::clone(chunk), self.generation));
                self.pool.at_rest(Arc::<Page>::clone(&page), self.generation);
                *piece = Piece::Paged(page);
            }
        }
    }

    pub(super) fn push_piece(&mut self, piece: Piece) {
        self.pieces.push_back(piece);
    }

    pub(super) fn pop(&mut self) -> Option<Piece> {
        self.pieces.pop_front()
    }

    /// Takes everything that `merger` yields, out of memory; that of its runs is free as it is read.
    pub(crate) fn spilled(mut self, merger: &mut Merger) -> Result<Self> {
        while let Some(chunk) = merger.next_chunk()? {
            self.push_spilled(chunk)?;
        }
        self.pool.spill_failure()?;
        Ok(self)
    }

    /// Takes everything that `merger` yields, in memory as far as the policy allows it.
    pub(crate) fn merged(mut self, merger: &mut Merger) -> Result<Self> {
        while let Some(chunk) = merger.next_chunk()? {
            self.push_within(chunk)?;
        }
        Ok(self)
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
        self.pieces.iter().filter(|piece| piece.resident_bytes() > 0).count()
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
        self.pop().map(Piece::take).transpose()
    }

    fn read_ahead(&self) {
        if let Some(Piece::Paged(page)) = self.pieces.front() {
            page.prefetch();
        }
    }
}
