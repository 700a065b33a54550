//! Rows to columns.

use std::arch::x86_64::*;

use super::super::lane::all_valid;
use super::{Code, GROUP, LaneOut, Places, Word, portable, transpose_4, transpose_8};
use crate::kernel::prefetch::prefetch_written;

/// The constants of one lane in every element of a register.
#[derive(Clone, Copy)]
struct LaneCode {
    flip: __m512i,
    float: __m512i,
    delta: __m512i,
    null: __m512i,
    /// What a code that is longer is told by: no element if there are none.
    escapes: __mmask8,
    shuffle: __m512i,
}

impl LaneCode {
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

/// Values between one that is written and the line that is asked for meanwhile, of eight columns: 50 columns
/// take 254 instead of 269 us, but ten in one turn 29 instead of 27.
const AHEAD: usize = 16;

/// Lanes of eight bytes, two to eight, ten or twelve, as `take` of the module.
///
/// Benefit: 2 and 3 columns take a third of the time of AVX2, 7 half of it, 10 two thirds; 4 as long.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL; `T` has eight bytes; lane `i` of row `n` lies within `bytes` at
/// `places.place(n) + i * 8` for all rows below `rows`; the lanes have room for as many bits.
///
/// # Panics
/// If there is another number of lanes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel::rows) unsafe fn take<T: Word, P: Places>(
    lanes: &mut [LaneOut<'_, T>],
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    let start = bytes.as_ptr();
    let nulls = lanes.iter().any(|lane| lane.code.escapes);
    let done = rows / GROUP * GROUP;
    macro_rules! counts {
        ($($count:literal)*) => {
            match lanes.len() {
                $($count => {
                    let lanes: &mut [LaneOut<'_, T>; $count] =
                        (&mut *lanes).try_into().expect("so many lanes");
                    // SAFETY: as this function's.
                    unsafe {
                        match nulls {
                            false => take_of::<T, P, $count, false>(lanes, done, places, start),
                            true => take_of::<T, P, $count, true>(lanes, done, places, start),
                        }
                    }
                })*
                count => panic!("{count} lanes"),
            }
        };
    }
    let fits = counts!(2 3 4 5 6 7 8 10 12);
    for lane in &mut *lanes {
        // SAFETY: the first `done` values were written where there is room for them.
        unsafe { lane.values.grow(done) };
    }
    fits & portable::take::<T, P>(lanes, done, rows, places, bytes)
}

/// # Safety
/// As [`take`], for `N` lanes and whole groups of rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn take_of<T: Word, P: Places, const N: usize, const NULLS: bool>(
    lanes: &mut [LaneOut<'_, T>; N],
    rows: usize,
    places: P,
    bytes: *const u8,
) -> bool {
    let codes: [Code; N] = std::array::from_fn(|lane| lanes[lane].code);
    let with: [LaneCode; N] = std::array::from_fn(|lane| LaneCode::of(&codes[lane]));
    // Behind the values that are there: where the first row goes.
    let targets = lanes.each_mut().map(|lane| lane.values.room(rows));
    let mut escaped = 0;
    let mut valid = [0u64; N];
    for row in (0..rows).step_by(GROUP) {
        // SAFETY: the lanes of these rows lie within `bytes`.
        let v: [__m512i; N] = unsafe { load(places.behind(row), bytes) };
        for lane in 0..N {
            let (value, bits) = value::<NULLS>(v[lane], &with[lane], &mut escaped);
            if N == GROUP {
                prefetch_written(targets[lane].wrapping_add(row + AHEAD).cast());
            }
            // SAFETY: there is room for eight values from `row` on.
            unsafe { _mm512_storeu_si512(targets[lane].add(row).cast(), value) };
            if NULLS {
                valid[lane] |= u64::from(bits) << (row % 64);
            }
        }
        if NULLS && ((row + GROUP).is_multiple_of(64) || row + GROUP == rows) {
            for (lane, valid) in lanes.iter_mut().zip(&mut valid) {
                lane.valid[row / 64] = std::mem::take(valid);
            }
        }
    }
    if !NULLS {
        lanes.iter_mut().for_each(|lane| all_valid(lane.valid, rows));
    }
    escaped == 0
}

/// `N` columns of the first eight rows, as [`take`] has them.
///
/// # Safety
/// `N` words of eight bytes at the places of these rows lie within `bytes`.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn load<P: Places, const N: usize>(places: P, bytes: *const u8) -> [__m512i; N] {
    let mut out = [_mm512_setzero_si512(); N];
    let (near, far) = out.split_at_mut(N.min(GROUP));
    let behind = places.shifted(GROUP * 8);
    // SAFETY: as this function's; the masks are of the words there are.
    unsafe {
        match near.len() {
            2 => near.copy_from_slice(&two_of(places, bytes)),
            3 => near.copy_from_slice(&four_of(places, 0b111, bytes)[..3]),
            4 => near.copy_from_slice(&four_of(places, 0b1111, bytes)),
            count => {
                near.copy_from_slice(&eight_of(places, u8::MAX >> (8 - count), bytes)[..count]);
            }
        }
        match far.len() {
            0 => {}
            2 => far.copy_from_slice(&two_of(behind, bytes)),
            _ => far.copy_from_slice(&four_of(behind, 0b1111, bytes)),
        }
    }
    out
}

/// Columns of eight rows, of eight words each; those not `present` are zeros.
///
/// # Safety
/// The present words at the places of these rows lie within `bytes`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn eight_of<P: Places>(places: P, present: __mmask8, bytes: *const u8) -> [__m512i; 8] {
    // SAFETY: as this function's.
    transpose_8(std::array::from_fn(|row| unsafe {
        _mm512_maskz_loadu_epi64(present, bytes.add(places.place(row)).cast())
    }))
}

