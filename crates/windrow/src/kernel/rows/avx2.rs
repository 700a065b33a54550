//! The AVX2 paths: blocks of four columns transposed in registers.
//!
//! Tiles of 32 to 64 rows keep what is written in the first-level cache although columns that lie a
//! multiple of 4 KiB apart share its sets; the caller cuts the tiles.

use std::arch::x86_64::*;
use std::ops::Range;

use super::lane::{Code, Lane, LaneOut, Places, Word};
use super::portable;

/// Up to 4 lanes, as `put` of the module.
///
/// # Safety
/// The CPU has AVX2; lane `i` of the `n`th of `rows` lies within `out` at `places.place(n) + i * W`
/// for `W` bytes; each lane holds values and validity bits of all `rows`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn put<const W: usize, P: Places>(
    lanes: &[Lane<'_>],
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) -> bool {
    let nulls = lanes.iter().any(|lane| lane.code.escapes || lane.valid.is_some());
    let floats = lanes.iter().any(|lane| lane.code.float != 0);
    let start = out.as_mut_ptr();
    macro_rules! dispatch {
        ($kernel:ident, $lanes:expr, $skipped:expr) => {{
            let places = places.shifted($skipped * W);
            // SAFETY: as this function's.
            unsafe {
                match (nulls, floats) {
                    (false, false) => {
                        $kernel::<P, false, false>($lanes, rows.clone(), places, start)
                    }
                    (false, true) => $kernel::<P, false, true>($lanes, rows.clone(), places, start),
                    (true, false) => $kernel::<P, true, false>($lanes, rows.clone(), places, start),
                    (true, true) => $kernel::<P, true, true>($lanes, rows.clone(), places, start),
                }
            }
        }};
    }
    let (mut escaped, done) = match (W, lanes) {
        (8, [a, b, c, d]) => (dispatch!(put_quad_8, [a, b, c, d], 0), rows.len() & !3),
        (8, [a, b, rest @ ..]) => {
            let mut escaped = dispatch!(put_pair_8, [a, b], 0);
            if let [c] = rest {
                escaped |= dispatch!(put_one_8, [c], 2);
            }
            (escaped, rows.len() & !3)
        }
        (8, [a]) => (dispatch!(put_one_8, [a], 0), rows.len() & !3),
        (4, [a, b, c, d]) => (dispatch!(put_quad_4, [a, b, c, d], 0), rows.len() & !7),
        (4, lanes) => {
            let mut escaped = false;
            for (index, lane) in lanes.iter().enumerate() {
                escaped |= dispatch!(put_one_4, [lane], index);
            }
            (escaped, rows.len() & !7)
        }
        _ => (false, 0),
    };
    escaped |= portable::put::<W, P>(lanes, rows, done, places, out);
    escaped
}

/// Up to 4 lanes, as `take` of the module.
///
/// # Safety
/// The CPU has AVX2; lane `i` of row `n` lies within `bytes` at `places.place(n) + i * size_of::<T>()`
/// for all rows below `rows`; the lanes have room for `rows` more values, and as many bits.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn take<T: Word, P: Places>(
    lanes: &mut [LaneOut<'_, T>],
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    let width = size_of::<T>();
    let nulls = lanes.iter().any(|lane| lane.code.escapes);
    let start = bytes.as_ptr();
    // Behind the values that are there: where the first row goes.
    let out = |lane: &mut LaneOut<'_, T>| lane.values.spare_capacity_mut().as_mut_ptr();
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
    } else if width == 8 {
        for (index, lane) in lanes.iter_mut().enumerate() {
            let target = out(lane).cast();
            let places = places.shifted(index * width);
            // SAFETY: as this function's.
            fits &= unsafe { take_one_8(&lane.code, target, lane.valid, rows, places, start) };
        }
    } else {
        done = 0;
    }
    for lane in &mut *lanes {
        // SAFETY: there is room for `rows` more values; the first `done` of them were written.
        unsafe { lane.values.set_len(lane.values.len() + done) };
    }
    fits & portable::take::<T, P>(lanes, done, rows, places, bytes)
}

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

/// Codes of four values, in the byte order of the row; `escaped` collects those that have none.
#[inline]
#[target_feature(enable = "avx2")]
fn code_8<const NULLS: bool, const FLOATS: bool>(
    mut v: __m256i,
    with: &Constants,
    valid: u64,
    escaped: &mut __m256i,
) -> __m256i {
    let zero = _mm256_setzero_si256();
    if FLOATS {
        v = _mm256_xor_si256(v, _mm256_and_si256(_mm256_cmpgt_epi64(zero, v), with.float));
    }
    v = _mm256_xor_si256(v, with.flip);
    if NULLS {
        let valid = mask_8(valid);
        v = _mm256_add_epi64(v, with.delta);
        let least = _mm256_cmpeq_epi64(v, zero);
        let most = _mm256_cmpeq_epi64(v, _mm256_set1_epi64x(-1));
        let edge = _mm256_and_si256(_mm256_or_si256(least, most), valid);
        *escaped = _mm256_or_si256(*escaped, _mm256_and_si256(edge, with.escapes));
        v = _mm256_blendv_epi8(with.null, v, valid);
    }
    _mm256_shuffle_epi8(v, with.shuffle)
}

