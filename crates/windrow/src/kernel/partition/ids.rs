//! What can be told from ids at a glance.

/// Runs shorter than this are found faster one after the other than by a search for each end.
#[cfg(target_arch = "x86_64")]
const SHORT: usize = 256;
/// Rows that are looked at between two questions.
const BLOCK: usize = 512;

/// True if no id is below the one in front of it. Stops at the first block that says no; 0.05 ns a
/// row otherwise.
pub(super) fn ascend(ids: &[u32]) -> bool {
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

/// True if every id is below `partitions`; 0.05 ns a row.
pub(super) fn within(ids: &[u32], partitions: usize) -> bool {
    let Ok(partitions) = u32::try_from(partitions) else { return true };
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        return unsafe { within_avx2(ids, partitions) };
    }
    within_portable(ids, partitions)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn within_avx2(ids: &[u32], partitions: u32) -> bool {
    within_portable(ids, partitions)
}

#[inline(always)]
fn within_portable(ids: &[u32], partitions: u32) -> bool {
    let most = ids.iter().fold(0, |most, &id| most.max(id));
    ids.is_empty() || most < partitions
}

/// True if neighbours often share a partition: one of them has most of the rows, or rows come in
/// runs. Looks at [`BLOCK`] pairs.
pub(super) fn repeat(ids: &[u32]) -> bool {
    let step = (ids.len() / BLOCK).max(1);
    let pairs = ids.windows(2).step_by(step);
    let (equal, all) =
        pairs.fold((0, 0), |(equal, all), pair| (equal + usize::from(pair[0] == pair[1]), all + 1));
    equal * 8 > all
}

/// Where partitions start and end, of ids that ascend and are below `partitions`.
pub(super) fn ascending_offsets(ids: &[u32], partitions: usize, offsets: &mut Vec<usize>) {
    offsets.clear();
    #[cfg(target_arch = "x86_64")]
    if ids.len() < partitions * SHORT && is_x86_feature_detected!("avx512f") {
        offsets.resize(partitions + 1, ids.len());
        // SAFETY: the CPU has AVX-512F.
        return unsafe { boundaries_avx512(ids, offsets) };
    }
    gallop(ids, partitions, offsets);
}

/// Writes where partitions start to all of `offsets` that are not behind the last id.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn boundaries_avx512(ids: &[u32], offsets: &mut [usize]) {
    use std::arch::x86_64::{_mm512_cmpneq_epu32_mask, _mm512_loadu_si512};
    let Some(&first) = ids.first() else { return };
    offsets[..=first as usize].fill(0);
    let mut start = |row: usize| {
        // One partition starts here, seldom more.
        offsets[ids[row - 1] as usize + 1] = row;
        offsets[ids[row - 1] as usize + 1..=ids[row] as usize].fill(row);
    };
    let mut row = 1;
    while row + 16 <= ids.len() {
        let (here, before) = (ids[row..].as_ptr(), ids[row - 1..].as_ptr());
        // SAFETY: 16 ids from `row` on, and as many from the one before it.
        let mut changed = unsafe {
            let (here, before) =
                (_mm512_loadu_si512(here.cast()), _mm512_loadu_si512(before.cast()));
            _mm512_cmpneq_epu32_mask(here, before)
        };
        while changed != 0 {
            start(row + changed.trailing_zeros() as usize);
            changed &= changed - 1;
        }
        row += 16;
    }
    (row..ids.len()).filter(|&row| ids[row] != ids[row - 1]).for_each(start);
}

fn gallop(ids: &[u32], partitions: usize, offsets: &mut Vec<usize>) {
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
                    assert!(within(&ids, most + 1) && (len == 0 || !within(&ids, most)));
                    for partitions in [0, 1, most as u32, most as u32 + 1, u32::MAX] {
                        let expected = ids.iter().all(|&id| id < partitions);
                        assert_eq!(within(&ids, partitions as usize), expected);
                        assert_eq!(within_portable(&ids, partitions), expected);
                    }
                }
            }
        }
    }

    #[test]
    fn repeats_are_seen() {
        assert!(repeat(&[3; 5000]) && repeat(&[1, 1]) && !repeat(&[]));
        assert!(!repeat(&(0..5000).collect::<Vec<_>>()));
        assert!(repeat(&(0..5000).map(|row| row / 4).collect::<Vec<_>>()));
    }

    #[test]
    fn offsets_are_found_in_runs_of_any_length() {
        let mut offsets = Vec::new();
        let some = (0..1000).map(|row| row * row / 30_000 % 7).collect::<Vec<u32>>();
        for mut ids in [vec![], vec![1], vec![0, 0, 2, 2, 2, 5], vec![4; 1000], some] {
            ids.sort_unstable();
            for partitions in [7, 100] {
                let expected: Vec<usize> = (0..=partitions)
                    .map(|p| ids.iter().filter(|&&id| (id as usize) < p).count())
                    .collect();
                ascending_offsets(&ids, partitions, &mut offsets);
                assert_eq!(offsets, expected);
                offsets.clear();
                gallop(&ids, partitions, &mut offsets);
                assert_eq!(offsets, expected);
            }
        }
    }
}
