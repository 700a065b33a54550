//! The order of a chunk by segments in lock step: a counting sort without a chain.
//!
//! ```text
//! segment   0        1        2        3         cursors of a partition: one for each segment
//! rows    | . . . . | . . . . | . . . . | . . . . |
//!           ^         ^         ^         ^          four rows a step
//! ```
//!
//! `cursor[id] += 1` makes the next row of the same partition wait for the store of this one, four
//! to five cycles. Rows of different segments never share a cursor, so four waits overlap. Cursors
//! of a partition lie side by side, in the order of segments: rows come out stable. With many partitions rows
//! seldom meet, and all are one segment, see `in_order`. Where one partition has most rows, it is told by masks, see `hot`.
//!
//! Where partitions take turns there is nothing to count, and no cursor: in round `k` each partition
//! gets its `k`-th row.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::hot::{self, Hot};
use super::ids::{Pattern, Within, pattern, take_turns};
use super::in_order::{AHEAD, InOrder, LINE, MOST_SHORT};
use crate::kernel::prefetch::prefetch_near;

/// From so many partitions on, rows meet only if some partition has most of them; otherwise four
/// times the cursors cost more than they save.
const MANY: usize = 16;
/// With so many, cursors of segments would not stay in cache.
const TOO_MANY: usize = 4096;
/// With so many, those of eight segments are slower than those of four.
const MANY_OF_EIGHT: usize = 512;
/// Segments of more rows are too far apart to be read side by side.
const LONG: usize = 64 << 10;
/// Partitions that are dealt out together where they take turns.
const TILE: usize = 16;
/// Rows of a segment whose ids are looked at before they are counted, while they are in cache.
const BLOCK: usize = 256;

/// Where the rows of each partition and segment go.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursors {
    /// A cursor for each partition and segment: where its next row goes.
    starts: Vec<u32>,
    /// The starts, while rows are dealt out.
    moving: Vec<u32>,
    /// The same of a single segment, of rows that two bytes can number.
    short: InOrder<u16>,
    /// The same of more rows.
    long: InOrder<u32>,
    segments: usize,
    rows: usize,
    /// Of rows most of which are one partition's, if `is_hot` says that they are: see there.
    #[cfg(target_arch = "x86_64")]
    hot: Hot,
    #[cfg(target_arch = "x86_64")]
    is_hot: bool,
    /// Where their rows go.
    #[cfg(target_arch = "x86_64")]
    targets: Vec<u16>,
    /// If partitions take turns: whose turn the first row is.
    turns: Option<usize>,
}

impl Cursors {
    /// Counts `ids`, of which there are fewer than 2^32, and writes to `ends` where partitions end.
    /// False if an id is not below the number of partitions; then nothing is known. `wide` values
    /// fill the cache by themselves, and more so in segments.
    pub(super) fn count(&mut self, ids: &[u32], ends: &mut [u32], wide: bool) -> bool {
        self.rows = ids.len();
        #[cfg(target_arch = "x86_64")]
        {
            self.is_hot = false;
        }
        let pattern = looked_at(ids, ends.len());
        if pattern == Some(Pattern::Turns) && take_turns(ids, ends.len()) {
            self.take_turns(ids[0] as usize, ends);
            return true;
        }
        self.turns = None;
        #[cfg(target_arch = "x86_64")]
        if let Some(hottest) = hottest(pattern, ids) {
            self.is_hot = true;
            // SAFETY: there is one only where the CPU can.
            let known = unsafe { self.hot.count(hottest, ids, ends) };
            self.rows = if known { ids.len() } else { 0 };
            return known;
        }
        self.segments = segments(pattern, ids.len(), ends.len(), wide);
        let known = match self.segments {
            1 if self.is_short() => self.short.count(ids, ends),
            1 => self.long.count(ids, ends),
            _ => self.count_segments(ids, ends),
        };
        if !known {
            // What is dealt out by these cursors has to have been counted.
            self.rows = 0;
        }
        known
    }

    fn count_segments(&mut self, ids: &[u32], ends: &mut [u32]) -> bool {
        self.starts.clear();
        self.starts.resize(ends.len() * self.segments, 0);
        let known = match self.segments {
            4 => counted::<4>(ids, &mut self.starts),
            _ => counted::<8>(ids, &mut self.starts),
        };
        let mut sum = 0;
        for (counts, end) in self.starts.chunks_exact_mut(self.segments).zip(ends) {
            for count in counts {
                sum += std::mem::replace(count, sum);
            }
            *end = sum;
        }
        known
    }

    /// True if rows and their counts are numbers of two bytes.
    fn is_short(&self) -> bool {
        self.rows <= MOST_SHORT
    }

