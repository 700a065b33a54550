//! The merge of runs, step by step.
//!
//! ```text
//! step   1 window left               its rows unchanged, as whole chunks if possible
//!        2 windows, most rules        one before the other: unchanged; else a two-way kernel
//!        more                         a block of rows in `many`: by a loser tree, or ordered
//! ```
//!
//! A step consumes at most a chunk or a block of rows, or yields at most a chunk. The merge can
//! pause between any two steps. Fuel is charged for consumed rows, so a merge pauses even if all
//! its rows cancel.

use std::ops::Range;
use std::sync::Arc;

use super::chunks::ChunkSource;
use super::many::Blocks;
use super::source::Source;
use super::window::{Between, Window};
use crate::chunk::{Builder, Chunk, Findings, Finish, Wraps, body_of};
use windrow_pool::Pool;
use windrow_rows::{Layout, Result};

/// Chunks prefetched at once.
const AHEAD: usize = 2;
/// Rows that a step of a merge of two may take whatever its fuel: a step of fewer rows costs more
/// than they do.
const LEAST_STEP: usize = 1024;

/// Merges runs into chunks.
pub(crate) struct Merger {
    windows: Vec<Window>,
    tail: usize,
    /// Whether the two-way kernel supports the rows and their rule.
    two_way: bool,
    blocks: Blocks,
    builder: Builder,
    /// Whether the last step passed a chunk on; the next step may pass one, too.
    passing: bool,
    flushed: bool,
}

impl Merger {
    /// Returns a merge of `sources`. `finish` decides on deletions and diffs; `wraps` records
    /// overflowing sums.
    pub(crate) fn new(
        layout: &Layout,
        pool: &Pool,
        finish: Finish,
        wraps: &Wraps,
        sources: Vec<Source>,
    ) -> Self {
        Self::between(layout, pool, finish, wraps, sources, &Arc::default())
    }

    /// Returns a merge of the rows of `sources` within the bounds `between`.
    pub(super) fn between(
        layout: &Layout,
        pool: &Pool,
        finish: Finish,
        wraps: &Wraps,
        sources: Vec<Source>,
        between: &Arc<Between>,
    ) -> Self {
        let windows = sources.into_iter().map(|source| Window::new(source, between));
        let builder = Builder::new(layout, pool, finish, wraps);
        let tail = layout.tail().len();
        Self {
            windows: windows.collect(),
            tail,
            two_way: builder.merges_two(),
            blocks: Blocks::new(layout, pool, &builder),
            builder,
            passing: false,
            flushed: false,
        }
    }

    /// Folds the rows of each key into one row, under
    /// [`Rule::LastKnown`](windrow_rows::Rule::LastKnown). The sources must have all rows.
    pub(crate) fn fold_keys(&mut self) {
        self.builder.fold_keys();
    }

    /// Returns the next chunk, or `None` at the end.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        self.next_within(&mut i64::MAX.clone())
    }

    /// Returns the next chunk if the fuel suffices: one unit per consumed row. `None` with fuel
    /// left means the end.
    pub(crate) fn next_within(&mut self, fuel: &mut i64) -> Result<Option<Arc<Chunk>>> {
        loop {
            if let Some(chunk) = self.builder.take() {
                self.windows.iter_mut().for_each(Window::let_go);
                return Ok(Some(chunk));
            }
            if self.flushed || *fuel <= 0 {
                return Ok(None);
            }
            self.builder.resume()?;
            if self.builder.is_full() {
                continue;
            }
            match self.step(*fuel)? {
                0 => {
                    self.builder.end_key()?;
                    self.builder.flush();
                    self.flushed = true;
                }
                rows => *fuel -= rows as i64,
            }
        }
    }

    /// Returns the findings of the rule so far.
    pub(crate) fn findings(&self) -> &Findings {
        &self.builder.findings
    }

    /// Runs one step, of about `fuel` rows if two windows are merged. Returns the consumed rows; 0
    /// means the end.
    fn step(&mut self, fuel: i64) -> Result<usize> {
        let mut index = 0;
        let mut came = false;
        while index < self.windows.len() {
            let window = &mut self.windows[index];
            came |= !window.has_rows();
            if window.fill()? {
                index += 1;
            } else {
                self.windows.swap_remove(index);
            }
        }
        if came {
            self.read_ahead();
        }
        let passing = std::mem::take(&mut self.passing);
        match &self.windows[..] {
            [] => Ok(0),
            [_] => self.pass(0),
            [_, _] if self.two_way => self.two(passing, fuel),
            _ => self.blocks.merge(&mut self.windows, &mut self.builder),
        }
    }

    /// Runs a step of two windows.
    fn two(&mut self, passing: bool, fuel: i64) -> Result<usize> {
        const EITHER: [(usize, usize); 2] = [(0, 1), (1, 0)];
        for (own, other) in EITHER {
            if self.windows[own].stands_before(&self.windows[other], self.tail) {
                return self.pass(own);
            }
        }
        for (own, other) in EITHER {
            // If a whole chunk fits between two rows of the other window, the rows before it are
            // copied first.
            if passing
                && let Some(rows) = self.windows[own].makes_way(&self.windows[other], self.tail)
            {
                self.passing = true;
                return self.append(own, rows);
            }
        }
        let [a, b] = &mut self.windows[..] else { return Ok(0) };
        let most = usize::try_from(fuel).unwrap_or(usize::MAX).max(LEAST_STEP);
        let first = |window: &Window| window.at..window.ahead(most).min(window.len());
        let (left, right) = ((a.rows(), first(a)), (b.rows(), first(b)));
        let (a_used, b_used) = self.builder.push_merged(left, right)?;
        a.at += a_used;
        b.at += b_used;
        Ok(a_used + b_used)
    }

    /// Passes on the rest of one window: the chunk itself if possible.
    fn pass(&mut self, index: usize) -> Result<usize> {
        let rows = self.windows[index].rest();
        self.passing = rows.start == 0;
        self.append(index, rows)
    }

    /// Appends rows of a window in order, consumes them and returns their number.
    fn append(&mut self, index: usize, rows: Range<usize>) -> Result<usize> {
        let window = &mut self.windows[index];
        window.at = rows.end;
        if let Some(chunk) = window.chunk() {
            self.builder.push_run(chunk, rows.clone())?;
        }
        Ok(rows.len())
    }

    /// Prefetches chunks: the window with the least last row runs out first, so its next chunk is
    /// read first. Repeats up to `AHEAD` times.
    fn read_ahead(&mut self) {
        let tail = self.tail;
        for _ in 0..AHEAD {
            let fresh = self.windows.iter_mut().filter(|window| window.fresh);
            let next = fresh.min_by(|a, b| body_of(a.last(), tail).cmp(body_of(b.last(), tail)));
            let Some(window) = next else { return };
            window.read_ahead();
        }
    }
}

impl ChunkSource for Merger {
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        Merger::next_chunk(self)
    }
}
