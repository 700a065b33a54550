//! What can be told from ids at a glance.

#[cfg(target_arch = "x86_64")]
use super::boundaries::boundaries;

/// Ids that are looked at before all are, at the start and all over.
const SAMPLE: usize = 16;
/// Rows that are looked at between two questions.
const BLOCK: usize = 512;
/// Pairs of neighbours that tell whether rows of a partition are neighbours.
const PAIRS: usize = 128;

/// True if no id is below the one in front of it. Stops at the first block that says no; 0.05 ns a
/// row otherwise.
fn ascend(ids: &[u32]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        return unsafe { ascend_avx2(ids) };
    }
    ascend_portable(ids)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn ascend_avx2(ids: &[u32]) -> bool {
    ascend_portable(ids)
}

#[inline(always)]
fn ascend_portable(ids: &[u32]) -> bool {
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

/// True if each id is the one after the id in front of it, and 0 after the last partition; then all
/// are partitions. 0.05 ns a row.
pub(super) fn take_turns(ids: &[u32], partitions: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        return unsafe { take_turns_avx2(ids, partitions) };
    }
    take_turns_portable(ids, partitions)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn take_turns_avx2(ids: &[u32], partitions: usize) -> bool {
    take_turns_portable(ids, partitions)
}

#[inline(always)]
fn take_turns_portable(ids: &[u32], partitions: usize) -> bool {
    let (Some(&first), Ok(partitions)) = (ids.first(), u32::try_from(partitions)) else {
        return false;
    };
    let pairs = ids.iter().zip(&ids[1..]);
    let others = pairs.fold(0, |others, (&id, &next)| {
        let after = id.wrapping_add(1);
        let after = if after == partitions { 0 } else { after };
        others | (after ^ next)
    });
    first < partitions && others == 0
}

/// Looks for ids that are no partition; 0.04 ns a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Within {
    partitions: usize,
    #[cfg(target_arch = "x86_64")]
    avx2: bool,
}

impl Within {
    pub(super) fn new(partitions: usize) -> Self {
        Self {
            partitions,
            #[cfg(target_arch = "x86_64")]
            avx2: is_x86_feature_detected!("avx2"),
        }
    }

    /// True if every id is below the number of partitions.
    #[inline]
    pub(super) fn all(self, ids: &[u32]) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: the CPU has AVX2.
            return unsafe { within_avx2(ids, self.partitions) };
        }
        within_portable(ids, self.partitions)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn within_avx2(ids: &[u32], partitions: usize) -> bool {
    within_portable(ids, partitions)
}

#[inline(always)]
fn within_portable(ids: &[u32], partitions: usize) -> bool {
    let most = ids.iter().fold(0, |most, &id| most.max(id));
    ids.is_empty() || (most as usize) < partitions
}

/// What neighbours have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// They often share a partition: one has most of the rows, or rows come in runs.
    Runs,
    /// Partitions take turns: rows of one are far apart.
    Turns,
    Any,
}

/// The pattern of `ids`, by [`PAIRS`] pairs or a few more.
pub(super) fn pattern(ids: &[u32]) -> Pattern {
    let step = (ids.len() / PAIRS).max(1);
    let pairs = ids.windows(2).step_by(step);
    let (equal, next, all) = pairs.fold((0, 0, 0), |(equal, next, all), pair| {
        let turn = pair[1] == pair[0].wrapping_add(1) || pair[1] == 0;
        (equal + usize::from(pair[0] == pair[1]), next + usize::from(turn), all + 1)
    });
    if equal * 8 > all {
        Pattern::Runs
    } else if next == all {
        Pattern::Turns
    } else {
        Pattern::Any
    }
}

/// What becomes of ids that may be in order already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ascending {
    Yes,
    No,
    /// Some id is not below the number of partitions.
    Outside,
}

