//! Values of four bytes and a few partitions: two registers permuted for each.
//!
//! ```text
//! rows of a mask   0 1 0 0 1 0 ..     numbers compressed  1 4 ..     two registers permuted  v1 v4 ..
//! ```
//!
//! Of 32 rows, three to six partitions have about as many each as a register holds: that is one store
//! for two registers of values. To compress each by itself takes two, and two instructions that cost
//! more: 10,000 rows take 1.6 us instead of 1.8 with three partitions, 2.0 instead of 2.4 with four. With
//! two there are too many rows, and with more than six targets are found as fast.

use std::arch::x86_64::*;

use super::masks::{Masks, RANKS};

/// Rows whose values are two registers.
const ROWS: usize = 32;
/// Values of a register.
const LANES: usize = 16;

/// True if two registers are permuted, instead of each compressed.
pub(super) const fn permutes(width: usize, partitions: usize) -> bool {
    width == 4 && matches!(partitions, 3..=6)
}

impl Masks {
    /// As [`Masks::compress`], of values of four bytes.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Panics
    /// As there, and if [`permutes`] is not true of so many partitions.
    pub(super) unsafe fn permute(
        &self,
        source: &[u8],
        out: &mut [u8],
        starts: &[usize],
        ends: &[usize],
    ) {
        // SAFETY: as the caller promised.
        unsafe {
            match self.partitions().count() {
                3 => self.permute_of::<3>(source, out, starts, ends),
                4 => self.permute_of::<4>(source, out, starts, ends),
                5 => self.permute_of::<5>(source, out, starts, ends),
                6 => self.permute_of::<6>(source, out, starts, ends),
                other => unreachable!("{other} partitions are not permuted"),
            }
        }
    }

    /// # Safety
    /// As [`Masks::permute`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
    unsafe fn permute_of<const P: usize>(
        &self,
        source: &[u8],
        out: &mut [u8],
        starts: &[usize],
        ends: &[usize],
    ) {
        let rows = self.rows();
        assert!(source.len() >= rows * 4);
        let mut masks = [&[][..]; P];
        let mut next = [std::ptr::null_mut::<u8>(); P];
        let mut whole = [std::ptr::null_mut::<u8>(); P];
        for (partition, mask) in self.partitions().enumerate() {
            assert!(mask.len() == self.words() && ends[partition] * 4 <= out.len());
            masks[partition] = mask;
            next[partition] = out.as_mut_ptr().wrapping_add(starts[partition] * 4);
            // The last place where 64 bytes are the partition's own; wrapped, where there is none.
            whole[partition] = out.as_mut_ptr().wrapping_add(ends[partition] * 4).wrapping_sub(64);
        }
        // SAFETY: half of 64 bytes.
        let numbers = unsafe { _mm256_loadu_si256(RANKS.as_ptr().cast()) };
        for first in (0..rows).step_by(ROWS) {
            let (word, shift) = (first / 64, first % 64);
            let from = source.as_ptr().wrapping_add(first * 4);
            // SAFETY: `source` has all rows, and only lanes of those are read.
            let (low, high) = unsafe {
                if first + ROWS <= rows {
                    (_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(from.add(64).cast()))
                } else {
                    let lanes = below(rows - first);
                    let high = from.wrapping_add(64).cast();
                    (
                        _mm512_maskz_loadu_epi32(lanes as u16, from.cast()),
                        _mm512_maskz_loadu_epi32((lanes >> LANES) as u16, high),
                    )
                }
            };
            for partition in 0..P {
                // SAFETY: masks are as long as there are words.
                let mask = unsafe { (*masks[partition].get_unchecked(word) >> shift) as u32 };
                let chosen = _mm256_maskz_compress_epi8(mask, numbers);
                let count = mask.count_ones() as usize;
                let values = |chosen: __m128i| {
                    _mm512_permutex2var_epi32(low, _mm512_cvtepu8_epi32(chosen), high)
                };
                let at = next[partition];
                let front = values(_mm256_castsi256_si128(chosen));
                // SAFETY: as the caller promised, a partition has room for the rows of its mask: `at` is
                // within it, and so are 64 bytes up to `whole`, and the values of the mask behind that.
                unsafe {
                    if at <= whole[partition] {
                        _mm512_storeu_si512(at.cast(), front);
                    } else {
                        _mm512_mask_storeu_epi32(at.cast(), below(count) as u16, front);
                    }
                    if count > LANES {
                        let back = values(_mm256_extracti128_si256::<1>(chosen));
                        let lanes = below(count - LANES) as u16;
                        _mm512_mask_storeu_epi32(at.add(64).cast(), lanes, back);
                    }
                    next[partition] = at.add(count * 4);
                }
            }
        }
    }
}

/// A bit for each of the first `count` values, which are at most [`ROWS`].
#[inline(always)]
fn below(count: usize) -> u32 {
    debug_assert!(count <= ROWS);
    ((1u64 << count) - 1) as u32
}
