//! Properties of ids before the count: ascending order, ids out of range, and a pattern.
//!
//! ```text
//! ids 0 0 0 1 1 2    ascend: nothing is moved, offsets 0 3 5 6
//! ids 7 7 2 7 7 7    most belong to one partition
//! ```
//!
//! Loops over all ids have no branch on an id, so that the compiler vectorises them, with AVX2 if
//! available.

use crate::cpu::compiled_for;

/// Bytes after the rows of an output that moves may overwrite.
pub const PAD: usize = 64;

/// Ids sampled before all are read, at the start and spread over all rows.
const SAMPLE: usize = 16;
/// Rows read between two branches.
const BLOCK: usize = 512;
/// Pairs of neighbours sampled for a pattern.
const PAIRS: usize = 128;
/// Ids sampled for a partition with most rows.
const VOTES: usize = 64;
/// Average rows of a partition from which on its end is searched; below, each row writes its end.
const SEARCHED: usize = 64;

compiled_for! {
    ["avx2"]
    /// Returns whether no id is below the id before it. Stops at the first block with a descent;
    /// otherwise takes 0.05 ns a row.
    fn ascend(ids: &[u32]) -> bool = ascend_each
}

#[inline(always)]
fn ascend_each(ids: &[u32]) -> bool {
    let mut before = 0;
    for block in ids.chunks(BLOCK) {
        let pairs = block.iter().zip(&block[1..]);
        let falls = pairs.fold(0, |falls, (a, b)| falls | u32::from(a > b));
        if falls > 0 || before > block[0] {
            return false;
        }
        before = block[block.len() - 1];
    }
    true
}

compiled_for! {
    ["avx2"]
    /// Returns whether every id is below the number of partitions; takes 0.04 ns a row.
    pub(super) fn within(ids: &[u32], partitions: usize) -> bool = within_each
}

#[inline(always)]
fn within_each(ids: &[u32], partitions: usize) -> bool {
    let most = ids.iter().fold(0, |most, &id| most.max(id));
    ids.is_empty() || (most as usize) < partitions
}

/// Similarity of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// This partition has at least half of the rows of a sample.
    Most(u32),
    /// Neighbours often share a partition.
    Runs,
    Any,
}

impl Pattern {
    /// Returns the pattern of `ids`, from about [`PAIRS`] pairs.
    pub(super) fn of(ids: &[u32]) -> Self {
        let step = (ids.len() / PAIRS).max(1);
        let pairs = || ids.windows(2).step_by(step);
        let equal = pairs().filter(|pair| pair[0] == pair[1]).count();
        if equal * 8 <= pairs().count() {
            return Self::Any;
        }
        majority(ids).map_or(Self::Runs, Self::Most)
    }
}

/// Returns the id of at least half of the rows, judged by about [`VOTES`] of them (Boyer and Moore,
/// "MJRTY", 1981).
fn majority(ids: &[u32]) -> Option<u32> {
    let votes = || ids.iter().step_by((ids.len() / VOTES).max(1));
    // A majority leaves a rest when each vote for it is paired with another vote.
    let (most, _) = votes().fold((0, 0), |(most, left), &id| match left {
        0 => (id, 1),
        _ if id == most => (most, left + 1),
        _ => (most, left - 1),
    });
    let (own, all) = (votes().filter(|&&id| id == most).count(), votes().count());
    (own * 2 >= all && all > 0).then_some(most)
}

/// Whether ids ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ascending {
    Yes,
    No,
    /// An id is not below the number of partitions.
    Outside,
}

/// Finds the offsets of partitions, if ids ascend.
pub(super) fn ascending(ids: &[u32], partitions: usize, offsets: &mut Vec<usize>) -> Ascending {
    // Most ids descend soon; nothing is written then.
    if !sample_ascends(ids) {
        return Ascending::No;
    }
    if !ascend(ids) {
        return Ascending::No;
    }
    if ids.last().is_some_and(|&last| last as usize >= partitions) {
        return Ascending::Outside;
    }
    if ids.len() < partitions * SEARCHED {
        ends_of_each(ids, partitions, offsets);
    } else {
        search(ids, partitions, offsets);
    }
    Ascending::Yes
}

/// Returns whether [`SAMPLE`] ids spread over all rows ascend, and as many neighbours at the start.
fn sample_ascends(ids: &[u32]) -> bool {
    let step = (ids.len() / SAMPLE).max(1);
    ids[..ids.len().min(SAMPLE)].is_sorted() && ids.iter().step_by(step).is_sorted()
}

/// Finds the offsets by a store for each row: with short runs, a branch would be mispredicted for
/// each run.
fn ends_of_each(ids: &[u32], partitions: usize, offsets: &mut Vec<usize>) {
    offsets.clear();
    offsets.resize(partitions + 1, 0);
    for (&id, end) in ids.iter().zip(1..) {
        offsets[id as usize + 1] = end;
    }
    let mut end = 0;
    for offset in offsets {
        end = end.max(*offset);
        *offset = end;
    }
}

