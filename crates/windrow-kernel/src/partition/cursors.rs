//! The order of a chunk by cursors: a counting sort with a pass to count and a pass to deal.
//!
//! ```text
//! ids       1 0 1 2 0 1
//! counts    2 3 1              pass 1
//! cursors   0 2 5  ->  0 3 5  ->  1 3 5  ->  1 4 5 ..     pass 2: target = cursor[id]++
//! targets   2 0 3 5 1 4
//!
//! segment   0        1        2        3         with segments: a cursor per partition and segment
//! rows    | . . . . | . . . . | . . . . | . . . .
//!           ^         ^         ^         ^      one row of each per step
//! ```
//!
//! Stores bound both passes, one a row each.
//! 1. `cursor[id] += 1` makes the next row of the same partition wait for the store of this one.
//!    Rows of different segments never share a cursor, so their waits overlap. Cursors of a
//!    partition lie side by side in the order of segments, so the result is stable. With many
//!    partitions rows seldom meet, and one segment needs fewer cursors.
//! 2. One load reads two ids.
//! 3. Masks find the rows of a partition that has most rows, see `hot`.
//!
//! Invariant: the dealt ids are the ids counted last, all of them below the number of partitions.

use std::ops::Range;

use super::Level;
#[cfg(target_arch = "x86_64")]
use super::hot::Hot;
use super::ids::within;
use super::plan::{Count, SEGMENTS, Seen, counting};
use crate::prefetch::prefetch_near;

/// Ids of a cache line, which is prefetched as a whole.
const LINE: usize = 16;
/// Rows ahead of which ids and values are prefetched: a few pages, since the CPU's own prefetches
/// end with each page.
const AHEAD: usize = 512;
/// Rows of a segment whose ids are checked and then counted, while they are in cache.
const BLOCK: usize = 16 * LINE;

/// Targets of the rows of each partition and segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursors {
    /// Target of the first row of each partition and segment.
    starts: Vec<u32>,
    /// Target of the next row of each partition and segment.
    moving: Vec<u32>,
    counted: Counted,
    /// Number of counted rows; zero if an id was no partition.
    rows: usize,
    #[cfg(target_arch = "x86_64")]
    hot: Hot,
    /// Targets of the rows of a hot partition and of all others.
    #[cfg(target_arch = "x86_64")]
    targets: Vec<u16>,
}

/// The way of the last count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Counted {
    #[default]
    One,
    Segments,
    #[cfg(target_arch = "x86_64")]
    Hot,
}

impl Cursors {
    /// Counts `ids`, fewer than 2^32, and writes the ends of partitions to `ends`. Returns false if
    /// an id is not below the number of partitions.
    pub(super) fn count(
        &mut self,
        level: Level,
        ids: &[u32],
        ends: &mut [u32],
        wide: bool,
    ) -> bool {
        let seen = Seen::of(ids, ends.len());
        self.rows = 0;
        let known = match counting(level, seen, wide) {
            #[cfg(target_arch = "x86_64")]
            Count::Hot(hot) => {
                self.counted = Counted::Hot;
                // SAFETY: `counting` returns `Hot` only at the AVX-512 level.
                unsafe { self.hot.count(hot, ids, ends) }
            }
            Count::Segments(SEGMENTS) => {
                self.counted = Counted::Segments;
                self.count_segments::<SEGMENTS>(ids, ends)
            }
            _ => {
                self.counted = Counted::One;
                self.count_segments::<1>(ids, ends)
            }
        };
        self.rows = if known { ids.len() } else { 0 };
        known
    }

    fn count_segments<const S: usize>(&mut self, ids: &[u32], ends: &mut [u32]) -> bool {
        self.starts.clear();
        self.starts.resize(ends.len() * S, 0);
        if !add_up::<S>(ids, &mut self.starts) {
            return false;
        }
        let mut sum = 0;
        for (counts, end) in self.starts.as_chunks_mut::<S>().0.iter_mut().zip(ends) {
            for count in counts {
                sum += std::mem::replace(count, sum);
            }
            *end = sum;
        }
        true
    }

