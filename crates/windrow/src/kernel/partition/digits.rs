//! Up to 64 partitions: which row comes where, found one digit of the id after the other.
//!
//! ```text
//! ids     5 2 4 2 7 0      groups of four    0: rows 1 3 5, ids 2 2 0      places   5 1 3 2 0 4
//!                                            1: rows 0 2 4, ids 5 4 7
//! ```
//!
//! 64 ids are a register of bytes. For each group of partitions, the numbers of its rows are compressed,
//! and their ids; then, group by group, those of each partition. No load depends on a store and no branch
//! on an id. Two digits take as many steps as they have values together, where masks take one for each
//! partition, and a count with its cursors two stores for each row: of 10,000 rows, ten columns and their
//! places take 1.2 us less with 16 partitions, 3 with 32 and 2 with 64 (Sapphire Rapids). With fewer than
//! twelve partitions masks are faster, with more than 64 there are too many groups.
//!
//! The portable twin is the way of segments; `tests` holds them against each other.

use std::arch::x86_64::*;

use super::compress::store;
use super::masks::{RANKS, any, bytes, padded};
use super::order::PAD;

/// The most groups.
const GROUPS: usize = 8;
/// The most partitions of a group, and the most of all if groups have four.
const MOST_LOW: usize = 8;
const MOST_OF_FOUR: usize = GROUPS * 4;

/// Working memory: for each group room for all rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Digits {
    rows: Vec<u16>,
    ids: Vec<u8>,
    masks: Vec<u64>,
}

impl Digits {
    /// Writes which row comes where to `places`, which has [`PAD`] places more than `ids`, and where
    /// partitions end to `ends`. False if an id is not below their number; then nothing is known.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; there are at most 65,536 ids.
    ///
    /// # Panics
    /// If there are too many partitions, or too few places.
    pub(super) unsafe fn places(
        &mut self,
        ids: &[u32],
        ends: &mut [u32],
        places: &mut [u16],
    ) -> bool {
        assert!(ends.len() <= GROUPS * MOST_LOW && places.len() >= ids.len() + PAD);
        // SAFETY: as the caller promised.
        unsafe {
            match ends.len() {
                ..=MOST_OF_FOUR => self.places_of::<4>(ids, ends, places),
                _ => self.places_of::<MOST_LOW>(ids, ends, places),
            }
        }
    }

    /// [`Digits::places`], for groups of `LOW` partitions.
    ///
    /// # Safety
    /// As there.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
    unsafe fn places_of<const LOW: usize>(
        &mut self,
        ids: &[u32],
        ends: &mut [u32],
        places: &mut [u16],
    ) -> bool {
        let (groups, room) = (ends.len().div_ceil(LOW), ids.len() + PAD);
        assert!(groups <= GROUPS && places.len() >= room);
        self.rows.resize(groups * room, 0);
        self.ids.resize(groups * room, 0);
        self.masks.resize(LOW * ids.len().div_ceil(64), 0);
        // SAFETY: as the caller promised; there is room for all rows and a pad in each group.
        let Some(lens) = (unsafe { self.group::<LOW>(ids, groups) }) else { return false };
        let mut placed = 0;
        for (group, ends) in ends.chunks_mut(LOW).enumerate() {
            let (rows, found) = (&self.rows[group * room..], &self.ids[group * room..]);
            let (rows, found) = (&rows[..lens[group] + PAD], &found[..lens[group] + PAD]);
            find_masks::<LOW>(found, group, &mut self.masks);
            let words = lens[group].div_ceil(64);
            for (end, masks) in ends.iter_mut().zip(self.masks.chunks(words.max(1))) {
                // SAFETY: the masks of a partition have no row of another, so that all are as many as
                // there are ids at the most, and a store ends within the pad.
                placed += unsafe { put(rows, &masks[..words], places.as_mut_ptr().add(placed)) };
                *end = placed as u32;
            }
        }
        // A row that was not placed has an id that is no partition.
        placed == ids.len()
    }

