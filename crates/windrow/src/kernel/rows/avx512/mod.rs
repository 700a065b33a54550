//! The AVX-512 paths: a block of eight columns of eight bytes is eight registers, each of which
//! becomes a row, and 64 bits of validity are masks as they are.
//!
//! ```text
//! values             rows                      codes, 64 bytes at once
//! a0 a1 ... a7                                 xor, delta, null, big-endian: a register of
//! ...           -->  transposed 8 x 8     -->  constants each, for all eight columns
//! h0 h1 ... h7                                 | a0 | b0 | ... | h0 |
//! ```
//!
//! Of eight columns without nulls two rows at a time are loaded to where they stand, which takes half the
//! shuffles (`store`). Four columns are two rows in a register, and two columns four. What is narrower
//! goes the way of AVX2.

/// A register of the eight bytes at each of eight places, a pointer for each number from 0 to 7: they may be read. As a
/// function it is called, and what it returns goes through memory.
macro_rules! words_at {
    ($at:expr) => {{
        let at = $at;
        let two = |row: usize| {
            let low = _mm_loadl_epi64(at(row).cast());
            _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(low), at(row + 1).cast()))
        };
        let near = _mm256_inserti128_si256(_mm256_castsi128_si256(two(0)), two(2), 1);
        let far = _mm256_inserti128_si256(_mm256_castsi128_si256(two(4)), two(6), 1);
        _mm512_inserti64x4(_mm512_castsi256_si512(near), far, 1)
    }};
}

mod binary;
mod bits;
mod blocks;
mod bounds;
mod bytes;
mod cells;
mod escapes;
mod exact;
mod grow;
mod grow_codes;
mod heads;
mod lengths;
mod pack;
mod put;
mod put_bits;
mod shrink;
mod shrink_few;
mod shrink_last;
mod spans;
mod starts;
mod store;
mod take;
mod take_blocks;
mod take_bytes;
mod take_cells;
mod take_lists;
mod take_text;
mod text;
mod wide;
mod words;

use std::arch::x86_64::*;

pub(super) use binary::take_binaries;
pub(super) use bits::take_bits;
pub(super) use blocks::put_blocks;
pub(super) use bounds::bounds;
pub(super) use bytes::put_bytes;
pub(super) use cells::put_cells;
pub(super) use escapes::escape;
pub(super) use exact::{add_escaped, put_counted, put_escaped, put_exact};
pub(super) use grow::grow;
pub(super) use heads::{head_bounds, pack_heads, shared};
pub(super) use lengths::add_spans;
pub(super) use pack::{clamp, narrow, pack};
pub(super) use put::{codes_of, codes_of_blocks, put, put_plain, put_plains};
pub(super) use shrink::shrink;
pub(super) use spans::put_spans;
pub(super) use starts::put_texts_at;
pub(super) use take::take;
pub(super) use take_blocks::take_blocks;
pub(super) use take_bytes::{ByteOrder, take_bytes};
pub(super) use take_cells::{CellOrder, take_cells};
pub(super) use take_lists::take_lists;
pub(super) use take_text::take_texts;
pub(super) use text::put_texts;
pub(super) use wide::{put_wide, take_wide, take_wide_some};

use super::lane::{Code, Lane, LaneOut, Places, Word};
use super::portable;

/// Rows of a group: elements of a register.
const GROUP: usize = 8;
/// Bytes ahead of values that are read one after the other and asked for: the hardware does not look beyond a
/// page. The bounds of 2^20 numbers take 0.32 ms instead of 0.47.
const AHEAD: usize = 2048;

/// Whether this machine has what the kernels of this folder need.
#[inline]
pub(super) fn detected() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f")
        && has!("avx512bw")
        && has!("avx512vl")
        && has!("avx512vbmi")
        && has!("avx512vbmi2")
        && has!("bmi1")
        && has!("bmi2")
        && has!("popcnt")
        && has!("gfni")
}

/// The first rows of `rows`, in whole words of 64, of each of which `reach` bytes may be read out of `len`.
///
/// Benefit: asked of each row, where the last one is too near the end, it was 3 us of 8,192 rows, as much as to read them.
fn reached<P: Places>(rows: usize, places: P, reach: usize, len: usize) -> usize {
    const WORD: usize = 64;
    let whole = rows / WORD * WORD;
    if rows == 0 || places.furthest(rows) + reach <= len {
        return whole;
    }
    let furthest = |first: usize| match places.stride() {
        Some(_) => places.place(first + WORD - 1),
        None => (first..first + WORD).fold(0, |most, row| most.max(places.place(row))),
    };
    let mut words = (0..whole).step_by(WORD);
    words.find(|&first| furthest(first) + reach > len).unwrap_or(whole)
}

