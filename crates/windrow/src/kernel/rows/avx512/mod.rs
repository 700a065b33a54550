//! The AVX-512 paths: a block of eight columns of eight bytes is eight registers, each of which becomes a
//! row, and 64 bits of validity are masks as they are.
//!
//! ```text
//! values             codes                            rows, 64 bytes at once
//! a0 a1 ... a7       xor, null (a mask), big-endian   | a0 | b0 | ... | h0 |
//! ...           -->  in registers            -->      ...
//! h0 h1 ... h7       transposed 8 x 8                 | a7 | b7 | ... | h7 |
//! ```
//!
//! Four columns are half of such a block. What is narrower goes the way of AVX2.

mod bits;
mod blocks;
mod cells;
mod pack;
mod put;
mod take;
mod text;

use std::arch::x86_64::*;

pub(super) use bits::{put_bits, take_bits};
pub(super) use blocks::put_blocks;
pub(super) use cells::put_cells;
pub(super) use pack::pack;
pub(super) use put::put;
pub(super) use take::take;
pub(super) use text::{put_texts, take_ended, take_texts};

use super::lane::{Code, Lane, LaneOut, Places, Word};
use super::portable;

/// Rows of a group: elements of a register.
const GROUP: usize = 8;

/// Whether this machine has what the kernels of this folder need.
#[inline]
pub(super) fn detected() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512vbmi") && has!("bmi2")
}

/// The constants of one lane in every element of a register.
#[derive(Clone, Copy)]
struct Constants {
    flip: __m512i,
    float: __m512i,
    delta: __m512i,
    null: __m512i,
    /// What a code that is longer is told by: no element if there are none.
    escapes: __mmask8,
    shuffle: __m512i,
}

impl Constants {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn of(code: &Code) -> Self {
        let order = match code.big {
            true => _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8),
            false => _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        };
        Self {
            flip: _mm512_set1_epi64(code.flip as i64),
            float: _mm512_set1_epi64(code.float as i64),
            delta: _mm512_set1_epi64(code.delta as i64),
            null: _mm512_set1_epi64(code.null as i64),
            escapes: if code.escapes { 0xff } else { 0 },
            shuffle: _mm512_broadcast_i32x4(order),
        }
    }
}

/// Codes of eight values, in the byte order of the row; `escaped` collects those that have none.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn code<const NULLS: bool, const FLOATS: bool>(
    mut v: __m512i,
    with: &Constants,
    valid: __mmask8,
    escaped: &mut __mmask8,
) -> __m512i {
    if FLOATS {
        let negative = _mm512_cmplt_epi64_mask(v, _mm512_setzero_si512());
        v = _mm512_mask_xor_epi64(v, negative, v, with.float);
    }
    v = _mm512_xor_si512(v, with.flip);
    if NULLS {
        v = _mm512_add_epi64(v, with.delta);
        let one = _mm512_set1_epi64(1);
        let edge = _mm512_mask_cmple_epu64_mask(valid, _mm512_add_epi64(v, one), one);
        *escaped |= edge & with.escapes;
        v = _mm512_mask_mov_epi64(with.null, valid, v);
    }
    _mm512_shuffle_epi8(v, with.shuffle)
}

/// Rows of eight columns from columns of eight rows; and back: it is its own inverse.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_8(v: [__m512i; 8]) -> [__m512i; 8] {
    let mut out = v;
    // Rows 0, 2, 4, 6 of two columns each, and then rows 1, 3, 5, 7.
    for odd in 0..2 {
        let pair = |at: usize| match odd {
            0 => _mm512_unpacklo_epi64(v[at], v[at + 1]),
            _ => _mm512_unpackhi_epi64(v[at], v[at + 1]),
        };
        let (ab, cd, ef, gh) = (pair(0), pair(2), pair(4), pair(6));
        let (near_left, far_left) =
            (_mm512_shuffle_i64x2(ab, cd, 0x88), _mm512_shuffle_i64x2(ab, cd, 0xdd));
        let (near_right, far_right) =
            (_mm512_shuffle_i64x2(ef, gh, 0x88), _mm512_shuffle_i64x2(ef, gh, 0xdd));
        out[odd] = _mm512_shuffle_i64x2(near_left, near_right, 0x88);
        out[4 + odd] = _mm512_shuffle_i64x2(near_left, near_right, 0xdd);
        out[2 + odd] = _mm512_shuffle_i64x2(far_left, far_right, 0x88);
        out[6 + odd] = _mm512_shuffle_i64x2(far_left, far_right, 0xdd);
    }
    out
}