/// As [`code_8`], for eight values of four bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn code_4<const NULLS: bool, const FLOATS: bool>(
    mut v: __m256i,
    with: &Constants,
    valid: u64,
    escaped: &mut __m256i,
) -> __m256i {
    let zero = _mm256_setzero_si256();
    if FLOATS {
        v = _mm256_xor_si256(v, _mm256_and_si256(_mm256_cmpgt_epi32(zero, v), with.float));
    }
    v = _mm256_xor_si256(v, with.flip);
    if NULLS {
        let valid = mask_4(valid);
        v = _mm256_add_epi32(v, with.delta);
        let least = _mm256_cmpeq_epi32(v, zero);
        let most = _mm256_cmpeq_epi32(v, _mm256_set1_epi32(-1));
        let edge = _mm256_and_si256(_mm256_or_si256(least, most), valid);
        *escaped = _mm256_or_si256(*escaped, _mm256_and_si256(edge, with.escapes));
        v = _mm256_blendv_epi8(with.null, v, valid);
    }
    _mm256_shuffle_epi8(v, with.shuffle)
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

/// Validity of 64 rows from `row` on: all of them where the lane has no nulls.
#[inline(always)]
fn valid_word(lane: &Lane<'_>, row: usize) -> u64 {
    lane.valid.map_or(u64::MAX, |bits| bits.word(row))
}

/// Rows in groups of `STEP`, 64 at a time with their validity words.
macro_rules! for_rows {
    ($rows:expr, $step:literal, $lanes:expr, $nulls:expr,
     |$at:ident, $row:ident, $valid:ident| $body:block) => {
        let end = $rows.len() / $step * $step;
        let mut first = 0;
        while first < end {
            let words = $lanes
                .map(|lane| if $nulls { valid_word(lane, $rows.start + first) } else { 0 });
            let tile_end = (first + 64).min(end);
            let mut $at = first;
            while $at < tile_end {
                let $row = $rows.start + $at;
                let $valid = words.map(|word| word >> ($at - first));
                $body
                $at += $step;
            }
            first = tile_end;
        }
    };
}

/// # Safety
/// As [`put`], for these lanes of eight bytes and `rows` in whole groups of 4.
#[target_feature(enable = "avx2")]
unsafe fn put_quad_8<P: Places, const NULLS: bool, const FLOATS: bool>(
    lanes: [&Lane<'_>; 4],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let with = lanes.map(|lane| Constants::of_8(&lane.code));
    let values = lanes.map(|lane| lane.values.as_ptr());
    let mut escaped = _mm256_setzero_si256();
    for_rows!(rows, 4, lanes, NULLS, |at, row, valid| {
        let mut v = [_mm256_setzero_si256(); 4];
        for lane in 0..4 {
            // SAFETY: four rows from `row` on hold 32 bytes of values.
            let values = unsafe { _mm256_loadu_si256(values[lane].add(row * 8).cast()) };
            v[lane] = code_8::<NULLS, FLOATS>(values, &with[lane], valid[lane], &mut escaped);
        }
        for (index, v) in transpose_8(v).into_iter().enumerate() {
            // SAFETY: the four lanes of this row are 32 bytes within `out`.
            unsafe { _mm256_storeu_si256(out.add(places.place(at + index)).cast(), v) };
        }
    });
    _mm256_testz_si256(escaped, escaped) == 0
}

/// # Safety
/// As [`put`], for these lanes of eight bytes and `rows` in whole groups of 4.
#[target_feature(enable = "avx2")]
unsafe fn put_pair_8<P: Places, const NULLS: bool, const FLOATS: bool>(
    lanes: [&Lane<'_>; 2],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let with = lanes.map(|lane| Constants::of_8(&lane.code));
    let values = lanes.map(|lane| lane.values.as_ptr());
    let mut escaped = _mm256_setzero_si256();
    for_rows!(rows, 4, lanes, NULLS, |at, row, valid| {
        let mut v = [_mm256_setzero_si256(); 2];
        for lane in 0..2 {
            // SAFETY: four rows from `row` on hold 32 bytes of values.
            let values = unsafe { _mm256_loadu_si256(values[lane].add(row * 8).cast()) };
            v[lane] = code_8::<NULLS, FLOATS>(values, &with[lane], valid[lane], &mut escaped);
        }
        let even = _mm256_unpacklo_epi64(v[0], v[1]);
        let odd = _mm256_unpackhi_epi64(v[0], v[1]);
        let pairs = [
            _mm256_castsi256_si128(even),
            _mm256_castsi256_si128(odd),
            _mm256_extracti128_si256(even, 1),
            _mm256_extracti128_si256(odd, 1),
        ];
        for (index, v) in pairs.into_iter().enumerate() {
            // SAFETY: the two lanes of this row are 16 bytes within `out`.
            unsafe { _mm_storeu_si128(out.add(places.place(at + index)).cast(), v) };
        }
    });
    _mm256_testz_si256(escaped, escaped) == 0
}

/// # Safety
/// As [`put`], for this lane of eight bytes and `rows` in whole groups of 4.
#[target_feature(enable = "avx2")]
unsafe fn put_one_8<P: Places, const NULLS: bool, const FLOATS: bool>(
    lanes: [&Lane<'_>; 1],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let with = Constants::of_8(&lanes[0].code);
    let values = lanes[0].values.as_ptr();
    let adjacent = places.stride() == Some(8);
    let mut escaped = _mm256_setzero_si256();
    for_rows!(rows, 4, lanes, NULLS, |at, row, valid| {
        // SAFETY: four rows from `row` on hold 32 bytes of values.
        let v = unsafe { _mm256_loadu_si256(values.add(row * 8).cast()) };
        let v = code_8::<NULLS, FLOATS>(v, &with, valid[0], &mut escaped);
        if adjacent {
            // SAFETY: four rows of eight bytes, one behind the other, lie within `out`.
            unsafe { _mm256_storeu_si256(out.add(places.place(at)).cast(), v) };
        } else {
            let words = [
                _mm256_extract_epi64(v, 0),
                _mm256_extract_epi64(v, 1),
                _mm256_extract_epi64(v, 2),
                _mm256_extract_epi64(v, 3),
            ];
            for (index, word) in words.into_iter().enumerate() {
                // SAFETY: the lane of this row is eight bytes within `out`.
                unsafe { out.add(places.place(at + index)).cast::<i64>().write_unaligned(word) };
            }
        }
    });
    _mm256_testz_si256(escaped, escaped) == 0
}

/// # Safety
/// As [`put`], for these lanes of four bytes and `rows` in whole groups of 8.
#[target_feature(enable = "avx2")]
unsafe fn put_quad_4<P: Places, const NULLS: bool, const FLOATS: bool>(
    lanes: [&Lane<'_>; 4],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let with = lanes.map(|lane| Constants::of_4(&lane.code));
    let values = lanes.map(|lane| lane.values.as_ptr());
    let mut escaped = _mm256_setzero_si256();
    for_rows!(rows, 8, lanes, NULLS, |at, row, valid| {
        let mut v = [_mm256_setzero_si256(); 4];
        for lane in 0..4 {
            // SAFETY: eight rows from `row` on hold 32 bytes of values.
            let values = unsafe { _mm256_loadu_si256(values[lane].add(row * 4).cast()) };
            v[lane] = code_4::<NULLS, FLOATS>(values, &with[lane], valid[lane], &mut escaped);
        }
        for (index, v) in transpose_4(v).into_iter().enumerate() {
            let (near, far) = (_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
            // SAFETY: the four lanes of each row are 16 bytes within `out`.
            unsafe {
                _mm_storeu_si128(out.add(places.place(at + index)).cast(), near);
                _mm_storeu_si128(out.add(places.place(at + 4 + index)).cast(), far);
            }
        }
    });
    _mm256_testz_si256(escaped, escaped) == 0
}

/// # Safety
/// As [`put`], for this lane of four bytes and `rows` in whole groups of 8.
#[target_feature(enable = "avx2")]
unsafe fn put_one_4<P: Places, const NULLS: bool, const FLOATS: bool>(
    lanes: [&Lane<'_>; 1],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let with = Constants::of_4(&lanes[0].code);
    let values = lanes[0].values.as_ptr();
    let adjacent = places.stride() == Some(4);
    let mut escaped = _mm256_setzero_si256();
    for_rows!(rows, 8, lanes, NULLS, |at, row, valid| {
        // SAFETY: eight rows from `row` on hold 32 bytes of values.
        let v = unsafe { _mm256_loadu_si256(values.add(row * 4).cast()) };
        let v = code_4::<NULLS, FLOATS>(v, &with, valid[0], &mut escaped);
        if adjacent {
            // SAFETY: eight rows of four bytes, one behind the other, lie within `out`.
            unsafe { _mm256_storeu_si256(out.add(places.place(at)).cast(), v) };
        } else {
            let mut words = [0u32; 8];
            // SAFETY: `words` has 32 bytes.
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), v) };
            for (index, word) in words.into_iter().enumerate() {
                // SAFETY: the lane of this row is four bytes within `out`.
                unsafe { out.add(places.place(at + index)).cast::<u32>().write_unaligned(word) };
            }
        }
    });
    _mm256_testz_si256(escaped, escaped) == 0
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

/// The first `rows` rows are valid.
fn all_valid(valid: &mut [u64], rows: usize) {
    valid[..rows / 64].fill(u64::MAX);
    if !rows.is_multiple_of(64) {
        valid[rows / 64] = (1 << (rows % 64)) - 1;
    }
}
