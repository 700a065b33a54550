//! Rows to columns.

use std::arch::x86_64::*;

use super::super::lane::all_valid;
use super::{Code, Constants, LaneOut, Places, Word, portable, transpose_4, transpose_8};

/// Up to 4 lanes, as `take` of the module.
///
/// # Safety
/// The CPU has AVX2; lane `i` of row `n` lies within `bytes` at `places.place(n) + i * size_of::<T>()`
/// for all rows below `rows`; the lanes have room for as many bits.
#[target_feature(enable = "avx2")]
pub(in crate::kernel::rows) unsafe fn take<T: Word, P: Places>(
    lanes: &mut [LaneOut<'_, T>],
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    let width = size_of::<T>();
    let nulls = lanes.iter().any(|lane| lane.code.escapes);
    let start = bytes.as_ptr();
    // Behind the values that are there: where the first row goes.
    let out = |lane: &mut LaneOut<'_, T>| lane.values.room(rows);
    let mut fits = true;
    let mut done = rows & !3;
    if let [a, b, c, d] = lanes {
        let targets = [out(a), out(b), out(c), out(d)];
        let lanes = [a, b, c, d];
        let with = [0, 1, 2, 3].map(|lane: usize| lanes[lane].code);
        let valid = lanes.map(|lane| &mut lane.valid[..]);
        // SAFETY: as this function's.
        unsafe {
            match (width, nulls) {
                (8, false) => {
                    let targets = targets.map(|target| target.cast());
                    fits = take_quad_8::<P, false>(&with, targets, valid, rows, places, start);
                }
                (8, true) => {
                    let targets = targets.map(|target| target.cast());
                    fits = take_quad_8::<P, true>(&with, targets, valid, rows, places, start);
                }
                (_, false) => {
                    done = rows & !7;
                    let targets = targets.map(|target| target.cast());
                    fits = take_quad_4::<P, false>(&with, targets, valid, rows, places, start);
                }
                (_, true) => {
                    done = rows & !7;
                    let targets = targets.map(|target| target.cast());
                    fits = take_quad_4::<P, true>(&with, targets, valid, rows, places, start);
                }
            }
        }
    } else {
        for (index, lane) in lanes.iter_mut().enumerate() {
            let (target, places) = (out(lane), places.shifted(index * width));
            // SAFETY: as this function's.
            fits &= unsafe {
                if width == 8 {
                    take_one_8(&lane.code, target.cast(), lane.valid, rows, places, start)
                } else {
                    done = rows & !7;
                    take_one_4(&lane.code, target.cast(), lane.valid, rows, places, start)
                }
            };
        }
    }
    for lane in &mut *lanes {
        // SAFETY: there is room for `rows` more values; the first `done` of them were written.
        unsafe { lane.values.grow(done) };
    }
    fits & portable::take::<T, P>(lanes, done, rows, places, bytes)
}

/// Values of four codes in the order of the machine, and the bits of those that are not null;
/// `escaped` collects codes that are longer.
#[inline]
#[target_feature(enable = "avx2")]
fn value_8<const NULLS: bool>(
    v: __m256i,
    with: &Constants,
    escaped: &mut __m256i,
) -> (__m256i, u64) {
    let v = _mm256_shuffle_epi8(v, with.shuffle);
    let all = _mm256_set1_epi64x(-1);
    let zero = _mm256_setzero_si256();
    let (mut shifted, mut null) = (v, zero);
    if NULLS {
        null = _mm256_and_si256(_mm256_cmpeq_epi64(v, with.null), with.escapes);
        let edge = _mm256_cmpeq_epi64(v, _mm256_xor_si256(with.null, all));
        *escaped = _mm256_or_si256(*escaped, _mm256_and_si256(edge, with.escapes));
        shifted = _mm256_sub_epi64(v, with.delta);
    }
    let mut value = _mm256_xor_si256(shifted, with.flip);
    let negative = _mm256_cmpgt_epi64(zero, value);
    value = _mm256_xor_si256(value, _mm256_and_si256(negative, with.float));
    if NULLS {
        value = _mm256_andnot_si256(null, value);
    }
    (value, !_mm256_movemask_pd(_mm256_castsi256_pd(null)) as u64 & 0xf)
}

/// As [`value_8`], for eight codes of four bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn value_4<const NULLS: bool>(
    v: __m256i,
    with: &Constants,
    escaped: &mut __m256i,
) -> (__m256i, u64) {
    let v = _mm256_shuffle_epi8(v, with.shuffle);
    let all = _mm256_set1_epi64x(-1);
    let zero = _mm256_setzero_si256();
    let (mut shifted, mut null) = (v, zero);
    if NULLS {
        null = _mm256_and_si256(_mm256_cmpeq_epi32(v, with.null), with.escapes);
        let edge = _mm256_cmpeq_epi32(v, _mm256_xor_si256(with.null, all));
        *escaped = _mm256_or_si256(*escaped, _mm256_and_si256(edge, with.escapes));
        shifted = _mm256_sub_epi32(v, with.delta);
    }
    let mut value = _mm256_xor_si256(shifted, with.flip);
    let negative = _mm256_cmpgt_epi32(zero, value);
    value = _mm256_xor_si256(value, _mm256_and_si256(negative, with.float));
    if NULLS {
        value = _mm256_andnot_si256(null, value);
    }
    (value, !_mm256_movemask_ps(_mm256_castsi256_ps(null)) as u64 & 0xff)
}

