//! Columns to rows.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{Constants, GROUP, Lane, Places, code, portable, transpose_8};

/// Eight or four lanes of eight bytes, as `put` of the module.
///
/// Benefit: 1.3x the path of AVX2 for 50 columns, and 1.5x to 2x where they have nulls.
///
/// # Safety
/// The CPU has AVX-512 F and BW; lane `i` of the `n`th of `rows` lies within `out` at `places.place(n) + i *
/// 8`; each lane holds values and validity bits of all `rows`.
#[target_feature(enable = "avx512f,avx512bw")]
pub(in crate::kernel::rows) unsafe fn put<P: Places>(
    lanes: &[Lane<'_>],
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) -> bool {
    let nulls = lanes.iter().any(|lane| lane.code.escapes || lane.valid.is_some());
    let floats = lanes.iter().any(|lane| lane.code.float != 0);
    let start = out.as_mut_ptr();
    macro_rules! dispatch {
        ($lanes:ident, $count:literal) => {
            // SAFETY: as this function's.
            unsafe {
                match (nulls, floats) {
                    (false, false) => {
                        put_of::<P, $count, false, false>($lanes, rows.clone(), places, start)
                    }
                    (false, true) => {
                        put_of::<P, $count, false, true>($lanes, rows.clone(), places, start)
                    }
                    (true, false) => {
                        put_of::<P, $count, true, false>($lanes, rows.clone(), places, start)
                    }
                    (true, true) => {
                        put_of::<P, $count, true, true>($lanes, rows.clone(), places, start)
                    }
                }
            }
        };
    }
    let (escaped, done) = if let Ok(lanes) = <&[Lane<'_>; 8]>::try_from(lanes) {
        (dispatch!(lanes, 8), rows.len() / GROUP * GROUP)
    } else if let Ok(lanes) = <&[Lane<'_>; 4]>::try_from(lanes) {
        (dispatch!(lanes, 4), rows.len() / GROUP * GROUP)
    } else {
        (false, 0)
    };
    escaped | portable::put::<8, P>(lanes, rows, done, places, out)
}

/// # Safety
/// As [`put`], for `N` lanes, which are 4 or 8, and `rows` in whole groups.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn put_of<P: Places, const N: usize, const NULLS: bool, const FLOATS: bool>(
    lanes: &[Lane<'_>; N],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let with: [Constants; N] = std::array::from_fn(|lane| Constants::of(&lanes[lane].code));
    let values: [*const u8; N] = std::array::from_fn(|lane| lanes[lane].values.as_ptr());
    let end = rows.len() / GROUP * GROUP;
    let mut escaped = 0;
    let mut valid = [u64::MAX; N];
    for at in (0..end).step_by(GROUP) {
        let row = rows.start + at;
        if NULLS && at.is_multiple_of(64) {
            for (valid, lane) in valid.iter_mut().zip(lanes) {
                *valid = lane.valid.map_or(u64::MAX, |bits| bits.word(row));
            }
        }
        let mut v = [_mm512_setzero_si512(); N];
        for lane in 0..N {
            // SAFETY: eight rows from `row` on hold 64 bytes of values.
            let value = unsafe { _mm512_loadu_si512(values[lane].add(row * 8).cast()) };
            let valid = (valid[lane] >> (at % 64)) as __mmask8;
            v[lane] = code::<NULLS, FLOATS>(value, &with[lane], valid, &mut escaped);
        }
        // SAFETY: the lanes of these rows lie within `out`.
        unsafe { store(v, places, at, out) };
    }
    escaped != 0
}

/// Writes the eight rows from row `at` on of four or eight columns.
///
/// # Safety
/// `N` eight-byte words at the places of these rows lie within `out`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn store<P: Places, const N: usize>(v: [__m512i; N], places: P, at: usize, out: *mut u8) {
    if let Ok(v) = <[__m512i; 8]>::try_from(&v[..]) {
        for (index, v) in transpose_8(v).into_iter().enumerate() {
            // SAFETY: as this function's.
            unsafe { _mm512_storeu_si512(out.add(places.place(at + index)).cast(), v) };
        }
    } else if let Ok([a, b, c, d]) = <[__m512i; 4]>::try_from(&v[..]) {
        // Rows 0 and 2, and 4 and 6, of those that `pairs` has two columns of.
        let near = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        let far = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        let pairs = [
            (_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d)),
            (_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d)),
        ];
        for (odd, (left, right)) in pairs.into_iter().enumerate() {
            for (first, order) in [(odd, near), (odd + 4, far)] {
                let two = _mm512_permutex2var_epi64(left, order, right);
                // SAFETY: as this function's.
                unsafe {
                    let (low, high) = (places.place(at + first), places.place(at + first + 2));
                    _mm256_storeu_si256(out.add(low).cast(), _mm512_castsi512_si256(two));
                    _mm256_storeu_si256(out.add(high).cast(), _mm512_extracti64x4_epi64(two, 1));
                }
            }
        }
    }
}
