//! Runs: sorted sequences of chunks, in memory or on disk.

use std::collections::VecDeque;
use std::sync::Arc;

use super::chunks::ChunkSource;
use crate::chunk::{
    Builder, Chunk, Filter, Finish, Found, Kept, OFFSET_BYTES, Page, TimeCodes, Wraps, body_of,
    end_width,
};
use windrow_pool::{Decision, Pool};
use windrow_rows::{Layout, Result, Rule};

/// Smaller chunks of an unmerged run stay whole: they are merged soon.
const LEAST_SHORTENED: usize = 32 << 10;

/// Bytes of whole chunks that were shortened which are left to other callers.
const LEFT_TO_OTHERS: usize = 1 << 20;

/// A complete run. Cheap to clone: clones share the chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(super) pieces: VecDeque<Piece>,
    /// Number of merges that the rows went through.
    generation: u8,
    /// Conversion of appended chunks, if the run is long-lived.
    keeping: Option<Keeping>,
}

/// How the chunks of a batch of changes are kept.
#[derive(Clone, Debug)]
struct Keeping {
    layout: Layout,
    /// Bytes of a row's time and diffs.
    behind: usize,
    /// Whether chunks get key filters.
    filtered: bool,
}

/// One chunk of a run.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Resident(Kept),
    Paged(Arc<Page>),
}

impl Piece {
    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.len(),
            Self::Paged(page) => page.len(),
        }
    }

    /// Returns the bytes of the rows.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.bytes(),
            Self::Paged(page) => page.bytes(),
        }
    }

    /// Returns true if the piece takes at least half of a chunk, row starts included.
    fn fills_half(&self, layout: &Layout, pool: &Pool) -> bool {
        2 * self.room(layout) >= pool.chunk_bytes()
    }

    /// Returns the bytes of the piece in a chunk, row starts included.
    fn room(&self, layout: &Layout) -> usize {
        let starts = if layout.stride().is_some() { 0 } else { self.rows() * OFFSET_BYTES };
        self.bytes() + starts
    }

    /// Returns the bytes of memory that the piece holds.
    fn resident_bytes(&self) -> usize {
        match self {
            Self::Resident(chunk) => chunk.leased_bytes(),
            Self::Paged(page) => page.resident_bytes(),
        }
    }

    /// Returns the first row, if no disk access is needed.
    pub(super) fn first_row(&self) -> Option<&[u8]> {
        match self {
            Self::Resident(chunk) => Some(chunk.ends()[0]),
            Self::Paged(page) => page.ends().map(|ends| ends[0]),
        }
    }

    /// Returns the last row, if no disk access is needed.
    pub(super) fn last_row(&self) -> Option<&[u8]> {
        match self {
            Self::Resident(chunk) => Some(chunk.ends()[1]),
            Self::Paged(page) => page.ends().map(|ends| ends[1]),
        }
    }

    /// Returns the chunk, if it is in memory.
    pub(super) fn in_memory(&self) -> Option<Kept> {
        match self {
            Self::Resident(chunk) => Some(chunk.clone()),
            Self::Paged(page) => page.in_memory(),
        }
    }

    /// Returns the chunk, if it is pinned in memory.
    #[inline]
    fn resident(&self) -> Option<&Kept> {
        match self {
            Self::Resident(chunk) => Some(chunk),
            Self::Paged(_) => None,
        }
    }

    /// Returns the least and the greatest time code, if no disk access is needed.
    pub(super) fn times(&self, layout: &Layout, width: usize) -> Option<TimeCodes> {
        match self {
            Self::Resident(chunk) => Some(chunk.times(layout, width)),
            Self::Paged(page) => page.times(layout, width),
        }
    }

    /// Returns the whole chunk.
    pub(super) fn take(self) -> Result<Arc<Chunk>> {
        match self {
            Self::Resident(chunk) => chunk.whole(),
            Self::Paged(page) => page.take(),
        }
    }
}

