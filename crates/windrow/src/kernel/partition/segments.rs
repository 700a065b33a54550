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
//! of a partition lie side by side, in the order of segments: places come out stable.

/// Segments of a chunk. More would help below 16 partitions only, where masks are better still.
const SEGMENTS: usize = 4;
/// From so many partitions on, rows seldom meet, and four times the cursors would leave the cache.
const SEGMENTED: usize = 4096;

/// Writes to `ends` where partitions end in the order of `ids`, and to `places` which row comes
/// where: the rows of partition 0 in their order, then those of 1, and so on.
///
/// # Safety
/// Every id is below `ends.len()`; `places` is as long as `ids`; there are at most 65,536 rows
/// where a place is a `u16`.
pub(super) unsafe fn order<P: super::fixed::Place>(
    ids: &[u32],
    cursors: &mut Vec<u32>,
    ends: &mut [u32],
    places: &mut [P],
) {
    // SAFETY: as the caller promised.
    unsafe {
        if ends.len() < SEGMENTED && ids.len() >= 4 * SEGMENTS {
            order_by::<SEGMENTS, P>(ids, cursors, ends, places);
        } else {
            order_by::<1, P>(ids, cursors, ends, places);
        }
    }
}

/// # Safety
/// As [`order`].
unsafe fn order_by<const S: usize, P: super::fixed::Place>(
    ids: &[u32],
    cursors: &mut Vec<u32>,
    ends: &mut [u32],
    places: &mut [P],
) {
    debug_assert_eq!(ids.len(), places.len());
    cursors.clear();
    cursors.resize(ends.len() * S, 0);
    let len = ids.len() / S;
    let cursor = cursors.as_mut_ptr();
    // SAFETY: rows are below `S * len` or `ids.len()`; an id is below `ends.len()`, so `id * S + s`
    // is below `cursors.len()`.
    unsafe {
        for step in 0..len {
            for s in 0..S {
                *cursor.add(*ids.get_unchecked(s * len + step) as usize * S + s) += 1;
            }
        }
        for id in &ids[S * len..] {
            *cursor.add(*id as usize * S + S - 1) += 1;
        }
    }
    let mut sum = 0;
    for (counts, end) in cursors.chunks_exact_mut(S).zip(ends) {
        for count in counts {
            sum += std::mem::replace(count, sum);
        }
        *end = sum;
    }
    let cursor = cursors.as_mut_ptr();
    let place = places.as_mut_ptr();
    // SAFETY: as above; a cursor starts at the number of rows before its own and passes each of
    // these once, so it stays below `ids.len()`, which is the length of `places`.
    unsafe {
        for step in 0..len {
            for s in 0..S {
                let row = s * len + step;
                let cursor = cursor.add(*ids.get_unchecked(row) as usize * S + s);
                *place.add(*cursor as usize) = P::new(row);
                *cursor += 1;
            }
        }
        for row in S * len..ids.len() {
            let cursor = cursor.add(*ids.get_unchecked(row) as usize * S + S - 1);
            *place.add(*cursor as usize) = P::new(row);
            *cursor += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_give_what_a_stable_sort_gives() {
        for rows in [0, 1, 3, 15, 16, 17, 1000] {
            for partitions in [1, 2, 7, 300, SEGMENTED] {
                let ids: Vec<u32> = (0..rows).map(|i| i * i * 31 % partitions as u32).collect();
                let mut expected: Vec<u32> = (0..rows).collect();
                expected.sort_by_key(|&row| ids[row as usize]);
                let mut ends = vec![0; partitions];
                let mut narrow = vec![0u16; ids.len()];
                let mut wide = vec![0u32; ids.len()];
                // SAFETY: ids are below `partitions`, rows below 65,536, lengths are equal.
                unsafe {
                    order(&ids, &mut Vec::new(), &mut ends, &mut narrow);
                    order(&ids, &mut Vec::new(), &mut ends, &mut wide);
                }
                assert_eq!(wide, expected);
                assert!(narrow.iter().map(|&place| u32::from(place)).eq(expected));
                let below = |p: usize| ids.iter().filter(|&&id| id <= p as u32).count() as u32;
                assert!(ends.iter().enumerate().all(|(p, &end)| end == below(p)));
            }
        }
    }
}
