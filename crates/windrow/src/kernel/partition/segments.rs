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

use super::ids::repeat;

/// Segments of a chunk. More would help below 16 partitions only, where masks are better still.
const SEGMENTS: usize = 4;
/// From so many partitions on, rows meet only if some partition has most of them; otherwise four
/// times the cursors cost more than they save.
const MANY: usize = 128;
/// With so many, cursors of segments would not stay in cache.
const TOO_MANY: usize = 4096;

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
    /// Counts `ids`, and writes to `ends` where partitions end.
    ///
    /// # Safety
    /// Every id is below `ends.len()`, and there are fewer than 2^32.
    pub(super) unsafe fn count(&mut self, ids: &[u32], ends: &mut [u32]) {
        self.rows = ids.len();
        let meet = ends.len() < MANY || ends.len() < TOO_MANY && repeat(ids);
        let few = meet && ids.len() >= 4 * SEGMENTS;
        self.segments = if few { SEGMENTS } else { 1 };
        self.starts.clear();
        self.starts.resize(ends.len() * self.segments, 0);
        let counts = self.starts.as_mut_ptr();
        let count = |cursor: usize, _row: usize| {
            // SAFETY: cursors are below `id * segments + segment`, and there are that many.
            unsafe { *counts.add(cursor) += 1 }
        };
        if few {
            deal::<SEGMENTS>(ids, count)
        } else {
            deal::<1>(ids, count)
        }
        let mut sum = 0;
        if !few {
            for (count, end) in self.starts.iter_mut().zip(ends) {
                sum += std::mem::replace(count, sum);
                *end = sum;
            }
            return;
        }
        for (counts, end) in self.starts.chunks_exact_mut(SEGMENTS).zip(ends) {
            for count in counts {
                sum += std::mem::replace(count, sum);
            }
            *end = sum;
        }
    }

    /// Calls `put` with each row and where it goes: each number below the rows once.
    ///
    /// # Safety
    /// `ids` are those that were counted.
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
        if self.segments == 1 { deal::<1>(ids, next) } else { deal::<SEGMENTS>(ids, next) }
    }
}

/// Calls `take` with the cursor of each row and the row, `S` segments in lock step.
#[inline(always)]
fn deal<const S: usize>(ids: &[u32], take: impl Fn(usize, usize)) {
    let len = ids.len() / S;
    for step in 0..len {
        for segment in 0..S {
            let row = segment * len + step;
            // SAFETY: the row is below `S * len`.
            let id = unsafe { *ids.get_unchecked(row) };
            take(id as usize * S + segment, row);
        }
    }
    for (row, &id) in ids.iter().enumerate().skip(S * len) {
        take(id as usize * S + S - 1, row);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn segments_give_what_a_stable_sort_gives() {
        let mut cursors = Cursors::default();
        for rows in [0, 1, 3, 15, 16, 17, 1000] {
            for partitions in [1, 2, 7, MANY, 300, TOO_MANY] {
                let ids: Vec<u32> = (0..rows).map(|i| i * i * 31 % partitions as u32).collect();
                let mut expected: Vec<usize> = (0..rows as usize).collect();
                expected.sort_by_key(|&row| ids[row]);
                let mut ends = vec![0; partitions];
                let found = RefCell::new(vec![usize::MAX; ids.len()]);
                // SAFETY: ids are below `partitions`.
                unsafe {
                    cursors.count(&ids, &mut ends);
                    cursors.each(&ids, |row, target| found.borrow_mut()[target] = row);
                }
                assert_eq!(found.into_inner(), expected);
                let below = |p: usize| ids.iter().filter(|&&id| id <= p as u32).count() as u32;
                assert!(ends.iter().enumerate().all(|(p, &end)| end == below(p)));
            }
        }
    }
}
