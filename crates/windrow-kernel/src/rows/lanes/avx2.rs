//! Registers of 32 bytes.
//!
//! ```text
//! columns of 8 bytes   a0 a1 | a2 a3        columns of 4 bytes   a0 a1 a2 a3 | a4 a5 a6 a7
//!                      ...                                       ...
//! turned               a0 b0 | c0 d0        turned               a0 b0 c0 d0 | a4 b4 c4 d4
//! ```

use std::arch::x86_64::*;
use std::ops::{BitAnd, BitOr};

use super::places::Places;
use super::vector::Vector;

/// 32 bytes. A value exists only if the CPU has AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256i);

impl BitAnd for Avx2 {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        // SAFETY: the CPU has AVX2, since a value exists.
        Self(unsafe { _mm256_and_si256(self.0, other.0) })
    }
}

impl BitOr for Avx2 {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        // SAFETY: the CPU has AVX2, since a value exists.
        Self(unsafe { _mm256_or_si256(self.0, other.0) })
    }
}

/// Returns both halves of a register.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn halves(v: __m256i) -> [__m128i; 2] {
    // SAFETY: the caller promises AVX2.
    unsafe { [_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)] }
}

/// Transposes four columns of eight bytes with four rows to rows, and back: the function is its own
/// inverse.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn turned_8(v: [__m256i; 4]) -> [__m256i; 4] {
    // SAFETY: the caller promises AVX2.
    unsafe {
        let (low_ab, high_ab) =
            (_mm256_unpacklo_epi64(v[0], v[1]), _mm256_unpackhi_epi64(v[0], v[1]));
        let (low_cd, high_cd) =
            (_mm256_unpacklo_epi64(v[2], v[3]), _mm256_unpackhi_epi64(v[2], v[3]));
        [
            _mm256_permute2x128_si256(low_ab, low_cd, 0x20),
            _mm256_permute2x128_si256(high_ab, high_cd, 0x20),
            _mm256_permute2x128_si256(low_ab, low_cd, 0x31),
            _mm256_permute2x128_si256(high_ab, high_cd, 0x31),
        ]
    }
}

/// Transposes columns of four bytes as [`turned_8`] does, separately in each half of the registers.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn turned_4(v: [__m256i; 4]) -> [__m256i; 4] {
    // SAFETY: the caller promises AVX2.
    unsafe {
        let (low_ab, high_ab) =
            (_mm256_unpacklo_epi32(v[0], v[1]), _mm256_unpackhi_epi32(v[0], v[1]));
        let (low_cd, high_cd) =
            (_mm256_unpacklo_epi32(v[2], v[3]), _mm256_unpackhi_epi32(v[2], v[3]));
        [
            _mm256_unpacklo_epi64(low_ab, low_cd),
            _mm256_unpackhi_epi64(low_ab, low_cd),
            _mm256_unpacklo_epi64(high_ab, high_cd),
            _mm256_unpackhi_epi64(high_ab, high_cd),
        ]
    }
}

impl Vector for Avx2 {
    type Mask = Self;
    type Order = Self;

    #[inline(always)]
    fn rows(width: usize) -> usize {
        32 / width
    }

    #[inline(always)]
    unsafe fn splat<const W: usize>(number: u128) -> Self {
        // SAFETY: the caller promises AVX2.
        unsafe {
            Self(match W {
                4 => _mm256_set1_epi32(number as i32),
                8 => _mm256_set1_epi64x(number as i64),
                _ => _mm256_broadcastsi128_si256(_mm_set_epi64x(
                    (number >> 64) as i64,
                    number as i64,
                )),
            })
        }
    }

