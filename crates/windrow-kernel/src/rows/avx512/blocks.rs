//! Writes byte strings in blocks, each followed by a byte: strings of up to 32 bytes without a
//! branch on their length, and longer ones a block at a time.
//!
//! ```text
//! the string       | aaaaaaaa | bbb00000 | 00000000 | 00000000 |      masked by its length
//! bytes permuted   | 2 aaaaaaaa FF bbb00000 3 | FF 0000 ...           masked by the code's length
//! ```

use std::arch::x86_64::*;

use super::super::blocks::{EMPTY, FULL, LARGE, MORE, SMALL, SMALL_BLOCKS, encoded_len};
use super::super::text::Text;

/// Writes strings as `put_blocks` of the module does.
///
/// Benefit: 1.7x the speed of encoding strings of 1 to 31 bytes, lengths included.
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI, and BMI2.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
pub(in crate::rows) unsafe fn put_blocks<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    null: u8,
    flip: u8,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let (mut order, mut fixed) = ([0u8; 64], [0u8; 64]);
    let mut bytes = 0u64;
    fixed[0] = FULL;
    for at in 0..SMALL * SMALL_BLOCKS {
        let to = 1 + at / SMALL * (SMALL + 1) + at % SMALL;
        order[to] = at as u8;
        bytes |= 1 << to;
    }
    (1..=SMALL_BLOCKS).for_each(|block| fixed[block * (SMALL + 1)] = MORE);
    // SAFETY: each array has 64 bytes.
    let (order, fixed) = unsafe {
        (_mm512_loadu_si512(order.as_ptr().cast()), _mm512_loadu_si512(fixed.as_ptr().cast()))
    };
    let flips = _mm512_set1_epi8(flip as i8);
    for (text, cursor) in strings.zip(cursors) {
        let (string, valid) = (text.bytes(), text.valid);
        // A null has length 0, without a branch: nulls are unpredictable.
        let len = string.len() & 0usize.wrapping_sub(usize::from(valid));
        let to = *cursor;
        if len > SMALL * SMALL_BLOCKS {
            *cursor = to + encoded_len(len);
            assert!(*cursor <= out.len(), "a string lies within its bytes");
            // SAFETY: the caller promises the CPU. The string has more than 32 bytes, and `out` has
            // space for its code, as asserted.
            unsafe {
                let front = _mm256_loadu_si256(string.as_ptr().cast());
                let front = _mm512_zextsi256_si512(front);
                let front = _mm512_maskz_permutexvar_epi8(bytes, order, front);
                let front = _mm512_xor_si512(_mm512_or_si512(front, fixed), flips);
                put_long(front, string, flips, out.as_mut_ptr().add(to));
            }
            continue;
        }
        let blocks = len.div_ceil(SMALL);
        let total = 1 + blocks * (SMALL + 1);
        // The byte after the last block; the only byte of an empty string and of a null.
        let alone = if valid { EMPTY } else { null ^ flip };
        let last = if len == 0 { usize::from(alone) } else { len + SMALL - blocks * SMALL };
        let own = _bzhi_u32(u32::MAX, len as u32);
        *cursor = to + total;
        assert!(*cursor <= out.len(), "a string lies within its bytes");
        // SAFETY: the masks limit reads to the string and writes to its code, which fits, as
        // asserted.
        unsafe {
            let v = _mm256_maskz_loadu_epi8(own, string.as_ptr().cast());
            let v = _mm512_maskz_permutexvar_epi8(bytes, order, _mm512_zextsi256_si512(v));
            let place = 1 << (total - 1);
            let fixed = _mm512_mask_mov_epi8(fixed, place, _mm512_set1_epi8(last as i8));
            let v = _mm512_xor_si512(_mm512_or_si512(v, fixed), flips);
            let code = _bzhi_u64(u64::MAX, total as u32);
            _mm512_mask_storeu_epi8(out.as_mut_ptr().add(to).cast(), code, v);
        }
    }
}

/// Writes the code of a string longer than the small blocks; `front` is their code. The next block
/// overwrites the surplus of a block.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, and BMI2. The string is longer than the small blocks, and its
/// code fits at `out`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn put_long(front: __m512i, string: &[u8], flips: __m512i, out: *mut u8) {
    const BEHIND: u64 = 1 << LARGE;
    let block = |v: __m256i, behind: u8| {
        let v =
            _mm512_mask_mov_epi8(_mm512_zextsi256_si512(v), BEHIND, _mm512_set1_epi8(behind as i8));
        _mm512_xor_si512(v, flips)
    };
    let (from, to) = (SMALL * SMALL_BLOCKS, 1 + SMALL_BLOCKS * (SMALL + 1));
    let whole = (string.len() - from - 1) / LARGE;
    let last = string.len() - from - whole * LARGE;
    let own = _bzhi_u32(u32::MAX, last as u32);
    // SAFETY: at least 66 bytes of the code follow the start of the code, and of each block but the
    // last. The masks limit the last block to its bytes and its code.
    unsafe {
        _mm512_storeu_si512(out.cast(), front);
        let (from, out) = (string.as_ptr().add(from), out.add(to));
        let put = |at: usize| {
            let v = _mm256_loadu_si256(from.add(at * LARGE).cast());
            _mm512_storeu_si512(out.add(at * (LARGE + 1)).cast(), block(v, MORE));
        };
        // One or two blocks are written as two, the same one twice if there is one: the number is
        // unpredictable.
        match whole {
            0 => {}
            1..=2 => [0, whole - 1].into_iter().for_each(put),
            _ => (0..whole).for_each(put),
        }
        let v = _mm256_maskz_loadu_epi8(own, from.add(whole * LARGE).cast());
        let code = BEHIND | (BEHIND - 1);
        let out = out.add(whole * (LARGE + 1));
        _mm512_mask_storeu_epi8(out.cast(), code, block(v, last as u8));
    }
}
