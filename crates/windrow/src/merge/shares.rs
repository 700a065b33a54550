//! A parallel merge in shares, whose chunks come out in order.
//!
//! ```text
//! run 0    [ piece  | piece    | piece ]      in memory; a piece may be evicted meanwhile
//! run 1    [ piece      |  piece       ]
//! cuts            ^     ^    ^                bound shares of about as many bytes each
//! share       0      1    2     3             merged by any helper; a cut piece is in both shares
//! taken       0      1 ...                    read in order; the reader merges missing shares
//! ```
//! A cut is a key, or a row without its tail, so all rows that a rule relates fall into one share.
//! Finding a cut reads the ends of pieces, and a few rows within those in memory: many runs of one or
//! two chunks would otherwise be one share, whose output is in memory beside all of its input.
//!
//! Invariant: shares partition the rows, and all rows of a share sort before the next share. Each
//! piece is read once.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::chunks::ChunkSource;
use super::merger::Merger;
use super::ranges::key;
use super::run::{Piece, Run};
use super::source::Source;
use super::window::Between;
use crate::chunk::{Chunk, Findings, Finish, Wraps};
use windrow_pool::Pool;
use windrow_pool::lock;
use windrow_rows::{Error, Layout, Result};

/// Chunks per share: starting a share costs some microseconds, and the merge's blocks grow from
/// then on.
const CHUNKS: usize = 16;
/// Bytes per share with a memory limit, unless a chunk is larger.
const LIMITED_BYTES: usize = 1 << 20;
/// Least bytes between two rows of a piece at which shares may be cut, and most bytes of such a row.
const LEAST_FENCE: usize = if cfg!(test) { 64 } else { 16 << 10 };
const MOST_OF_ROW: usize = 64;
/// With a memory limit, a share is merged ahead only if the budget can spare so many times its
/// bytes, for input and output.
const TIMES_SPARE: usize = 3;

/// A merge of runs by several threads.
#[derive(Debug)]
pub(crate) struct Shares {
    layout: Layout,
    pool: Pool,
    wraps: Wraps,
    finish: Finish,
    /// Approximate bytes per share.
    bytes: usize,
    state: Mutex<State>,
    /// Signalled when a share is merged.
    merged: Condvar,
}

#[derive(Debug)]
struct State {
    /// Remaining pieces of each run; the first may be partly consumed.
    runs: Vec<VecDeque<Arc<Shared>>>,
    /// Start of the next share.
    lower: Option<Vec<u8>>,
    /// Whether all shares have begun.
    ended: bool,
    /// Number of the next share to take.
    taken: usize,
    /// Outcomes of the shares from `taken` on; `None` during a merge.
    outcomes: VecDeque<Option<Result<Outcome>>>,
    findings: Findings,
}

#[derive(Debug)]
struct Outcome {
    chunks: Vec<Arc<Chunk>>,
    findings: Findings,
}

/// A piece in one share, or in several consecutive shares.
#[derive(Debug)]
struct Shared {
    piece: Piece,
    /// Heads of rows at which shares may be cut: the last rows of stretches but the last stretch.
    ends: Vec<Box<[u8]>>,
    /// The chunk of the piece, once a share has read it.
    chunk: Mutex<Option<Arc<Chunk>>>,
}

impl Shared {
    /// Returns a piece that shares may cut about every `bytes` bytes.
    fn new(layout: &Layout, piece: Piece, bytes: usize) -> Arc<Self> {
        let stretches = (piece.bytes() / bytes).clamp(1, piece.rows());
        let mut ends = Vec::new();
        if let Some(chunk) = piece.in_memory().filter(|chunk| !chunk.is_short()) {
            let last = |stretch: usize| stretch * chunk.len() / stretches - 1;
            ends.extend((1..stretches).map(|stretch| {
                let row = key(layout, chunk.rows().row(last(stretch)));
                Box::from(&row[..row.len().min(MOST_OF_ROW)])
            }));
        }
        Arc::new(Self { piece, ends, chunk: Mutex::new(None) })
    }

