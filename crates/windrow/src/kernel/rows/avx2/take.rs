//! Rows to columns.

use std::arch::x86_64::*;

use super::super::lane::all_valid;
use super::{
    Code, Constants, LaneOut, Places, Word, equal, group, highest, negative, portable, sub,
    transpose_4, transpose_8,
};

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
    // SAFETY: as this function's.
    let fits = unsafe {
        match size_of::<T>() {
            8 => take_of::<8, T, P>(lanes, rows, places, bytes),
            _ => take_of::<4, T, P>(lanes, rows, places, bytes),
        }
    };
    let done = rows / group(size_of::<T>()) * group(size_of::<T>());
    for lane in &mut *lanes {
        // SAFETY: the first `done` values were written where there is room for them.
        unsafe { lane.values.grow(done) };
    }
    fits & portable::take::<T, P>(lanes, done, rows, places, bytes)
}

/// Whole groups of rows, to where there is room behind the values that are there.
///
/// # Safety
/// As [`take`]; `T` has `W` bytes.
#[target_feature(enable = "avx2")]
unsafe fn take_of<const W: usize, T: Word, P: Places>(
    lanes: &mut [LaneOut<'_, T>],
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    let start = bytes.as_ptr();
    if let [a, b, c, d] = lanes {
        let lanes = [a, b, c, d];
        let nulls = lanes.iter().any(|lane| lane.code.escapes);
        let with = lanes.each_ref().map(|lane| lane.code);
        let parts = lanes.map(|lane| (lane.values.room(rows).cast(), &mut lane.valid[..]));
        let targets = parts.each_ref().map(|(target, _)| *target);
        let valid = parts.map(|(_, valid)| valid);
        // SAFETY: as this function's.
        return unsafe {
            match nulls {
                false => take_quad::<W, P, false>(&with, targets, valid, rows, places, start),
                true => take_quad::<W, P, true>(&with, targets, valid, rows, places, start),
            }
        };
    }
    let mut fits = true;
    for (index, lane) in lanes.iter_mut().enumerate() {
        let (target, places) = (lane.values.room(rows).cast(), places.shifted(index * W));
        // SAFETY: as this function's.
        fits &= unsafe { take_one::<W, P>(&lane.code, target, lane.valid, rows, places, start) };
    }
    fits
}

/// Values of a register of codes in the order of the machine, and the bits of those that are not null;
/// `escaped` collects codes that are longer.
#[inline]
#[target_feature(enable = "avx2")]
fn value<const W: usize, const NULLS: bool>(
    v: __m256i,
    with: &Constants,
    escaped: &mut __m256i,
) -> (__m256i, u64) {
    let v = _mm256_shuffle_epi8(v, with.shuffle);
    let (mut shifted, mut null) = (v, _mm256_setzero_si256());
    if NULLS {
        null = _mm256_and_si256(equal::<W>(v, with.null), with.escapes);
        let edge = equal::<W>(v, _mm256_xor_si256(with.null, _mm256_set1_epi8(-1)));
        *escaped = _mm256_or_si256(*escaped, _mm256_and_si256(edge, with.escapes));
        shifted = sub::<W>(v, with.delta);
    }
    let mut value = _mm256_xor_si256(shifted, with.flip);
    value = _mm256_xor_si256(value, _mm256_and_si256(negative::<W>(value), with.float));
    if NULLS {
        value = _mm256_andnot_si256(null, value);
    }
    (value, !highest::<W>(null) & ((1 << group(W)) - 1))
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
/// As [`take`], for four lanes of `W` bytes and whole groups of rows; `targets` is where the values of the first
/// row go.
#[target_feature(enable = "avx2")]
unsafe fn take_quad<const W: usize, P: Places, const NULLS: bool>(
    codes: &[Code; 4],
    targets: [*mut u8; 4],
    mut valid: [&mut [u64]; 4],
    rows: usize,
    places: P,
    bytes: *const u8,
) -> bool {
    let with = [0, 1, 2, 3].map(|lane: usize| Constants::of::<W>(&codes[lane]));
    let whole = rows / group(W) * group(W);
    let mut escaped = _mm256_setzero_si256();
    for row in (0..whole).step_by(group(W)) {
        let v = std::array::from_fn(|index| {
            // SAFETY: the four lanes of each row are 32 bytes within `bytes`, or 16.
            unsafe {
                if W == 8 {
                    _mm256_loadu_si256(bytes.add(places.place(row + index)).cast())
                } else {
                    _mm256_loadu2_m128i(
                        bytes.add(places.place(row + 4 + index)).cast(),
                        bytes.add(places.place(row + index)).cast(),
                    )
                }
            }
        });
        let v = if W == 8 { transpose_8(v) } else { transpose_4(v) };
        for lane in 0..4 {
            let (value, bits) = value::<W, NULLS>(v[lane], &with[lane], &mut escaped);
            // SAFETY: there is room for a group of values from `row` on.
            unsafe { _mm256_storeu_si256(targets[lane].add(row * W).cast(), value) };
            if NULLS {
                put_valid(valid[lane], row, bits);
            }
        }
    }
    if !NULLS {
        valid.iter_mut().for_each(|valid| all_valid(valid, whole));
    }
    _mm256_testz_si256(escaped, escaped) == 1
}

/// # Safety
/// As [`take_quad`], for one lane.
#[target_feature(enable = "avx2")]
unsafe fn take_one<const W: usize, P: Places>(
    code: &Code,
    target: *mut u8,
    valid: &mut [u64],
    rows: usize,
    places: P,
    bytes: *const u8,
) -> bool {
    let with = Constants::of::<W>(code);
    let adjacent = places.stride() == Some(W);
    let mut escaped = _mm256_setzero_si256();
    for row in (0..rows / group(W) * group(W)).step_by(group(W)) {
        let v = if adjacent {
            // SAFETY: a group of rows, one behind the other, is 32 bytes within `bytes`.
            unsafe { _mm256_loadu_si256(bytes.add(places.place(row)).cast()) }
        } else {
            let word = |index: usize| {
                // SAFETY: the lane of this row is `W` bytes within `bytes`.
                unsafe { bytes.add(places.place(row + index)) }
            };
            // SAFETY: as above.
            unsafe {
                let four = |at: usize| word(at).cast::<i32>().read_unaligned();
                let eight = |at: usize| word(at).cast::<i64>().read_unaligned();
                if W == 8 {
                    _mm256_setr_epi64x(eight(0), eight(1), eight(2), eight(3))
                } else {
                    _mm256_setr_epi32(
                        four(0),
                        four(1),
                        four(2),
                        four(3),
                        four(4),
                        four(5),
                        four(6),
                        four(7), //
                    )
                }
            }
        };
        let (value, bits) = value::<W, true>(v, &with, &mut escaped);
        // SAFETY: there is room for a group of values from `row` on.
        unsafe { _mm256_storeu_si256(target.add(row * W).cast(), value) };
        put_valid(valid, row, bits);
    }
    _mm256_testz_si256(escaped, escaped) == 1
}
