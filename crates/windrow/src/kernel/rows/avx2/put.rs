//! Columns to rows.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{Constants, Lane, Places, mask_4, mask_8, portable, transpose_4, transpose_8};

/// Up to 4 lanes, as `put` of the module.
///
/// # Safety
/// The CPU has AVX2; lane `i` of the `n`th of `rows` lies within `out` at `places.place(n) + i * W`
/// for `W` bytes; each lane holds values and validity bits of all `rows`.
#[target_feature(enable = "avx2")]
pub(in crate::kernel::rows) unsafe fn put<const W: usize, P: Places>(
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
        v = _mm256_add_epi64(v, with.delta);
        let least = _mm256_cmpeq_epi64(v, zero);
        let most = _mm256_cmpeq_epi64(v, _mm256_set1_epi64x(-1));
        let edge = _mm256_or_si256(least, most);
        let edge = _mm256_and_si256(edge, with.escapes);
        if valid == u64::MAX {
            // No null in this tile: the same for all of it, and predicted.
            *escaped = _mm256_or_si256(*escaped, edge);
        } else {
            let valid = mask_8(valid);
            *escaped = _mm256_or_si256(*escaped, _mm256_and_si256(edge, valid));
            v = _mm256_blendv_epi8(with.null, v, valid);
        }
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
        v = _mm256_add_epi32(v, with.delta);
        let least = _mm256_cmpeq_epi32(v, zero);
        let most = _mm256_cmpeq_epi32(v, _mm256_set1_epi32(-1));
        let edge = _mm256_or_si256(least, most);
        let edge = _mm256_and_si256(edge, with.escapes);
        if valid == u64::MAX {
            // No null in this tile: the same for all of it, and predicted.
            *escaped = _mm256_or_si256(*escaped, edge);
        } else {
            let valid = mask_4(valid);
            *escaped = _mm256_or_si256(*escaped, _mm256_and_si256(edge, valid));
            v = _mm256_blendv_epi8(with.null, v, valid);
        }
    }
    _mm256_shuffle_epi8(v, with.shuffle)
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
                // All ones stay so: no null in the tile.
                let $valid =
                    words.map(|word| if word == u64::MAX { word } else { word >> ($at - first) });
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
