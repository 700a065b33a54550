//! Numbers of sixteen bytes: four columns are a register for each row.
//!
//! ```text
//! a0 a0 a1 a1 ...                                                   a0 a0 b0 b0 c0 c0 d0 d0
//! b0 b0 b1 b1 ...   <-- take: 4 x 4 parts transposed                a1 a1 b1 b1 c1 c1 d1 d1
//! ...                   put: loaded to where they stand -->         ...
//! ```

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::wide::{WIDE, flip, moved};
use super::{Code, Lane, Places};

/// Bytes of a number, the last one first.
const SWAPPED: [u8; WIDE] = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];
const KEPT: [u8; WIDE] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The constants of four columns in a register of rows, of two columns of two rows, or of one of four.
#[derive(Clone, Copy)]
struct Codes {
    flip: __m512i,
    order: __m512i,
    /// What is added to codes, and its upper half once more for a carry: it is 0, 1 or -1.
    delta: __m512i,
    /// The lower half of a code that is carried from by this: 0, or all ones.
    carries: __m512i,
    null: __m512i,
    /// The lower halves of codes that something is added to: their columns are those that escape.
    moved: __mmask8,
}

impl Codes {
    #[target_feature(enable = "avx512f")]
    fn of<const N: usize>(codes: [Code; N]) -> Self {
        let four: [Code; 4] = std::array::from_fn(|at| codes[at % N]);
        let flips = four.map(|code| flip(&code).to_ne_bytes());
        let orders = four.map(|code| if code.big { SWAPPED } else { KEPT });
        let nulls = four.map(|code| moved(&code).1.to_ne_bytes());
        // A one carries if it leaves zeros, and what takes one away if it leaves ones.
        let deltas = four.map(|code| [code.delta; 2]);
        let carries = four.map(|code| [if code.delta == 1 { 0 } else { code.delta }; 2]);
        let moved = four.iter().enumerate().map(|(at, code)| u8::from(code.delta != 0) << (2 * at));
        // SAFETY: the arrays have 64 bytes.
        unsafe {
            Self {
                flip: _mm512_loadu_si512(flips.as_ptr().cast()),
                order: _mm512_loadu_si512(orders.as_ptr().cast()),
                delta: _mm512_loadu_si512(deltas.as_ptr().cast()),
                carries: _mm512_loadu_si512(carries.as_ptr().cast()),
                null: _mm512_loadu_si512(nulls.as_ptr().cast()),
                moved: moved.sum(),
            }
        }
    }

    /// Codes of values, moved to make room for that of a null; `MOVED` where there may be one. Those of which
    /// both halves are zeros or both are ones have none: their lower halves are told too.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn code<const MOVED: bool>(&self, v: __m512i) -> (__m512i, __mmask8) {
        let v = _mm512_xor_si512(v, self.flip);
        if !MOVED {
            return (v, 0);
        }
        let v = _mm512_mask_add_epi64(v, self.moved, v, self.delta);
        let carried = _mm512_mask_cmpeq_epi64_mask(self.moved, v, self.carries);
        let v = _mm512_mask_add_epi64(v, carried << 1, v, self.delta);
        let zeros = _mm512_cmpeq_epi64_mask(v, _mm512_setzero_si512());
        let ones = _mm512_cmpeq_epi64_mask(v, _mm512_set1_epi64(-1));
        (v, (zeros & zeros >> 1 | ones & ones >> 1) & self.moved)
    }
}

/// Adjacent columns, as `put_wide` of the module: four, two or one of them at a time.
///
/// Benefit: four columns take 14 instead of 36 us for 8,192 rows, where `memcpy` takes 14; with nulls that have a
/// code of their own 37 instead of 86.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL; lane `i` of the `n`th of `rows` lies within `out` at
/// `places.place(n) + i * 16`; each lane holds values and validity bits of all `rows`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel::rows) unsafe fn put_wide<P: Places>(
    lanes: &[Lane<'_>],
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) -> bool {
    let out = out.as_mut_ptr();
    let mut escaped = false;
    let (fours, rest) = lanes.as_chunks::<4>();
    let (twos, ones) = rest.as_chunks::<2>();
    let behind_fours = places.shifted(fours.len() * 4 * WIDE);
    let behind_twos = behind_fours.shifted(twos.len() * 2 * WIDE);
    // SAFETY: as this function's.
    unsafe {
        for (at, four) in fours.iter().enumerate() {
            escaped |= put_columns(four, rows.clone(), places.shifted(at * 4 * WIDE), out);
        }
        for two in twos {
            escaped |= put_columns(two, rows.clone(), behind_fours, out);
        }
        for one in ones.as_chunks::<1>().0 {
            escaped |= put_columns(one, rows.clone(), behind_twos, out);
        }
    }
    escaped
}

