//! The merge of runs, step by step.
//!
//! ```text
//! step   1 window left               its rows as they are, the chunk itself where that can be
//!        2 windows, most rules        one wholly before the other: as it is; else a two-way kernel
//!        more                         a block of them, in `many`: as they win, or ordered
//! ```
//!
//! A step takes at most a chunk of rows in or brings at most a chunk out, chunks that are passed on as they are
//! aside, of which it takes as many as there is fuel for; between any two steps the merge can be left and taken up
//! again. Fuel is charged for rows that go in, so that a merge whose rows all cancel pauses, too.

use std::ops::Range;
use std::sync::Arc;

use super::many::Blocks;
use super::window::Window;
use super::{ChunkSource, Source};
use crate::chunk::{Builder, Chunk, Findings, Finish, Wraps, merges_two};
use crate::error::Result;
use crate::order::Layout;
use crate::pool::Pool;

/// Runs that are merged two by two rather than in blocks: three passes of the two-way kernel take 9 to 11
/// ns a row of 32 bytes, a block 8, but passes see patterns: with runs of about 64 rows they take 2 to 6.
const MOST_BY_TWO: usize = 8;
/// Longer rows than this are better moved once.
const SHORT_ROW: usize = 40;

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
    /// A whole chunk was passed on: of the next ones no more than the ends will be looked at, probably.
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
        let builder = Builder::new(layout, pool, finish, wraps);
        let tail = layout.tail().len();
        Self {
            windows: sources.into_iter().map(Window::new).collect(),
            tail,
            two_way: two_way(layout, &builder),
            blocks: Blocks::new(layout, pool, &builder),
            builder,
            passing: false,
            flushed: false,
        }
    }

    /// As [`Merger::new`], two by two where that is faster: for a few runs of rows of one length. Work
    /// that is not at the top is not charged, so this is for merges that are not to pause.
    pub(crate) fn at_once(
        layout: &Layout,
        pool: &Pool,
        finish: Finish,
        wraps: &Wraps,
        mut sources: Vec<Source>,
    ) -> Self {
        if (3..=MOST_BY_TWO).contains(&sources.len())
            && layout.stride().is_some_and(|stride| stride <= SHORT_ROW)
            && two_way(layout, &Builder::new(layout, pool, finish, wraps))
        {
            let right = sources.split_off(sources.len() / 2);
            let half = |sources| {
                Source::Stream(Box::new(Self::at_once(layout, pool, finish, wraps, sources)))
            };
            sources = vec![half(sources), half(right)];
        }
        Self::new(layout, pool, finish, wraps, sources)
    }

    /// Has blocks that are ordered written past the caches: there are more rows than those hold, and nobody
    /// is about to read them.
    pub(crate) fn write_past_caches(&mut self) {
        self.builder.write_past_caches();
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
            match self.step(*fuel)? {
                0 => {
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

    /// Goes on by one step; returns the rows that went in, at least one unless all are used up, and not many more
    /// than `fuel`.
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
        match &mut self.windows[..] {
            [] => Ok(0),
            [_] => self.pass(0, passing, fuel),
            [_, _] if self.two_way => self.two(passing, fuel),
            _ => self.block(),
        }
    }

    /// A step of two windows.
    fn two(&mut self, passing: bool, fuel: i64) -> Result<usize> {
        const EITHER: [(usize, usize); 2] = [(0, 1), (1, 0)];
        let (windows, tail) = (&self.windows, self.tail);
        let before =
            |(own, other): &(usize, usize)| windows[*own].stands_before(&windows[*other], tail);
        if let Some((index, _)) = EITHER.into_iter().find(before) {
            return self.pass(index, passing, fuel);
        }
        if passing {
            // Where a chunk goes between two rows, those in front of it make way.
            let ways = |(own, other): (usize, usize)| {
                Some((own, windows[own].makes_way(&windows[other], tail)?))
            };
            if let Some((index, rows)) = EITHER.into_iter().find_map(ways) {
                self.passing = true;
                let passed = rows.len();
                return self.append(index, rows).map(|_| passed);
            }
        }
        let [a, b] = &mut self.windows[..] else { return Ok(0) };
        let (left, right) = ((a.rows(), a.left()), (b.rows(), b.left()));
        let (a_used, b_used) = self.builder.push_merged(left, right)?;
        a.at += a_used;
        b.at += b_used;
        Ok(a_used + b_used)
    }

    /// Passes on what is left of one window of two at the most; if the last step did so, too, what may follow it,
    /// at once, as long as that is whole chunks.
    fn pass(&mut self, index: usize, passing: bool, fuel: i64) -> Result<usize> {
        let rows = self.windows[index].rest();
        self.passing = rows.start == 0;
        let mut passed = rows.len();
        let mut whole = self.append(index, rows)?;
        let mut more = match whole && passing {
            true => self.windows[index].leading(self.windows.get(1 - index), self.tail),
            false => 0,
        };
        while whole && more > 0 && (passed as i64) < fuel {
            let Some(chunk) = self.windows[index].take_next() else { break };
            passed += chunk.len();
            whole = self.builder.push_run(&chunk, 0..chunk.len())?;
            more -= 1;
        }
        Ok(passed)
    }

    /// Appends rows of a window as they stand, which it is done with; true if that was the chunk itself.
    fn append(&mut self, index: usize, rows: Range<usize>) -> Result<bool> {
        let window = &mut self.windows[index];
        window.at = rows.end;
        window.chunk().map_or(Ok(false), |chunk| self.builder.push_run(chunk, rows))
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
            window.read_ahead(self.passing);
        }
    }

    fn block(&mut self) -> Result<usize> {
        self.blocks.merge(&mut self.windows, &mut self.builder)
    }
}

/// True if the two-way kernel serves the rows and what becomes of them.
fn two_way(layout: &Layout, builder: &Builder) -> bool {
    builder.merges_runs() && merges_two(layout)
}

impl ChunkSource for Merger {
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        Merger::next_chunk(self)
    }
}
