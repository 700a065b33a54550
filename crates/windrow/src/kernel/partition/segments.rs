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
//! of a partition lie side by side, in the order of segments: rows come out stable.

use std::ops::Range;

use super::ids::{Pattern, Within, pattern};

/// From so many partitions on, rows meet only if some partition has most of them; otherwise four
/// times the cursors cost more than they save.
const MANY: usize = 64;
/// With so many, cursors of segments would not stay in cache.
const TOO_MANY: usize = 4096;
/// With so many, those of eight segments are slower than those of four.
const MANY_OF_EIGHT: usize = 512;
/// Segments of more rows are too far apart to be read side by side.
const LONG: usize = 64 << 10;
/// Rows of a segment whose ids are looked at before they are counted, while they are in cache.
const BLOCK: usize = 256;

/// Where the rows of each partition and segment go.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursors {
    /// A cursor for each partition and segment: where its next row goes.
    starts: Vec<u32>,
    /// The starts, while rows are dealt out.
    moving: Vec<u32>,
    segments: usize,
    rows: usize,
}

impl Cursors {
    /// Counts `ids`, of which there are fewer than 2^32, and writes to `ends` where partitions end.
    /// False if an id is not below the number of partitions; then nothing is known. `wide` values
    /// fill the cache by themselves, and more so in segments.
    pub(super) fn count(&mut self, ids: &[u32], ends: &mut [u32], wide: bool) -> bool {
        self.rows = ids.len();
        self.segments = segments(ids, ends.len(), wide);
        self.starts.clear();
        self.starts.resize(ends.len() * self.segments, 0);
        let known = match self.segments {
            1 => counted::<1>(ids, &mut self.starts),
            4 => counted::<4>(ids, &mut self.starts),
            _ => counted::<8>(ids, &mut self.starts),
        };
        if !known {
            // What is dealt out by these cursors has to have been counted.
            self.rows = 0;
            return false;
        }
        let mut sum = 0;
        if self.segments == 1 {
            for (count, end) in self.starts.iter_mut().zip(ends) {
                sum += std::mem::replace(count, sum);
                *end = sum;
            }
            return true;
        }
        for (counts, end) in self.starts.chunks_exact_mut(self.segments).zip(ends) {
            for count in counts {
                sum += std::mem::replace(count, sum);
            }
            *end = sum;
        }
        true
    }

    /// As [`Cursors::count`], for ids that were counted before, with what came of it.
    ///
    /// # Safety
    /// `ends` are those that `count` wrote for these ids.
    pub(super) unsafe fn recall(&mut self, ids: &[u32], ends: &mut [u32], wide: bool) {
        if segments(ids, ends.len(), wide) > 1 {
            assert!(self.count(ids, ends, wide), "ids were counted before");
            return;
        }
        (self.rows, self.segments) = (ids.len(), 1);
        self.starts.clear();
        self.starts.push(0);
        self.starts.extend_from_slice(&ends[..ends.len() - 1]);
    }

    /// Calls `put` with each row and where it goes: each number below the rows once.
    ///
    /// # Safety
    /// `ids` are those that were counted, and found to be known.
    #[inline(always)]
    pub(super) unsafe fn each(&mut self, ids: &[u32], put: impl Fn(usize, usize)) {
        debug_assert_eq!(ids.len(), self.rows);
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
            1 => deal::<1>(ids, steps, next),
            4 => deal::<4>(ids, steps, next),
            _ => deal::<8>(ids, steps, next),
        }
        rest(ids, self.segments, next);
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

/// How many segments are best.
fn segments(ids: &[u32], partitions: usize, wide: bool) -> usize {
    if ids.len() < 64 || partitions >= TOO_MANY {
        return 1;
    }
    match pattern(ids) {
        Pattern::Runs if partitions < MANY_OF_EIGHT => 8,
        Pattern::Runs => 4,
        Pattern::Any if partitions < MANY && !wide && ids.len() <= LONG => 4,
        Pattern::Any | Pattern::Turns => 1,
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
        deal::<S>(ids, steps, count);
    }
    if !within.all(&ids[S * len..]) {
        return false;
    }
    rest(ids, S, count);
    true
}

/// Calls `take` with the cursor of each row and the row, `S` segments in lock step, for `steps`.
///
/// Ids of a single segment are read two at a time: 7 to 15 % faster than one by one.
#[inline(always)]
fn deal<const S: usize>(ids: &[u32], steps: Range<usize>, take: impl Fn(usize, usize)) {
    let len = length(ids.len(), S);
    debug_assert!(steps.end <= len);
    if S == 1 {
        let (pairs, last) = ids[steps.clone()].as_chunks::<2>();
        let mut row = steps.start;
        for pair in pairs {
            // SAFETY: two ids are eight bytes, at any address.
            let pair = unsafe { pair.as_ptr().cast::<u64>().read_unaligned() };
            let (low, high) = (pair as u32 as usize, (pair >> 32) as usize);
            let (first, second) =
                if cfg!(target_endian = "little") { (low, high) } else { (high, low) };
            take(first, row);
            take(second, row + 1);
            row += 2;
        }
        last.iter().for_each(|&id| take(id as usize, row));
        return;
    }
    for step in steps {
        for segment in 0..S {
            let row = segment * len + step;
            // SAFETY: the row is below `S * len`.
            let id = unsafe { *ids.get_unchecked(row) };
            take(id as usize * S + segment, row);
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
    fn segments_give_what_a_stable_sort_gives() {
        let mut cursors = Cursors::default();
        for rows in [0, 1, 3, 63, 64, 65, 1000, 3001, 8192, 32_768] {
            for (partitions, run) in
                [(1, 1), (2, 1), (7, 1), (MANY, 1), (300, 9), (MANY_OF_EIGHT, 9), (TOO_MANY, 9)]
            {
                let id = |i: u32| ((i / run) * (i / run)).wrapping_mul(31) % partitions as u32;
                let ids: Vec<u32> = (0..rows).map(id).collect();
                let mut expected: Vec<usize> = (0..rows as usize).collect();
                expected.sort_by_key(|&row| ids[row]);
                let mut ends = vec![0; partitions];
                let found = RefCell::new(vec![usize::MAX; ids.len()]);
                assert!(cursors.count(&ids, &mut ends, rows % 2 == 0));
                // SAFETY: these ids were counted.
                unsafe { cursors.each(&ids, |row, target| found.borrow_mut()[target] = row) };
                assert_eq!(found.into_inner(), expected);
                let below = |p: usize| ids.iter().filter(|&&id| id <= p as u32).count() as u32;
                assert!(ends.iter().enumerate().all(|(p, &end)| end == below(p)));
            }
        }
    }
}