/// # Safety
/// As [`put_wide`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn put_columns<P: Places, const N: usize>(
    lanes: &[Lane<'_>; N],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let nulls = lanes.iter().any(|lane| lane.valid.is_some());
    // SAFETY: as this function's.
    unsafe {
        match (nulls, lanes.iter().any(|lane| lane.code.delta != 0)) {
            (false, false) => put_of::<P, N, false, false>(lanes, rows, places, out),
            (true, false) => put_of::<P, N, true, false>(lanes, rows, places, out),
            (false, true) => put_of::<P, N, false, true>(lanes, rows, places, out),
            (true, true) => put_of::<P, N, true, true>(lanes, rows, places, out),
        }
    }
}

/// # Safety
/// As [`put_wide`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn put_of<P: Places, const N: usize, const NULLS: bool, const MOVED: bool>(
    lanes: &[Lane<'_>; N],
    rows: Range<usize>,
    places: P,
    out: *mut u8,
) -> bool {
    let with = Codes::of(lanes.each_ref().map(|lane| lane.code));
    let values = lanes.each_ref().map(|lane| lane.values.as_ptr());
    let (mut valid, mut escaped) = ([u64::MAX; N], 0);
    for (at, row) in rows.enumerate() {
        if NULLS && at.is_multiple_of(64) {
            for (valid, lane) in valid.iter_mut().zip(lanes) {
                *valid = lane.valid.map_or(u64::MAX, |valid| valid.word(row));
            }
        }
        // SAFETY: as this function's.
        unsafe {
            let value = |lane: usize| _mm_loadu_si128(values[lane].add(row * WIDE).cast());
            let mut v = _mm512_castsi128_si512(value(0));
            if N > 1 {
                v = _mm512_mask_broadcast_i32x4(v, 0x00f0, value(1));
            }
            if N > 2 {
                v = _mm512_mask_broadcast_i32x4(v, 0x0f00, value(2));
                v = _mm512_mask_broadcast_i32x4(v, 0xf000, value(3));
            }
            let (mut v, mut edges) = with.code::<MOVED>(v);
            // Behind the columns there are no values.
            edges &= u8::MAX >> (8 - 2 * N);
            if NULLS {
                let mut own = 0;
                for (lane, valid) in valid.iter_mut().enumerate() {
                    own |= ((*valid & 1) as u8 * 0b11) << (2 * lane);
                    *valid >>= 1;
                }
                v = _mm512_mask_mov_epi64(with.null, own, v);
                edges &= own;
            }
            escaped |= edges;
            let code = _mm512_shuffle_epi8(v, with.order);
            let to = out.add(places.place(at));
            match N {
                4 => _mm512_storeu_si512(to.cast(), code),
                2 => _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(code)),
                _ => _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(code)),
            }
        }
    }
    escaped != 0
}

/// Columns back, to where `targets` point, as `take_wide` of the module: four, two or one of them at a time.
/// Returns how many rows were read, all but the last few.
///
/// Benefit: four columns take 19 instead of 35 us for 8,192 rows.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL; column `i` of the `n`th of `rows` lies within `bytes` at
/// `places.place(n) + i * 16`; each target has room for a value of all rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel::rows) unsafe fn take_wide<P: Places>(
    codes: &[Code],
    targets: &[*mut u128],
    rows: usize,
    places: P,
    bytes: *const u8,
) -> usize {
    let rows = rows / 4 * 4;
    let mut first = 0;
    while first < codes.len() {
        let (codes, targets) = (&codes[first..], &targets[first..]);
        let places = places.shifted(first * WIDE);
        macro_rules! counts {
            ($($count:literal)*) => {
                $(if let (Some(codes), Some(targets)) = (codes.first_chunk(), targets.first_chunk()) {
                    // SAFETY: as this function's.
                    unsafe { take_of::<P, $count>(codes, targets, rows, places, bytes) };
                    first += $count;
                    continue;
                })*
            };
        }
        counts!(4 2 1);
    }
    rows
}

