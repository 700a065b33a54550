//! Rows to columns.

use std::arch::x86_64::*;

use super::super::lane::all_valid;
use super::{Code, GROUP, LaneOut, Places, Word, portable, transpose_4, transpose_8};

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

/// Eight or four lanes of eight bytes, as `take` of the module.
///
/// # Safety
/// The CPU has AVX-512 F and BW; `T` has eight bytes; lane `i` of row `n` lies within `bytes` at `places.place(n) + i * 8` for all
/// rows below `rows`; the lanes have room for `rows` more values, and as many bits.
#[target_feature(enable = "avx512f,avx512bw")]
pub(in crate::kernel::rows) unsafe fn take<T: Word, P: Places>(
    lanes: &mut [LaneOut<'_, T>],
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    let start = bytes.as_ptr();
    let nulls = lanes.iter().any(|lane| lane.code.escapes);
    let done = rows / GROUP * GROUP;
    macro_rules! dispatch {
        ($lanes:ident) => {
            // SAFETY: as this function's.
            unsafe {
                match nulls {
                    false => take_of::<T, P, _, false>($lanes, done, places, start),
                    true => take_of::<T, P, _, true>($lanes, done, places, start),
                }
            }
        };
    }
    let fits = if let Ok(lanes) = <&mut [LaneOut<'_, T>; 8]>::try_from(&mut *lanes) {
        dispatch!(lanes)
    } else if let Ok(lanes) = <&mut [LaneOut<'_, T>; 4]>::try_from(&mut *lanes) {
        dispatch!(lanes)
    } else {
        return portable::take::<T, P>(lanes, 0, rows, places, bytes);
    };
    for lane in &mut *lanes {
        // SAFETY: there is room for `rows` more values; the first `done` of them were written.
        unsafe { lane.values.set_len(lane.values.len() + done) };
    }
    fits & portable::take::<T, P>(lanes, done, rows, places, bytes)
}

/// # Safety
/// As [`take`], for `N` lanes, which are 4 or 8, and whole groups of rows.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn take_of<T, P: Places, const N: usize, const NULLS: bool>(
    lanes: &mut [LaneOut<'_, T>; N],
    rows: usize,
    places: P,
    bytes: *const u8,
) -> bool {
    let codes: [Code; N] = std::array::from_fn(|lane| lanes[lane].code);
    let with: [LaneCode; N] = std::array::from_fn(|lane| LaneCode::of(&codes[lane]));
    // Behind the values that are there: where the first row goes.
    let targets = lanes.each_mut().map(|lane| lane.values.spare_capacity_mut().as_mut_ptr());
    let mut escaped = 0;
    let mut valid = [0u64; N];
    for row in (0..rows).step_by(GROUP) {
        // SAFETY: the lanes of these rows lie within `bytes`.
        let v: [__m512i; N] = unsafe { load(places, row, bytes) };
        for lane in 0..N {
            let (value, bits) = value::<NULLS>(v[lane], &with[lane], &mut escaped);
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

/// Columns of the eight rows from row `at` on.
///
/// # Safety
/// `N` eight-byte words, 4 or 8, at the places of these rows lie within `bytes`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn load<P: Places, const N: usize>(places: P, at: usize, bytes: *const u8) -> [__m512i; N] {
    let mut out = [_mm512_setzero_si512(); N];
    if let Ok(out) = <&mut [__m512i; 8]>::try_from(&mut out[..]) {
        for (index, v) in out.iter_mut().enumerate() {
            // SAFETY: as this function's.
            *v = unsafe { _mm512_loadu_si512(bytes.add(places.place(at + index)).cast()) };
        }
        *out = transpose_8(*out);
    } else if let Ok(out) = <&mut [__m512i; 4]>::try_from(&mut out[..]) {
        let two = |index: usize| {
            // SAFETY: as this function's.
            unsafe {
                let low = _mm256_loadu_si256(bytes.add(places.place(at + index)).cast());
                let high = _mm256_loadu_si256(bytes.add(places.place(at + index + 4)).cast());
                _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)
            }
        };
        *out = transpose_4([two(0), two(1), two(2), two(3)]);
    }
    out
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
