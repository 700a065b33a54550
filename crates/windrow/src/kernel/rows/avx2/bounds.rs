//! Bounds of a column, eight values at a time.

use std::arch::x86_64::*;

/// The least and the greatest code of `values[..done]`, and `done`: all whole groups of eight.
///
/// Benefit: 6x the portable twin, which is a fifth of a sort of two small columns.
///
/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(in crate::kernel::rows) unsafe fn bounds(
    values: &[[u8; 8]],
    flip: u64,
    float: u64,
) -> (u64, u64, usize) {
    // Compared as signed numbers: the sign bit is turned around once more, and back at the end.
    const TOP: u64 = 1 << 63;
    let (zero, float) = (_mm256_setzero_si256(), _mm256_set1_epi64x(float as i64));
    let flip = _mm256_set1_epi64x((flip ^ TOP) as i64);
    let mut least = [_mm256_set1_epi64x(i64::MAX); 2];
    let mut most = [_mm256_set1_epi64x(i64::MIN); 2];
    let (groups, _) = values.as_chunks::<8>();
    for group in groups {
        for half in 0..2 {
            // SAFETY: a group is 64 bytes.
            let value = unsafe { _mm256_loadu_si256(group.as_ptr().add(half * 4).cast()) };
            let negative = _mm256_cmpgt_epi64(zero, value);
            let code = _mm256_xor_si256(value, _mm256_and_si256(negative, float));
            let code = _mm256_xor_si256(code, flip);
            let less = _mm256_cmpgt_epi64(least[half], code);
            least[half] = _mm256_blendv_epi8(least[half], code, less);
            let more = _mm256_cmpgt_epi64(code, most[half]);
            most[half] = _mm256_blendv_epi8(most[half], code, more);
        }
    }
    let fold = |halves: [__m256i; 2]| {
        let mut words = [[0i64; 4]; 2];
        for (words, half) in words.iter_mut().zip(halves) {
            // SAFETY: four words have 32 bytes.
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), half) };
        }
        words.concat()
    };
    let least = fold(least).into_iter().fold(i64::MAX, i64::min) as u64 ^ TOP;
    let most = fold(most).into_iter().fold(i64::MIN, i64::max) as u64 ^ TOP;
    (least, most, groups.len() * 8)
}