/// Finds where partitions start and end, if ids ascend.
pub(super) fn ascending(ids: &[u32], partitions: usize, offsets: &mut Vec<usize>) -> Ascending {
    // Most ids fall soon; then nothing is written.
    if !sample_ascends(ids) {
        return Ascending::No;
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the CPU has AVX-512F, BW, VL and VBMI2, and POPCNT.
        return unsafe { boundaries(ids, partitions, offsets) };
    }
    if !ascend(ids) {
        return Ascending::No;
    }
    if ids.last().is_some_and(|&last| last as usize >= partitions) {
        return Ascending::Outside;
    }
    gallop(ids, partitions, offsets);
    Ascending::Yes
}

/// True if [`SAMPLE`] ids from all over do not fall, nor do as many neighbours at the start.
fn sample_ascends(ids: &[u32]) -> bool {
    let step = (ids.len() / SAMPLE).max(1);
    ids[..ids.len().min(SAMPLE)].is_sorted() && ids.iter().step_by(step).is_sorted()
}

fn gallop(ids: &[u32], partitions: usize, offsets: &mut Vec<usize>) {
    offsets.clear();
    let mut at = 0;
    while at < ids.len() {
        let id = ids[at];
        offsets.resize(id as usize + 1, at);
        // Gallop: long runs in few steps, short ones without a search.
        let mut step = 1;
        while at + step < ids.len() && ids[at + step] == id {
            step *= 2;
        }
        let end = ids.len().min(at + step);
        at += step / 2 + ids[at + step / 2..end].partition_point(|&next| next == id);
    }
    offsets.resize(partitions + 1, ids.len());
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
                    assert_eq!(ascend_portable(&ids), ids.is_sorted());
                    let most = ids.iter().copied().max().unwrap_or(0) as usize;
                    assert!(Within::new(most + 1).all(&ids));
                    assert!(len == 0 || !Within::new(most).all(&ids));
                    for partitions in [0, 1, most, most + 1, u32::MAX as usize] {
                        let expected = ids.iter().all(|&id| (id as usize) < partitions);
                        assert_eq!(Within::new(partitions).all(&ids), expected);
                        assert_eq!(within_portable(&ids, partitions), expected);
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
        for runs in [vec![3; 5000], vec![1, 1], (0..5000).map(|row| row / 4).collect()] {
            assert_eq!(pattern(&runs), Pattern::Runs);
        }
        for turns in [vec![], (0..5000).collect(), (0..5000).map(|row| row % 7).collect()] {
            assert_eq!(pattern(&turns), Pattern::Turns);
        }
        let any: Vec<u32> = (0..5000u32).map(|row| row.wrapping_mul(0x9e37_79b9) >> 20).collect();
        assert_eq!(pattern(&any), Pattern::Any);
    }

    #[test]
    fn turns_are_told_from_what_looks_like_them() {
        for partitions in [1, 2, 7, 300] {
            for first in [0, partitions - 1] {
                let mut ids: Vec<u32> = (0..1000).map(|row| (row + first) % partitions).collect();
                assert!(take_turns(&ids, partitions as usize));
                assert!(take_turns_portable(&ids, partitions as usize));
                assert!(!take_turns(&ids, partitions as usize + 1));
                for at in [0, 500, 999] {
                    let kept = std::mem::replace(&mut ids[at], partitions + 3);
                    assert!(!take_turns(&ids, partitions as usize));
                    assert!(!take_turns_portable(&ids, partitions as usize));
                    ids[at] = kept;
                }
            }
        }
        assert!(!take_turns(&[], 3));
    }

    #[test]
    fn offsets_are_found_in_runs_of_any_length() {
        let mut offsets = Vec::new();
        let some = (0..1000).map(|row| row * row / 30_000 % 7).collect::<Vec<u32>>();
        // Most partitions start behind the one before them, some two behind.
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
                gallop(&ids, partitions, &mut offsets);
                assert_eq!(offsets, expected);
            }
        }
    }
}