/// # Safety
/// As [`take_wide`], of whole groups of four rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn take_of<P: Places, const N: usize>(
    codes: &[Code; N],
    targets: &[*mut u128; N],
    rows: usize,
    places: P,
    bytes: *const u8,
) {
    let with = Codes::of(*codes);
    for row in (0..rows).step_by(4) {
        // SAFETY: as this function's.
        unsafe {
            let from = |at: usize| bytes.add(places.place(row + at));
            let value =
                |v: __m512i| _mm512_xor_si512(_mm512_shuffle_epi8(v, with.order), with.flip);
            let two = |at: usize| {
                let low = _mm512_castsi256_si512(_mm256_loadu_si256(from(at).cast()));
                value(_mm512_inserti64x4(low, _mm256_loadu_si256(from(at + 1).cast()), 1))
            };
            let columns: [__m512i; N] = match N {
                4 => {
                    let v: [_; 4] =
                        std::array::from_fn(|at| value(_mm512_loadu_si512(from(at).cast())));
                    let near = [0, 2].map(|at| _mm512_shuffle_i64x2(v[at], v[at + 1], 0x44));
                    let far = [0, 2].map(|at| _mm512_shuffle_i64x2(v[at], v[at + 1], 0xee));
                    std::array::from_fn(|at| {
                        let [low, high] = if at < 2 { near } else { far };
                        match at % 2 {
                            0 => _mm512_shuffle_i64x2(low, high, 0x88),
                            _ => _mm512_shuffle_i64x2(low, high, 0xdd),
                        }
                    })
                }
                2 => {
                    let (low, high) = (two(0), two(2));
                    std::array::from_fn(|at| match at {
                        0 => _mm512_shuffle_i64x2(low, high, 0x88),
                        _ => _mm512_shuffle_i64x2(low, high, 0xdd),
                    })
                }
                _ => {
                    let one = |at: usize| _mm_loadu_si128(from(at).cast());
                    let mut v = _mm512_castsi128_si512(one(0));
                    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, one(1));
                    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, one(2));
                    [value(_mm512_mask_broadcast_i32x4(v, 0xf000, one(3))); N]
                }
            };
            for (target, v) in targets.iter().zip(columns) {
                _mm512_storeu_si512(target.add(row).cast(), v);
            }
        }
    }
}

/// A column that may be null back, to where `target` points, as `take_wide_some` of the module: whole words of rows.
///
/// Benefit: four columns take 64 instead of 99 us for 8,192 rows; most of the portable twin is arithmetic of 128 bits.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, and BMI2; the number of each of `rows` lies within `bytes`; there is room for a
/// value of each.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(in crate::kernel::rows) unsafe fn take_wide_some<P: Places>(
    code: &Code,
    rows: usize,
    places: P,
    bytes: *const u8,
    target: *mut u128,
    valid: &mut Vec<u64>,
) -> bool {
    /// The lower half of each of four numbers.
    const LOW: u8 = 0x55;
    let with = Codes::of([Code { big: true, ..*code }]);
    let up = code.null == 0;
    let delta = _mm512_set1_epi64(if up { -1 } else { 1 });
    let of_low = _mm512_maskz_mov_epi64(LOW, delta);
    // Both halves of a number.
    let both = |halves: u8| halves & halves >> 1 & LOW;
    let mut longer = 0;
    valid.reserve(rows / 64);
    for first in (0..rows).step_by(64) {
        let mut word = 0;
        for at in (0..64).step_by(4) {
            // SAFETY: as this function's.
            unsafe {
                let one =
                    |row: usize| _mm_loadu_si128(bytes.add(places.place(first + at + row)).cast());
                let mut v = _mm512_castsi128_si512(one(0));
                v = _mm512_mask_broadcast_i32x4(v, 0x00f0, one(1));
                v = _mm512_mask_broadcast_i32x4(v, 0x0f00, one(2));
                v = _mm512_mask_broadcast_i32x4(v, 0xf000, one(3));
                v = _mm512_shuffle_epi8(v, with.order);
                let zeros = _mm512_cmpeq_epi64_mask(v, _mm512_setzero_si512());
                let ones = _mm512_cmpeq_epi64_mask(v, _mm512_set1_epi64(-1));
                let (nulls, edges) = if up { (zeros, ones) } else { (ones, zeros) };
                longer |= both(edges);
                // Lower halves of a null's bits, and no others, carry.
                v = _mm512_add_epi64(v, of_low);
                v = _mm512_mask_add_epi64(v, (nulls & LOW) << 1, v, delta);
                let own = !both(nulls) & LOW;
                v = _mm512_maskz_xor_epi64(own | own << 1, v, with.flip);
                _mm512_storeu_si512(target.add(first + at).cast(), v);
                word |= u64::from(_pext_u32(u32::from(own), u32::from(LOW))) << at;
            }
        }
        valid.push(word);
    }
    longer == 0
}
