//! Numbers to the words of a sort, and to small codes.

use std::arch::x86_64::*;

use super::super::lanes::Bits;
use super::super::pack::{Clamp, Pack};
use super::{AHEAD, GROUP};
use crate::kernel::prefetch::prefetch;

/// As `pack` of the module, of all values in whole groups; returns their number.
///
/// Benefit: a sort of 8,192 numbers is 1.2x as fast, and 1.5x where there are nulls.
///
/// # Safety
/// The CPU has AVX-512 F; there are as many words as values, and bits if there are any.
#[target_feature(enable = "avx512f")]
pub(in crate::kernel::rows) unsafe fn pack(
    values: &[[u8; 8]],
    valid: Option<Bits<'_>>,
    pack: Pack,
    words: &mut [u64],
) -> usize {
    let every = |constant: u64| _mm512_set1_epi64(constant as i64);
    let (flip, float, least) = (every(pack.flip), every(pack.float), every(pack.least));
    let (front, null) = (every(pack.front), every(pack.null));
    let dropped = _mm_cvtsi32_si128(pack.dropped as i32);
    let width = _mm_cvtsi32_si128(pack.width as i32);
    let (shift, kept) = pack.end();
    let (shift, kept) = (_mm_cvtsi32_si128(shift as i32), every(kept));
    let mut places =
        _mm512_add_epi64(every(pack.first as u64), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    let end = values.len() / GROUP * GROUP;
    let mut bits = u64::MAX;
    for at in (0..end).step_by(GROUP) {
        if at.is_multiple_of(64)
            && let Some(valid) = valid
        {
            bits = valid.word(at);
        }
        let from = values.as_ptr().wrapping_add(at);
        prefetch(from.wrapping_byte_add(AHEAD).cast());
        // SAFETY: eight values from `at` on, and as many words.
        unsafe {
            let mut v = _mm512_loadu_si512(from.cast());
            let negative = _mm512_cmplt_epi64_mask(v, _mm512_setzero_si512());
            v = _mm512_mask_xor_epi64(v, negative, v, float);
            v = _mm512_sub_epi64(_mm512_xor_si512(v, flip), least);
            v = _mm512_or_si512(_mm512_srl_epi64(v, dropped), front);
            v = _mm512_mask_mov_epi64(null, (bits >> (at % 64)) as __mmask8, v);
            let word: *mut __m512i = words.as_mut_ptr().add(at).cast();
            v = _mm512_or_si512(_mm512_sll_epi64(_mm512_loadu_si512(word.cast_const()), width), v);
            let place = _mm512_and_si512(places, kept);
            _mm512_storeu_si512(word, _mm512_or_si512(_mm512_sll_epi64(v, shift), place));
        }
        places = _mm512_add_epi64(places, every(GROUP as u64));
    }
    end
}

/// As `narrow` of the module, of all words in whole groups; returns their number.
///
/// Benefit: 4x the portable twin, which is a twentieth of a sort of 8,192 numbers.
///
/// # Safety
/// The CPU has AVX-512 F; there are as many narrow words as words.
#[target_feature(enable = "avx512f")]
pub(in crate::kernel::rows) unsafe fn narrow(
    words: &[u64],
    shift: u32,
    low: u32,
    narrow: &mut [u32],
) -> usize {
    let place = _mm512_set1_epi64((1 << low) - 1);
    let shift = _mm_cvtsi32_si128(shift as i32);
    let end = words.len() / GROUP * GROUP;
    for at in (0..end).step_by(GROUP) {
        // SAFETY: eight words from `at` on, and as many narrow ones.
        unsafe {
            let word = _mm512_loadu_si512(words.as_ptr().add(at).cast());
            let above = _mm512_andnot_si512(place, _mm512_srl_epi64(word, shift));
            let word = _mm512_or_si512(above, _mm512_and_si512(word, place));
            let target = narrow.as_mut_ptr().add(at).cast();
            _mm256_storeu_si256(target, _mm512_cvtepi64_epi32(word));
        }
    }
    end
}

/// As `clamp` of the module, of all values in whole groups; returns their number.
///
/// Benefit: 7x the portable twin, which is a third of a sort of 8,192 numbers by small codes.
///
/// # Safety
/// The CPU has AVX-512 F; there are as many codes as values.
#[target_feature(enable = "avx512f")]
pub(in crate::kernel::rows) unsafe fn clamp(
    values: &[[u8; 8]],
    clamp: Clamp,
    codes: &mut [u16],
) -> usize {
    let every = |constant: u64| _mm512_set1_epi64(constant as i64);
    let (flip, float) = (every(clamp.flip), every(clamp.float));
    let (below, top) = (every(clamp.below), every(clamp.top.into()));
    let end = values.len() / GROUP * GROUP;
    for at in (0..end).step_by(GROUP) {
        // SAFETY: eight values from `at` on, and as many codes.
        unsafe {
            let mut v = _mm512_loadu_si512(values.as_ptr().add(at).cast());
            let negative = _mm512_cmplt_epi64_mask(v, _mm512_setzero_si512());
            v = _mm512_mask_xor_epi64(v, negative, v, float);
            v = _mm512_max_epu64(_mm512_xor_si512(v, flip), below);
            v = _mm512_min_epu64(_mm512_sub_epi64(v, below), top);
            _mm_storeu_si128(codes.as_mut_ptr().add(at).cast(), _mm512_cvtepi64_epi16(v));
        }
    }
    end
}