    /// Appends the rows and ids of each group to its own. Says how many each has, or nothing if an id has
    /// more bits than two digits.
    ///
    /// # Safety
    /// As [`Digits::places`]; there is room for all `ids` and [`PAD`] more in each of `groups`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
    unsafe fn group<const LOW: usize>(
        &mut self,
        ids: &[u32],
        groups: usize,
    ) -> Option<[usize; GROUPS]> {
        let room = ids.len() + PAD;
        let (rows, lows) = (self.rows.as_mut_ptr(), self.ids.as_mut_ptr());
        let mut lens = [0; GROUPS];
        let mut seen = _mm512_setzero_si512();
        // SAFETY: 64 bytes.
        let ranks = unsafe { _mm512_loadu_si512(RANKS.as_ptr().cast()) };
        let high = _mm512_set1_epi8(-(LOW as i8));
        let (mut first, step) = (_mm512_setzero_si512(), _mm512_set1_epi16(64));
        let (blocks, rest) = ids.as_chunks::<64>();
        let last = (padded(rest), (1 << rest.len()) - 1);
        let blocks = blocks.iter().map(|block| (block, u64::MAX));
        for (block, valid) in blocks.chain((!rest.is_empty()).then_some((&last.0, last.1))) {
            let bytes = bytes(block, &mut seen);
            let digits = _mm512_and_si512(bytes, high);
            for (group, len) in lens[..groups].iter_mut().enumerate() {
                let wanted = _mm512_set1_epi8((group * LOW) as i8);
                let mask = _mm512_mask_cmpeq_epi8_mask(valid, digits, wanted);
                let count = mask.count_ones() as usize;
                let chosen = _mm512_maskz_compress_epi8(mask, ranks);
                let front = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(chosen));
                let found = _mm512_maskz_compress_epi8(mask, bytes);
                // SAFETY: a group has no more rows than there are in front, and room for those and 64
                // more.
                unsafe {
                    let (rows, lows) =
                        (rows.add(group * room + *len), lows.add(group * room + *len));
                    _mm512_storeu_si512(rows.cast(), _mm512_add_epi16(front, first));
                    _mm256_storeu_si256(lows.cast(), _mm512_castsi512_si256(found));
                    if count > 32 {
                        let back = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(chosen));
                        _mm512_storeu_si512(rows.add(32).cast(), _mm512_add_epi16(back, first));
                        _mm512_storeu_si512(lows.cast(), found);
                    }
                }
                *len += count;
            }
            first = _mm512_add_epi16(first, step);
        }
        (any(seen) < (GROUPS * MOST_LOW) as u32).then_some(lens)
    }
}

/// Writes a mask for each partition of a group: those of the first, one word for 64 of `ids`, then those of
/// the second. Behind the ids are [`PAD`] of any value.
#[target_feature(enable = "avx512f,avx512bw")]
fn find_masks<const LOW: usize>(ids: &[u8], group: usize, masks: &mut [u64]) {
    let len = ids.len() - PAD;
    let words = len.div_ceil(64);
    for word in 0..words {
        let valid = if len - word * 64 < 64 { (1 << (len % 64)) - 1 } else { u64::MAX };
        // SAFETY: 64 bytes behind the ids are there.
        let bytes = unsafe { _mm512_loadu_si512(ids[word * 64..].as_ptr().cast()) };
        for low in 0..LOW {
            let wanted = _mm512_set1_epi8((group * LOW + low) as i8);
            masks[low * words + word] = _mm512_mask_cmpeq_epi8_mask(valid, bytes, wanted);
        }
    }
}

/// Writes those of `rows` that are in `mask` to `at`; says how many.
///
/// # Safety
/// The CPU has what [`super::Level::Avx512`] says; there are 64 rows for each word, and room for what the
/// mask has and [`PAD`] places more.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
unsafe fn put(rows: &[u16], mask: &[u64], at: *mut u16) -> usize {
    debug_assert!(rows.len() >= mask.len() * 64);
    let mut count = 0;
    for (word, &mask) in mask.iter().enumerate() {
        for (half, mask) in [mask as u32, (mask >> 32) as u32].into_iter().enumerate() {
            // SAFETY: as the caller promised; half of the rows of a word are a register.
            unsafe {
                let rows = _mm512_loadu_si512(rows.as_ptr().add(word * 64 + half * 32).cast());
                let chosen = _mm512_maskz_compress_epi16(mask, rows);
                let more = mask.count_ones() as usize;
                store(at.add(count).cast(), chosen, more * 2, true);
                count += more;
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn places_are_those_of_a_stable_sort() {
        if Level::detect() < Level::Avx512 {
            return;
        }
        let mut digits = Digits::default();
        for partitions in [1, 2, 3, 8, 9, 16, 17, 31, 32, 33, 63, 64u32] {
            for rows in [0, 1, 63, 64, 65, 1000, 10_000, 65_536] {
                for skewed in [false, true] {
                    let id = |row: u32| match row.wrapping_mul(0x9e37_79b9) >> 12 {
                        hash if skewed && hash % 10 > 0 => partitions - 1,
                        hash => hash / 10 % partitions,
                    };
                    let mut ids: Vec<u32> = (0..rows).map(id).collect();
                    let mut order: Vec<u16> = (0..rows).map(|row| row as u16).collect();
                    order.sort_by_key(|&row| ids[usize::from(row)]);
                    let mut ends = vec![0; partitions as usize];
                    let mut places = vec![0; ids.len() + PAD];
                    // SAFETY: the CPU can.
                    assert!(unsafe { digits.places(&ids, &mut ends, &mut places) });
                    assert!(places[..ids.len()] == order, "{partitions} {rows}");
                    let below = |p: usize| ids.iter().filter(|&&id| id as usize <= p).count();
                    assert!(ends.iter().enumerate().all(|(p, &end)| end as usize == below(p)));
                    for outside in [partitions, partitions + 1, 64, 256, u32::MAX] {
                        if let Some(id) = ids.last_mut() {
                            *id = outside;
                            // SAFETY: the CPU can.
                            assert!(!unsafe { digits.places(&ids, &mut ends, &mut places) });
                        }
                    }
                }
            }
        }
    }
}
