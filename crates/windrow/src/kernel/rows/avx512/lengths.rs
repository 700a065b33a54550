//! How many bytes strings take in rows, sixteen of them at a time.

use std::arch::x86_64::*;

use super::super::blocks::{LARGE, SMALL, SMALL_BLOCKS};
use super::super::lane::Bits;
use super::super::lengths::Form;

/// Strings of a register.
const LANES: usize = 16;

/// As `add_spans` of the module.
///
/// # Safety
/// The CPU has AVX-512 F; there is an offset more than lengths.
#[target_feature(enable = "avx512f")]
pub(in crate::kernel::rows) unsafe fn add_spans(
    offsets: &[i32],
    valid: Option<Bits<'_>>,
    form: Form,
    lengths: &mut [u32],
) -> u64 {
    let all = |number: usize| _mm512_set1_epi32(number as i32);
    let short = all(SMALL * SMALL_BLOCKS);
    let null = all(usize::from(form == Form::Blocks));
    let mut total = _mm512_setzero_si512();
    let rows = lengths.len();
    for first in (0..rows).step_by(64) {
        let word = valid.map_or(u64::MAX, |valid| valid.word(first));
        for first in (first..rows.min(first + 64)).step_by(LANES) {
            let lanes = u16::MAX >> LANES.saturating_sub(rows - first);
            let valid = (word >> (first % 64)) as u16;
            // SAFETY: the mask leaves lengths that there are, and offsets, of which there is one more.
            let (starts, ends, before) = unsafe {
                let from = offsets.as_ptr().add(first);
                (
                    _mm512_maskz_loadu_epi32(lanes, from),
                    _mm512_maskz_loadu_epi32(lanes, from.add(1)),
                    _mm512_maskz_loadu_epi32(lanes, lengths.as_ptr().add(first).cast()),
                )
            };
            let lens = _mm512_sub_epi32(ends, starts);
            let own = match form {
                Form::Ended => _mm512_add_epi32(lens, all(1)),
                Form::Blocks => {
                    let front = _mm512_add_epi32(_mm512_min_epu32(lens, short), all(SMALL - 1));
                    let front = _mm512_srli_epi32::<{ SMALL.ilog2() }>(front);
                    let more = _mm512_sub_epi32(_mm512_max_epu32(lens, short), short);
                    let more = _mm512_add_epi32(more, all(LARGE - 1));
                    let more = _mm512_srli_epi32::<{ LARGE.ilog2() }>(more);
                    let blocks = _mm512_add_epi32(
                        _mm512_mullo_epi32(front, all(SMALL + 1)),
                        _mm512_mullo_epi32(more, all(LARGE + 1)),
                    );
                    _mm512_add_epi32(blocks, all(1))
                }
            };
            let own = _mm512_maskz_mov_epi32(lanes, _mm512_mask_mov_epi32(null, valid, own));
            for half in [_mm512_castsi512_si256(own), _mm512_extracti64x4_epi64::<1>(own)] {
                total = _mm512_add_epi64(total, _mm512_cvtepu32_epi64(half));
            }
            let after = _mm512_add_epi32(before, own);
            // SAFETY: as above.
            unsafe {
                _mm512_mask_storeu_epi32(lengths.as_mut_ptr().add(first).cast(), lanes, after)
            };
        }
    }
    _mm512_reduce_add_epi64(total) as u64
}