/// The constants of lanes, one, two, four or eight, in each place that these have in a register of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codes {
    flip: __m512i,
    float: __m512i,
    delta: __m512i,
    null: __m512i,
    /// Where the bytes of a row come from, within the 16 bytes of two lanes.
    order: __m512i,
    /// Which places are those of lanes whose codes may be longer.
    escapes: __mmask8,
    /// Whether a lane is of floats.
    floats: bool,
    /// Whether a lane has validity bits: not known from codes alone, and false until somebody says so.
    nulls: bool,
}

impl Codes {
    /// Those of up to eight columns, if this machine has what the kernels of this folder need: the columns
    /// that are missing up to two, four or eight are like the last one.
    pub(super) fn of_columns(codes: &[Code]) -> Option<Self> {
        fn padded<const N: usize>(codes: &[Code]) -> [Code; N] {
            std::array::from_fn(|at| codes[at.min(codes.len() - 1)])
        }
        // SAFETY: the features were detected.
        detected().then(|| unsafe {
            match codes.len() {
                0..=2 => Self::of(&padded::<2>(codes)),
                3 | 4 => Self::of(&padded::<4>(codes)),
                _ => Self::of(&padded::<8>(codes)),
            }
        })
    }

    #[target_feature(enable = "avx512f")]
    fn of<const N: usize>(codes: &[Code; N]) -> Self {
        let words = |of: fn(&Code) -> u64| {
            let words: [u64; GROUP] = std::array::from_fn(|at| of(&codes[at % N]));
            // SAFETY: the array has 64 bytes.
            unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
        };
        let order: [u64; GROUP] = std::array::from_fn(|at| {
            let bytes = 0x0706_0504_0302_0100 + 0x0808_0808_0808_0808 * (at as u64 % 2);
            if codes[at % N].big { bytes.swap_bytes() } else { bytes }
        });
        Self {
            flip: words(|code| code.flip),
            float: words(|code| code.float),
            delta: words(|code| code.delta),
            null: words(|code| code.null),
            // SAFETY: the array has 64 bytes.
            order: unsafe { _mm512_loadu_si512(order.as_ptr().cast()) },
            escapes: (0..GROUP).map(|at| u8::from(codes[at % N].escapes) << at).sum(),
            floats: codes.iter().any(|code| code.float != 0),
            nulls: false,
        }
    }

    /// What makes, by addition, of a code of all zeros or all ones the first byte of a longer one,
    /// eight times but for the last, which is that of the longer one.
    #[target_feature(enable = "avx512f")]
    fn longer(&self) -> __m512i {
        let edge = _mm512_andnot_si512(self.null, _mm512_set1_epi64(!0xff));
        _mm512_add_epi64(edge, _mm512_set1_epi64(1))
    }
}

/// Codes of values, in the byte order of the machine; `MOVED` where there may be one for nulls.
#[inline]
#[target_feature(enable = "avx512f")]
fn code<const MOVED: bool, const FLOATS: bool>(mut v: __m512i, with: &Codes) -> __m512i {
    if FLOATS {
        let negative = _mm512_cmplt_epi64_mask(v, _mm512_setzero_si512());
        v = _mm512_mask_xor_epi64(v, negative, v, with.float);
    }
    v = _mm512_xor_si512(v, with.flip);
    if MOVED { _mm512_add_epi64(v, with.delta) } else { v }
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

/// Rows 0 to 3, and 4 to 7, of two columns, from columns of eight rows.
#[inline]
#[target_feature(enable = "avx512f")]
fn in_turns(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
    let near = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    let far = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    (_mm512_permutex2var_epi64(a, near, b), _mm512_permutex2var_epi64(a, far, b))
}

/// Rows 0 and 4, 1 and 5, 2 and 6, and 3 and 7 of four columns, from columns of eight rows; and
/// back: it is its own inverse too.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_4([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
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

/// The lowest bit of each byte.
const BYTES: u64 = 0x0101_0101_0101_0101;

/// The lowest eight bits, a row each, as bit `lane` of eight bytes.
#[inline]
#[target_feature(enable = "bmi2")]
fn spread(bits: u64, lane: usize) -> u64 {
    _pdep_u64(bits, BYTES << lane)
}

/// Bit `lane` of eight bytes, a row each, as eight bits.
#[inline]
#[target_feature(enable = "bmi2")]
fn gather(bytes: u64, lane: usize) -> u64 {
    _pext_u64(bytes, BYTES << lane)
}