/// Finds the offsets by a search for each partition.
fn search(ids: &[u32], partitions: usize, offsets: &mut Vec<usize>) {
    offsets.clear();
    let mut end = 0;
    for partition in 0..=partitions {
        end += ids[end..].partition_point(|&id| (id as usize) < partition);
        offsets.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glances_are_what_the_library_says() {
        for len in [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 5000] {
            for modulus in [1, 2, 700, 6000] {
                let mut ids: Vec<u32> =
                    (0..len as u32).map(|row| row * modulus / len as u32).collect();
                for swap in [false, true] {
                    if swap && len > 1 {
                        ids.swap(len / 2, len - 1);
                    }
                    assert_eq!(ascend(&ids), ids.is_sorted());
                    assert_eq!(ascend_each(&ids), ids.is_sorted());
                    let most = ids.iter().copied().max().unwrap_or(0) as usize;
                    assert!(within(&ids, most + 1));
                    assert!(len == 0 || !within(&ids, most));
                    for partitions in [0, 1, most, most + 1, u32::MAX as usize] {
                        let expected = ids.iter().all(|&id| (id as usize) < partitions);
                        assert_eq!(within(&ids, partitions), expected);
                        assert_eq!(within_each(&ids, partitions), expected);
                    }
                }
            }
        }
    }

    #[test]
    fn ids_that_fall_or_are_outside_are_found_wherever_they_are() {
        let mut offsets = Vec::new();
        for partitions in [2, 100, 1000] {
            for at in [0, 1, 15, 16, 17, 300, 4998, 4999] {
                let mut ids: Vec<u32> = (0..5000).map(|row| row * partitions / 5000).collect();
                assert_eq!(ascending(&ids, partitions as usize, &mut offsets), Ascending::Yes);
                let kept = std::mem::replace(&mut ids[at], partitions);
                let found = ascending(&ids, partitions as usize, &mut offsets);
                assert!(found == Ascending::Outside || at < 4999 && found == Ascending::No);
                ids[at] = if kept == 0 { 1 } else { kept - 1 };
                let found = ascending(&ids, partitions as usize, &mut offsets);
                assert_eq!(found == Ascending::Yes, ids.is_sorted(), "{partitions} {at}");
            }
        }
    }

    #[test]
    fn patterns_are_seen() {
        let hash = |row: u32| row.wrapping_mul(0x9e37_79b9) >> 12;
        let skewed = |share: u32| -> Vec<u32> {
            (0..10_000).map(|row| if hash(row) % 10 < share { 5 } else { hash(row) % 64 }).collect()
        };
        for (most, ids) in [(3, vec![3; 5000]), (1, vec![1, 1]), (5, skewed(9)), (5, skewed(7))] {
            assert_eq!(Pattern::of(&ids), Pattern::Most(most));
        }
        for few in [(0..5000).map(|row| row / 4).collect(), skewed(4)] {
            assert_eq!(Pattern::of(&few), Pattern::Runs);
        }
        for turns in [vec![], (0..5000).collect(), (0..5000).map(|row| row % 7).collect()] {
            assert_eq!(Pattern::of(&turns), Pattern::Any);
        }
        let any: Vec<u32> = (0..5000u32).map(|row| row.wrapping_mul(0x9e37_79b9) >> 20).collect();
        assert_eq!(Pattern::of(&any), Pattern::Any);
    }

    #[test]
    fn offsets_are_found_in_runs_of_any_length() {
        let mut offsets = Vec::new();
        let some = (0..1000).map(|row| row * row / 30_000 % 7).collect::<Vec<u32>>();
        // Ids rise by one, now and then by two.
        let short = (0..5000).map(|row| row / 5 + row / 700).collect::<Vec<u32>>();
        let long = (0..5000).map(|row| row / 40).collect::<Vec<u32>>();
        // Now and then several start in one block of rows.
        let bursts = (0..5000).map(|row| row / 60 + row / 1000 * 9 + (row % 1000).min(9)).collect();
        let few = [vec![], vec![1], vec![0, 0, 2, 2, 2, 5], vec![4; 1000]];
        for mut ids in few.into_iter().chain([some, short, long, bursts]) {
            ids.sort_unstable();
            let least = ids.last().map_or(1, |&last| last as usize + 1);
            for partitions in [7, 100, 1100, least, least + 15].into_iter().filter(|p| *p >= least)
            {
                let expected: Vec<usize> = (0..=partitions)
                    .map(|p| ids.iter().filter(|&&id| (id as usize) < p).count())
                    .collect();
                assert_eq!(ascending(&ids, partitions, &mut offsets), Ascending::Yes);
                assert_eq!(offsets, expected);
                search(&ids, partitions, &mut offsets);
                assert_eq!(offsets, expected);
                ends_of_each(&ids, partitions, &mut offsets);
                assert_eq!(offsets, expected);
            }
        }
    }
}