    /// Restores the state after [`Cursors::count`] for ids that were counted before. With one
    /// segment, `ends` are sufficient.
    ///
    /// # Safety
    /// `count` wrote `ends` for these ids.
    pub(super) unsafe fn recall(
        &mut self,
        level: Level,
        ids: &[u32],
        ends: &mut [u32],
        wide: bool,
    ) {
        if counting(level, Seen::of(ids, ends.len()), wide) != Count::Segments(1) {
            assert!(self.count(level, ids, ends, wide), "ids were counted before");
            return;
        }
        (self.rows, self.counted) = (ids.len(), Counted::One);
        self.starts.clear();
        self.starts.push(0);
        self.starts.extend_from_slice(&ends[..ends.len() - 1]);
    }

    /// Calls `put` with each row and its target: each number below the rows once.
    ///
    /// # Safety
    /// `ids` are the ids counted last, and the count returned true.
    #[inline(always)]
    pub(super) unsafe fn each(&mut self, ids: &[u32], put: impl Fn(usize, usize)) {
        // SAFETY: the caller provides the counted ids.
        unsafe { self.each_ahead(ids, |_| (), put) };
    }

    /// Writes each value of `source` to its target in `out`.
    ///
    /// # Safety
    /// `ids` are the ids counted last, and the count returned true. `source` has a value for each
    /// id, and `out` has space for as many.
    #[inline(always)]
    pub(super) unsafe fn put<const W: usize>(
        &mut self,
        ids: &[u32],
        source: &[[u8; W]],
        out: *mut [u8; W],
    ) {
        debug_assert!(source.len() >= ids.len());
        let from = source.as_ptr();
        let prefetch = |row: usize| {
            let start = from.wrapping_add(row + AHEAD).cast::<u8>();
            (0..LINE * W).step_by(64).for_each(|at| prefetch_near(start.wrapping_add(at)));
        };
        // SAFETY: the caller provides the counted ids, so rows and targets are below their number.
        // `source` and `out` have as many values.
        unsafe {
            self.each_ahead(ids, prefetch, |row, target| {
                out.add(target).copy_from_nonoverlapping(from.add(row), 1);
            });
        }
    }

    /// Calls `put` as [`Cursors::each`] does, and `prefetch` with the first row of each [`LINE`] of
    /// ids.
    ///
    /// # Safety
    /// `ids` are the ids counted last, and the count returned true.
    #[inline(always)]
    unsafe fn each_ahead(
        &mut self,
        ids: &[u32],
        prefetch: impl Fn(usize),
        put: impl Fn(usize, usize),
    ) {
        assert_eq!(ids.len(), self.rows, "ids were counted");
        #[cfg(target_arch = "x86_64")]
        if self.counted == Counted::Hot {
            self.targets.resize(ids.len(), 0);
            // SAFETY: rows are counted as hot only at the AVX-512 level.
            unsafe { self.hot.targets(ids, &mut self.targets) };
            for (line, targets) in self.targets.chunks(LINE).enumerate() {
                prefetch(line * LINE);
                targets.iter().zip(line * LINE..).for_each(|(&to, row)| put(row, to.into()));
            }
            return;
        }
        self.moving.clone_from(&self.starts);
        let cursors = self.moving.as_mut_ptr();
        let next = |cursor: usize, row: usize| {
            // SAFETY: the caller provides the counted ids, so `cursor` is one of the cursors of
            // that count.
            let target = unsafe {
                let cursor = cursors.add(cursor);
                let target = *cursor;
                *cursor = target + 1;
                target
            };
            put(row, target as usize);
        };
        if self.counted == Counted::One {
            walk::<1>(ids, 0..segment::<1>(ids.len()), prefetch, next);
            rest::<1>(ids, next);
        } else {
            walk::<SEGMENTS>(ids, 0..segment::<SEGMENTS>(ids.len()), prefetch, next);
            rest::<SEGMENTS>(ids, next);
        }
    }

