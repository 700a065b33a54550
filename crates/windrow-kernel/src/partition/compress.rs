//! Compresses values through masks: the rows of a partition, side by side.
//!
//! ```text
//! ids         1 0 1 2 0 1        mask 0  0 1 0 0 1 0      compress(values, mask 0)  1 4 . .
//!                                mask 1  1 0 1 0 0 1      compress(values, mask 1)  0 2 5 .
//!                                mask 2  0 0 0 1 0 0      compress(values, mask 2)  3 . . .
//! ```
//!
//! A block of rows is compressed for every partition before the next block, so that all partitions
//! but the first read it from the first-level cache. While the surplus of a compressed register
//! lies within its partition, the register is stored whole and later stores overwrite the surplus;
//! at the end of the partition the store is masked.
//!
//! Stores are the cost: a store of 64 bytes to any address takes four cycles, one of 32 bytes less
//! than two and a half. With four partitions or more, half a register is mostly enough.

use std::arch::x86_64::*;

use super::masks::Masks;

/// Words of masks in a block: 4 KiB of eight-byte values.
const BLOCK: usize = 8;
/// Most partitions that are compressed.
const MOST: usize = 16;
/// Most partitions for which registers are stored whole: half a register is too often too short.
const MOST_WHOLE: usize = 3;

impl Masks {
    /// Writes the values of `source` to `out`, the values of each partition from index `starts` on.
    /// May overwrite the partition's values up to `ends`.
    ///
    /// # Safety
    /// The CPU has the instructions of [`super::Level::Avx512`]. `W` is 1, 2, 4 or 8. Every row is
    /// in one mask, and the rows of each mask fit between its start and its end.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
    pub(super) unsafe fn compress<const W: usize>(
        &self,
        source: &[u8],
        out: &mut [u8],
        starts: &[usize],
        ends: &[usize],
    ) {
        let rows = self.rows();
        assert!(source.len() >= rows * W);
        let lanes = 64 / W;
        let half = self.partitions().count() > MOST_WHOLE;
        let [mut next, whole] = self.fronts::<MOST>(W, 64, out, [starts, ends]);
        for first in (0..self.words()).step_by(BLOCK) {
            for (partition, mask) in self.partitions().enumerate() {
                let mut at = next[partition];
                let whole = whole[partition];
                let mut from = source.as_ptr().wrapping_add(first * 64 * W);
                for &word in &mask[first..mask.len().min(first + BLOCK)] {
                    for part in 0..W {
                        let lane_mask = word >> (part * lanes);
                        // SAFETY: only lanes of rows in the mask are read, and `source` has all
                        // rows. A partition has space for the rows of its mask, so `at` is within
                        // the partition. Up to `whole`, 64 bytes are within it, too; after `whole`
                        // only the compressed values are written.
                        unsafe {
                            let (values, count) = compressed::<W>(from, lane_mask);
                            if at <= whole {
                                store(at, values, count * W, half);
                            } else {
                                let bytes = _bzhi_u64(u64::MAX, (count * W) as u32);
                                _mm512_mask_storeu_epi8(at.cast(), bytes, values);
                            }
                            at = at.add(count * W);
                            from = from.wrapping_add(64);
                        }
                    }
                }
                next[partition] = at;
            }
        }
    }
}

/// Stores at least the first `bytes` of `values`; with `half`, first tries one store of half the
/// register, which is mostly enough.
///
/// # Safety
/// 64 bytes are writable at `at`. The CPU has AVX-512F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store(at: *mut u8, values: __m512i, bytes: usize, half: bool) {
    // SAFETY: the caller provides 64 writable bytes at `at`.
    unsafe {
        if half {
            _mm256_storeu_si256(at.cast(), _mm512_castsi512_si256(values));
            if bytes <= 32 {
                return;
            }
        }
        _mm512_storeu_si512(at.cast(), values);
    }
}

/// Returns the values at `from` whose lanes are in the lowest bits of `mask`, and their number.
///
/// # Safety
/// The lanes in the mask are readable, `W` is 1, 2, 4 or 8, and the CPU has the enabled features.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn compressed<const W: usize>(from: *const u8, mask: u64) -> (__m512i, usize) {
    // SAFETY: the caller provides readable lanes in the mask; other lanes are not read.
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