    #[inline(always)]
    unsafe fn load<const W: usize>(from: *const u8) -> Self {
        // SAFETY: the caller promises AVX2, and a readable register at `from`.
        Self(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store<const W: usize>(self, to: *mut u8) {
        // SAFETY: the caller promises AVX2, and a writable register at `to`.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller promises AVX2.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn add<const W: usize>(self, other: Self) -> Self {
        // SAFETY: the caller promises AVX2.
        unsafe {
            Self(match W {
                4 => _mm256_add_epi32(self.0, other.0),
                8 => _mm256_add_epi64(self.0, other.0),
                _ => self.0,
            })
        }
    }

    #[inline(always)]
    unsafe fn sub<const W: usize>(self, other: Self) -> Self {
        // SAFETY: the caller promises AVX2.
        unsafe {
            Self(match W {
                4 => _mm256_sub_epi32(self.0, other.0),
                8 => _mm256_sub_epi64(self.0, other.0),
                _ => self.0,
            })
        }
    }

    #[inline(always)]
    unsafe fn order<const W: usize>(reversed: bool) -> Self {
        let order = order::<W>(reversed);
        // SAFETY: the caller promises AVX2.
        Self(unsafe { _mm256_broadcastsi128_si256(order) })
    }

    #[inline(always)]
    unsafe fn ordered<const W: usize>(self, order: Self) -> Self {
        // SAFETY: the caller promises AVX2.
        Self(unsafe { _mm256_shuffle_epi8(self.0, order.0) })
    }

    #[inline(always)]
    unsafe fn turned<const W: usize>(self, float: Self) -> Self {
        // SAFETY: the caller promises AVX2.
        unsafe {
            let signs = match W {
                4 => _mm256_srai_epi32(self.0, 31),
                8 => _mm256_cmpgt_epi64(_mm256_setzero_si256(), self.0),
                _ => return self,
            };
            Self(_mm256_xor_si256(self.0, _mm256_and_si256(signs, float.0)))
        }
    }

    #[inline(always)]
    unsafe fn equal<const W: usize>(self, other: Self) -> Self {
        // SAFETY: the caller promises AVX2.
        unsafe {
            Self(match W {
                4 => _mm256_cmpeq_epi32(self.0, other.0),
                _ => _mm256_cmpeq_epi64(self.0, other.0),
            })
        }
    }

    #[inline(always)]
    unsafe fn mask<const W: usize>(bits: u64) -> Self {
        // SAFETY: the caller promises AVX2.
        unsafe {
            let each = match W {
                4 => _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128),
                8 => _mm256_setr_epi64x(1, 2, 4, 8),
                _ => _mm256_setr_epi64x(1, 1, 2, 2),
            };
            Self(match W {
                4 => {
                    _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits as i32), each), each)
                }
                _ => _mm256_cmpeq_epi64(
                    _mm256_and_si256(_mm256_set1_epi64x(bits as i64), each),
                    each,
                ),
            })
        }
    }

    #[inline(always)]
    unsafe fn bits<const W: usize>(mask: Self) -> u64 {
        // SAFETY: the caller promises AVX2.
        unsafe {
            match W {
                4 => _mm256_movemask_ps(_mm256_castsi256_ps(mask.0)) as u64,
                _ => _mm256_movemask_pd(_mm256_castsi256_pd(mask.0)) as u64,
            }
        }
    }

    #[inline(always)]
    unsafe fn select<const W: usize>(mask: Self, yes: Self, no: Self) -> Self {
        // SAFETY: the caller promises AVX2.
        Self(unsafe { _mm256_blendv_epi8(no.0, yes.0, mask.0) })
    }

    #[inline(always)]
    unsafe fn store_rows<const W: usize, const N: usize, P: Places>(
        columns: [Self; N],
        places: P,
        out: *mut u8,
    ) {
        // SAFETY: the caller promises AVX2, and writable columns at the places of all rows: 4 rows
        // of columns of eight bytes, 8 of four, or 2 of sixteen.
        unsafe {
            match (W, N) {
                (_, 1) => columns[0].store::<W>(out.add(places.place(0))),
                (8, 4) => {
                    let rows = turned_8([columns[0].0, columns[1].0, columns[2].0, columns[3].0]);
                    for (row, v) in rows.into_iter().enumerate() {
                        _mm256_storeu_si256(out.add(places.place(row)).cast(), v);
                    }
                }
                (8, _) => {
                    let (a, b) = (columns[0].0, columns[1].0);
                    let [even, odd] =
                        [halves(_mm256_unpacklo_epi64(a, b)), halves(_mm256_unpackhi_epi64(a, b))];
                    for (row, v) in [even[0], odd[0], even[1], odd[1]].into_iter().enumerate() {
                        _mm_storeu_si128(out.add(places.place(row)).cast(), v);
                    }
                }
                (4, 4) => {
                    let rows = turned_4([columns[0].0, columns[1].0, columns[2].0, columns[3].0]);
                    for (row, v) in rows.into_iter().enumerate() {
                        let [near, far] = halves(v);
                        _mm_storeu_si128(out.add(places.place(row)).cast(), near);
                        _mm_storeu_si128(out.add(places.place(row + 4)).cast(), far);
                    }
                }
                (4, _) => {
                    let (a, b) = (columns[0].0, columns[1].0);
                    let pairs =
                        [halves(_mm256_unpacklo_epi32(a, b)), halves(_mm256_unpackhi_epi32(a, b))];
                    for (at, half) in pairs.into_iter().enumerate() {
                        for (far, v) in half.into_iter().enumerate() {
                            let row = 4 * far + 2 * at;
                            _mm_storel_epi64(out.add(places.place(row)).cast(), v);
                            _mm_storeh_pd(
                                out.add(places.place(row + 1)).cast(),
                                _mm_castsi128_pd(v),
                            );
                        }
                    }
                }
                _ => {
                    for pair in 0..N / 2 {
                        let (a, b) = (columns[2 * pair].0, columns[2 * pair + 1].0);
                        let rows = [
                            _mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31),
                        ];
                        for (row, v) in rows.into_iter().enumerate() {
                            let to = out.add(places.place(row) + pair * 32);
                            _mm256_storeu_si256(to.cast(), v);
                        }
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
        // SAFETY: the caller promises AVX2, and readable columns at the places of all rows: as many
        // as in `store_rows`.
        unsafe {
            let mut columns = [Self(_mm256_setzero_si256()); N];
            match (W, N) {
                (_, 1) => columns[0] = Self::load::<W>(bytes.add(places.place(0))),
                (8 | 4, 4) => {
                    let mut v = [_mm256_setzero_si256(); 4];
                    for (row, v) in v.iter_mut().enumerate() {
                        let near = bytes.add(places.place(row));
                        *v = match W {
                            8 => _mm256_loadu_si256(near.cast()),
                            _ => _mm256_loadu2_m128i(
                                bytes.add(places.place(row + 4)).cast(),
                                near.cast(),
                            ),
                        };
                    }
                    let turned = if W == 8 { turned_8(v) } else { turned_4(v) };
                    for (column, v) in columns.iter_mut().zip(turned) {
                        *column = Self(v);
                    }
                }
                (8, _) => {
                    let mut both = [_mm256_setzero_si256(); 2];
                    for (odd, v) in both.iter_mut().enumerate() {
                        *v = _mm256_loadu2_m128i(
                            bytes.add(places.place(odd + 2)).cast(),
                            bytes.add(places.place(odd)).cast(),
                        );
                    }
                    columns[0] = Self(_mm256_unpacklo_epi64(both[0], both[1]));
                    columns[1] = Self(_mm256_unpackhi_epi64(both[0], both[1]));
                }
                (4, _) => {
                    let mut pairs = [_mm256_setzero_si256(); 2];
                    for (at, v) in pairs.iter_mut().enumerate() {
                        let mut half = [_mm_setzero_si128(); 2];
                        for (far, half) in half.iter_mut().enumerate() {
                            let row = 4 * far + 2 * at;
                            let low = _mm_loadl_epi64(bytes.add(places.place(row)).cast());
                            let high = bytes.add(places.place(row + 1)).cast();
                            *half = _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(low), high));
                        }
                        *v = _mm256_inserti128_si256(_mm256_castsi128_si256(half[0]), half[1], 1);
                    }
                    let [near, far] =
                        [_mm256_castsi256_ps(pairs[0]), _mm256_castsi256_ps(pairs[1])];
                    columns[0] = Self(_mm256_castps_si256(_mm256_shuffle_ps(near, far, 0x88)));
                    columns[1] = Self(_mm256_castps_si256(_mm256_shuffle_ps(near, far, 0xdd)));
                }
                _ => {
                    for pair in 0..N / 2 {
                        let near = bytes.add(places.place(0) + pair * 32);
                        let far = bytes.add(places.place(1) + pair * 32);
                        let (a, b) =
                            (_mm256_loadu_si256(near.cast()), _mm256_loadu_si256(far.cast()));
                        columns[2 * pair] = Self(_mm256_permute2x128_si256(a, b, 0x20));
                        columns[2 * pair + 1] = Self(_mm256_permute2x128_si256(a, b, 0x31));
                    }
                }
            }
            columns
        }
    }
}

/// Returns the source of each byte of numbers of `W` bytes.
#[inline(always)]
fn order<const W: usize>(reversed: bool) -> __m128i {
    let from = |at: usize| if reversed { at / W * W + W - 1 - at % W } else { at };
    let order: [u8; 16] = std::array::from_fn(|at| from(at) as u8);
    // SAFETY: both types have sixteen bytes and any bit pattern is valid.
    unsafe { std::mem::transmute(order) }
}
