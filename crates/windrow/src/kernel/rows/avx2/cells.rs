//! Columns to cells: a marker byte in front of every code.
//!
//! ```text
//! a row of four codes       | aaaaaaaa | bbbbbbbb | cccccccc | dddddddd |
//! shuffled, markers added   | 1aaaaaaaa1bbbbbb bb1cccccccc1dddd | dddd |     stores of 32 and 4 bytes
//! ```
//!
//! Nulls are zeros by then; their markers are written again, one by one.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::cells::put_block;
use super::{Constants, Lane, Places, group, mask, negative, transpose_4, transpose_8};

/// Four lanes, as `put_cells` of the module.
///
/// Benefit: 4x the portable twin for 50 columns.
///
/// # Safety
/// The CPU has AVX2; the four cells of each row lie within `out`, and each lane holds values and bits of
/// all `rows`. `width` is 4 or 8.
#[target_feature(enable = "avx2")]
pub(in crate::kernel::rows) unsafe fn put_cells<P: Places>(
    lanes: [&Lane<'_>; 4],
    width: usize,
    rows: Range<usize>,
    nulls: [u8; 4],
    places: P,
    out: &mut [u8],
) {
    let group = 32 / width;
    let done = rows.len() / group * group;
    let start = out.as_mut_ptr();
    let head = rows.start..rows.start + done;
    // SAFETY: as this function's.
    unsafe {
        match width {
            8 => put_8(lanes, head, nulls, places, start),
            _ => put_4(lanes, head, nulls, places, start),
        }
    }
    put_block(&lanes.map(|lane| *lane), &nulls, width, rows, done, places, out);
}

/// The codes of a group of rows from `row` on, and the bits of nulls, as many for each lane as it has rows.
///
/// # Safety
/// The lanes hold values and validity bits of the group.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn codes<const W: usize>(
    lanes: [&Lane<'_>; 4],
    with: &[Constants; 4],
    row: usize,
) -> ([__m256i; 4], u32) {
    let (mut v, mut missing) = ([_mm256_setzero_si256(); 4], 0);
    let all = (1 << group(W)) - 1;
    for (index, (lane, with)) in lanes.iter().zip(with).enumerate() {
        // SAFETY: as this function's.
        let mut value = unsafe { _mm256_loadu_si256(lane.values.as_ptr().add(row * W).cast()) };
        value = _mm256_xor_si256(value, _mm256_and_si256(negative::<W>(value), with.float));
        value = _mm256_xor_si256(value, with.flip);
        if let Some(bits) = lane.valid {
            let bits = bits.word(row) & all;
            missing |= ((bits ^ all) as u32) << (group(W) * index);
            value = _mm256_and_si256(value, mask::<W>(bits));
        }
        v[index] = _mm256_shuffle_epi8(value, with.shuffle);
    }
    (v, missing)
}

/// # Safety
/// As [`put_cells`], for lanes of eight bytes and whole groups of four rows.
#[target_feature(enable = "avx2")]
unsafe fn put_8<P: Places>(
    lanes: [&Lane<'_>; 4],
    rows: Range<usize>,
    nulls: [u8; 4],
    places: P,
    out: *mut u8,
) {
    let with = lanes.map(|lane| Constants::of::<8>(&lane.code));
    // Each half gets the four words that its bytes are made of; four bytes are left.
    let near = _mm256_setr_epi32(0, 1, 2, 3, 3, 4, 5, 6);
    let apart = _mm256_setr_epi8(
        -1, 0, 1, 2, 3, 4, 5, 6, 7, -1, 8, 9, 10, 11, 12, 13, //
        2, 3, -1, 4, 5, 6, 7, 8, 9, 10, 11, -1, 12, 13, 14, 15,
    );
    let markers = _mm256_setr_epi8(
        1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, //
        0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
    );
    for row in rows.clone().step_by(4) {
        // SAFETY: a group of rows from `row` on holds 32 bytes of values.
        let (v, missing) = unsafe { codes::<8>(lanes, &with, row) };
        let first = row - rows.start;
        for (index, v) in transpose_8(v).into_iter().enumerate() {
            let cells = _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(v, near), apart);
            let cells = _mm256_or_si256(cells, markers);
            // SAFETY: the four cells of this row are 36 bytes within `out`.
            unsafe {
                let target = out.add(places.place(first + index));
                _mm256_storeu_si256(target.cast(), cells);
                let rest = _mm256_extract_epi32(v, 7);
                target.add(32).cast::<i32>().write_unaligned(rest);
            }
        }
        // SAFETY: as above.
        unsafe { mark(missing, first, 4, 9, nulls, places, out) };
    }
}

/// # Safety
/// As [`put_cells`], for lanes of four bytes and whole groups of eight rows.
#[target_feature(enable = "avx2")]
unsafe fn put_4<P: Places>(
    lanes: [&Lane<'_>; 4],
    rows: Range<usize>,
    nulls: [u8; 4],
    places: P,
    out: *mut u8,
) {
    let with = lanes.map(|lane| Constants::of::<4>(&lane.code));
    // Three markers (1: a value) with four bytes behind each, and the fourth; four bytes are left.
    let apart = _mm_setr_epi8(-1, 0, 1, 2, 3, -1, 4, 5, 6, 7, -1, 8, 9, 10, 11, -1);
    let markers = _mm_setr_epi8(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1);
    for row in rows.clone().step_by(8) {
        // SAFETY: a group of rows from `row` on holds 32 bytes of values.
        let (v, missing) = unsafe { codes::<4>(lanes, &with, row) };
        let first = row - rows.start;
        for (index, v) in transpose_4(v).into_iter().enumerate() {
            let halves = [_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)];
            for (half, v) in halves.into_iter().enumerate() {
                let cells = _mm_or_si128(_mm_shuffle_epi8(v, apart), markers);
                // SAFETY: four cells of this row are 20 bytes within `out`.
                unsafe {
                    let target = out.add(places.place(first + 4 * half + index));
                    _mm_storeu_si128(target.cast(), cells);
                    let rest = _mm_extract_epi32(v, 3);
                    target.add(16).cast::<i32>().write_unaligned(rest);
                }
            }
        }
        // SAFETY: as above.
        unsafe { mark(missing, first, 8, 5, nulls, places, out) };
    }
}

/// Writes the markers of nulls of the rows from `first` on: `missing` has `group` bits for each lane, whose cells are `width` bytes.
///
/// # Safety
/// The cells of `group` rows lie within `out`.
#[inline(always)]
unsafe fn mark<P: Places>(
    mut missing: u32,
    first: usize,
    group: usize,
    width: usize,
    nulls: [u8; 4],
    places: P,
    out: *mut u8,
) {
    while missing != 0 {
        let bit = missing.trailing_zeros() as usize;
        missing &= missing - 1;
        let (lane, row) = (bit / group, bit % group);
        // SAFETY: the marker is the first byte of a cell within `out`.
        unsafe { out.add(places.place(first + row) + lane * width).write(nulls[lane]) };
    }
}
