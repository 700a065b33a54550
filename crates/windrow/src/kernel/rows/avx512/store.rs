//! Columns to rows, eight rows at a time.
//!
//! ```text
//! registers of eight rows                      parts of registers        registers of rows
//! a0 a1 ... a7                                 a0 a1 | c0 c1 | ...  -->  a0 b0 c0 d0 ...
//! b0 b1 ... b7   -->  [`store`]: transposed    b0 b1 | d0 d1 | ...       a1 b1 c1 d1 ...
//! ...                                          [`store_two`]: loaded to where they stand
//! ```

use std::arch::x86_64::*;

use super::{GROUP, Places, transpose_4, transpose_8};

/// Writes the codes of the first `count` of eight rows of `N` columns, whose validity is `bits`: of the first
/// eight columns, and of the rest. `code` makes codes of a register of rows of either part.
///
/// # Safety
/// `N` eight-byte words, up to eight, ten or twelve, at the places of these rows lie within `out`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn store<P: Places, const N: usize>(
    v: [__m512i; N],
    bits: [u64; 2],
    count: usize,
    places: P,
    out: *mut u8,
    code: &mut impl FnMut(usize, __m512i, __mmask8) -> __m512i,
) {
    let (near, far) = v.split_at(N.min(GROUP));
    // SAFETY: as this function's.
    let to = |row: usize| unsafe { out.add(places.place(row)) };
    // All eight are gone through, for the rows to stay in registers.
    let is_one = |row: &usize| *row < count;
    if N > 8 {
        let near = rows_of_8(near, bits[0], &mut |v, valid| code(0, v, valid));
        let code = &mut |v: __m512i, valid: __mmask8| code(1, v, valid);
        if N == 12 {
            let far = rows_of_4(far, bits[1], code);
            for row in (0..GROUP).filter(is_one) {
                // SAFETY: as this function's.
                unsafe {
                    _mm512_storeu_si512(to(row).cast(), near[row]);
                    _mm256_storeu_si256(to(row).add(64).cast(), far[row]);
                }
            }
        } else {
            let far = rows_of_2(far, bits[1], code);
            for row in (0..GROUP).filter(is_one) {
                // SAFETY: as this function's.
                unsafe {
                    _mm512_storeu_si512(to(row).cast(), near[row]);
                    _mm_storeu_si128(to(row).add(64).cast(), far[row]);
                }
            }
        }
        return;
    }
    let code = &mut |v: __m512i, valid: __mmask8| code(0, v, valid);
    if N > 4 {
        let rows = rows_of_8(near, bits[0], code);
        for row in (0..GROUP).filter(is_one) {
            // SAFETY: as this function's; the mask is of `N` words.
            unsafe { _mm512_mask_storeu_epi64(to(row).cast(), u8::MAX >> (8 - N), rows[row]) };
        }
    } else if N > 2 {
        let rows = rows_of_4(near, bits[0], code);
        for row in (0..GROUP).filter(is_one) {
            // SAFETY: as this function's; the mask is of `N` words.
            unsafe { _mm256_mask_storeu_epi64(to(row).cast(), 0b1111 >> (4 - N), rows[row]) };
        }
    } else {
        let rows = rows_of_2(near, bits[0], code);
        for row in (0..GROUP).filter(is_one) {
            // SAFETY: as this function's; of one column eight bytes are written.
            unsafe {
                match N {
                    2 => _mm_storeu_si128(to(row).cast(), rows[row]),
                    _ => _mm_storel_epi64(to(row).cast(), rows[row]),
                }
            }
        }
    }
}

/// The first `N` of `v`, and zeros.
#[inline]
#[target_feature(enable = "avx512f")]
fn padded<const N: usize>(v: &[__m512i]) -> [__m512i; N] {
    let mut all = [_mm512_setzero_si512(); N];
    all[..v.len()].copy_from_slice(v);
    all
}

/// Codes of eight rows of up to eight columns.
#[inline]
#[target_feature(enable = "avx512f")]
fn rows_of_8(
    v: &[__m512i],
    bits: u64,
    code: &mut impl FnMut(__m512i, __mmask8) -> __m512i,
) -> [__m512i; 8] {
    let (rows, bits) = (transpose_8(padded(v)), bits.to_le_bytes());
    std::array::from_fn(|row| code(rows[row], bits[row]))
}

