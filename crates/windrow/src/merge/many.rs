//! The k-way merge, a block at a time.
//!
//! ```text
//! windows      one chunk of each run, read from `at` on
//! 1. bound     = least over the runs of the row `step` ahead
//! 2. block     = in every window, the rows at or below the bound     (closed under equality)
//! 3. one run   only one window has any: copy all its rows below the other heads
//! 4. many      order the block by packed prefixes in cache, apply the rule, gather once; meanwhile
//!              have the rows fetched that the next block will probably have
//! ```
//!
//! Ordering a block costs the same for 8 runs as for 300; a heap or a loser tree would compare
//! log k times a row, missing the cache as often. `step` follows the size of the blocks, so that
//! runs which hardly overlap do not fall into blocks of a few rows.

use super::window::Window;
use crate::chunk::{Arranger, Builder, View};
use crate::error::Result;
use crate::kernel::prefetch::Ahead;
use crate::order::Layout;
use crate::pool::Pool;

/// Bytes of rows that one block should have: it is read twice, from the second-level cache. With a limit
/// to memory not more than a chunk, or what comes out of a block would not fit the budget.
const BLOCK_BYTES: usize = 768 << 10;
/// Rows of a block at the most.
const BLOCK_ROWS: usize = 16 << 10;
/// A block takes about this many rows of each run or more, to pay for searching its window.
const LEAST_STEP: usize = 16;

/// Merges many windows, a block at a time.
pub(super) struct Blocks {
    tail: usize,
    block_bytes: usize,
    step: usize,
    arranger: Arranger,
}

impl Blocks {
    pub(super) fn new(layout: &Layout, pool: &Pool) -> Self {
        Self {
            tail: layout.tail().len(),
            block_bytes: BLOCK_BYTES.min(pool.stage_bytes()),
            step: LEAST_STEP,
            arranger: Arranger::default(),
        }
    }

    /// Merges one block of windows that all have rows left. Returns the rows that went in.
    pub(super) fn merge(&mut self, windows: &mut [Window], builder: &mut Builder) -> Result<usize> {
        let tail = self.tail;
        let body = |row: &'_ [u8]| row.len() - tail;
        loop {
            let step = self.step;
            windows.iter_mut().for_each(|window| window.reach(step));
            let Some(bound) = windows
                .iter()
                .map(|window| window.row(window.ahead(step) - 1))
                .min_by(|a, b| a[..body(a)].cmp(&b[..body(b)]))
            else {
                return Ok(0);
            };
            let below = |row: &[u8]| row[..body(row)] <= bound[..body(bound)];
            let mut ends = Vec::with_capacity(windows.len());
            let mut block = 0;
            let mut bytes = 0;
            for (index, window) in windows.iter().enumerate() {
                if below(window.head()) {
                    let end = window.first_above(window.ahead(step), below);
                    block += end - window.at;
                    bytes +=
                        window.parts(end).map(|part| part.span(0..part.len()).len()).sum::<usize>();
                    ends.push((index, end));
                }
            }
            if let [(only, _)] = ends[..] {
                return self.copy_run(windows, only, builder);
            }
            let least = least_step(block, bytes);
            if bytes > 2 * self.block_bytes && step > least {
                // Runs that did not overlap so far, with a long step, do from here on.
                self.step = (step / 4).max(least);
                continue;
            }
            reach_on(windows, &ends);
            let parts = ends.iter().flat_map(|&(index, end)| windows[index].parts(end));
            let parts: Vec<View<'_>> = parts.collect();
            // Longer rows than a cache holds would only be in each other's way.
            let fits = bytes <= 2 * self.block_bytes;
            let next = if fits { expected(windows, &ends) } else { Vec::new() };
            builder.push_unordered(&mut self.arranger, &parts, true, &mut Ahead::new(&next))?;
            for (index, end) in ends {
                windows[index].at = end;
            }
            self.adapt(block, bytes);
            return Ok(block);
        }
    }

    /// Passes on what the window at `only` has below the heads of all others.
    fn copy_run(
        &mut self,
        windows: &mut [Window],
        only: usize,
        builder: &mut Builder,
    ) -> Result<usize> {
        let tail = self.tail;
        let body = |row: &'_ [u8]| row.len() - tail;
        let others = windows.iter().enumerate().filter(|&(index, _)| index != only);
        let head =
            others.map(|(_, window)| window.head()).min_by(|a, b| a[..body(a)].cmp(&b[..body(b)]));
        let window = &windows[only];
        let below = |row: &[u8], head: &[u8]| row[..body(row)] < head[..body(head)];
        let end = head.map_or(window.len(), |head| {
            if below(window.last(), head) {
                return window.len();
            }
            window.rows().partition_point(window.left(), |row| below(row, head))
        });
        let run = window.at..end;
        if let Some(chunk) = window.chunk() {
            builder.push_run(chunk, run.clone())?;
        }
        windows[only].at = end;
        Ok(run.len())
    }

    /// Lengthens or shortens the step, so that blocks come out at the size they should have.
    fn adapt(&mut self, rows: usize, bytes: usize) {
        if rows > BLOCK_ROWS || bytes > self.block_bytes {
            self.step = (self.step * 3 / 4).max(least_step(rows, bytes));
        } else if rows < BLOCK_ROWS / 2 && bytes < self.block_bytes / 2 {
            self.step = (self.step * 3).div_ceil(2).min(BLOCK_ROWS);
        }
    }
}

/// Looks for the chunks that the next block will probably reach into.
fn reach_on(windows: &mut [Window], ends: &[(usize, usize)]) {
    for &(index, end) in ends {
        let window = &mut windows[index];
        window.reach(end - window.at + likely(end - window.at));
    }
}

/// The bytes that the next block will probably have, where this one takes the windows up to `ends`.
fn expected<'a>(windows: &'a [Window], ends: &[(usize, usize)]) -> Vec<&'a [u8]> {
    let mut ends = ends.iter().copied().peekable();
    let ranges = windows.iter().enumerate().flat_map(|(index, window)| {
        let end = ends.next_if(|&(of, _)| of == index).map_or(window.at, |(_, end)| end);
        window.rows_behind(end, likely(end - window.at))
    });
    ranges.collect()
}

/// Rows of a window that a block probably has if the one before had `rows`.
fn likely(rows: usize) -> usize {
    rows * 5 / 4 + 4
}

/// The least step for rows of this mean length: searching a window is nothing beside copying a long
/// row, and a few of each of many windows are more than the budget has.
fn least_step(rows: usize, bytes: usize) -> usize {
    /// Bytes of a row that is long.
    const LONG: usize = 1 << 10;
    if bytes > rows * LONG { 1 } else { LEAST_STEP }
}
