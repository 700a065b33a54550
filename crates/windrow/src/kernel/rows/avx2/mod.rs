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
    #[target_feature(enable = "avx2")]
    fn of_8(code: &Code) -> Self {
        let reverse = _mm256_setr_epi8(
            7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, //
            7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8,
        );
        Self {
            flip: _mm256_set1_epi64x(code.flip as i64),
            float: _mm256_set1_epi64x(code.float as i64),
            delta: _mm256_set1_epi64x(code.delta as i64),
            null: _mm256_set1_epi64x(code.null as i64),
            escapes: _mm256_set1_epi64x(-i64::from(code.escapes)),
            shuffle: if code.big { reverse } else { identity() },
        }
    }

    #[target_feature(enable = "avx2")]
    fn of_4(code: &Code) -> Self {
        let reverse = _mm256_setr_epi8(
            3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, //
            3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12,
        );
        Self {
            flip: _mm256_set1_epi32(code.flip as i32),
            float: _mm256_set1_epi32(code.float as i32),
            delta: _mm256_set1_epi32(code.delta as i32),
            null: _mm256_set1_epi32(code.null as i32),
            escapes: _mm256_set1_epi32(-i32::from(code.escapes)),
            shuffle: if code.big { reverse } else { identity() },
        }
    }
}

#[target_feature(enable = "avx2")]
fn identity() -> __m256i {
    let bytes = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm256_broadcastsi128_si256(bytes)
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

/// All ones in the elements whose bit of `bits` (the lowest four) is set.
#[target_feature(enable = "avx2")]
fn mask_8(bits: u64) -> __m256i {
    let each = _mm256_setr_epi64x(1, 2, 4, 8);
    _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits as i64), each), each)
}

/// All ones in the elements whose bit of `bits` (the lowest eight) is set.
#[target_feature(enable = "avx2")]
fn mask_4(bits: u64) -> __m256i {
    let each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits as i32), each), each)
}