/// Adds the validity of the rows from `row` on.
#[inline(always)]
fn put_valid(valid: &mut [u64], row: usize, bits: u64) {
    if row.is_multiple_of(64) {
        valid[row / 64] = 0;
    }
    valid[row / 64] |= bits << (row % 64);
}

/// # Safety
/// As [`take`], for four lanes of eight bytes and the rows below `rows / 4 * 4`; `targets` is where
/// the values of the first row go.
#[target_feature(enable = "avx2")]
unsafe fn take_quad_8<P: Places, const NULLS: bool>(
    codes: &[Code; 4],
    targets: [*mut u64; 4],
    mut valid: [&mut [u64]; 4],
    rows: usize,
    places: P,
    bytes: *const u8,
) -> bool {
    let with = [0, 1, 2, 3].map(|lane: usize| Constants::of_8(&codes[lane]));
    let mut escaped = _mm256_setzero_si256();
    for row in (0..rows / 4 * 4).step_by(4) {
        let mut v = [_mm256_setzero_si256(); 4];
        for (index, v) in v.iter_mut().enumerate() {
            // SAFETY: the four lanes of this row are 32 bytes within `bytes`.
            *v = unsafe { _mm256_loadu_si256(bytes.add(places.place(row + index)).cast()) };
        }
        let v = transpose_8(v);
        for lane in 0..4 {
            let (value, bits) = value_8::<NULLS>(v[lane], &with[lane], &mut escaped);
            // SAFETY: there is room for four values from `row` on.
            unsafe { _mm256_storeu_si256(targets[lane].add(row).cast(), value) };
            if NULLS {
                put_valid(valid[lane], row, bits);
            }
        }
    }
    if !NULLS {
        valid.iter_mut().for_each(|valid| all_valid(valid, rows / 4 * 4));
    }
    _mm256_testz_si256(escaped, escaped) == 1
}