    /// As [`Cursors::count`], for ids that were counted before, with what came of it.
    ///
    /// # Safety
    /// `ends` are those that `count` wrote for these ids.
    pub(super) unsafe fn recall(&mut self, ids: &[u32], ends: &mut [u32], wide: bool) {
        let pattern = looked_at(ids, ends.len());
        #[cfg(target_arch = "x86_64")]
        let is_hot = hottest(pattern, ids).is_some();
        #[cfg(not(target_arch = "x86_64"))]
        let is_hot = false;
        if is_hot || segments(pattern, ids.len(), ends.len(), wide) > 1 {
            assert!(self.count(ids, ends, wide), "ids were counted before");
            return;
        }
        #[cfg(target_arch = "x86_64")]
        {
            self.is_hot = false;
        }
        (self.rows, self.segments, self.turns) = (ids.len(), 1, None);
        if self.is_short() { self.short.start_behind(ends) } else { self.long.start_behind(ends) }
    }

    /// Finds where partitions end that take turns from `first` on.
    fn take_turns(&mut self, first: usize, ends: &mut [u32]) {
        let partitions = ends.len();
        (self.segments, self.turns) = (1, Some(first));
        self.starts.clear();
        let mut end = 0u32;
        for (id, slot) in ends.iter_mut().enumerate() {
            // Partitions in front of the first have their turn a round later.
            let late = id < first;
            self.starts.push(end.wrapping_sub(late.into()));
            let before = if late { id + partitions - first } else { id - first };
            end += self.rows.saturating_sub(before).div_ceil(partitions) as u32;
            *slot = end;
        }
    }

    /// Calls `put` with each row and where it goes: each number below the rows once.
    ///
    /// # Safety
    /// `ids` are those that were counted, and found to be known.
    #[inline(always)]
    pub(super) unsafe fn each(&mut self, ids: &[u32], put: impl Fn(usize, usize)) {
        // SAFETY: as the caller promised.
        unsafe { self.each_ahead(ids, |_| (), put) };
    }

    /// [`Cursors::each`], which puts each value of `source` to `out`.
    ///
    /// # Safety
    /// As there, and there are as many values as ids, and room for them.
    #[inline(always)]
    pub(super) unsafe fn put<const W: usize>(
        &mut self,
        ids: &[u32],
        source: &[[u8; W]],
        out: *mut [u8; W],
    ) {
        debug_assert!(source.len() >= ids.len());
        let from = source.as_ptr();
        let ask = |row: usize| {
            let start = from.wrapping_add(row + AHEAD).cast::<u8>();
            (0..LINE * W).step_by(64).for_each(|at| prefetch_near(start.wrapping_add(at)));
        };
        // SAFETY: as the caller promised: rows and targets are below the number of ids.
        unsafe {
            self.each_ahead(ids, ask, |row, target| {
                out.add(target).copy_from_nonoverlapping(from.add(row), 1);
            });
        }
    }

    /// [`Cursors::each`], where `ask` is called with the first row of each [`LINE`] of ids that is read next.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn each_ahead(&mut self, ids: &[u32], ask: impl Fn(usize), put: impl Fn(usize, usize)) {
        debug_assert_eq!(ids.len(), self.rows);
        if let Some(first) = self.turns {
            return rounds(&self.starts, first, self.rows, put);
        }
        #[cfg(target_arch = "x86_64")]
        if self.is_hot {
            self.targets.resize(ids.len(), 0);
            // SAFETY: the CPU can, or they would not be counted so.
            unsafe { self.hot.targets(ids, &mut self.targets) };
            for (line, targets) in self.targets.chunks(LINE).enumerate() {
                ask(line * LINE);
                targets.iter().zip(line * LINE..).for_each(|(&to, row)| put(row, to.into()));
            }
            return;
        }
        if self.segments == 1 {
            // SAFETY: as the caller promised.
            return unsafe {
                if self.is_short() {
                    self.short.each(ids, ask, put)
                } else {
                    self.long.each(ids, ask, put)
                }
            };
        }
        self.moving.clone_from(&self.starts);
        let cursors = self.moving.as_mut_ptr();
        let next = |cursor: usize, row: usize| {
            // SAFETY: the same cursors as when the rows were counted.
            let target = unsafe {
                let cursor = cursors.add(cursor);
                let target = *cursor;
                *cursor = target + 1;
                target
            };
            put(row, target as usize);
        };
        let steps = 0..length(ids.len(), self.segments);
        match self.segments {
            4 => deal::<4>(ids, steps, ask, next),
            _ => deal::<8>(ids, steps, ask, next),
        }
        rest(ids, self.segments, next);
    }

    /// Writes where each row goes to `targets`.
    ///
    /// # Safety
    /// As [`Cursors::each`], and there are at most 65,536 ids.
    ///
    /// # Panics
    /// If there is not a target for each row.
    pub(super) unsafe fn targets(&mut self, ids: &[u32], targets: &mut [u16]) {
        assert_eq!(ids.len(), targets.len());
        #[cfg(target_arch = "x86_64")]
        if self.is_hot {
            // SAFETY: the CPU can, or they would not be counted so.
            return unsafe { self.hot.targets(ids, targets) };
        }
        if self.segments > 1 || self.turns.is_some() {
            let targets = targets.as_mut_ptr();
            // SAFETY: as the caller promised; rows are below the number of targets.
            return unsafe { self.each(ids, |row, at| *targets.add(row) = at as u16) };
        }
        debug_assert_eq!(ids.len(), self.rows);
        // SAFETY: as the caller promised.
        unsafe {
            if self.is_short() {
                self.short.targets(ids, targets)
            } else {
                self.long.targets(ids, targets)
            }
        }
    }
}