    /// Writes the target of each row to `targets`.
    ///
    /// # Safety
    /// `ids` are the ids counted last, at most 65,536, and the count returned true.
    ///
    /// # Panics
    /// If there is not a target for each row.
    pub(super) unsafe fn targets(&mut self, ids: &[u32], targets: &mut [u16]) {
        assert!(ids.len() == targets.len() && ids.len() == self.rows, "ids were counted");
        #[cfg(target_arch = "x86_64")]
        if self.counted == Counted::Hot {
            // SAFETY: rows are counted as hot only at the AVX-512 level.
            return unsafe { self.hot.targets(ids, targets) };
        }
        let targets = targets.as_mut_ptr();
        // SAFETY: the caller provides the counted ids. Rows are below the number of targets, as
        // asserted.
        unsafe { self.each(ids, |row, at| *targets.add(row) = at as u16) };
    }
}

/// Adds one to the count of each id and segment. Returns false if an id is no partition.
fn add_up<const S: usize>(ids: &[u32], counts: &mut [u32]) -> bool {
    let partitions = counts.len() / S;
    let len = segment::<S>(ids.len());
    let starts = counts.as_mut_ptr();
    // SAFETY: called only for ids below the number of partitions and segments below `S`, after
    // `within`.
    let count = |cursor: usize, _row: usize| unsafe { *starts.add(cursor) += 1 };
    for first in (0..len).step_by(BLOCK) {
        let steps = first..len.min(first + BLOCK);
        let block = |segment: usize| &ids[segment * len + steps.start..segment * len + steps.end];
        if !(0..S).all(|segment| within(block(segment), partitions)) {
            return false;
        }
        walk::<S>(ids, steps, |_| (), count);
    }
    if !within(&ids[S * len..], partitions) {
        return false;
    }
    rest::<S>(ids, count);
    true
}

/// Returns the rows of each of `S` segments, whole lines. Segments nearly a multiple of 4 KiB apart
/// would share one cache set at every step: such segments are shortened.
#[inline(always)]
fn segment<const S: usize>(rows: usize) -> usize {
    const PAGE: usize = 4096 / size_of::<u32>();
    const APART: usize = 64;
    let len = rows / S / LINE * LINE;
    if S > 1 && len >= PAGE && len % PAGE < APART { len - len % PAGE - APART } else { len }
}

/// Calls `take` with the cursor of each row and the row, `S` segments in lock step, for `steps`,
/// which are whole lines. Prefetches ids, and calls `prefetch` with the first row of each line.
#[inline(always)]
fn walk<const S: usize>(
    ids: &[u32],
    steps: Range<usize>,
    prefetch: impl Fn(usize),
    take: impl Fn(usize, usize),
) {
    let len = segment::<S>(ids.len());
    debug_assert!(
        steps.end <= len && steps.start.is_multiple_of(LINE) && steps.end.is_multiple_of(LINE)
    );
    for first in steps.step_by(LINE) {
        for row in (0..S).map(|segment| segment * len + first) {
            prefetch_near(ids.as_ptr().wrapping_add(row + AHEAD).cast());
            prefetch(row);
        }
        for step in first..first + LINE {
            for segment in 0..S {
                let row = segment * len + step;
                // SAFETY: the row is below `S * len`.
                let id = unsafe { *ids.get_unchecked(row) };
                take(id as usize * S + segment, row);
            }
        }
    }
}