/// # Safety
/// As [`take`], for four lanes of four bytes and the rows below `rows / 8 * 8`; `targets` is where
/// the values of the first row go.
#[target_feature(enable = "avx2")]
unsafe fn take_quad_4<P: Places, const NULLS: bool>(
    codes: &[Code; 4],
    targets: [*mut u32; 4],
    mut valid: [&mut [u64]; 4],
    rows: usize,
    places: P,
    bytes: *const u8,
) -> bool {
    let with = [0, 1, 2, 3].map(|lane: usize| Constants::of_4(&codes[lane]));
    let mut escaped = _mm256_setzero_si256();
    for row in (0..rows / 8 * 8).step_by(8) {
        let mut v = [_mm256_setzero_si256(); 4];
        for (index, v) in v.iter_mut().enumerate() {
            // SAFETY: the four lanes of each row are 16 bytes within `bytes`.
            *v = unsafe {
                _mm256_loadu2_m128i(
                    bytes.add(places.place(row + 4 + index)).cast(),
                    bytes.add(places.place(row + index)).cast(),
                )
            };
        }
        let v = transpose_4(v);
        for lane in 0..4 {
            let (value, bits) = value_4::<NULLS>(v[lane], &with[lane], &mut escaped);
            // SAFETY: there is room for eight values from `row` on.
            unsafe { _mm256_storeu_si256(targets[lane].add(row).cast(), value) };
            if NULLS {
                put_valid(valid[lane], row, bits);
            }
        }
    }
    if !NULLS {
        valid.iter_mut().for_each(|valid| all_valid(valid, rows / 8 * 8));
    }
    _mm256_testz_si256(escaped, escaped) == 1
}

/// # Safety
/// As [`take`], for one lane of eight bytes and the rows below `rows / 4 * 4`; `target` is where the
/// value of the first row goes.
#[target_feature(enable = "avx2")]
unsafe fn take_one_8<P: Places>(
    code: &Code,
    target: *mut u64,
    valid: &mut [u64],
    rows: usize,
    places: P,
    bytes: *const u8,
) -> bool {
    let with = Constants::of_8(code);
    let adjacent = places.stride() == Some(8);
    let mut escaped = _mm256_setzero_si256();
    for row in (0..rows / 4 * 4).step_by(4) {
        let v = if adjacent {
            // SAFETY: four rows of eight bytes, one behind the other, lie within `bytes`.
            unsafe { _mm256_loadu_si256(bytes.add(places.place(row)).cast()) }
        } else {
            let mut words = [0i64; 4];
            for (index, word) in words.iter_mut().enumerate() {
                let place = places.place(row + index);
                // SAFETY: the lane of this row is eight bytes within `bytes`.
                *word = unsafe { bytes.add(place).cast::<i64>().read_unaligned() };
            }
            _mm256_setr_epi64x(words[0], words[1], words[2], words[3])
        };
        let (value, bits) = value_8::<true>(v, &with, &mut escaped);
        // SAFETY: there is room for four values from `row` on.
        unsafe { _mm256_storeu_si256(target.add(row).cast(), value) };
        put_valid(valid, row, bits);
    }
    _mm256_testz_si256(escaped, escaped) == 1
}

/// As [`take_one_8`], for one lane of four bytes and the rows below `rows / 8 * 8`.
///
/// # Safety
/// As [`take_one_8`].
#[target_feature(enable = "avx2")]
unsafe fn take_one_4<P: Places>(
    code: &Code,
    target: *mut u32,
    valid: &mut [u64],
    rows: usize,
    places: P,
    bytes: *const u8,
) -> bool {
    let with = Constants::of_4(code);
    let adjacent = places.stride() == Some(4);
    let mut escaped = _mm256_setzero_si256();
    for row in (0..rows / 8 * 8).step_by(8) {
        let v = if adjacent {
            // SAFETY: eight rows of four bytes, one behind the other, lie within `bytes`.
            unsafe { _mm256_loadu_si256(bytes.add(places.place(row)).cast()) }
        } else {
            let word = |index: usize| {
                let place = places.place(row + index);
                // SAFETY: the lane of this row is four bytes within `bytes`.
                unsafe { bytes.add(place).cast::<i32>().read_unaligned() }
            };
            _mm256_setr_epi32(
                word(0),
                word(1),
                word(2),
                word(3),
                word(4),
                word(5),
                word(6),
                word(7), //
            )
        };
        let (value, bits) = value_4::<true>(v, &with, &mut escaped);
        // SAFETY: there is room for eight values from `row` on.
        unsafe { _mm256_storeu_si256(target.add(row).cast(), value) };
        put_valid(valid, row, bits);
    }
    _mm256_testz_si256(escaped, escaped) == 1
}
