//! The AVX2 paths: blocks of four columns transposed in registers.
//!
//! Columns that lie a multiple of 4 KiB apart share a few sets of the first-level cache: the caller
//! cuts the rows into tiles, and a block reads only four columns at a time.
//!
//! `put` and `take` choose among kernels for one, two or four columns of four or eight bytes; what
//! they have in common is here.

mod bounds;
mod cells;
mod grow;
mod put;
mod take;

use std::arch::x86_64::*;

pub(super) use bounds::bounds;
pub(super) use cells::put_cells;
pub(super) use grow::grow;
pub(super) use put::put;
pub(super) use take::take;

use super::lane::{Code, Lane, LaneOut, Places, Word};
use super::portable;

/// The constants of one lane in every element of a register.
#[derive(Clone, Copy)]
struct Constants {
    flip: __m256i,
    float: __m256i,
    delta: __m256i,
    null: __m256i,
    /// What a code that is longer is told by: zeros if there are none.
    escapes: __m256i,
    shuffle: __m256i,
}

impl Constants {
    /// Of a lane of `W` bytes.
    #[target_feature(enable = "avx2")]
    fn of<const W: usize>(code: &Code) -> Self {
        let big = if W == 8 {
            _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8)
        } else {
            _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12)
        };
        let same = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        Self {
            flip: splat::<W>(code.flip),
            float: splat::<W>(code.float),
            delta: splat::<W>(code.delta),
            null: splat::<W>(code.null),
            escapes: splat::<W>(if code.escapes { u64::MAX } else { 0 }),
            shuffle: _mm256_broadcastsi128_si256(if code.big { big } else { same }),
        }
    }
}

// Elements of `W` bytes, 4 or 8.

/// Elements of a register, which are the rows of a group.
const fn group(width: usize) -> usize {
    32 / width
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat<const W: usize>(value: u64) -> __m256i {
    if W == 8 { _mm256_set1_epi64x(value as i64) } else { _mm256_set1_epi32(value as i32) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add<const W: usize>(a: __m256i, b: __m256i) -> __m256i {
    if W == 8 { _mm256_add_epi64(a, b) } else { _mm256_add_epi32(a, b) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn sub<const W: usize>(a: __m256i, b: __m256i) -> __m256i {
    if W == 8 { _mm256_sub_epi64(a, b) } else { _mm256_sub_epi32(a, b) }
}

/// All ones in the elements that are equal.
#[inline]
#[target_feature(enable = "avx2")]
fn equal<const W: usize>(a: __m256i, b: __m256i) -> __m256i {
    if W == 8 { _mm256_cmpeq_epi64(a, b) } else { _mm256_cmpeq_epi32(a, b) }
}

/// All ones in the elements that are negative.
#[inline]
#[target_feature(enable = "avx2")]
fn negative<const W: usize>(v: __m256i) -> __m256i {
    let zero = _mm256_setzero_si256();
    if W == 8 { _mm256_cmpgt_epi64(zero, v) } else { _mm256_cmpgt_epi32(zero, v) }
}

/// All ones in the elements whose bit of `bits` is set.
#[inline]
#[target_feature(enable = "avx2")]
fn mask<const W: usize>(bits: u64) -> __m256i {
    let each = if W == 8 {
        _mm256_setr_epi64x(1, 2, 4, 8)
    } else {
        _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128)
    };
    equal::<W>(_mm256_and_si256(splat::<W>(bits), each), each)
}

/// The highest bit of each element.
#[inline]
#[target_feature(enable = "avx2")]
fn highest<const W: usize>(v: __m256i) -> u64 {
    let bits = if W == 8 {
        _mm256_movemask_pd(_mm256_castsi256_pd(v))
    } else {
        _mm256_movemask_ps(_mm256_castsi256_ps(v))
    };
    bits as u64
}

/// Rows of four columns of eight bytes, from columns of four rows; and back: it is its own inverse.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_8(v: [__m256i; 4]) -> [__m256i; 4] {
    let low_ab = _mm256_unpacklo_epi64(v[0], v[1]);
    let high_ab = _mm256_unpackhi_epi64(v[0], v[1]);
    let low_cd = _mm256_unpacklo_epi64(v[2], v[3]);
    let high_cd = _mm256_unpackhi_epi64(v[2], v[3]);
    [
        _mm256_permute2x128_si256(low_ab, low_cd, 0x20),
        _mm256_permute2x128_si256(high_ab, high_cd, 0x20),
        _mm256_permute2x128_si256(low_ab, low_cd, 0x31),
        _mm256_permute2x128_si256(high_ab, high_cd, 0x31),
    ]
}

/// Within each half of the registers, rows of four columns of four bytes from columns of four rows;
/// and back.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_4(v: [__m256i; 4]) -> [__m256i; 4] {
    let low_ab = _mm256_unpacklo_epi32(v[0], v[1]);
    let high_ab = _mm256_unpackhi_epi32(v[0], v[1]);
    let low_cd = _mm256_unpacklo_epi32(v[2], v[3]);
    let high_cd = _mm256_unpackhi_epi32(v[2], v[3]);
    [
        _mm256_unpacklo_epi64(low_ab, low_cd),
        _mm256_unpackhi_epi64(low_ab, low_cd),
        _mm256_unpacklo_epi64(high_ab, high_cd),
        _mm256_unpackhi_epi64(high_ab, high_cd),
    ]
}
