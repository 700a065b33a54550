//! Registers of 64 bytes: eight columns of eight bytes become eight rows of a line each, and
//! validity bits serve as masks directly.
//!
//! ```text
//! columns of 8 bytes   a0 a1 ... a7   turned   a0 b0 c0 d0 e0 f0 g0 h0   two rows of four columns
//!                      ...                     ...                       a register; four of two
//! ```

use std::arch::x86_64::*;

use super::places::Places;
use super::vector::Vector;
use super::x86::instructions;

/// 64 bytes.
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512i);

/// Returns the quarters of a register.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
unsafe fn quarters(v: __m512i) -> [__m128i; 4] {
    // SAFETY: the caller promises AVX-512 F.
    unsafe {
        [
            _mm512_castsi512_si128(v),
            _mm512_extracti32x4_epi32(v, 1),
            _mm512_extracti32x4_epi32(v, 2),
            _mm512_extracti32x4_epi32(v, 3),
        ]
    }
}

/// Loads 16 bytes at the place of each of four rows: `first`, and three more at distances of
/// `apart`.
///
/// # Safety
/// The CPU has AVX-512 F. The bytes are readable.
#[inline(always)]
unsafe fn four<P: Places>(places: P, first: usize, apart: usize, bytes: *const u8) -> __m512i {
    // SAFETY: the caller promises AVX-512 F and 16 readable bytes at each place.
    unsafe {
        let mut v = _mm512_castsi128_si512(_mm_loadu_si128(bytes.add(places.place(first)).cast()));
        let second = _mm_loadu_si128(bytes.add(places.place(first + apart)).cast());
        v = _mm512_mask_broadcast_i32x4(v, 0x00f0, second);
        let third = _mm_loadu_si128(bytes.add(places.place(first + 2 * apart)).cast());
        v = _mm512_mask_broadcast_i32x4(v, 0x0f00, third);
        let fourth = _mm_loadu_si128(bytes.add(places.place(first + 3 * apart)).cast());
        _mm512_mask_broadcast_i32x4(v, 0xf000, fourth)
    }
}

/// Transposes eight columns of eight bytes with eight rows to rows, and back: the function is its
/// own inverse.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
unsafe fn turned_8(v: [__m512i; 8]) -> [__m512i; 8] {
    let mut out = v;
    // Rows 0, 2, 4, 6 of two columns each, and then rows 1, 3, 5, 7.
    for odd in 0..2 {
        // SAFETY: the caller promises AVX-512 F.
        unsafe {
            let mut pairs = [v[0]; 4];
            for (at, pair) in pairs.iter_mut().enumerate() {
                *pair = match odd {
                    0 => _mm512_unpacklo_epi64(v[2 * at], v[2 * at + 1]),
                    _ => _mm512_unpackhi_epi64(v[2 * at], v[2 * at + 1]),
                };
            }
            let turned = turned_16(pairs);
            for (at, v) in turned.into_iter().enumerate() {
                out[2 * at + odd] = v;
            }
        }
    }
    out
}

/// Transposes four columns of eight bytes with eight rows to rows 0 and 4, 1 and 5, 2 and 6, and 3
/// and 7, and back.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
unsafe fn turned_4_of_8([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the caller promises AVX-512 F.
    unsafe {
        let near = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
        let far = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
        let even = (_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d));
        let odd = (_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d));
        [
            _mm512_permutex2var_epi64(even.0, near, even.1),
            _mm512_permutex2var_epi64(odd.0, near, odd.1),
            _mm512_permutex2var_epi64(even.0, far, even.1),
            _mm512_permutex2var_epi64(odd.0, far, odd.1),
        ]
    }
}

