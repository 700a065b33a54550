//! Few partitions: which rows go to each, as bits, and the order of rows that follows.
//!
//! ```text
//! ids         1 0 1 2 0 1        mask 0  0 1 0 0 1 0      places: rows compressed   1 4 | 0 2 5 | 3
//!                                mask 1  1 0 1 0 0 1      targets: numbers expanded
//!                                mask 2  0 0 0 1 0 0               2 0 3 5 1 4
//! ```
//!
//! A compressed register is stored whole, and what it has beyond its rows is overwritten by what
//! comes next, at last by nothing: places are [`PAD`] bytes longer than their rows. Cost: a few
//! cycles for 64 rows and partition, whatever the ids are. The portable twin is the way of segments;
//! `tests` holds them against each other.

use std::arch::x86_64::*;

use super::compress::store;
use super::order::Load;

/// Bytes behind the rows of a target that a store may touch.
pub(crate) const PAD: usize = 64;
/// True if masks are the cheapest way to find the order of rows for `partitions` partitions.
pub(super) const fn pay(load: Load, partitions: usize) -> bool {
    match load {
        Load::Bits => partitions <= 32,
        _ => partitions <= 16,
    }
}

/// Up to so many partitions, targets are found from masks; beyond, cheaper from places.
pub(super) const MOST_EXPANDED: usize = 16;

/// The numbers of rows in a register.
const FIRST: [u16; 32] = {
    let mut first = [0; 32];
    let mut row = 0;
    while row < 32 {
        first[row] = row as u16;
        row += 1;
    }
    first
};

/// A bit for each row and partition: all words of partition 0, then those of partition 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    masks: Vec<u64>,
    rows: usize,
}

impl Masks {
    pub(super) fn words(&self) -> usize {
        self.rows.div_ceil(64)
    }

    /// Sets the bits of `ids`, and `ends` to where partitions end. False if some id is not below the
    /// number of partitions.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; there are fewer than 255 partitions.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,avx512vpopcntdq,bmi2,popcnt")]
    pub(super) unsafe fn build(&mut self, ids: &[u32], ends: &mut [u32]) -> bool {
        debug_assert!(ends.len() < 255);
        self.rows = ids.len();
        let words = self.words();
        self.masks.resize(words * ends.len(), 0);
        let known = match ends.len() {
            // SAFETY: as the caller promised; there are masks for so many partitions.
            2 => unsafe { self.build_of_planes::<2>(ids) },
            // SAFETY: as above.
            3 => unsafe { self.build_of_planes::<3>(ids) },
            // SAFETY: as above.
            4 => unsafe { self.build_of_planes::<4>(ids) },
            // SAFETY: as above.
            _ => unsafe { self.build_of_bytes(ids, ends.len()) },
        };
        let mut sum = 0;
        for (mask, end) in self.masks.chunks_exact(words.max(1)).zip(ends) {
            sum += mask.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() as u32;
            *end = sum;
        }
        known && sum as usize == ids.len()
    }

