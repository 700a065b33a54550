//! The only column, of eight bytes a value, and three or four partitions: two registers permuted for each.
//!
//! ```text
//! rows of a mask       0 1 0 0 1 0 ..  1 0 0 1 ..  ..
//! compressed, as bytes 1 4 16 19 ..                    64 rows at once, kept in memory
//! permuted             1 4 16 19 ..                    eight from where 16 rows start, whose last four bits count
//! values of two        v1 v4 v16 v19 ..                registers
//! ```
//!
//! A register has eight values, of which four partitions have two each: to compress each for itself is a store
//! across lines for two values. Of two registers it is one for four. 10,000 rows take 1.9 us, and 2.3 where eight
//! at a time are gathered by loads (Zen 5). A load of eight bytes of the 64 that were stored waits for them
//! here, but there are three more partitions to go on with; rows from a register, by a permutation, take 2.5.

use std::arch::x86_64::*;

use super::masks::{Masks, RANKS};

/// Rows of a word of masks.
const WORD: usize = 64;
/// Rows of two registers.
const PAIR: usize = 16;
/// Values of a register.
const LANES: usize = 8;
const WIDTH: usize = 8;

/// Rows of a word for each partition.
#[repr(align(64))]
struct Rows<const P: usize>([[u8; WORD]; P]);

/// True if registers are permuted in pairs, instead of each compressed.
pub(super) const fn permutes_wide(width: usize, partitions: usize) -> bool {
    width == 8 && matches!(partitions, 3 | 4)
}

impl Masks {
    /// As [`Masks::compress`], of values of eight bytes in three or four partitions.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Panics
    /// As there, and if [`permutes_wide`] is not true of so many partitions.
    pub(super) unsafe fn permute_wide(
        &self,
        source: &[u8],
        out: &mut [u8],
        starts: &[usize],
        ends: &[usize],
    ) {
        // SAFETY: as the caller promised.
        unsafe {
            match self.partitions().count() {
                3 => self.permute_wide_of::<3>(source, out, starts, ends),
                4 => self.permute_wide_of::<4>(source, out, starts, ends),
                other => unreachable!("{other} partitions are not permuted"),
            }
        }
    }

    /// # Safety
    /// As [`Masks::permute_wide`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
    unsafe fn permute_wide_of<const P: usize>(
        &self,
        source: &[u8],
        out: &mut [u8],
        starts: &[usize],
        ends: &[usize],
    ) {
        let rows = self.rows();
        let source = &source[..rows * WIDTH];
        let masks = self.of_each::<P>();
        // All that is stored for a word: its values, and a register behind them.
        let own = (WORD + LANES) * WIDTH;
        let [mut next, whole] = self.fronts::<P>(WIDTH, own, out, [starts, ends]);
        let mut chosen = Rows([[0; WORD]; P]);
        let mut padded = [0; WORD * WIDTH];
        for word in 0..self.words() {
            // SAFETY: every mask has all words.
            let words = masks.map(|mask| unsafe { *mask.get_unchecked(word) });
            let mut values = &source[word * WORD * WIDTH..];
            if values.len() < WORD * WIDTH {
                padded[..values.len()].copy_from_slice(values);
                values = &padded;
            }
            let values = values.as_ptr();
            // SAFETY: as the caller promised, a partition has room for the rows of its mask. Up to `whole` that
            // is as much as anything stored for a word, which is overwritten by what comes next. There are as
            // many values as a word has rows.
            unsafe {
                if next.iter().zip(&whole).all(|(next, whole)| next <= whole) {
                    permute_word::<P, false>(words, values, &mut next, &mut chosen);
                } else {
                    permute_word::<P, true>(words, values, &mut next, &mut chosen);
                }
            }
        }
    }
}

/// Writes the `values` of one word's rows to where each partition goes on, and moves that on. `EXACT`: not a byte
/// behind them.
///
/// # Safety
/// The CPU has what [`super::Level::Avx512`] says; there are 64 values, and room for the rows in `words`, if not
/// `EXACT` for 64 and a register behind them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
unsafe fn permute_word<const P: usize, const EXACT: bool>(
    words: [u64; P],
    values: *const u8,
    next: &mut [*mut u8; P],
    chosen: &mut Rows<P>,
) {
    // SAFETY: 64 bytes, which are aligned in `chosen`.
    unsafe {
        let numbers = _mm512_loadu_si512(RANKS.as_ptr().cast());
        for (word, rows) in words.into_iter().zip(&mut chosen.0) {
            let compressed = _mm512_maskz_compress_epi8(word, numbers);
            _mm512_store_si512(rows.as_mut_ptr().cast(), compressed);
        }
    }
    let start = chosen.0.as_ptr().cast::<u8>();
    let mut from: [*const u8; P] =
        std::array::from_fn(|partition| start.wrapping_add(partition * WORD));
    for pair in 0..WORD / PAIR {
        // SAFETY: two of the eight registers of a word's values.
        let [front, back] = [0, 1].map(|half| unsafe {
            _mm512_loadu_si512(values.add((2 * pair + half) * LANES * WIDTH).cast())
        });
        for partition in 0..P {
            let count = ((words[partition] >> (pair * PAIR)) as u16).count_ones() as usize;
            // SAFETY: pairs in front of this one have at most 48 rows, and 16 are read behind those, of 64. As the
            // caller promised, there is room for `count` values, if not `EXACT` for 16.
            unsafe {
                let (rows, at) = (from[partition], next[partition]);
                let eight = |skip: usize| {
                    let rows = _mm512_cvtepu8_epi64(_mm_loadl_epi64(rows.add(skip).cast()));
                    // Of each row only the bits are looked at that tell those of a pair apart.
                    _mm512_permutex2var_epi64(front, rows, back)
                };
                put::<EXACT>(at, eight(0), count);
                if count > LANES {
                    put::<EXACT>(at.add(LANES * WIDTH), eight(LANES), count - LANES);
                }
                next[partition] = at.add(count * WIDTH);
                from[partition] = rows.add(count);
            }
        }
    }
}

/// Writes the first `count` of `values`, or all if there are fewer, if not `EXACT` all.
///
/// # Safety
/// The CPU has AVX-512F and BMI2, and there is room for them.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
unsafe fn put<const EXACT: bool>(at: *mut u8, values: __m512i, count: usize) {
    // SAFETY: as the caller promised.
    unsafe {
        if EXACT {
            let lanes = _bzhi_u32(u32::MAX, count as u32) as u8;
            _mm512_mask_storeu_epi64(at.cast(), lanes, values);
        } else {
            _mm512_storeu_si512(at.cast(), values);
        }
    }
}
