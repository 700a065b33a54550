//! Runs: sorted sequences of chunks, in memory or on disk.

use std::collections::VecDeque;
use std::sync::Arc;

use super::chunks::ChunkSource;
use crate::chunk::{
    Builder, Chunk, Filter, Finish, Found, Kept, OFFSET_BYTES, Page, TimeCodes, Wraps, end_width,
};
use crate::error::Result;
use crate::order::{Layout, Rule};
use crate::pool::{Decision, Pool};

/// A run whose chunks are all there. Cheap to clone: clones share the chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pieces: VecDeque<Piece>,
    /// How many merges the rows went through.
    generation: u8,
    /// What is made of chunks that come, if they are kept for long.
    keeping: Option<Keeping>,
}

/// How chunks of a batch of changes are kept.
#[derive(Clone, Debug)]
struct Keeping {
    layout: Layout,
    /// Bytes of the time and the diffs of a row.
    behind: usize,
    /// With filters of their keys.
    filtered: bool,
}

/// One chunk of a run.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Resident(Kept),
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
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.bytes(),
            Self::Paged(page) => page.bytes(),
        }
    }

    /// True if the piece takes at least half of what a chunk may, with where its rows start.
    fn fills_half(&self, layout: &Layout, pool: &Pool) -> bool {
        2 * self.room(layout) >= pool.chunk_bytes()
    }

    /// Bytes that it takes in a chunk, with where its rows start.
    fn room(&self, layout: &Layout) -> usize {
        let starts = if layout.stride().is_some() { 0 } else { self.rows() * OFFSET_BYTES };
        self.bytes() + starts
    }

    /// Bytes of memory that the piece holds.
    fn resident_bytes(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.leased_bytes(),
            Self::Paged(page) => page.resident_bytes(),
        }
    }

    /// The first row, if no disk has to be read for it.
    pub(super) fn first_row(&self) -> Option<&[u8]> {
        match self {
            Self::Resident(chunk) => Some(chunk.ends()[0]),
            Self::Paged(page) => page.ends().map(|ends| ends[0]),
        }
    }

    /// The last row, if no disk has to be read for it.
    pub(super) fn last_row(&self) -> Option<&[u8]> {
        match self {
            Self::Resident(chunk) => Some(chunk.ends()[1]),
            Self::Paged(page) => page.ends().map(|ends| ends[1]),
        }
    }

    /// The least and the greatest time code, if no disk has to be read for them.
    pub(super) fn times(&self, layout: &Layout, width: usize) -> Option<TimeCodes> {
        match self {
            Self::Resident(chunk) => Some(chunk.times(layout, width)),
            Self::Paged(page) => page.times(layout, width),
        }
    }

    /// The chunk, whole.
    pub(super) fn take(self) -> Result<Arc<Chunk>> {
        match self {
            Self::Resident(chunk) => chunk.whole(),
            Self::Paged(page) => page.take(),
        }
    }
}

