//! Few partitions: which rows go to each, as bits, and rows compressed by them.
//!
//! ```text
//! ids         1 0 1 2 0 1        mask 0  0 1 0 0 1 0      compress(values, mask 0)  1 4 . .
//!                                mask 1  1 0 1 0 0 1      compress(values, mask 1)  0 2 5 .
//!                                mask 2  0 0 0 1 0 0      compress(values, mask 2)  3 . . .
//! ```
//!
//! Partitions are written one after the other; a compressed register is stored whole, and what it
//! has beyond its rows is overwritten by what comes next, at last by nothing: targets are
//! [`PAD`] bytes longer than their rows. Cost: a few cycles for 64 rows and partition, whatever the
//! ids are. The portable twin is the way of segments; `order` tests them against each other.

use std::arch::x86_64::*;

use super::order::Load;

/// Bytes behind the rows of a target that a store may touch.
pub(crate) const PAD: usize = 64;
/// True if masks are the cheapest way to find the order of rows for `partitions` partitions.
pub(super) const fn pay(load: Load, partitions: usize) -> bool {
    match load {
        Load::Bits => partitions <= 32,
        Load::Fixed => partitions <= 6,
        Load::Many => partitions <= 16,
    }
}

/// True if values of a width are compressed, instead of gathered or scattered.
pub(super) const fn compresses(load: Load, width: usize, partitions: usize) -> bool {
    let only = matches!(load, Load::Fixed);
    match width {
        1 | 2 => partitions <= 12,
        4 => partitions <= if only { 6 } else { 4 },
        8 => partitions <= if only { 4 } else { 2 },
        _ => false,
    }
}

/// A bit for each row and partition: all words of partition 0, then those of partition 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    masks: Vec<u64>,
    rows: usize,
}

impl Masks {
    fn words(&self) -> usize {
        self.rows.div_ceil(64)
    }

    fn partitions(&self) -> impl Iterator<Item = &[u64]> {
        self.masks.chunks_exact(self.words().max(1))
    }

    /// Sets the bits of `ids`, and `ends` to where partitions end. Returns how many ids are below
    /// the number of partitions.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; there are fewer than 255 partitions.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
    pub(super) unsafe fn build(&mut self, ids: &[u32], ends: &mut [u32]) -> usize {
        debug_assert!(ends.len() < 255);
        self.rows = ids.len();
        let words = self.words();
        self.masks.clear();
        self.masks.resize(words * ends.len(), 0);
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
                for partition in 0..ends.len() {
                    let wanted = _mm512_set1_epi8(partition as u8 as i8);
                    *masks.add(partition * words + word) = _mm512_cmpeq_epi8_mask(bytes, wanted);
                }
            }
        }
        for (row, &id) in rest.iter().enumerate() {
            if (id as usize) < ends.len() {
                self.masks[id as usize * words + blocks.len()] |= 1 << row;
            }
        }
        let mut sum = 0;
        for (mask, end) in self.masks.chunks_exact(words.max(1)).zip(ends) {
            sum += mask.iter().map(|word| word.count_ones()).sum::<u32>();
            *end = sum;
        }
        sum as usize
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
        const FIRST: [u16; 32] = {
            let mut first = [0; 32];
            let mut row = 0;
            while row < 32 {
                first[row] = row as u16;
                row += 1;
            }
            first
        };
        for mask in self.partitions() {
            // SAFETY: `FIRST` has 64 bytes. The rows of all masks are `self.rows`, so that `at`
            // stays below the rows, and a store ends within the pad.
            unsafe {
                let mut rows = _mm512_loadu_si512(FIRST.as_ptr().cast());
                let step = _mm512_set1_epi16(32);
                for &word in mask {
                    for half in [word as u32, (word >> 32) as u32] {
                        let chosen = _mm512_maskz_compress_epi16(half, rows);
                        _mm512_storeu_si512(at.cast(), chosen);
                        at = at.add(half.count_ones() as usize);
                        rows = _mm512_add_epi16(rows, step);
                    }
                }
            }
        }
    }

    /// Writes the values of `source`, in order of partitions, to `out`.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; `W` is 1, 2, 4 or 8.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
    pub(super) unsafe fn compress<const W: usize>(&self, source: &[u8], out: &mut [u8]) {
        assert!(source.len() >= self.rows * W && out.len() >= self.rows * W + PAD);
        let lanes = 64 / W;
        let mut at = out.as_mut_ptr();
        for mask in self.partitions() {
            let mut from = source.as_ptr();
            for &word in mask {
                for part in 0..W {
                    let lane_mask = word >> (part * lanes);
                    // SAFETY: only lanes of rows in the mask are read, which are in `source`. The
                    // rows of all masks are `self.rows`, so a store ends within the pad.
                    unsafe {
                        let (values, count) = compressed::<W>(from, lane_mask);
                        _mm512_storeu_si512(at.cast(), values);
                        at = at.add(count * W);
                        from = from.wrapping_add(64);
                    }
                }
            }
        }
    }

    /// Writes bits in order of partitions to `out`, from `words`, the bits of the rows.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says.
    #[target_feature(enable = "bmi2,popcnt")]
    pub(super) unsafe fn extract(&self, words: &[u64], out: &mut [u64]) {
        assert!(words.len() >= self.words() && out.len() >= self.words());
        let (mut held, mut count, mut at) = (0, 0, 0);
        for mask in self.partitions() {
            for (mask, word) in mask.iter().zip(words) {
                let bits = _pext_u64(*word, *mask);
                let more = mask.count_ones();
                held |= bits << count;
                if count + more >= 64 {
                    out[at] = held;
                    at += 1;
                    held = if count == 0 { 0 } else { bits >> (64 - count) };
                    count += more;
                    count -= 64;
                } else {
                    count += more;
                }
            }
        }
        if count > 0 {
            out[at] = held;
        }
    }
}

/// The values at `from` whose lanes are in the lowest bits of `mask`, and how many.
///
/// # Safety
/// Lanes in the mask can be read; `W` is 1, 2, 4 or 8.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn compressed<const W: usize>(from: *const u8, mask: u64) -> (__m512i, usize) {
    // SAFETY: as the caller promised; lanes outside of the mask are not read.
    unsafe {
        match W {
            1 => {
                let values = _mm512_maskz_loadu_epi8(mask, from.cast());
                (_mm512_maskz_compress_epi8(mask, values), mask.count_ones() as usize)
            }
            2 => {
                let mask = mask as u32;
                let values = _mm512_maskz_loadu_epi16(mask, from.cast());
                (_mm512_maskz_compress_epi16(mask, values), mask.count_ones() as usize)
            }
            4 => {
                let mask = mask as u16;
                let values = _mm512_maskz_loadu_epi32(mask, from.cast());
                (_mm512_maskz_compress_epi32(mask, values), mask.count_ones() as usize)
            }
            _ => {
                let mask = mask as u8;
                let values = _mm512_maskz_loadu_epi64(mask, from.cast());
                (_mm512_maskz_compress_epi64(mask, values), mask.count_ones() as usize)
            }
        }
    }
}
