//! Bounds of a column, 32 values at a time.

use std::arch::x86_64::*;

use super::AHEAD;
use crate::kernel::prefetch::prefetch;

/// Registers of values whose bounds are looked for side by side.
const SIDES: usize = 4;

/// The least and the greatest code of `values[..done]`, and `done`: all whole groups of 32.
///
/// Benefit: a third of a sort of two small columns.
///
/// # Safety
/// The CPU has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(in crate::kernel::rows) unsafe fn bounds(
    values: &[[u8; 8]],
    flip: u64,
    float: u64,
) -> (u64, u64, usize) {
    let every = |constant: u64| _mm512_set1_epi64(constant as i64);
    let (flip, float) = (every(flip), every(float));
    let (mut least, mut most) = ([every(u64::MAX); SIDES], [every(0); SIDES]);
    let (groups, _) = values.as_chunks::<{ SIDES * super::GROUP }>();
    for group in groups {
        for side in 0..SIDES {
            let values = group.as_ptr().wrapping_add(side * super::GROUP);
            prefetch(values.wrapping_byte_add(AHEAD).cast());
            // SAFETY: a group is four registers.
            let v = unsafe { _mm512_loadu_si512(values.cast()) };
            let negative = _mm512_cmplt_epi64_mask(v, _mm512_setzero_si512());
            let code = _mm512_xor_si512(_mm512_mask_xor_epi64(v, negative, v, float), flip);
            least[side] = _mm512_min_epu64(least[side], code);
            most[side] = _mm512_max_epu64(most[side], code);
        }
    }
    let [least, most] = [
        least.map(|side| _mm512_reduce_min_epu64(side)).into_iter().min(),
        most.map(|side| _mm512_reduce_max_epu64(side)).into_iter().max(),
    ];
    (least.unwrap_or(u64::MAX), most.unwrap_or(0), groups.len() * SIDES * super::GROUP)
}