/// Rows of a segment. Segments that are nearly multiples of 4 KiB apart would meet in one set of the
/// cache at every step: they are cut shorter, and the last one takes what is left over.
#[inline(always)]
fn length(rows: usize, segments: usize) -> usize {
    const PAGE: usize = 4096 / size_of::<u32>();
    const APART: usize = 64;
    let len = rows / segments;
    if segments > 1 && len >= PAGE && len % PAGE < APART { len - len % PAGE - APART } else { len }
}

/// Calls `put` with each row and where it goes, for partitions that take turns from `first` on: in
/// round `k`, to the start of its partition and `k`.
///
/// As a matrix is transposed: [`TILE`] partitions through all rounds before the next ones, so that
/// what is written stays in cache, and a line that is read is read once.
#[inline(always)]
fn rounds(starts: &[u32], first: usize, rows: usize, put: impl Fn(usize, usize)) {
    let end = rows + first;
    let all = end.div_ceil(starts.len()) as u32;
    for (tile, tiled) in starts.chunks(TILE).enumerate() {
        for round in 0..all {
            let place = round as usize * starts.len() + tile * TILE;
            let to = end.saturating_sub(place).min(tiled.len());
            let from = first.saturating_sub(place).min(to);
            for (start, row) in tiled[from..to].iter().zip((place + from).wrapping_sub(first)..) {
                put(row, start.wrapping_add(round) as usize);
            }
        }
    }
}

/// The pattern of `ids`, if it is worth looking for one.
fn looked_at(ids: &[u32], partitions: usize) -> Option<Pattern> {
    (ids.len() >= 64 && partitions < TOO_MANY).then(|| pattern(ids))
}

/// The partition of most rows, if there is one and this machine has kernels for it.
#[cfg(target_arch = "x86_64")]
fn hottest(pattern: Option<Pattern>, ids: &[u32]) -> Option<u32> {
    let can = pattern == Some(Pattern::Runs) && ids.len() <= hot::MOST && hot::detected();
    if can { hot::find(ids) } else { None }
}

/// How many segments are best.
fn segments(pattern: Option<Pattern>, rows: usize, partitions: usize, wide: bool) -> usize {
    match pattern {
        Some(Pattern::Runs) if partitions < MANY_OF_EIGHT => 8,
        Some(Pattern::Runs) => 4,
        Some(Pattern::Any) if partitions < MANY && !wide && rows <= LONG => 4,
        _ => 1,
    }
}

/// Adds one to the count of each id and segment, of which there are `S` for each partition. Stops
/// and returns false if an id is no partition.
fn counted<const S: usize>(ids: &[u32], counts: &mut [u32]) -> bool {
    let within = Within::new(counts.len() / S);
    let len = length(ids.len(), S);
    let starts = counts.as_mut_ptr();
    // SAFETY: only called for ids that are within the partitions, and segments below `S`.
    let count = |cursor: usize, _row: usize| unsafe { *starts.add(cursor) += 1 };
    for first in (0..len).step_by(BLOCK) {
        let steps = first..len.min(first + BLOCK);
        let block = |segment: usize| &ids[segment * len + steps.start..segment * len + steps.end];
        if !(0..S).all(|segment| within.all(block(segment))) {
            return false;
        }
        deal::<S>(ids, steps, |_| (), count);
    }
    if !within.all(&ids[S * len..]) {
        return false;
    }
    rest(ids, S, count);
    true
}

/// Calls `take` with the cursor of each row and the row, `S` segments in lock step, for `steps`.
///
/// Ids are asked for ahead, and so is what `ask` is called for, with the first row of each line.
#[inline(always)]
fn deal<const S: usize>(
    ids: &[u32],
    steps: Range<usize>,
    ask: impl Fn(usize),
    take: impl Fn(usize, usize),
) {
    let len = length(ids.len(), S);
    debug_assert!(steps.end <= len);
    for first in steps.clone().step_by(LINE) {
        for row in (0..S).map(|segment| segment * len + first) {
            prefetch_near(ids.as_ptr().wrapping_add(row + AHEAD).cast());
            ask(row);
        }
        for step in first..steps.end.min(first + LINE) {
            for segment in 0..S {
                let row = segment * len + step;
                // SAFETY: the row is below `S * len`.
                let id = unsafe { *ids.get_unchecked(row) };
                take(id as usize * S + segment, row);
            }
        }
    }
}