/// Codes of eight rows of up to four columns.
#[inline]
#[target_feature(enable = "avx512f")]
fn rows_of_4(
    v: &[__m512i],
    bits: u64,
    code: &mut impl FnMut(__m512i, __mmask8) -> __m512i,
) -> [__m256i; 8] {
    let (pairs, bits) = (transpose_4(padded(v)), bits.to_le_bytes());
    let pairs: [_; 4] = std::array::from_fn(|row| code(pairs[row], bits[row] | bits[row + 4] << 4));
    std::array::from_fn(|row| match row / 4 {
        0 => _mm512_castsi512_si256(pairs[row % 4]),
        _ => _mm512_extracti64x4_epi64(pairs[row % 4], 1),
    })
}

/// Codes of eight rows of up to two columns.
#[inline]
#[target_feature(enable = "avx512f")]
fn rows_of_2(
    v: &[__m512i],
    bits: u64,
    code: &mut impl FnMut(__m512i, __mmask8) -> __m512i,
) -> [__m128i; 8] {
    let ([a, b], bits) = (padded(v), bits.to_le_bytes());
    let mut four = |odd: usize, v: __m512i| {
        let bits = [0, 2, 4, 6].map(|row| bits[odd + row] << row);
        code(v, bits[0] | bits[1] | bits[2] | bits[3])
    };
    let fours = [four(0, _mm512_unpacklo_epi64(a, b)), four(1, _mm512_unpackhi_epi64(a, b))];
    std::array::from_fn(|row| match row / 2 {
        0 => _mm512_castsi512_si128(fours[row % 2]),
        1 => _mm512_extracti32x4_epi32(fours[row % 2], 1),
        2 => _mm512_extracti32x4_epi32(fours[row % 2], 2),
        _ => _mm512_extracti32x4_epi32(fours[row % 2], 3),
    })
}

/// Writes the codes of rows `row` and `row + 1` of eight, ten or twelve columns without nulls; `code` as of
/// [`store`].
///
/// Benefit: two values of each column, those of every other column in one register, are two shuffles away from
/// two rows, and eight registers of eight rows twelve: 50 columns take 89 for 96 us.
///
/// # Safety
/// `N` is one of these; the columns hold both values; `N` eight-byte words at the places of 0 and 1 lie within
/// `out`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn store_two<P: Places, const N: usize>(
    columns: &[*const u8; N],
    row: usize,
    places: P,
    out: *mut u8,
    code: &mut impl FnMut(usize, __m512i, __mmask8) -> __m512i,
) {
    // SAFETY: as this function's.
    let at = |column: usize| unsafe { _mm_loadu_si128(columns[column].add(row * 8).cast()) };
    // Two values of every other column from `first` on, up to `end`: over again where there are less than eight
    // columns, for what looks at codes to find none that is not one of a value.
    let part = |first: usize, end: usize| {
        let mut v = _mm512_broadcast_i32x4(at(first));
        if first + 2 < end {
            v = _mm512_mask_broadcast_i32x4(v, 0xf0f0, at(first + 2));
        }
        if first + 4 < end {
            v = _mm512_mask_broadcast_i32x4(v, 0x0f00, at(first + 4));
            v = _mm512_mask_broadcast_i32x4(v, 0xf000, at(first + 6));
        }
        v
    };
    let (even, odd) = (part(0, GROUP), part(1, GROUP));
    let near = [_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd)];
    for (row, v) in near.into_iter().enumerate() {
        // SAFETY: as this function's.
        unsafe {
            _mm512_storeu_si512(out.add(places.place(row)).cast(), code(0, v, u8::MAX));
        }
    }
    if N == GROUP {
        return;
    }
    let (even, odd) = (part(GROUP, N), part(GROUP + 1, N));
    let (near, far) = (_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd));
    // SAFETY: as this function's.
    unsafe {
        let to = [0, 1].map(|row| out.add(places.place(row) + 64));
        // Both rows in one register.
        if N == 10 {
            let both = code(1, _mm512_mask_mov_epi64(near, 0b1100, far), u8::MAX);
            _mm_storeu_si128(to[0].cast(), _mm512_castsi512_si128(both));
            _mm_storeu_si128(to[1].cast(), _mm512_extracti32x4_epi32(both, 1));
        } else {
            let both = code(1, _mm512_mask_mov_epi64(near, 0xf0, far), u8::MAX);
            _mm256_storeu_si256(to[0].cast(), _mm512_castsi512_si256(both));
            _mm256_storeu_si256(to[1].cast(), _mm512_extracti64x4_epi64(both, 1));
        }
    }
}
