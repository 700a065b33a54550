//! The k-way merge, block by block.
//!
//! ```text
//! windows      one chunk of each run, read from `at` on
//! 1. bound     = least over the runs of the row `step` ahead
//! 2. block     = in every window, the rows at or below the bound     (closed under equality)
//! 3. one run   rows of one window only: copy all its rows below the other heads
//! 4. several   a loser tree, each winner is copied             (kernel::merge::several)
//! 5. many      order the block by packed prefixes in cache, apply the rule, gather once; meanwhile
//!              prefetch the probable rows of the next block
//! ```
//!
//! Sorting a block costs the same for 80 runs as for 300; a loser tree makes log k comparisons per
//! row and reads from as many places. `step` adapts to the block size, so runs that hardly overlap
//! do not decay into blocks of a few rows.

use std::ops::Range;

use super::window::Window;
use crate::chunk::{Arranger, Builder, View, body_of};
use windrow_kernel::merge::{Hints, MOST_SEVERAL};
use windrow_kernel::prefetch::{Ahead, prefetch_row};
use windrow_pool::Pool;
use windrow_rows::{Layout, Result};

/// Target size of a block. With a memory limit, a block has at most the bytes of a chunk; otherwise
/// its output would exceed the budget.
#[derive(Clone, Copy, Debug)]
struct Size {
    bytes: usize,
    rows: usize,
}

/// Many runs: the block is read twice, from the second-level cache.
const OF_MANY: Size = Size { bytes: 768 << 10, rows: 16 << 10 };
/// Several runs: the block is read once; larger blocks amortize searches and the choice of bits.
const OF_SEVERAL: Size = Size { bytes: 16 << 20, rows: 512 << 10 };
/// Least rows of each run in a block, about, to amortize the search of its window.
const LEAST_STEP: usize = 16;

/// Merges many windows, block by block.
pub(super) struct Blocks {
    tail: usize,
    /// Most bytes of a block.
    most_bytes: usize,
    /// Whether the kernel for several runs supports the rule.
    several: bool,
    hints: Hints,
    step: usize,
    arranger: Arranger,
}

impl Blocks {
    pub(super) fn new(layout: &Layout, pool: &Pool, builder: &Builder) -> Self {
        // With a limit, a block has at most the bytes sorted at once. Larger blocks do not speed up
        // variable-length rows.
        let is_large = layout.stride().is_some() && !pool.budget().is_limited();
        let stages = if is_large { 8 } else { 1 };
        Self {
            tail: layout.tail().len(),
            most_bytes: stages * pool.stage_bytes(),
            several: builder.merges_runs(),
            hints: Hints::default(),
            step: LEAST_STEP,
            arranger: Arranger::default(),
        }
    }

    /// Returns the target size of a block of `runs` runs.
    fn size(&self, runs: usize) -> Size {
        let size = if self.several && runs <= MOST_SEVERAL { OF_SEVERAL } else { OF_MANY };
        Size { bytes: size.bytes.min(self.most_bytes), ..size }
    }