/// Transposes four columns of four bytes with four rows to rows, within each quarter, and back.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
unsafe fn turned_4([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the caller promises AVX-512 F.
    unsafe {
        let low = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
        let high = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
        [
            _mm512_unpacklo_epi64(low.0, low.1),
            _mm512_unpackhi_epi64(low.0, low.1),
            _mm512_unpacklo_epi64(high.0, high.1),
            _mm512_unpackhi_epi64(high.0, high.1),
        ]
    }
}

/// Transposes four columns of 16 bytes with four rows to rows, and back.
///
/// # Safety
/// The CPU has AVX-512 F.
#[inline(always)]
unsafe fn turned_16([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the caller promises AVX-512 F.
    unsafe {
        let even = (_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(c, d, 0x88));
        let odd = (_mm512_shuffle_i64x2(a, b, 0xdd), _mm512_shuffle_i64x2(c, d, 0xdd));
        [
            _mm512_shuffle_i64x2(even.0, even.1, 0x88),
            _mm512_shuffle_i64x2(odd.0, odd.1, 0x88),
            _mm512_shuffle_i64x2(even.0, even.1, 0xdd),
            _mm512_shuffle_i64x2(odd.0, odd.1, 0xdd),
        ]
    }
}

impl Vector for Avx512 {
    type Mask = u16;
    const COLUMNS: usize = 8;

    #[inline(always)]
    fn rows(width: usize) -> usize {
        64 / width
    }

    instructions! {
        load _mm512_loadu_si512, store _mm512_storeu_si512, xor _mm512_xor_si512,
        add _mm512_add_epi32 _mm512_add_epi64, sub _mm512_sub_epi32 _mm512_sub_epi64,
        shuffle _mm512_shuffle_epi8, broadcast _mm512_broadcast_i32x4,
        splat _mm512_set1_epi32 _mm512_set1_epi64
    }

    #[inline(always)]
    unsafe fn turned<const W: usize>(self, float: Self) -> Self {
        // SAFETY: the caller promises AVX-512 F.
        unsafe {
            let signs = match W {
                4 => _mm512_srai_epi32(self.0, 31),
                8 => _mm512_srai_epi64(self.0, 63),
                _ => return self,
            };
            Self(_mm512_xor_si512(self.0, _mm512_and_si512(signs, float.0)))
        }
    }

    #[inline(always)]
    unsafe fn equal<const W: usize>(self, other: Self) -> u16 {
        // SAFETY: the caller promises AVX-512 F.
        unsafe {
            match W {
                4 => _mm512_cmpeq_epi32_mask(self.0, other.0),
                _ => _mm512_cmpeq_epi64_mask(self.0, other.0).into(),
            }
        }
    }

    #[inline(always)]
    unsafe fn mask<const W: usize>(bits: u64) -> u16 {
        match W {
            // Two bits of each of four numbers.
            16 => {
                let apart = (bits & 1 | (bits & 2) << 1 | (bits & 4) << 2 | (bits & 8) << 3) as u16;
                apart | apart << 1
            }
            _ => bits as u16,
        }
    }

    #[inline(always)]
    unsafe fn bits<const W: usize>(mask: u16) -> u64 {
        if W == 4 { mask.into() } else { u64::from(mask) & 0xff }
    }

    #[inline(always)]
    unsafe fn select<const W: usize>(mask: u16, yes: Self, no: Self) -> Self {
        // SAFETY: the caller promises AVX-512 F.
        unsafe {
            Self(match W {
                4 => _mm512_mask_mov_epi32(no.0, mask, yes.0),
                _ => _mm512_mask_mov_epi64(no.0, mask as u8, yes.0),
            })
        }
    }

    #[inline(always)]
    unsafe fn store_rows<const W: usize, const N: usize, P: Places>(
        columns: [Self; N],
        places: P,
        out: *mut u8,
    ) {
        // SAFETY: the caller promises AVX-512 F, and writable columns at the places of all rows: 8
        // rows of columns of eight bytes, 16 of four, or 4 of sixteen.
        unsafe {
            let mut v = [columns[0].0; 8];
            for (v, column) in v.iter_mut().zip(columns) {
                *v = column.0;
            }
            let [a, b, c, d, ..] = v;
            match (W, N) {
                (_, 1) => columns[0].store::<W>(out.add(places.place(0))),
                (8, 8) => {
                    for (row, v) in turned_8(v).into_iter().enumerate() {
                        _mm512_storeu_si512(out.add(places.place(row)).cast(), v);
                    }
                }
                (8, 4) => {
                    for (row, v) in turned_4_of_8([a, b, c, d]).into_iter().enumerate() {
                        let (near, far) =
                            (out.add(places.place(row)), out.add(places.place(row + 4)));
                        _mm256_storeu_si256(near.cast(), _mm512_castsi512_si256(v));
                        _mm256_storeu_si256(far.cast(), _mm512_extracti64x4_epi64(v, 1));
                    }
                }
                (8, _) => {
                    let both = [_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)];
                    for (odd, v) in both.into_iter().enumerate() {
                        for (at, v) in quarters(v).into_iter().enumerate() {
                            _mm_storeu_si128(out.add(places.place(2 * at + odd)).cast(), v);
                        }
                    }
                }
                (4, 4) => {
                    for (row, v) in turned_4([a, b, c, d]).into_iter().enumerate() {
                        for (at, v) in quarters(v).into_iter().enumerate() {
                            _mm_storeu_si128(out.add(places.place(4 * at + row)).cast(), v);
                        }
                    }
                }
                (4, _) => {
                    let both = [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)];
                    for (far, v) in both.into_iter().enumerate() {
                        for (at, v) in quarters(v).into_iter().enumerate() {
                            let row = 4 * at + 2 * far;
                            _mm_storel_epi64(out.add(places.place(row)).cast(), v);
                            _mm_storeh_pd(
                                out.add(places.place(row + 1)).cast(),
                                _mm_castsi128_pd(v),
                            );
                        }
                    }
                }
                (_, 4) => {
                    for (row, v) in turned_16([a, b, c, d]).into_iter().enumerate() {
                        _mm512_storeu_si512(out.add(places.place(row)).cast(), v);
                    }
                }
                _ => {
                    let near = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
                    let far = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
                    let pairs = [
                        _mm512_permutex2var_epi64(a, near, b),
                        _mm512_permutex2var_epi64(a, far, b),
                    ];
                    for (at, v) in pairs.into_iter().enumerate() {
                        let row = 2 * at;
                        let (near, far) =
                            (out.add(places.place(row)), out.add(places.place(row + 1)));
                        _mm256_storeu_si256(near.cast(), _mm512_castsi512_si256(v));
                        _mm256_storeu_si256(far.cast(), _mm512_extracti64x4_epi64(v, 1));
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn load_rows<const W: usize, const N: usize, P: Places>(
        places: P,
        bytes: *const u8,
    ) -> [Self; N] {
        // SAFETY: the caller promises AVX-512 F, and readable columns at the places of all rows: as
        // many as in `store_rows`.
        unsafe {
            let mut v = [_mm512_setzero_si512(); 8];
            match (W, N) {
                (_, 1) => v[0] = _mm512_loadu_si512(bytes.add(places.place(0)).cast()),
                (8, 8) => {
                    for (row, v) in v.iter_mut().enumerate() {
                        *v = _mm512_loadu_si512(bytes.add(places.place(row)).cast());
                    }
                    v = turned_8(v);
                }
                (8, 4) => {
                    let mut rows = [v[0]; 4];
                    for (row, v) in rows.iter_mut().enumerate() {
                        let near = _mm256_loadu_si256(bytes.add(places.place(row)).cast());
                        let far = _mm256_loadu_si256(bytes.add(places.place(row + 4)).cast());
                        *v = _mm512_inserti64x4(_mm512_castsi256_si512(near), far, 1);
                    }
                    [v[0], v[1], v[2], v[3]] = turned_4_of_8(rows);
                }
                (8, _) => {
                    let (even, odd) = (four(places, 0, 2, bytes), four(places, 1, 2, bytes));
                    v[0] = _mm512_unpacklo_epi64(even, odd);
                    v[1] = _mm512_unpackhi_epi64(even, odd);
                }
                (4, 4) => {
                    let mut rows = [v[0]; 4];
                    for (row, v) in rows.iter_mut().enumerate() {
                        *v = four(places, row, 4, bytes);
                    }
                    [v[0], v[1], v[2], v[3]] = turned_4(rows);
                }
                (4, _) => [v[0], v[1]] = pairs_of_4(places, bytes),
                (_, 4) => {
                    let mut rows = [v[0]; 4];
                    for (row, v) in rows.iter_mut().enumerate() {
                        *v = _mm512_loadu_si512(bytes.add(places.place(row)).cast());
                    }
                    [v[0], v[1], v[2], v[3]] = turned_16(rows);
                }
                _ => {
                    let mut pairs = [v[0]; 2];
                    for (at, v) in pairs.iter_mut().enumerate() {
                        let near = _mm256_loadu_si256(bytes.add(places.place(2 * at)).cast());
                        let far = _mm256_loadu_si256(bytes.add(places.place(2 * at + 1)).cast());
                        *v = _mm512_inserti64x4(_mm512_castsi256_si512(near), far, 1);
                    }
                    v[0] = _mm512_shuffle_i64x2(pairs[0], pairs[1], 0x88);
                    v[1] = _mm512_shuffle_i64x2(pairs[0], pairs[1], 0xdd);
                }
            }
            let mut columns = [Self(v[0]); N];
            for (column, v) in columns.iter_mut().zip(v) {
                *column = Self(v);
            }
            columns
        }
    }
}

/// Returns two columns of four bytes of sixteen rows.
///
/// # Safety
/// The CPU has AVX-512 F, and both columns are readable at the places of the rows.
#[inline(always)]
unsafe fn pairs_of_4<P: Places>(places: P, bytes: *const u8) -> [__m512i; 2] {
    // SAFETY: as this function's.
    unsafe {
        let mut pairs = [_mm512_setzero_si512(); 2];
        for (far, v) in pairs.iter_mut().enumerate() {
            let mut four = [_mm_setzero_si128(); 4];
            for (at, pair) in four.iter_mut().enumerate() {
                let row = 4 * at + 2 * far;
                let low = _mm_loadl_epi64(bytes.add(places.place(row)).cast());
                let high = bytes.add(places.place(row + 1)).cast();
                *pair = _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(low), high));
            }
            let near = _mm256_inserti128_si256(_mm256_castsi128_si256(four[0]), four[1], 1);
            let far = _mm256_inserti128_si256(_mm256_castsi128_si256(four[2]), four[3], 1);
            *v = _mm512_inserti64x4(_mm512_castsi256_si512(near), far, 1);
        }
        let [near, far] = [_mm512_castsi512_ps(pairs[0]), _mm512_castsi512_ps(pairs[1])];
        [
            _mm512_castps_si512(_mm512_shuffle_ps(near, far, 0x88)),
            _mm512_castps_si512(_mm512_shuffle_ps(near, far, 0xdd)),
        ]
    }
}
