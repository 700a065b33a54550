//! Bytes of columns to bytes of rows: 64 rows of a column are a register.
//!
//! ```text
//! a0 a1 a2 ...   changed, as    x0 x1 x2 ...   joined    | x0 y0 | x1 y1 | ...   written, or copied to
//! b0 b1 b2 ...   codes are      y0 y1 y2 ...   (words)                           where each row is
//! ```
//!
//! Of lanes that are bits 512 rows are made at once ([`put_bits`]), as long as there are so many.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::super::bytes::{ByteLane, Source, WORD, put_rows};
use super::Places;
use super::put_bits::{self, BitLanes};
use super::words::words;

/// Rows that are written at once: bytes of a register.
const ROWS: usize = 64;

/// The first bytes of 64 numbers of two, and the second ones.
static OF_TWO: [[u8; ROWS]; 2] = {
    let mut of_two = [[0; ROWS]; 2];
    let mut at = 0;
    while at < ROWS {
        of_two[0][at] = (2 * at) as u8;
        of_two[1][at] = (2 * at + 1) as u8;
        at += 1;
    }
    of_two
};

/// Up to eight lanes, as `put_bytes` of the module.
///
/// Benefit: encoding four columns of bytes takes 2.0 us in place of 34 one by one for 8,192 rows, and 4.8 of 133 with
/// their markers; for Booleans see [`BitLanes`].
///
/// # Safety
/// The CPU has AVX-512 F, BW and VBMI; the bytes of each row lie within `out`, and each lane holds all `rows`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(in crate::kernel::rows) unsafe fn put_bytes<P: Places>(
    lanes: &[ByteLane<'_>],
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) {
    let start = out.as_mut_ptr();
    // SAFETY: as this function's.
    unsafe {
        match lanes.len() {
            1 => put_of::<P, 1>(lanes, rows.clone(), places, start),
            2 => put_of::<P, 2>(lanes, rows.clone(), places, start),
            3 | 4 => put_of::<P, 4>(lanes, rows.clone(), places, start),
            _ => put_of::<P, WORD>(lanes, rows.clone(), places, start),
        }
    }
    let end = rows.len() / ROWS * ROWS;
    put_rows(lanes, rows, end, places, out);
}

/// Of lanes of which there are more than half of `N` and at most `N`.
///
/// # Safety
/// As [`put_bytes`]; of `rows` those of whole registers are written.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn put_of<P: Places, const N: usize>(
    lanes: &[ByteLane<'_>],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) {
    let width = lanes.len();
    let adjacent = places.stride() == Some(width) && width == N;
    // Room for the most rows that are made at once.
    let mut near = [MaybeUninit::<__m512i>::uninit(); put_bits::ROWS * WORD / size_of::<__m512i>()];
    let near = near.as_mut_ptr().cast::<u8>();
    let mut at = 0;
    let bits = if rows.len() < put_bits::ROWS { None } else { BitLanes::<N>::of(lanes) };
    if let Some(bits) = bits {
        while at + put_bits::ROWS <= rows.len() {
            // SAFETY: each lane holds these rows, whose bytes lie within `out`, one behind the other if they are
            // adjacent; `near` has room for them.
            unsafe {
                bits.put(rows.start + at, if adjacent { out.add(places.place(at)) } else { near });
                if !adjacent {
                    scatter::<P, N>(near, at..at + put_bits::ROWS, width, places, out);
                }
            }
            at += put_bits::ROWS;
        }
    }
    while at + ROWS <= rows.len() {
        let mut v = [_mm512_setzero_si512(); N];
        for (v, lane) in v.iter_mut().zip(lanes) {
            // SAFETY: each lane holds these rows.
            *v = unsafe { bytes(lane, rows.start + at) };
        }
        // SAFETY: the bytes of these rows lie within `out`, one behind the other if they are adjacent; `near` has
        // room for them.
        unsafe {
            let to = if adjacent { out.add(places.place(at)) } else { near };
            for (index, v) in words(v).into_iter().enumerate() {
                // Of each sixteen rows.
                let to = to.add(index * 16);
                _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(v));
                _mm_storeu_si128(to.add(16 * N).cast(), _mm512_extracti32x4_epi32(v, 1));
                _mm_storeu_si128(to.add(32 * N).cast(), _mm512_extracti32x4_epi32(v, 2));
                _mm_storeu_si128(to.add(48 * N).cast(), _mm512_extracti32x4_epi32(v, 3));
            }
            if !adjacent {
                scatter::<P, N>(near, at..at + ROWS, width, places, out);
            }
        }
        at += ROWS;
    }
}