    /// Returns the head of the last row of a stretch.
    fn end(&self, layout: &Layout, stretch: usize) -> &[u8] {
        match self.ends.get(stretch) {
            Some(end) => end,
            None => key(layout, self.last_row()),
        }
    }

    fn first_row(&self) -> &[u8] {
        self.piece.first_row().unwrap_or_default()
    }

    fn last_row(&self) -> &[u8] {
        self.piece.last_row().unwrap_or_default()
    }

    fn read(&self) -> Result<Arc<Chunk>> {
        let mut chunk = lock(&self.chunk);
        match &*chunk {
            Some(chunk) => Ok(Arc::clone(chunk)),
            None => Ok(Arc::clone(chunk.insert(self.piece.clone().take()?))),
        }
    }
}

/// The pieces of a run in one share.
struct Pieces(VecDeque<Arc<Shared>>);

impl ChunkSource for Pieces {
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        self.0.pop_front().map(|piece| piece.read()).transpose()
    }

    fn next_resident(&mut self) -> Option<Arc<Chunk>> {
        let next = self.0.front()?;
        let is_there = matches!(next.piece, Piece::Resident(_)) || lock(&next.chunk).is_some();
        // An error recurs when the caller requests the next chunk.
        let chunk = if is_there { next.read().ok()? } else { return None };
        self.0.pop_front();
        Some(chunk)
    }
}

/// Rows to be merged.
struct Share {
    number: usize,
    runs: Vec<Pieces>,
    between: Arc<Between>,
}

impl Shares {
    /// Returns a merge of all rows of `runs`. Returns the runs if there are fewer than two or not
    /// all are in memory: one thread reads a store ahead best.
    pub(crate) fn new(
        layout: &Layout,
        pool: &Pool,
        wraps: &Wraps,
        finish: Finish,
        runs: Vec<Run>,
    ) -> std::result::Result<Self, Vec<Run>> {
        if runs.len() < 2 || !runs.iter().all(Run::is_at_hand) {
            return Err(runs);
        }
        let chunk = pool.chunk_bytes();
        let bytes = match pool.budget().is_limited() {
            true => (CHUNKS * chunk).min(LIMITED_BYTES).max(chunk),
            false => CHUNKS * chunk,
        };
        let fence = (2 * bytes / runs.len()).max(LEAST_FENCE);
        let pieces = |mut run: Run| {
            std::iter::from_fn(|| run.pieces.pop_front())
                .map(|piece| Shared::new(layout, piece, fence))
                .collect()
        };
        let state = State {
            runs: runs.into_iter().map(pieces).collect(),
            lower: None,
            ended: false,
            taken: 0,
            outcomes: VecDeque::new(),
            findings: Findings::default(),
        };
        Ok(Self {
            layout: layout.clone(),
            pool: pool.clone(),
            wraps: wraps.clone(),
            finish,
            bytes,
            state: Mutex::new(state),
            merged: Condvar::new(),
        })
    }

    /// Merges the next share ahead of the reader, if fewer than `most` bytes of rows wait and the
    /// budget has memory to spare. Returns false if no share was merged.
    pub(crate) fn help(&self, most: usize) -> bool {
        let mut state = lock(&self.state);
        let room = self.pool.spare() >= TIMES_SPARE * self.bytes;
        if !room || (state.outcomes.len() + 1) * self.bytes > most.max(self.bytes) {
            return false;
        }
        let Some(share) = self.begin(&mut state) else { return false };
        drop(state);
        self.merge(share);
        true
    }

