//! The merge of runs, step by step.
//!
//! ```text
//! step   1 window left               its rows as they are, the chunk itself where that can be
//!        2 windows, most rules        one wholly before the other: as it is; else a two-way kernel
//!        more                         a block of them, in `many`: as they win, or ordered
//! ```
//!
//! A step takes at most a chunk or a block of rows in, or brings at most a chunk out; between any two steps the merge can
//! be left and taken up again. Fuel is charged for rows that go in, so that a merge whose rows all cancel pauses, too.

use std::ops::Range;
use std::sync::Arc;

use super::chunks::ChunkSource;
use super::many::Blocks;
use super::source::Source;
use super::window::{Between, Window};
use crate::chunk::{Builder, Chunk, Findings, Finish, Wraps};
use crate::error::Result;
use crate::order::Layout;
use crate::pool::Pool;

/// Chunks that are read ahead at a time.
const AHEAD: usize = 2;

/// Merges runs into chunks.
pub(crate) struct Merger {
    windows: Vec<Window>,
    tail: usize,
    /// Whether the two-way kernel serves the rows and their rule.
    two_way: bool,
    blocks: Blocks,
    builder: Builder,
    /// A chunk was passed on by the last step: the next one may be, too.
    passing: bool,
    flushed: bool,
}

impl Merger {
    /// A merge of `sources`; what becomes of deletions and diffs is up to `finish`, and sums that do
    /// not fit are noted in `wraps`.
    pub(crate) fn new(
        layout: &Layout,
        pool: &Pool,
        finish: Finish,
        wraps: &Wraps,
        sources: Vec<Source>,
    ) -> Self {
        Self::between(layout, pool, finish, wraps, sources, &Arc::default())
    }

    /// The same, of the rows of `sources` that are between two.
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

    /// Has blocks that are ordered written past the caches: there are more rows than those hold, and nobody
    /// is about to read them.
    pub(crate) fn write_past_caches(&mut self) {
        self.builder.write_past_caches();
    }

    /// Has one row come out for each key, where the rule takes columns from several rows: the merge is of all there are.
    pub(crate) fn fold_keys(&mut self) {
        self.builder.fold_keys();
    }

    /// The next chunk, or `None` when all runs are used up.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        self.next_within(&mut i64::MAX.clone())
    }

    /// The next chunk, if there is one before the fuel is used up: one unit a row that goes in.
    /// `None` with fuel left means that all runs are used up.
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
            match self.step()? {
                0 => {
                    self.builder.end_key()?;
                    self.builder.flush();
                    self.flushed = true;
                }
                rows => *fuel -= rows as i64,
            }
        }
    }

    /// What the rules did so far.
    pub(crate) fn findings(&self) -> &Findings {
        self.builder.findings()
    }

    /// Goes on by one step; returns the rows that went in, at least one unless all are used up.
    fn step(&mut self) -> Result<usize> {
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
            [_, _] if self.two_way => self.two(passing),
            _ => self.blocks.merge(&mut self.windows, &mut self.builder),
        }
    }

    /// A step of two windows.
    fn two(&mut self, passing: bool) -> Result<usize> {
        const EITHER: [(usize, usize); 2] = [(0, 1), (1, 0)];
        for (own, other) in EITHER {
            if self.windows[own].stands_before(&self.windows[other], self.tail) {
                return self.pass(own);
            }
        }
        for (own, other) in EITHER {
            // Where a chunk goes between two rows, those in front of it make way.
            if passing
                && let Some(rows) = self.windows[own].makes_way(&self.windows[other], self.tail)
            {
                self.passing = true;
                return self.append(own, rows);
            }
        }
        let [a, b] = &mut self.windows[..] else { return Ok(0) };
        let (left, right) = ((a.rows(), a.left()), (b.rows(), b.left()));
        let (a_used, b_used) = self.builder.push_merged(left, right)?;
        a.at += a_used;
        b.at += b_used;
        Ok(a_used + b_used)
    }

    /// Passes on what is left of one window: the chunk itself, if that can be.
    fn pass(&mut self, index: usize) -> Result<usize> {
        let rows = self.windows[index].rest();
        self.passing = rows.start == 0;
        self.append(index, rows)
    }

    /// Appends rows of a window as they stand, which it is done with; returns how many.
    fn append(&mut self, index: usize, rows: Range<usize>) -> Result<usize> {
        let window = &mut self.windows[index];
        window.at = rows.end;
        if let Some(chunk) = window.chunk() {
            self.builder.push_run(chunk, rows.clone())?;
        }
        Ok(rows.len())
    }

    /// The window whose last row is the least is the next to be used up: the chunk behind it is read
    /// ahead, and so on while memory lasts.
    fn read_ahead(&mut self) {
        let tail = self.tail;
        let body = |row: &'_ [u8]| row.len() - tail;
        for _ in 0..AHEAD {
            let fresh = self.windows.iter_mut().filter(|window| window.is_fresh());
            let next = fresh.min_by(|a, b| {
                let (a, b) = (a.last(), b.last());
                a[..body(a)].cmp(&b[..body(b)])
            });
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
