//! The k-way merge, a block at a time.
//!
//! ```text
//! windows      one chunk of each run, read from `at` on
//! 1. bound     = least over the runs of the row `step` ahead
//! 2. block     = in every window, the rows at or below the bound     (closed under equality)
//! 3. one run   only one window has any: copy all its rows below the other heads
//! 4. many      order the block by packed prefixes in cache, apply the rule, gather once
//! ```
//!
//! Ordering a block costs the same for 8 runs as for 300; a heap or a loser tree would compare
//! log k times a row, missing the cache as often. `step` follows the size of the blocks, so that
//! runs which hardly overlap do not fall into blocks of a few rows.

use std::ops::Range;

use super::ChunkSource;
use crate::chunk::{Arranger, Builder, Chunk, Findings, Finish};
use crate::error::Result;
use crate::order::Layout;
use crate::pool::Pool;

/// Bytes of rows that one block should have: it is read twice, from the second-level cache. Not
/// more than a chunk, or what comes out of a block would not fit the budget.
const BLOCK_BYTES: usize = 768 << 10;
/// Rows of a block at the most.
const BLOCK_ROWS: usize = 16 << 10;
/// A block takes about this many rows of each run or more, to pay for searching its window.
const LEAST_STEP: usize = 16;

/// Merges runs into chunks.
pub(crate) struct Merger {
    windows: Vec<Window>,
    tail: usize,
    block_bytes: usize,
    step: usize,
    /// Empty between calls; keeps its memory.
    rows: Vec<&'static [u8]>,
    arranger: Arranger,
    builder: Builder,
    flushed: bool,
}

struct Window {
    source: Box<dyn ChunkSource>,
    chunk: Option<Chunk>,
    at: usize,
}

impl Window {
    /// Makes sure that there is a row at `at`; false at the end of the run.
    fn fill(&mut self) -> Result<bool> {
        if self.chunk.as_ref().is_some_and(|chunk| self.at < chunk.len()) {
            return Ok(true);
        }
        // The spent chunk's memory is there for the next one.
        self.chunk = None;
        self.at = 0;
        self.chunk = self.source.next_chunk()?;
        Ok(self.chunk.is_some())
    }

    fn len(&self) -> usize {
        self.chunk.as_ref().map_or(0, Chunk::len)
    }

    fn row(&self, index: usize) -> &[u8] {
        self.chunk.as_ref().map_or(&[], |chunk| chunk.rows().row(index))
    }

    /// Bytes that the rows of `range` take.
    fn bytes(&self, range: Range<usize>) -> usize {
        self.chunk.as_ref().map_or(0, |chunk| {
            let offsets = chunk.rows().offsets;
            (offsets[range.end] - offsets[range.start]) as usize
        })
    }