    /// Returns the chunks of the next share in order, or `None` at the end.
    pub(crate) fn next(&self) -> Result<Option<Vec<Arc<Chunk>>>> {
        let mut state = lock(&self.state);
        loop {
            match state.outcomes.front_mut() {
                Some(Some(_)) => {
                    state.taken += 1;
                    let Some(Some(outcome)) = state.outcomes.pop_front() else { return Ok(None) };
                    let Outcome { chunks, findings } = outcome?;
                    state.findings.add(findings);
                    return Ok(Some(chunks));
                }
                Some(None) => {
                    state = self.merged.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                None => {
                    let Some(share) = self.begin(&mut state) else { return Ok(None) };
                    drop(state);
                    self.merge(share);
                    state = lock(&self.state);
                }
            }
        }
    }

    /// Returns the findings of the rule in the shares taken so far.
    pub(crate) fn findings(&self) -> Findings {
        lock(&self.state).findings.clone()
    }

    /// Begins the next share; `None` if no rows are left.
    fn begin(&self, state: &mut State) -> Option<Share> {
        if state.ended {
            return None;
        }
        let upper = self.cut(state);
        let is_in =
            |piece: &Shared| upper.as_ref().is_none_or(|upper| piece.first_row() < &upper[..]);
        let goes_on =
            |piece: &Shared| upper.as_ref().is_some_and(|upper| piece.last_row() >= &upper[..]);
        let mut runs = Vec::with_capacity(state.runs.len());
        for run in &mut state.runs {
            let pieces: VecDeque<_> =
                run.iter().take_while(|piece| is_in(piece)).map(Arc::clone).collect();
            while run.front().is_some_and(|piece| !goes_on(piece)) {
                run.pop_front();
            }
            if !pieces.is_empty() {
                runs.push(Pieces(pieces));
            }
        }
        let lower = std::mem::replace(&mut state.lower, upper.clone());
        state.ended = upper.is_none();
        let number = state.taken + state.outcomes.len();
        state.outcomes.push_back(None);
        Some(Share { number, runs, between: Arc::new(Between { lower, upper }) })
    }

    /// Returns the end of the next share; `None` if it ends with the last row.
    fn cut(&self, state: &State) -> Option<Vec<u8>> {
        // Per run, the piece and the stretch in it that the share does not have as a whole.
        let mut at = vec![(0, 0); state.runs.len()];
        let lower = state.lower.as_deref();
        for (run, (_, stretch)) in state.runs.iter().zip(&mut at) {
            if let (Some(piece), Some(lower)) = (run.front(), lower) {
                *stretch = piece.ends.partition_point(|end| &end[..] < lower);
            }
        }
        let mut bytes = 0;
        loop {
            let pieces = state.runs.iter().zip(&at).enumerate();
            // Exhausted runs do not limit the cut.
            let pieces = pieces.filter_map(|(number, (run, &(at, stretch)))| {
                let piece = run.get(at)?;
                Some((number, piece, piece.end(&self.layout, stretch)))
            });
            let (number, piece, cut) = pieces.min_by(|a, b| a.2.cmp(b.2))?;
            let stretches = piece.ends.len() + 1;
            bytes += piece.piece.bytes() / stretches;
            let (at, stretch) = &mut at[number];
            *stretch += 1;
            if *stretch == stretches {
                (*at, *stretch) = (*at + 1, 0);
            }
            if bytes >= self.bytes && lower.is_none_or(|lower| cut > lower) {
                return Some(cut.to_vec());
            }
        }
    }

    /// Merges a share and stores its outcome for the reader.
    fn merge(&self, Share { number, runs, between }: Share) {
        let mut put = Put { shares: self, number, outcome: Err(Error::Lost) };
        put.outcome = self.merged(runs, &between);
    }

    fn merged(&self, runs: Vec<Pieces>, between: &Arc<Between>) -> Result<Outcome> {
        let Self { layout, pool, wraps, finish, .. } = self;
        let sources = runs.into_iter().map(|run| Source::Stream(Box::new(run))).collect();
        let mut merger = Merger::between(layout, pool, *finish, wraps, sources, between);
        merger.fold_keys();
        let mut chunks = Vec::new();
        while let Some(chunk) = merger.next_chunk()? {
            chunks.push(chunk);
        }
        Ok(Outcome { chunks, findings: merger.findings().clone() })
    }
}

/// Stores the outcome of a share on drop: an error, if the thread panics.
struct Put<'a> {
    shares: &'a Shares,
    number: usize,
    outcome: Result<Outcome>,
}

impl Drop for Put<'_> {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, Err(Error::Lost));
        let mut state = lock(&self.shares.state);
        let at = self.number - state.taken;
        if let Some(place) = state.outcomes.get_mut(at) {
            *place = Some(outcome);
        }
        self.shares.merged.notify_all();
    }
}