impl Run {
    /// A run to take what comes out of a merge of `runs`.
    pub(crate) fn after<'a>(runs: impl IntoIterator<Item = &'a Self>) -> Self {
        let oldest = runs.into_iter().map(|run| run.generation).max();
        Self { generation: oldest.unwrap_or(0).saturating_add(1), ..Self::default() }
    }

    /// A run of chunks that went through no merge.
    pub(crate) fn of(chunks: Vec<Arc<Chunk>>) -> Self {
        let pieces = chunks.into_iter().map(|chunk| Piece::Resident(chunk.into())).collect();
        Self { pieces, ..Self::default() }
    }

    /// The same, and of the chunks that come those that stay in memory are kept [short](Kept::shortened); filters are made
    /// of all if they are to be `filtered`.
    pub(crate) fn keeping(mut self, layout: &Layout, filtered: bool) -> Self {
        if layout.rule() == Rule::Sum {
            let behind = end_width(layout);
            self.keeping = Some(Keeping { layout: layout.clone(), behind, filtered });
        }
        self
    }

    /// Makes filters of the chunks that have none; of those that are not in memory only if they may be read for it.
    pub(crate) fn make_filters(&self, layout: &Layout, reading: bool) -> Result<()> {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Resident(chunk) => {
                chunk.make_filter(layout);
                Ok(())
            }
            Piece::Paged(page) => page.make_filter(layout, reading),
        })
    }

    /// The filter of the chunk at `index`, which there is, if it was made.
    pub(crate) fn filter_of(&self, index: usize) -> Option<&Arc<Filter>> {
        match &self.pieces[index] {
            Piece::Resident(chunk) => chunk.filter(),
            Piece::Paged(page) => page.filter(),
        }
    }

    /// The chunk at `index`, which there is, if it is in memory to stay.
    #[inline]
    pub(crate) fn resident_at(&self, index: usize) -> Option<&Kept> {
        match &self.pieces[index] {
            Piece::Resident(chunk) => Some(chunk),
            Piece::Paged(_) => None,
        }
    }

    /// Number of rows of the chunk at `index`, which there is.
    pub(crate) fn rows_of(&self, index: usize) -> usize {
        self.pieces[index].rows()
    }

    /// True if chunks that came may be short.
    pub(crate) fn is_kept(&self) -> bool {
        self.keeping.is_some()
    }

    /// Puts a chunk behind the others.
    pub(crate) fn push(&mut self, chunk: Arc<Chunk>) {
        self.pieces.push_back(Piece::Resident(chunk.into()));
    }

    /// Puts a chunk behind the others, in memory or not, as the policy wants it.
    pub(crate) fn push_within(&mut self, pool: &Pool, chunk: Arc<Chunk>) -> Result<()> {
        self.push_decided(pool, chunk, true)
    }

    /// Puts a chunk behind the others, out of memory.
    pub(crate) fn push_spilled(&mut self, pool: &Pool, chunk: Arc<Chunk>) -> Result<()> {
        self.push_decided(pool, chunk, false)
    }

    fn push_decided(&mut self, pool: &Pool, chunk: Arc<Chunk>, may_stay: bool) -> Result<()> {
        if let Some(Keeping { layout, filtered: true, .. }) = &self.keeping {
            chunk.make_filter(layout);
        }
        match pool.decide(chunk.bytes(), self.generation, may_stay) {
            Decision::Keep => {
                let kept = match &self.keeping {
                    Some(keeping) => Kept::shortened(chunk, keeping.behind),
                    None => chunk.into(),
                };
                self.pieces.push_back(Piece::Resident(kept));
            }
            Decision::Spill { to, codec } => {
                let page = Arc::new(Page::new(pool, chunk.into(), self.generation));
                page.spill((to, codec))?;
                self.pieces.push_back(Piece::Paged(page));
            }
        }
        Ok(())
    }

    /// Gives the chunk at the end as much memory as its rows take, if that is much less than it has.
    pub(crate) fn trim(&mut self) {
        if let Some(Piece::Resident(chunk)) = self.pieces.back_mut() {
            chunk.trim();
        }
    }

    /// Finds the least and the greatest time of each chunk in memory: they stay known when the rows leave.
    pub(crate) fn find_times(&self, layout: &Layout, width: usize) {
        for piece in &self.pieces {
            piece.times(layout, width);
        }
    }

    /// Lets the chunks in memory go when it is needed for something else: those at the end first.
    pub(crate) fn rest(&mut self, pool: &Pool) {
        for piece in self.pieces.iter_mut().rev() {
            if let Piece::Resident(chunk) = piece {
                let page = Arc::new(Page::new(pool, chunk.clone(), self.generation));
                pool.at_rest(Arc::<Page>::clone(&page), self.generation);
                *piece = Piece::Paged(page);
            }
        }
    }

    /// True if `behind` [stands behind](Run::stands_before) this run, and this run does not end in
    /// a small chunk. Nothing is read to find out.
    pub(crate) fn goes_on_with(&self, layout: &Layout, pool: &Pool, behind: &Self) -> bool {
        let full = |piece: &Piece| piece.fills_half(layout, pool);
        self.pieces.back().is_some_and(full) && self.stands_before(layout, behind)
    }

    /// True if all of `behind` sorts behind this run, and no rule has a say in it.
    pub(crate) fn stands_before(&self, layout: &Layout, behind: &Self) -> bool {
        if !matches!(layout.rule(), Rule::Keep | Rule::Sum) {
            return false;
        }
        let (Some(last), Some(first)) = (self.last_row(), behind.first_row()) else { return false };
        let tail = layout.tail().len();
        last[..last.len() - tail] < first[..first.len() - tail]
    }

    /// Puts another run behind this one, which is to [go on](Run::goes_on_with) with it.
    pub(crate) fn append(&mut self, mut behind: Self) {
        self.pieces.append(&mut behind.pieces);
    }

    /// This run and one whose rows all stand behind it.
    pub(crate) fn followed_by(mut self, behind: Self) -> Self {
        self.pieces.extend(behind.pieces);
        self
    }

    /// How many of its chunks are small.
    pub(crate) fn small_chunks(&self, layout: &Layout, pool: &Pool) -> usize {
        let small = |piece: &&Piece| !piece.fills_half(layout, pool);
        self.pieces.iter().filter(small).count()
    }

    /// Puts runs behind this one, each of which [stands behind](Run::stands_before) the one before it: what a merge would
    /// come to. Nothing is read or copied.
    pub(crate) fn chain<'a>(&mut self, behind: impl IntoIterator<Item = &'a mut Self>) {
        for run in behind {
            self.generation = self.generation.max(run.generation);
            self.pieces.append(&mut run.pieces);
        }
        self.generation = self.generation.saturating_add(1);
    }

    /// Its first chunks, as many.
    pub(crate) fn first_chunks(&self, chunks: usize) -> Self {
        Self {
            pieces: self.pieces.range(..chunks).cloned().collect(),
            generation: self.generation,
            keeping: self.keeping.clone(),
        }
    }

    /// The rows that `before`, true for the rows up to some one, is false for, as a run of its own that shares all chunks but
    /// the first, of which a part may be copied. None if that takes more than a look at the chunks' ends in memory.
    pub(crate) fn behind(
        &self,
        layout: &Layout,
        pool: &Pool,
        before: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Self>> {
        let mut behind = self.emptied().keeping(layout, true);
        let mut first = 0;
        while let Some(piece) = self.pieces.get(first) {
            match piece.last_row() {
                Some(last) if before(last) => first += 1,
                Some(_) => break,
                None => return Ok(None),
            }
        }
        if let Some(cut) = self.pieces.get(first)
            && cut.first_row().is_some_and(&before)
        {
            let chunk = cut.clone().take()?;
            let rows = chunk.rows();
            let from = rows.partition_point(0..rows.len(), &before);
            let mut builder = Builder::new(layout, pool, Finish::Log, &Wraps::default());
            builder.push_run(&chunk, from..rows.len())?;
            builder.flush();
            while let Some(part) = builder.take() {
                behind.push_within(pool, part)?;
            }
            first += 1;
        }
        behind.pieces.extend(self.pieces.range(first.min(self.pieces.len())..).cloned());
        Ok(Some(behind))
    }

    pub(super) fn push_piece(&mut self, piece: Piece) {
        self.pieces.push_back(piece);
    }

    pub(super) fn pop(&mut self) -> Option<Piece> {
        self.pieces.pop_front()
    }

    /// Takes everything that `merger` yields, out of memory; that of its runs is free as it is read.
    pub(crate) fn spilled(mut self, pool: &Pool, merger: &mut impl ChunkSource) -> Result<Self> {
        while let Some(chunk) = merger.next_chunk()? {
            self.push_spilled(pool, chunk)?;
        }
        pool.spill_failure()?;
        Ok(self)
    }

    /// Takes everything that `merger` yields, in memory as far as the policy allows it.
    pub(crate) fn merged(mut self, pool: &Pool, merger: &mut impl ChunkSource) -> Result<Self> {
        while let Some(chunk) = merger.next_chunk()? {
            self.push_within(pool, chunk)?;
        }
        Ok(self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// A run without chunks that went through as many merges.
    pub(super) fn emptied(&self) -> Self {
        Self { pieces: VecDeque::new(), ..self.clone() }
    }

    /// Its chunks, if all of them are in memory to stay.
    pub(super) fn resident(&self) -> Option<Vec<&Kept>> {
        fn resident(piece: &Piece) -> Option<&Kept> {
            match piece {
                Piece::Resident(chunk) => Some(chunk),
                Piece::Paged(_) => None,
            }
        }
        self.pieces.iter().map(resident).collect()
    }

    /// Its chunk, if it is one that is in memory to stay.
    pub(super) fn only_chunk(&self) -> Option<&Kept> {
        match self.pieces.front()? {
            Piece::Resident(chunk) if self.pieces.len() == 1 => Some(chunk),
            _ => None,
        }
    }

    /// The chunk at `index`, which there is, as it is kept; read from the store, it stays in memory if that has room.
    pub(crate) fn read(&self, index: usize) -> Result<Kept> {
        match &self.pieces[index] {
            Piece::Resident(chunk) => Ok(chunk.clone()),
            Piece::Paged(page) => page.read(),
        }
    }

    /// Looks for `key` in the chunk at `index`, which there is: see [`Page::find`].
    pub(crate) fn find_in(&self, index: usize, key: &[u8], near: Option<usize>) -> Result<Found> {
        match &self.pieces[index] {
            Piece::Resident(_) => Ok(Found::Unread),
            Piece::Paged(page) => page.find(key, near),
        }
    }

    /// The chunk at `index`, which there is, is about to be looked at for `key`.
    #[cold]
    pub(crate) fn prefetch_part(&self, index: usize, key: &[u8]) {
        if let Piece::Paged(page) = &self.pieces[index] {
            page.prefetch_part(key);
        }
    }

    /// The first row of the chunk at `index`, if no disk has to be read for it.
    pub(crate) fn first_row_of(&self, index: usize) -> Option<&[u8]> {
        self.pieces.get(index)?.first_row()
    }

    /// The last row of the chunk at `index`, if no disk has to be read for it.
    pub(crate) fn last_row_of(&self, index: usize) -> Option<&[u8]> {
        self.pieces.get(index)?.last_row()
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

    /// True if all its chunks are in memory, and the ends of those that may leave it.
    pub(super) fn is_at_hand(&self) -> bool {
        self.pieces.iter().all(|piece| piece.last_row().is_some() && piece.resident_bytes() > 0)
    }

    /// Chunks that are in memory.
    pub(crate) fn resident_chunks(&self) -> usize {
        self.pieces.iter().filter(|piece| piece.resident_bytes() > 0).count()
    }

    /// Bytes that its rows take in a chunk, with where they start.
    pub(super) fn room(&self, layout: &Layout) -> usize {
        self.pieces.iter().map(|piece| piece.room(layout)).sum()
    }

    /// The bytes of its largest chunk.
    pub(crate) fn largest_chunk(&self) -> usize {
        self.pieces.iter().map(Piece::bytes).max().unwrap_or(0)
    }

    /// The first row, if there is one and no disk has to be read for it.
    pub(crate) fn first_row(&self) -> Option<&[u8]> {
        self.pieces.front()?.first_row()
    }

    /// The last row, if there is one and no disk has to be read for it.
    fn last_row(&self) -> Option<&[u8]> {
        self.pieces.back()?.last_row()
    }

    /// Both of them.
    pub(crate) fn ends(&self) -> Option<[&[u8]; 2]> {
        Some([self.first_row()?, self.last_row()?])
    }
}

impl ChunkSource for Run {
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        self.pop().map(Piece::take).transpose()
    }

    fn next_resident(&mut self) -> Option<Arc<Chunk>> {
        let Some(Piece::Resident(chunk)) = self.pieces.front() else { return None };
        // Who asks for it as the next chunk meets an error again.
        let chunk = chunk.whole().ok()?;
        self.pieces.pop_front();
        Some(chunk)
    }

    fn read_ahead(&self) {
        match self.pieces.front() {
            Some(Piece::Resident(chunk)) => chunk.prefetch(),
            Some(Piece::Paged(page)) => page.prefetch(),
            None => {}
        }
        // To prefetch rows takes a look at the chunk, which waits for memory.
        if let Some(Piece::Resident(chunk)) = self.pieces.get(1) {
            chunk.prefetch_itself();
        }
    }
}