    /// Merges one block of windows with remaining rows. Returns the consumed rows.
    pub(super) fn merge(&mut self, windows: &mut [Window], builder: &mut Builder) -> Result<usize> {
        let tail = self.tail;
        let size = self.size(windows.len());
        loop {
            let step = self.step;
            windows.iter_mut().for_each(|window| window.reach(step));
            let last = |window: &'_ Window| window.ahead(step) - 1;
            windows.iter().for_each(|window| prefetch_row(window.row(last(window))));
            let lasts = windows.iter().map(|window| body_of(window.row(last(window)), tail));
            let Some(bound) = lasts.min() else { return Ok(0) };
            let ends = ends(windows, step, |row| body_of(row, tail) <= bound);
            let mut block = 0;
            let mut bytes = 0;
            for &(index, end) in &ends {
                block += end - windows[index].at;
                let bytes_of = |part: View<'_>| part.span(0..part.len()).len();
                bytes += windows[index].parts(end).map(bytes_of).iter().sum::<usize>();
            }
            if let [(only, _)] = ends[..] {
                return self.copy_run(windows, only, builder);
            }
            let least = least_step(block, bytes);
            if bytes > 2 * size.bytes && step > least {
                // Runs that did not overlap so far now overlap, so the step is too long.
                self.step = (step / 4).max(least);
                continue;
            }
            let runs = ends.iter().map(|&(index, end)| windows[index].parts(end));
            let runs: Vec<[View<'_>; 2]> = runs.collect();
            let several = self.several && runs.len() <= MOST_SEVERAL;
            if !several || !builder.push_several(&runs, &mut self.hints)? {
                // Rows too short for the kernel are probably not the last ones.
                self.several &= !several;
                self.push_ordered(windows, &ends, bytes, builder)?;
            }
            for (index, end) in ends {
                windows[index].at = end;
            }
            self.adapt(size, block, bytes);
            return Ok(block);
        }
    }

    /// Sorts the rows of the windows up to `ends`, `bytes` bytes in all, and appends them.
    fn push_ordered(
        &mut self,
        windows: &mut [Window],
        ends: &[(usize, usize)],
        bytes: usize,
        builder: &mut Builder,
    ) -> Result<()> {
        reach_on(windows, ends);
        let parts = ends.iter().flat_map(|&(index, end)| windows[index].parts(end));
        let parts: Vec<View<'_>> = parts.filter(|part| part.len() > 0).collect();
        // Prefetching more bytes than a cache holds would evict the block itself.
        let fits = bytes <= 2 * OF_MANY.bytes;
        let next = if fits { expected(windows, ends) } else { Vec::new() };
        builder.push_unordered(&mut self.arranger, &parts, true, &mut Ahead::new(&next))
    }

    /// Appends the rows of window `only` below the heads of all others.
    fn copy_run(
        &mut self,
        windows: &mut [Window],
        only: usize,
        builder: &mut Builder,
    ) -> Result<usize> {
        let tail = self.tail;
        let others = windows.iter().enumerate().filter(|&(index, _)| index != only);
        let head = others.map(|(_, window)| body_of(window.head(), tail)).min();
        let window = &windows[only];
        let end = head.map_or(window.len(), |head| {
            if body_of(window.last(), tail) < head {
                return window.len();
            }
            window.rows().partition_point(window.left(), |row| body_of(row, tail) < head)
        });
        let run = window.at..end;
        if let Some(chunk) = window.chunk() {
            builder.push_run(chunk, run.clone())?;
        }
        windows[only].at = end;
        Ok(run.len())
    }

    /// Adapts the step to the target size of blocks.
    fn adapt(&mut self, size: Size, rows: usize, bytes: usize) {
        if rows > size.rows || bytes > size.bytes {
            self.step = (self.step * 3 / 4).max(least_step(rows, bytes));
        } else if rows < size.rows / 2 && bytes < size.bytes / 2 {
            self.step = (self.step * 3).div_ceil(2).min(size.rows);
        }
    }
}

/// Returns the windows whose heads are `below`, each with the first position not `below`, or `step`
/// rows on. The binary searches of all windows advance together with prefetches, to overlap their
/// cache misses.
fn ends(windows: &[Window], step: usize, below: impl Fn(&[u8]) -> bool) -> Vec<(usize, usize)> {
    let heads = windows.iter().enumerate().filter(|(_, window)| below(window.head()));
    let behind = |(index, window): (usize, &Window)| (index, window.at + 1..window.ahead(step));
    let mut searches: Vec<(usize, Range<usize>)> = heads.map(behind).collect();
    let middle = |range: &Range<usize>| range.start + range.len() / 2;
    loop {
        let mut open = searches.iter().filter(|(_, range)| !range.is_empty()).peekable();
        if open.peek().is_none() {
            return searches.into_iter().map(|(index, range)| (index, range.start)).collect();
        }
        open.for_each(|(index, range)| prefetch_row(windows[*index].row(middle(range))));
        for (index, range) in searches.iter_mut().filter(|(_, range)| !range.is_empty()) {
            let middle = middle(range);
            if below(windows[*index].row(middle)) {
                range.start = middle + 1;
            } else {
                range.end = middle;
            }
        }
    }
}

/// Loads the chunks that the next block will probably need.
fn reach_on(windows: &mut [Window], ends: &[(usize, usize)]) {
    for &(index, end) in ends {
        let window = &mut windows[index];
        window.reach(end - window.at + likely(end - window.at));
    }
}

/// Returns the bytes that the next block will probably need, if this block consumes the windows up
/// to `ends`.
fn expected<'a>(windows: &'a [Window], ends: &[(usize, usize)]) -> Vec<&'a [u8]> {
    let mut ends = ends.iter().copied().peekable();
    let ranges = windows.iter().enumerate().flat_map(|(index, window)| {
        let end = ends.next_if(|&(of, _)| of == index).map_or(window.at, |(_, end)| end);
        window.rows_behind(end, likely(end - window.at))
    });
    ranges.collect()
}

/// Returns the expected rows of a window in the next block, after `rows` in this one.
fn likely(rows: usize) -> usize {
    rows * 5 / 4 + 4
}

/// Returns the least step for rows of this mean length: copying a long row outweighs the search of
/// its window, and a few long rows from each of many windows exceed the budget.
fn least_step(rows: usize, bytes: usize) -> usize {
    /// Bytes of a long row.
    const LONG: usize = 1 << 10;
    if bytes > rows * LONG { 1 } else { LEAST_STEP }
}