/// Continues [`walk`] with the rows after the segments of equal length, which belong to the last
/// segment.
#[inline(always)]
fn rest<const S: usize>(ids: &[u32], take: impl Fn(usize, usize)) {
    for (row, &id) in ids.iter().enumerate().skip(segment::<S>(ids.len()) * S) {
        take(id as usize * S + S - 1, row);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Counts and deals `ids` at every level, and compares the result with a stable sort.
    fn check(cursors: &mut Cursors, ids: &[u32], partitions: usize, wide: bool) {
        let mut expected: Vec<usize> = (0..ids.len()).collect();
        expected.sort_by_key(|&row| ids[row]);
        let sorted: Vec<u32> = expected.iter().map(|&row| ids[row]).collect();
        let end = |p: usize| sorted.partition_point(|&id| id as usize <= p) as u32;
        for level in Level::all() {
            let mut ends = vec![7; partitions];
            assert!(cursors.count(level, ids, &mut ends, wide), "{partitions} {}", ids.len());
            assert!(ends.iter().enumerate().all(|(p, &found)| found == end(p)));
            for recalled in [false, true] {
                if recalled {
                    // SAFETY: these ends are of these ids.
                    unsafe { cursors.recall(level, ids, &mut ends, wide) };
                }
                let found = RefCell::new(vec![usize::MAX; ids.len()]);
                // SAFETY: these ids were counted last, successfully.
                unsafe { cursors.each(ids, |row, target| found.borrow_mut()[target] = row) };
                assert_eq!(found.into_inner(), expected, "{partitions} {level:?} {recalled}");
                if ids.len() <= 65_536 {
                    let mut targets = vec![0; ids.len()];
                    // SAFETY: these ids were counted last, successfully, and are at most 65,536.
                    unsafe { cursors.targets(ids, &mut targets) };
                    let places = expected.iter().map(|&row| usize::from(targets[row]));
                    assert!(places.eq(0..ids.len()));
                }
                let values: Vec<[u8; 4]> = (0..ids.len() as u32).map(u32::to_le_bytes).collect();
                let mut out = vec![[0; 4]; ids.len()];
                // SAFETY: these ids were counted last, successfully. There are as many values, and
                // `out` has space for them.
                unsafe { cursors.put(ids, &values, out.as_mut_ptr()) };
                assert!(out.iter().zip(&expected).all(|(v, &row)| *v == values[row]));
            }
            if let [.., last] = ids {
                let mut outside = ids.to_vec();
                for (row, id) in [(ids.len() - 1, partitions as u32), (ids.len() / 2, u32::MAX)] {
                    outside[row] = id;
                    assert!(!cursors.count(level, &outside, &mut ends, wide), "{last}");
                    outside[row] = ids[row];
                }
            }
        }
    }

    #[test]
    fn segments_give_what_a_stable_sort_gives() {
        let mut cursors = Cursors::default();
        for rows in [0, 1, 3, 63, 64, 65, 130, 1000, 3001, 8192, 32_768, 65_536, 70_001] {
            for (partitions, run) in [(1, 1), (2, 1), (7, 1), (16, 1), (17, 1), (300, 9), (5000, 9)]
            {
                let id =
                    |i: u32| (i / run).wrapping_mul(i / run).wrapping_mul(31) % partitions as u32;
                let ids: Vec<u32> = (0..rows).map(id).collect();
                check(&mut cursors, &ids, partitions, rows % 2 == 0);
            }
        }
    }

    #[test]
    fn most_rows_of_one_partition_and_others_by_the_same_cursors() {
        let mut cursors = Cursors::default();
        for rows in [64, 1000, 8192, 32_768, 65_536, 70_001] {
            for (partitions, hot) in [(2, 1), (17, 0), (300, 299), (1024, 7), (4095, 9)] {
                let hash = |row: u32| row.wrapping_mul(0x9e37_79b9) >> 12;
                let skewed = |row| if hash(row) % 10 > 0 { hot } else { hash(row) % partitions };
                let skewed: Vec<u32> = (0..rows).map(skewed).collect();
                let turns: Vec<u32> = (0..rows).map(|row| row % partitions).collect();
                for ids in [&skewed, &turns, &skewed] {
                    check(&mut cursors, ids, partitions as usize, false);
                }
            }
        }
    }
}