    /// The first row from `at` up to `end` for which `below` is false.
    fn partition_point(&self, end: usize, below: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (self.at, end);
        while low < high {
            let middle = low + (high - low) / 2;
            if below(self.row(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl Merger {
    /// A merge of `sources`; what becomes of deletions and diffs is up to `finish`.
    pub(crate) fn new(
        layout: &Layout,
        pool: &Pool,
        finish: Finish,
        sources: Vec<Box<dyn ChunkSource>>,
    ) -> Self {
        let windows =
            sources.into_iter().map(|source| Window { source, chunk: None, at: 0 }).collect();
        Self {
            windows,
            tail: layout.tail().len(),
            block_bytes: BLOCK_BYTES.min(pool.chunk_bytes()),
            step: LEAST_STEP,
            rows: Vec::new(),
            arranger: Arranger::default(),
            builder: Builder::new(layout, pool, finish),
            flushed: false,
        }
    }

    /// The next chunk, or `None` when all runs are used up.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.builder.take() {
                return Ok(Some(chunk));
            }
            if self.flushed {
                return Ok(None);
            }
            if !self.merge_block()? {
                self.builder.flush();
                self.flushed = true;
            }
        }
    }

    /// What the rules did so far.
    pub(crate) fn findings(&self) -> &Findings {
        self.builder.findings()
    }

    /// Merges one block; false if there is none.
    fn merge_block(&mut self) -> Result<bool> {
        let mut index = 0;
        while index < self.windows.len() {
            if self.windows[index].fill()? {
                index += 1;
            } else {
                self.windows.swap_remove(index);
            }
        }
        if let [window] = &mut self.windows[..] {
            let rest = window.at..window.len();
            window.at = rest.end;
            if let Some(chunk) = &window.chunk {
                self.builder.push_run(chunk.rows(), rest)?;
            }
            return Ok(true);
        }
        let tail = self.tail;
        let body = |row: &'_ [u8]| row.len() - tail;
        let step = self.step;
        let ahead = |window: &Window| (window.at + step).min(window.len());
        let Some(bound) = self
            .windows
            .iter()
            .map(|window| window.row(ahead(window) - 1))
            .min_by(|a, b| a[..body(a)].cmp(&b[..body(b)]))
        else {
            return Ok(false);
        };
        let mut ends = Vec::with_capacity(self.windows.len());
        let mut block = 0;
        let mut bytes = 0;
        for (index, window) in self.windows.iter().enumerate() {
            let below = |row: &[u8]| row[..body(row)] <= bound[..body(bound)];
            if below(window.row(window.at)) {
                let end = window.partition_point(ahead(window), below);
                block += end - window.at;
                bytes += window.bytes(window.at..end);
                ends.push((index, end));
            }
        }
        if let [(only, _)] = ends[..] {
            return self.copy_run(only).map(|()| true);
        }
        if bytes > 2 * self.block_bytes && step > LEAST_STEP {
            // Runs that did not overlap so far, with a long step, do from here on.
            self.step = (step / 4).max(LEAST_STEP);
            return Ok(true);
        }
        let mut rows: Vec<&[u8]> = std::mem::take(&mut self.rows);
        for &(index, end) in &ends {
            let window = &self.windows[index];
            if let Some(chunk) = &window.chunk {
                let slice = chunk.rows();
                rows.extend((window.at..end).map(|row| slice.row(row)));
            }
        }
        let order = self.arranger.order(&rows, tail);
        self.builder.push(&rows, order)?;
        rows.clear();
        // Nothing is left to outlive the windows; collecting in place keeps the allocation.
        self.rows = rows.into_iter().map(|_| -> &'static [u8] { &[] }).collect();
        for (index, end) in ends {
            self.windows[index].at = end;
        }
        self.adapt(block, bytes);
        Ok(true)
    }

    /// Copies what the window at `only` has below the heads of all others.
    fn copy_run(&mut self, only: usize) -> Result<()> {
        let tail = self.tail;
        let body = |row: &'_ [u8]| row.len() - tail;
        let others = self.windows.iter().enumerate().filter(|&(index, _)| index != only);
        let head = others
            .map(|(_, window)| window.row(window.at))
            .min_by(|a, b| a[..body(a)].cmp(&b[..body(b)]));
        let window = &self.windows[only];
        let end = head.map_or(window.len(), |head| {
            window.partition_point(window.len(), |row| row[..body(row)] < head[..body(head)])
        });
        if let Some(chunk) = &window.chunk {
            self.builder.push_run(chunk.rows(), window.at..end)?;
        }
        self.windows[only].at = end;
        Ok(())
    }

    /// Lengthens or shortens the step, so that blocks come out at the size they should have.
    fn adapt(&mut self, rows: usize, bytes: usize) {
        if rows > BLOCK_ROWS || bytes > self.block_bytes {
            self.step = (self.step * 3 / 4).max(LEAST_STEP);
        } else if rows < BLOCK_ROWS / 2 && bytes < self.block_bytes / 2 {
            self.step = (self.step * 3 / 2).min(BLOCK_ROWS);
        }
    }
}
