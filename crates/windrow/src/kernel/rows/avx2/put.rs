//! Columns to rows.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{
    Constants, Lane, Places, add, equal, group, mask, negative, portable, transpose_4, transpose_8,
};

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
            let rows = rows.clone();
            // SAFETY: as this function's.
            unsafe {
                match (nulls, floats) {
                    (false, false) => $kernel::<W, P, false, false>($lanes, rows, places, start),
                    (false, true) => $kernel::<W, P, false, true>($lanes, rows, places, start),
                    (true, false) => $kernel::<W, P, true, false>($lanes, rows, places, start),
                    (true, true) => $kernel::<W, P, true, true>($lanes, rows, places, start),
                }
            }
        }};
    }
    let mut escaped = match lanes {
        [a, b, c, d] => dispatch!(put_quad, [a, b, c, d], 0),
        [a, b, rest @ ..] if W == 8 => {
            let mut escaped = dispatch!(put_pair, [a, b], 0);
            if let [c] = rest {
                escaped |= dispatch!(put_one, [c], 2);
            }
            escaped
        }
        lanes => {
            let mut escaped = false;
            for (index, lane) in lanes.iter().enumerate() {
                escaped |= dispatch!(put_one, [lane], index);
            }
            escaped
        }
    };
    let done = rows.len() / group(W) * group(W);
    escaped |= portable::put::<W, P>(lanes, rows, done, places, out);
    escaped
}

/// Codes of a register of values, in the byte order of the row; `escaped` collects those that have none.
#[inline]
#[target_feature(enable = "avx2")]
fn code<const W: usize, const NULLS: bool, const FLOATS: bool>(
    mut v: __m256i,
    with: &Constants,
    valid: u64,
    escaped: &mut __m256i,
) -> __m256i {
    if FLOATS {
        v = _mm256_xor_si256(v, _mm256_and_si256(negative::<W>(v), with.float));
    }
    v = _mm256_xor_si256(v, with.flip);
    if NULLS {
        v = add::<W>(v, with.delta);
        let least = equal::<W>(v, _mm256_setzero_si256());
        let most = equal::<W>(v, _mm256_set1_epi8(-1));
        let edge = _mm256_or_si256(least, most);
        let edge = _mm256_and_si256(edge, with.escapes);
        if valid == u64::MAX {
            // No null in this tile: the same for all of it, and predicted.
            *escaped = _mm256_or_si256(*escaped, edge);
        } else {
            let valid = mask::<W>(valid);
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
    ($rows:expr, $step:expr, $lanes:expr, $nulls:expr,
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
/// As [`put`], for these lanes and `rows` in whole groups.
#[target_feature(enable = "avx2")]
unsafe fn put_quad<const W: usize, P: Places, const NULLS: bool, const FLOATS: bool>(
    lanes: [&Lane<'_>; 4],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let with = lanes.map(|lane| Constants::of::<W>(&lane.code));
    let values = lanes.map(|lane| lane.values.as_ptr());
    let mut escaped = _mm256_setzero_si256();
    for_rows!(rows, group(W), lanes, NULLS, |at, row, valid| {
        let mut v = [_mm256_setzero_si256(); 4];
        for lane in 0..4 {
            // SAFETY: a group of rows from `row` on holds 32 bytes of values.
            let values = unsafe { _mm256_loadu_si256(values[lane].add(row * W).cast()) };
            v[lane] = code::<W, NULLS, FLOATS>(values, &with[lane], valid[lane], &mut escaped);
        }
        if W == 8 {
            for (index, v) in transpose_8(v).into_iter().enumerate() {
                // SAFETY: the four lanes of this row are 32 bytes within `out`.
                unsafe { _mm256_storeu_si256(out.add(places.place(at + index)).cast(), v) };
            }
        } else {
            for (index, v) in transpose_4(v).into_iter().enumerate() {
                let (near, far) = (_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
                // SAFETY: the four lanes of each row are 16 bytes within `out`.
                unsafe {
                    _mm_storeu_si128(out.add(places.place(at + index)).cast(), near);
                    _mm_storeu_si128(out.add(places.place(at + 4 + index)).cast(), far);
                }
            }
        }
    });
    _mm256_testz_si256(escaped, escaped) == 0
}

/// # Safety
/// As [`put`], for these lanes of eight bytes and `rows` in whole groups.
#[target_feature(enable = "avx2")]
unsafe fn put_pair<const W: usize, P: Places, const NULLS: bool, const FLOATS: bool>(
    lanes: [&Lane<'_>; 2],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let with = lanes.map(|lane| Constants::of::<W>(&lane.code));
    let values = lanes.map(|lane| lane.values.as_ptr());
    let mut escaped = _mm256_setzero_si256();
    for_rows!(rows, group(W), lanes, NULLS, |at, row, valid| {
        let mut v = [_mm256_setzero_si256(); 2];
        for lane in 0..2 {
            // SAFETY: a group of rows from `row` on holds 32 bytes of values.
            let values = unsafe { _mm256_loadu_si256(values[lane].add(row * W).cast()) };
            v[lane] = code::<W, NULLS, FLOATS>(values, &with[lane], valid[lane], &mut escaped);
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
/// As [`put`], for this lane and `rows` in whole groups.
#[target_feature(enable = "avx2")]
unsafe fn put_one<const W: usize, P: Places, const NULLS: bool, const FLOATS: bool>(
    lanes: [&Lane<'_>; 1],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let with = Constants::of::<W>(&lanes[0].code);
    let values = lanes[0].values.as_ptr();
    let adjacent = places.stride() == Some(W);
    let mut escaped = _mm256_setzero_si256();
    for_rows!(rows, group(W), lanes, NULLS, |at, row, valid| {
        // SAFETY: a group of rows from `row` on holds 32 bytes of values.
        let v = unsafe { _mm256_loadu_si256(values.add(row * W).cast()) };
        let v = code::<W, NULLS, FLOATS>(v, &with, valid[0], &mut escaped);
        if adjacent {
            // SAFETY: a group of rows, one behind the other, is 32 bytes within `out`.
            unsafe { _mm256_storeu_si256(out.add(places.place(at)).cast(), v) };
        } else {
            let mut words = [[0; W]; 32 / 4];
            // SAFETY: there are 32 bytes of words, or more.
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), v) };
            for (index, word) in words.into_iter().enumerate().take(group(W)) {
                // SAFETY: the lane of this row is `W` bytes within `out`.
                unsafe { out.add(places.place(at + index)).cast::<[u8; W]>().write(word) };
            }
        }
    });
    _mm256_testz_si256(escaped, escaped) == 0
}