/// As [`eight_of`], of four words.
///
/// # Safety
/// As [`eight_of`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn four_of<P: Places>(places: P, present: __mmask8, bytes: *const u8) -> [__m512i; 4] {
    let row = |row: usize| {
        // SAFETY: as this function's.
        unsafe { _mm256_maskz_loadu_epi64(present, bytes.add(places.place(row)).cast()) }
    };
    transpose_4(std::array::from_fn(|at| {
        _mm512_inserti64x4(_mm512_castsi256_si512(row(at)), row(at + 4), 1)
    }))
}

/// As [`eight_of`], of two words.
///
/// # Safety
/// As [`eight_of`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn two_of<P: Places>(places: P, bytes: *const u8) -> [__m512i; 2] {
    let row = |row: usize| {
        // SAFETY: as this function's.
        unsafe { _mm_loadu_si128(bytes.add(places.place(row)).cast()) }
    };
    let [even, odd] = std::array::from_fn(|odd| {
        let mut four = _mm512_castsi128_si512(row(odd));
        four = _mm512_mask_broadcast_i32x4(four, 0x00f0, row(odd + 2));
        four = _mm512_mask_broadcast_i32x4(four, 0x0f00, row(odd + 4));
        _mm512_mask_broadcast_i32x4(four, 0xf000, row(odd + 6))
    });
    [_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd)]
}

/// Values of eight codes in the order of the machine, and the bits of those that are not null; `escaped`
/// collects codes that are longer.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn value<const NULLS: bool>(
    v: __m512i,
    with: &LaneCode,
    escaped: &mut __mmask8,
) -> (__m512i, __mmask8) {
    let mut v = _mm512_shuffle_epi8(v, with.shuffle);
    let mut valid = 0xff;
    if NULLS {
        let edge = _mm512_xor_si512(with.null, _mm512_set1_epi64(-1));
        *escaped |= _mm512_cmpeq_epi64_mask(v, edge) & with.escapes;
        valid = _mm512_cmpneq_epi64_mask(v, with.null) | !with.escapes;
        v = _mm512_sub_epi64(v, with.delta);
    }
    v = _mm512_xor_si512(v, with.flip);
    let negative = _mm512_cmplt_epi64_mask(v, _mm512_setzero_si512());
    v = _mm512_mask_xor_epi64(v, negative, v, with.float);
    if NULLS {
        v = _mm512_maskz_mov_epi64(valid, v);
    }
    (v, valid)
}