/// Copies `width` of the `N` bytes of each of `rows` at `near` to where they belong.
///
/// Not inlined: among the registers of its caller its own are on the stack, and three bytes twice, with nulls, take 9.1 us
/// in place of 8.0.
///
/// # Safety
/// They are there, and their places lie within `out`; `width` is at most `N`, and more than half of it.
#[inline(never)]
unsafe fn scatter<P: Places, const N: usize>(
    near: *const u8,
    rows: Range<usize>,
    width: usize,
    places: P,
    out: *mut u8,
) {
    for (row, at) in rows.enumerate() {
        // SAFETY: as this function's.
        unsafe { copy::<N>(near.add(row * N), out.add(places.place(at)), width) };
    }
}

/// The bytes of 64 rows from `row` on.
///
/// # Safety
/// The lane holds them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn bytes(lane: &ByteLane<'_>, row: usize) -> __m512i {
    let same = |byte: u8| _mm512_set1_epi8(byte as i8);
    let v = match lane.source {
        Source::Same(byte) => same(byte),
        Source::Bits(bits, [zero, one]) => {
            _mm512_mask_blend_epi8(bits.word(row), same(zero), same(one))
        }
        Source::Values { values, width, at, flip, float } => {
            // SAFETY: as this function's; the indices are 64 bytes.
            let (v, negative) = unsafe {
                let from = values.as_ptr().add(row * width);
                let first = _mm512_loadu_si512(from.cast());
                if width == 1 {
                    (first, _mm512_movepi8_mask(first))
                } else {
                    let second = _mm512_loadu_si512(from.add(64).cast());
                    let pick = _mm512_loadu_si512(OF_TWO[at].as_ptr().cast());
                    let signs = [first, second].map(|v| u64::from(_mm512_movepi16_mask(v)));
                    (_mm512_permutex2var_epi8(first, pick, second), signs[0] | signs[1] << 32)
                }
            };
            let v = _mm512_xor_si512(v, same(flip));
            if float == 0 {
                v
            } else {
                _mm512_mask_blend_epi8(negative, v, _mm512_xor_si512(v, same(float)))
            }
        }
    };
    match lane.valid {
        Some(valid) => _mm512_mask_blend_epi8(valid.word(row), same(lane.null), v),
        None => v,
    }
}

/// Copies `count` bytes, more than half of `N` and at most `N`.
///
/// # Safety
/// Both are valid for `count` bytes, and not the same memory.
#[inline(always)]
unsafe fn copy<const N: usize>(from: *const u8, to: *mut u8, count: usize) {
    /// # Safety
    /// As [`copy`], of a number at least.
    #[inline(always)]
    unsafe fn copy_ends<T>(from: *const u8, to: *mut u8, count: usize) {
        let behind = count - size_of::<T>();
        // SAFETY: as this function's. The last number overlaps the first one where it takes more than half.
        unsafe {
            to.cast::<T>().write_unaligned(from.cast::<T>().read_unaligned());
            if behind > 0 {
                let last = from.add(behind).cast::<T>().read_unaligned();
                to.add(behind).cast::<T>().write_unaligned(last);
            }
        }
    }
    // SAFETY: as this function's: there are more bytes than half of `N`.
    unsafe {
        match (N, count == N) {
            (8, true) => copy_ends::<u64>(from, to, 8),
            (8, false) => copy_ends::<u32>(from, to, count),
            (4, true) => copy_ends::<u32>(from, to, 4),
            (4, false) => copy_ends::<u16>(from, to, count),
            (2, _) => copy_ends::<u16>(from, to, 2),
            _ => copy_ends::<u8>(from, to, 1),
        }
    }
}
