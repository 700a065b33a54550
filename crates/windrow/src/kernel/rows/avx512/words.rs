//! Bytes of columns to words of rows: up to eight registers of 64 bytes are joined, byte by byte.
//!
//! ```text
//! a0 a1 a2 ...          two of a, two of b, ...       words of up to eight bytes
//! b0 b1 b2 ...   -->    a0 b0 a1 b1 ...         -->   | a0 b0 c0 d0 | a1 b1 c1 d1 | ...
//! c0 c1 c2 ...          c0 d0 c1 d1 ...
//! ```

use std::arch::x86_64::*;

/// Words of a byte of each register: of sixteen rows at a time, those of the first of them in the first register.
///
/// Benefit: as a loop over the lengths of words, eight lanes went through memory at each step: four columns of two-byte
/// numbers take 4.8 us in place of 14 for 8,192 rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn words<const N: usize>(v: [__m512i; N]) -> [__m512i; N] {
    // Words of one byte become words of two, four and eight.
    let v = if N > 1 { joined::<N, 1>(v) } else { v };
    let v = if N > 2 { joined::<N, 2>(v) } else { v };
    if N > 4 { joined::<N, 4>(v) } else { v }
}

/// Words of twice the length: each of `OF` bytes, in as many registers, and the one whose words stand behind them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn joined<const N: usize, const OF: usize>(v: [__m512i; N]) -> [__m512i; N] {
    std::array::from_fn(|to| {
        let (word, part) = (to / (2 * OF), to % (2 * OF) / 2);
        let (a, b) = (v[2 * word * OF + part], v[(2 * word + 1) * OF + part]);
        match (OF, to % 2) {
            (1, 0) => _mm512_unpacklo_epi8(a, b),
            (1, _) => _mm512_unpackhi_epi8(a, b),
            (2, 0) => _mm512_unpacklo_epi16(a, b),
            (2, _) => _mm512_unpackhi_epi16(a, b),
            (_, 0) => _mm512_unpacklo_epi32(a, b),
            (_, _) => _mm512_unpackhi_epi32(a, b),
        }
    })
}