/// [`deal`], for the rows that are left over from segments of one length.
#[inline(always)]
fn rest(ids: &[u32], segments: usize, take: impl Fn(usize, usize)) {
    let start = length(ids.len(), segments) * segments;
    for (row, &id) in ids.iter().enumerate().skip(start) {
        take(id as usize * segments + segments - 1, row);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn turns_give_what_a_stable_sort_gives() {
        let mut cursors = Cursors::default();
        for (rows, partitions) in [(64, 3), (65, 64), (1000, 7), (1000, 999), (5000, 4095)] {
            for first in [0, 1, partitions as u32 - 1] {
                let ids: Vec<u32> =
                    (0..rows).map(|row| (row + first) % partitions as u32).collect();
                let mut expected: Vec<usize> = (0..rows as usize).collect();
                expected.sort_by_key(|&row| ids[row]);
                let mut ends = vec![0; partitions];
                let found = RefCell::new(vec![usize::MAX; ids.len()]);
                assert!(cursors.count(&ids, &mut ends, false) && cursors.turns.is_some());
                // SAFETY: these ids were counted.
                unsafe { cursors.each(&ids, |row, target| found.borrow_mut()[target] = row) };
                assert_eq!(found.into_inner(), expected);
                let below = |p: usize| ids.iter().filter(|&&id| id <= p as u32).count() as u32;
                assert!(ends.iter().enumerate().all(|(p, &end)| end == below(p)));
            }
        }
    }

    #[test]
    fn segments_give_what_a_stable_sort_gives() {
        let mut cursors = Cursors::default();
        for rows in [0, 1, 3, 63, 64, 65, 1000, 3001, 8192, 32_768, 65_535, 65_536, 70_001] {
            for (partitions, run) in
                [(1, 1), (2, 1), (7, 1), (MANY, 1), (300, 9), (MANY_OF_EIGHT, 9), (TOO_MANY, 9)]
            {
                let id =
                    |i: u32| (i / run).wrapping_mul(i / run).wrapping_mul(31) % partitions as u32;
                let ids: Vec<u32> = (0..rows).map(id).collect();
                let mut expected: Vec<usize> = (0..rows as usize).collect();
                expected.sort_by_key(|&row| ids[row]);
                let mut ends = vec![0; partitions];
                let found = RefCell::new(vec![usize::MAX; ids.len()]);
                assert!(cursors.count(&ids, &mut ends, rows % 2 == 0));
                // SAFETY: these ids were counted.
                unsafe { cursors.each(&ids, |row, target| found.borrow_mut()[target] = row) };
                assert_eq!(&found.into_inner(), &expected);
                let below = |p: usize| expected.partition_point(|&row| ids[row] <= p as u32) as u32;
                assert!(ends.iter().enumerate().all(|(p, &end)| end == below(p)));
            }
        }
    }

    #[test]
    fn most_rows_of_one_partition_and_turns_by_the_same_cursors() {
        let mut cursors = Cursors::default();
        for rows in [64, 1000, 8192, 32_768, 65_536, 70_001] {
            for (partitions, hot) in
                [(2, 1), (17, 0), (300, 299), (1024, 7), (TOO_MANY as u32 - 1, 9)]
            {
                let hash = |row: u32| row.wrapping_mul(0x9e37_79b9) >> 12;
                let skewed = |row| if hash(row) % 10 > 0 { hot } else { hash(row) % partitions };
                let skewed: Vec<u32> = (0..rows).map(skewed).collect();
                let turns: Vec<u32> = (0..rows).map(|row| row % partitions).collect();
                for ids in [&skewed, &turns, &skewed] {
                    let mut expected: Vec<usize> = (0..rows as usize).collect();
                    expected.sort_by_key(|&row| ids[row]);
                    let mut ends = vec![0; partitions as usize];
                    let found = RefCell::new(vec![usize::MAX; ids.len()]);
                    assert!(cursors.count(ids, &mut ends, false));
                    // SAFETY: these ids were counted, and their ends found.
                    unsafe {
                        cursors.each(ids, |row, target| found.borrow_mut()[target] = row);
                        assert_eq!(&found.take(), &expected);
                        cursors.recall(ids, &mut ends.clone(), false);
                        if ids.len() <= 65_536 {
                            let mut targets = vec![0; ids.len()];
                            cursors.targets(ids, &mut targets);
                            let places = expected.iter().map(|&row| usize::from(targets[row]));
                            assert!(places.eq(0..ids.len()));
                        }
                    }
                }
            }
        }
    }
}
