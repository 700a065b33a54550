//! Values of four bytes and a few partitions: two registers permuted for each.
//!
//! ```text
//! rows of a mask       0 1 0 0 1 0 ..  1 0 0 1 ..
//! compressed, as bytes 1 4 32 35 ..               64 rows at once
//! permuted             1 4 ..     32 35 ..        from where each half starts
//! values of two        v1 v4 ..   v32 v35 ..      registers each
//! ```
//!
//! Of 32 rows, three to six partitions have about as many each as a register holds: that is one store
//! for two registers of values. To compress each by itself takes two, and two instructions that cost
//! more: 10,000 rows take 1.6 us instead of 1.8 with three partitions, 2.0 instead of 2.4 with four (Zen 4). With
//! two there are too many rows, and with more than six targets are found as fast; where columns are gathered, the
//! only one goes this way with up to eight.
//!
//! What bounds it is the one port that permutes. Rows are compressed 64 at a time, which takes three of its
//! steps with the mask, and numbers that start anywhere in them are made ready by one: seven for 64 rows and a
//! partition, where 32 rows compressed by themselves take ten. 1.30 us instead of 1.51 with four partitions,
//! 1.90 instead of 2.30 with six (Sapphire Rapids). The numbers may not go through memory: a load of 16 bytes
//! behind a store of 64 waits for it to reach the cache, three times as long as all of this.

use std::arch::x86_64::*;

use super::masks::{Masks, RANKS};

/// Rows of a word of masks.
const WORD: usize = 64;
/// Values of a register.
const LANES: usize = 16;

/// Numbers, of which a register is loaded from any up to [`WORD`] on.
static NUMBERS: [u32; WORD + LANES] = {
    let mut numbers = [0; WORD + LANES];
    let mut at = 0;
    while at < numbers.len() {
        numbers[at] = at as u32;
        at += 1;
    }
    numbers
};

/// The most partitions that are permuted.
pub(super) const MOST_PERMUTED: usize = 8;

/// True if two registers are permuted, instead of each compressed.
pub(super) const fn permutes(width: usize, partitions: usize) -> bool {
    width == 4 && matches!(partitions, 3..=MOST_PERMUTED)
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
                7 => self.permute_of::<7>(source, out, starts, ends),
                8 => self.permute_of::<8>(source, out, starts, ends),
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
        let masks = self.of_each::<P>();
        let [mut next, whole] = self.fronts::<P>(4, 64, out, [starts, ends]);
        // SAFETY: 64 bytes.
        let numbers = unsafe { _mm512_loadu_si512(RANKS.as_ptr().cast()) };
        for word in 0..self.words() {
            let values = registers(&source[word * WORD * 4..rows * 4]);
            for partition in 0..P {
                // SAFETY: every mask has all words.
                let mask = unsafe { *masks[partition].get_unchecked(word) };
                let chosen = _mm512_maskz_compress_epi8(mask, numbers);
                let (low, all) = ((mask as u32).count_ones() as usize, mask.count_ones() as usize);
                for (half, [start, end]) in [[0, low], [low, all]].into_iter().enumerate() {
                    let values = |from: usize| {
                        // SAFETY: `from` is a row of the mask or the end of them, at most 64, and a register
                        // of numbers is behind it.
                        let lanes =
                            unsafe { _mm512_loadu_si512(NUMBERS.as_ptr().add(from).cast()) };
                        // Of each number only the bits are looked at that tell the rows of a half apart.
                        let rows = _mm512_permutexvar_epi8(lanes, chosen);
                        _mm512_permutex2var_epi32(values[2 * half], rows, values[2 * half + 1])
                    };
                    let at = next[partition];
                    // SAFETY: as the caller promised, a partition has room for the rows of its mask: `at` is
                    // within it, and so are 64 bytes up to `whole`, and the values of the mask behind that.
                    unsafe {
                        if at <= whole[partition] {
                            _mm512_storeu_si512(at.cast(), values(start));
                        } else {
                            _mm512_mask_storeu_epi32(at.cast(), below(end - start), values(start));
                        }
                        if end - start > LANES {
                            let lanes = below(end - start - LANES);
                            _mm512_mask_storeu_epi32(
                                at.add(64).cast(),
                                lanes,
                                values(start + LANES),
                            );
                        }
                        next[partition] = at.add((end - start) * 4);
                    }
                }
            }
        }
    }
}

/// The values of the first [`WORD`] rows of `source`; zeros where it has fewer.
#[inline]
#[target_feature(enable = "avx512f")]
fn registers(source: &[u8]) -> [__m512i; 4] {
    if let Some(whole) = source.first_chunk() {
        return four(whole);
    }
    let mut padded = [0; 4 * WORD];
    padded[..source.len()].copy_from_slice(source);
    four(&padded)
}

/// The registers of so many bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn four(bytes: &[u8; 4 * WORD]) -> [__m512i; 4] {
    // SAFETY: four registers of 64 bytes.
    [0, 1, 2, 3].map(|index| unsafe { _mm512_loadu_si512(bytes.as_ptr().add(index * 64).cast()) })
}

/// A bit for each of the first `count` lanes, or for all if there are fewer.
#[inline]
#[target_feature(enable = "bmi2")]
fn below(count: usize) -> u16 {
    _bzhi_u32(u32::MAX, count as u32) as u16
}