impl Run {
    /// Returns an empty run for the merge of `runs`.
    pub(crate) fn after<'a>(runs: impl IntoIterator<Item = &'a Self>) -> Self {
        let oldest = runs.into_iter().map(|run| run.generation).max();
        Self { generation: oldest.unwrap_or(0).saturating_add(1), ..Self::default() }
    }

    /// Returns a run of chunks that went through no merge.
    pub(crate) fn of(chunks: Vec<Arc<Chunk>>) -> Self {
        let pieces = chunks.into_iter().map(|chunk| Piece::Resident(chunk.into())).collect();
        Self { pieces, ..Self::default() }
    }

    /// Converts chunks appended from now on: chunks in memory are [shortened](Kept::shortened), and
    /// all chunks get filters if `filtered`.
    pub(crate) fn keeping(mut self, layout: &Layout, filtered: bool) -> Self {
        if layout.rule() == Rule::Sum {
            let behind = end_width(layout);
            self.keeping = Some(Keeping { layout: layout.clone(), behind, filtered });
        }
        self
    }

    /// [Shortens](Kept::shortened) whole chunks in memory, but for small ones.
    pub(crate) fn shorten(&mut self, layout: &Layout, pool: &Pool) -> Result<()> {
        let behind = end_width(layout);
        for piece in self.pieces.iter_mut().filter(|piece| piece.bytes() >= LEAST_SHORTENED) {
            if let Some(chunk) = piece.in_memory().filter(|chunk| !chunk.is_short()) {
                let chunk = Kept::shortened(chunk.whole()?, behind);
                if chunk.is_short() {
                    *piece = Piece::Resident(chunk);
                    pool.release_recycled_beyond(LEFT_TO_OTHERS);
                }
            }
        }
        if pool.budget().is_limited() {
            self.rest(pool);
        }
        Ok(())
    }

    /// Makes missing filters. Reads chunks that are not in memory only with `reading`.
    pub(crate) fn make_filters(&self, layout: &Layout, reading: bool) -> Result<()> {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Resident(chunk) => {
                chunk.make_filter(layout);
                Ok(())
            }
            Piece::Paged(page) => page.make_filter(layout, reading),
        })
    }

    /// Returns the filter of the chunk at `index`, if one was made. The index must be valid.
    pub(crate) fn filter_of(&self, index: usize) -> Option<&Arc<Filter>> {
        match &self.pieces[index] {
            Piece::Resident(chunk) => chunk.filter(),
            Piece::Paged(page) => page.filter(),
        }
    }

    /// Returns the chunk at `index` if it is pinned in memory. The index must be valid.
    #[inline]
    pub(crate) fn resident_at(&self, index: usize) -> Option<&Kept> {
        self.pieces[index].resident()
    }

    /// Returns the chunk at `index` if it may be evicted and is in memory. The index must be valid.
    pub(crate) fn evictable_at(&self, index: usize) -> Option<Kept> {
        match &self.pieces[index] {
            Piece::Resident(_) => None,
            Piece::Paged(page) => page.in_memory(),
        }
    }

    /// Returns the number of rows of the chunk at `index`. The index must be valid.
    pub(crate) fn rows_of(&self, index: usize) -> usize {
        self.pieces[index].rows()
    }

    /// Returns true if appended chunks may be shortened.
    pub(crate) fn is_kept(&self) -> bool {
        self.keeping.is_some()
    }

    /// Appends a chunk.
    pub(crate) fn push(&mut self, chunk: Arc<Chunk>) {
        self.pieces.push_back(Piece::Resident(chunk.into()));
    }

    /// Appends a chunk, in memory or spilled as the policy decides.
    pub(crate) fn push_within(&mut self, pool: &Pool, chunk: Arc<Chunk>) -> Result<()> {
        self.push_decided(pool, chunk, true)
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

    /// Moves the last chunk into an exactly sized buffer, if its buffer is much larger.
    pub(crate) fn trim(&mut self) {
        if let Some(Piece::Resident(chunk)) = self.pieces.back_mut() {
            chunk.trim();
        }
    }

    /// Finds the least and the greatest time of each chunk in memory, which stay known when the rows
    /// leave memory.
    pub(crate) fn find_times(&self, layout: &Layout, width: usize) {
        for piece in &self.pieces {
            piece.times(layout, width);
        }
    }

    /// Makes the chunks in memory evictable, those at the end first.
    pub(crate) fn rest(&mut self, pool: &Pool) {
        for piece in self.pieces.iter_mut().rev() {
            if let Piece::Resident(chunk) = piece {
                let page = Arc::new(Page::new(pool, chunk.clone(), self.generation));
                pool.at_rest(Arc::<Page>::clone(&page), self.generation);
                *piece = Piece::Paged(page);
            }
        }
    }

    /// Returns true if this run [sorts before](Run::stands_before) `behind` and does not end in a
    /// small chunk. Reads nothing.
    pub(crate) fn goes_on_with(&self, layout: &Layout, pool: &Pool, behind: &Self) -> bool {
        let full = |piece: &Piece| piece.fills_half(layout, pool);
        self.pieces.back().is_some_and(full) && self.stands_before(layout, behind)
    }

    /// Returns true if this run sorts before all of `behind` and the rule relates no rows of the
    /// two.
    pub(crate) fn stands_before(&self, layout: &Layout, behind: &Self) -> bool {
        if !matches!(layout.rule(), Rule::Keep | Rule::Sum) {
            return false;
        }
        let (Some(last), Some(first)) = (self.last_row(), behind.first_row()) else { return false };
        let tail = layout.tail().len();
        body_of(last, tail) < body_of(first, tail)
    }

    /// Appends a run whose rows all sort after this one.
    pub(crate) fn append(&mut self, mut behind: Self) {
        self.pieces.append(&mut behind.pieces);
    }

    /// Returns the number of small chunks.
    pub(crate) fn small_chunks(&self, layout: &Layout, pool: &Pool) -> usize {
        let small = |piece: &&Piece| !piece.fills_half(layout, pool);
        self.pieces.iter().filter(small).count()
    }

    /// Appends runs, each of which sorts after [the one before](Run::stands_before): the result
    /// equals their merge. Reads and copies nothing.
    pub(crate) fn chain<'a>(&mut self, behind: impl IntoIterator<Item = &'a mut Self>) {
        for run in behind {
            self.generation = self.generation.max(run.generation);
            self.pieces.append(&mut run.pieces);
        }
        self.generation = self.generation.saturating_add(1);
    }

    /// Returns a run of the first `chunks` chunks.
    pub(crate) fn first_chunks(&self, chunks: usize) -> Self {
        Self {
            pieces: self.pieces.range(..chunks).cloned().collect(),
            generation: self.generation,
            keeping: self.keeping.clone(),
        }
    }

    /// Returns the rows for which `before` is false; `before` must be true for a prefix of the rows
    /// only. The result shares all chunks but the first, which may be copied in part. Returns
    /// `None` if the chunk ends in memory do not suffice.
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
            behind.collect(&mut builder)?;
            first += 1;
        }
        behind.pieces.extend(self.pieces.range(first.min(self.pieces.len())..).cloned());
        Ok(Some(behind))
    }

    /// Appends the finished chunks of `builder`, in memory or spilled as the policy decides.
    pub(super) fn collect(&mut self, builder: &mut Builder) -> Result<()> {
        while let Some(chunk) = builder.take() {
            self.push_within(builder.pool(), chunk)?;
        }
        Ok(())
    }

    /// Takes all chunks of `merger` and spills them. The merge frees its input as it is read.
    pub(crate) fn spilled(mut self, pool: &Pool, merger: &mut impl ChunkSource) -> Result<Self> {
        while let Some(chunk) = merger.next_chunk()? {
            self.push_decided(pool, chunk, false)?;
        }
        pool.spill_failure()?;
        Ok(self)
    }

    /// Takes all chunks of `merger`, in memory as far as the policy allows.
    pub(crate) fn merged(mut self, pool: &Pool, merger: &mut impl ChunkSource) -> Result<Self> {
        while let Some(chunk) = merger.next_chunk()? {
            self.push_within(pool, chunk)?;
        }
        Ok(self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns a run without chunks that counts as many merges.
    pub(super) fn emptied(&self) -> Self {
        Self { pieces: VecDeque::new(), ..self.clone() }
    }

    /// Returns the chunks, if all are pinned in memory.
    pub(super) fn resident(&self) -> Option<Vec<&Kept>> {
        self.pieces.iter().map(Piece::resident).collect()
    }

    /// Returns the chunk of a run of one chunk, if it is pinned in memory.
    pub(super) fn only_chunk(&self) -> Option<&Kept> {
        self.pieces.front().filter(|_| self.pieces.len() == 1)?.resident()
    }

    /// Returns the chunk at `index`, whole or shortened. A chunk read from the store stays in
    /// memory if the budget suffices. The index must be valid.
    pub(crate) fn read(&self, index: usize) -> Result<Kept> {
        match &self.pieces[index] {
            Piece::Resident(chunk) => Ok(chunk.clone()),
            Piece::Paged(page) => page.read(),
        }
    }

    /// Finds `key` in the chunk at `index`: see [`Page::find`]. The index must be valid.
    pub(crate) fn find_in(&self, index: usize, key: &[u8], near: Option<usize>) -> Result<Found> {
        match &self.pieces[index] {
            Piece::Resident(_) => Ok(Found::Unread),
            Piece::Paged(page) => page.find(key, near),
        }
    }

    /// Prefetches the part of the chunk at `index` that may have `key`. The index must be valid.
    #[cold]
    pub(crate) fn prefetch_part(&self, index: usize, key: &[u8]) {
        if let Piece::Paged(page) = &self.pieces[index] {
            page.prefetch_part(key);
        }
    }

    /// Returns the first row of the chunk at `index`, if no disk access is needed.
    pub(crate) fn first_row_of(&self, index: usize) -> Option<&[u8]> {
        self.pieces.get(index)?.first_row()
    }

    /// Returns the last row of the chunk at `index`, if no disk access is needed.
    pub(crate) fn last_row_of(&self, index: usize) -> Option<&[u8]> {
        self.pieces.get(index)?.last_row()
    }

    /// Returns the number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.pieces.iter().map(Piece::rows).sum()
    }

    /// Returns the bytes of the rows.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(Piece::bytes).sum()
    }

    /// Returns the bytes of memory that the run holds.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.pieces.iter().map(Piece::resident_bytes).sum()
    }

    /// Returns the number and the bytes of the rows that are not in memory.
    pub(crate) fn spilled_rows_and_bytes(&self) -> [usize; 2] {
        let spilled = self.pieces.iter().filter(|piece| piece.resident_bytes() == 0);
        spilled.fold([0; 2], |[rows, bytes], piece| [rows + piece.rows(), bytes + piece.bytes()])
    }

    /// Returns true if all chunks are in memory, and so are the first and last rows of evictable
    /// ones.
    pub(super) fn is_at_hand(&self) -> bool {
        self.pieces.iter().all(|piece| piece.last_row().is_some() && piece.resident_bytes() > 0)
    }

    /// Returns the number of chunks in memory.
    pub(crate) fn resident_chunks(&self) -> usize {
        self.pieces.iter().filter(|piece| piece.resident_bytes() > 0).count()
    }

    /// Returns the bytes of the rows in a chunk, row starts included.
    pub(super) fn room(&self, layout: &Layout) -> usize {
        self.pieces.iter().map(|piece| piece.room(layout)).sum()
    }

    /// Returns the bytes of the largest chunk.
    pub(crate) fn largest_chunk(&self) -> usize {
        self.pieces.iter().map(Piece::bytes).max().unwrap_or(0)
    }

    /// Returns the first row, if there is one and no disk access is needed.
    pub(crate) fn first_row(&self) -> Option<&[u8]> {
        self.pieces.front()?.first_row()
    }

    /// Returns the last row, if there is one and no disk access is needed.
    fn last_row(&self) -> Option<&[u8]> {
        self.pieces.back()?.last_row()
    }

    /// Returns the first and the last row.
    pub(crate) fn ends(&self) -> Option<[&[u8]; 2]> {
        Some([self.first_row()?, self.last_row()?])
    }
}

impl ChunkSource for Run {
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        self.pieces.pop_front().map(Piece::take).transpose()
    }

    fn next_resident(&mut self) -> Option<Arc<Chunk>> {
        // An error recurs when the caller requests the next chunk.
        let chunk = self.pieces.front()?.resident()?.whole().ok()?;
        self.pieces.pop_front();
        Some(chunk)
    }

    fn read_ahead(&self) {
        match self.pieces.front() {
            Some(Piece::Resident(chunk)) => chunk.prefetch(),
            Some(Piece::Paged(page)) => page.prefetch(),
            None => {}
        }
        // Prefetching rows reads the [`Chunk`] itself, which may miss the cache.
        if let Some(Piece::Resident(chunk)) = self.pieces.get(1) {
            chunk.prefetch_itself();
        }
    }
}