    /// Masks of two to four partitions: the two lower bits of ids as masks of their own, from which
    /// those of partitions follow 512 rows at a time.
    ///
    /// # Safety
    /// As [`Masks::build`]; `P` is 2, 3 or 4, and there are masks for so many partitions.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn build_of_planes<const P: usize>(&mut self, ids: &[u32]) -> bool {
        let words = self.words();
        debug_assert!(self.masks.len() == P * words);
        let (blocks, rest) = ids.as_chunks::<64>();
        let mut most = _mm512_setzero_si512();
        // Bit 0 goes where the mask of partition 1 will be, bit 1 to that of 2.
        let (_, planes) = self.masks.split_at_mut(words);
        let low = planes.as_mut_ptr().cast::<u16>();
        let high = planes.as_mut_ptr().wrapping_add(words).cast::<u16>();
        for (word, block) in blocks.iter().enumerate() {
            for part in 0..4 {
                // SAFETY: a block has 64 ids; a mask has four times 16 bits for each block, and with
                // more than two partitions there is a third one.
                unsafe {
                    let ids = _mm512_loadu_si512(block.as_ptr().add(part * 16).cast());
                    most = _mm512_max_epu32(most, ids);
                    let bit = _mm512_test_epi32_mask(ids, _mm512_set1_epi32(1));
                    *low.add(word * 4 + part) = bit;
                    if P > 2 {
                        let bit = _mm512_test_epi32_mask(ids, _mm512_set1_epi32(2));
                        *high.add(word * 4 + part) = bit;
                    }
                }
            }
        }
        let mut known = _mm512_reduce_max_epu32(most) < P as u32;
        if !rest.is_empty() {
            let bits = |bit: u32| {
                (0..).zip(rest).fold(0, |w, (row, id)| w | u64::from(id >> bit & 1) << row)
            };
            self.masks[words + blocks.len()] = bits(0);
            if P > 2 {
                self.masks[2 * words + blocks.len()] = bits(1);
            }
            known &= rest.iter().all(|&id| id < P as u32);
        }
        let (zero, masks) = self.masks.split_at_mut(words);
        let (one, masks) = masks.split_at_mut(words);
        if P == 2 {
            zero.iter_mut().zip(one).for_each(|(zero, one)| *zero = !*one);
        } else if P == 3 {
            for ((zero, one), two) in zero.iter_mut().zip(one).zip(masks) {
                (*zero, *one) = (!(*one | *two), *one & !*two);
            }
        } else {
            let (two, three) = masks.split_at_mut(words);
            for (((zero, one), two), three) in zero.iter_mut().zip(one).zip(two).zip(three) {
                (*zero, *one, *two, *three) =
                    (!(*one | *two), *one & !*two, *two & !*one, *one & *two);
            }
        }
        if !rest.is_empty() {
            self.masks[blocks.len()] &= (1 << rest.len()) - 1;
        }
        known
    }

    /// # Safety
    /// As [`Masks::build`]; there are masks for `partitions`. An id of 255 or more is in none.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn build_of_bytes(&mut self, ids: &[u32], partitions: usize) -> bool {
        let words = self.words();
        let masks = self.masks.as_mut_ptr();
        let (blocks, rest) = ids.as_chunks::<64>();
        for (word, block) in blocks.iter().enumerate() {
            // SAFETY: a block has 64 ids; `partition * words + word` is below `masks.len()`.
            unsafe {
                let low = |part: usize| {
                    // Saturated: an id of 255 or more is no partition.
                    _mm512_cvtusepi32_epi8(_mm512_loadu_si512(block.as_ptr().add(part * 16).cast()))
                };
                let mut bytes = _mm512_castsi128_si512(low(0));
                bytes = _mm512_inserti32x4::<1>(bytes, low(1));
                bytes = _mm512_inserti32x4::<2>(bytes, low(2));
                bytes = _mm512_inserti32x4::<3>(bytes, low(3));
                for partition in 0..partitions {
                    let wanted = _mm512_set1_epi8(partition as u8 as i8);
                    *masks.add(partition * words + word) = _mm512_cmpeq_epi8_mask(bytes, wanted);
                }
            }
        }
        if !rest.is_empty() {
            self.masks.iter_mut().skip(blocks.len()).step_by(words).for_each(|word| *word = 0);
        }
        for (row, &id) in rest.iter().enumerate() {
            if (id as usize) < partitions {
                self.masks[id as usize * words + blocks.len()] |= 1 << row;
            }
        }
        true
    }

    /// Writes which row comes where to `places`, which has [`PAD`] bytes more than rows.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; every row is in one mask, and there are at
    /// most 65,536.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
    pub(super) unsafe fn places(&self, places: &mut [u16]) {
        assert!(places.len() >= self.rows + PAD / 2);
        let mut at = places.as_mut_ptr();
        let halves = self.halves();
        for mask in self.partitions() {
            // SAFETY: `FIRST` has 64 bytes. The rows of all masks are `self.rows`, so that `at`
            // stays below the rows, and a store ends within the pad.
            unsafe {
                let mut rows = _mm512_loadu_si512(FIRST.as_ptr().cast());
                let step = _mm512_set1_epi16(32);
                for &word in mask {
                    for half in [word as u32, (word >> 32) as u32] {
                        let chosen = _mm512_maskz_compress_epi16(half, rows);
                        let count = half.count_ones() as usize;
                        store(at.cast(), chosen, count * 2, halves);
                        at = at.add(count);
                        rows = _mm512_add_epi16(rows, step);
                    }
                }
            }
        }
    }

    /// Writes where each row goes to `targets`, which has [`PAD`] bytes more than rows.
    ///
    /// # Safety
    /// As [`Masks::places`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
    pub(super) unsafe fn targets(&self, ends: &[u32], targets: &mut [u16]) {
        assert!(targets.len() >= self.rows + PAD / 2);
        let words = self.words();
        let partitions = self.masks.len() / words.max(1);
        assert!(partitions <= MOST_EXPANDED && ends.len() == partitions);
        // SAFETY: `FIRST` has 64 bytes.
        let first = unsafe { _mm512_loadu_si512(FIRST.as_ptr().cast()) };
        let mut next = [first; MOST_EXPANDED];
        let starts = [0].into_iter().chain(ends.iter().copied());
        for (next, start) in next[..partitions].iter_mut().zip(starts) {
            *next = _mm512_add_epi16(first, _mm512_set1_epi16(start as i16));
        }
        for word in 0..words {
            let mut found = [_mm512_setzero_si512(); 2];
            for (partition, next) in next[..partitions].iter_mut().enumerate() {
                let mask = self.masks[partition * words + word];
                for (found, half) in found.iter_mut().zip([mask as u32, (mask >> 32) as u32]) {
                    *found = _mm512_mask_expand_epi16(*found, half, *next);
                    let count = _mm512_set1_epi16(half.count_ones() as i16);
                    *next = _mm512_add_epi16(*next, count);
                }
            }
            // SAFETY: the rows of a word and the pad are in `targets`: 128 bytes, of which at least
            // one row is there, or 64 and the pad.
            unsafe {
                let at = targets.as_mut_ptr().add(word * 64);
                _mm512_storeu_si512(at.cast(), found[0]);
                if self.rows > word * 64 + 32 {
                    _mm512_storeu_si512(at.add(32).cast(), found[1]);
                }
            }
        }
    }

    /// A mask after the other, each with a word for 64 rows.
    pub(super) fn partitions(&self) -> impl Iterator<Item = &[u64]> {
        self.masks.chunks_exact(self.words().max(1))
    }

    /// True if half of a register mostly holds what a partition has of a whole one.
    pub(super) fn halves(&self) -> bool {
        self.masks.len() > 2 * self.words()
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }
}
