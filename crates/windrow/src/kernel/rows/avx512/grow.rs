//! Columns to rows of which some take a byte more than most: eight codes of eight bytes at a time, those
//! of two rows of four columns, of four rows of two, or of eight of one.
//!
//! ```text
//! a code that takes a byte more: all ones, or all zeros, but the last byte
//! transposed       | aaaaaaaa | 0......1 | cccccccc | dddddddd | aaaaaaaa | ...     in the machine's byte order
//! permuted         | aaaaaaaa | 11111111 0 | cccccccc | dddddddd | aaaaaaaa | ...   by which ones are longer
//! stored           64 bytes, and the last eight, where they end; there the next eight codes go
//! ```
//!
//! Of more columns, eight codes of a row at a time, and up to four, or two, of the last ones in half a register or a quarter.

use std::arch::asm;
use std::arch::x86_64::*;

use super::grow_codes::{Block, CODES, Codes8, WORD, Words};
use super::{GROUP, Lane};

/// Bytes of a register.
const STEP: usize = 64;
/// Bytes that are written at once, where all codes are longer.
const WRITTEN: usize = STEP + CODES;

/// Columns up to which the CPU foresees what is read of each. Of 50 in the third-level cache it does not: 470 us, and 350 where
/// the next rows are asked for.
const FORESEEN: usize = 32;

/// Where the bytes of a register come from, by which of its codes take a byte more: those of a code are turned around.
///
/// A permutation that is loaded: to expand the bytes instead takes two instructions and more, and cannot
/// repeat one.
static ORDERS: [Order; 1 << CODES] = orders();

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Order([u8; STEP]);

const fn orders() -> [Order; 1 << CODES] {
    let mut orders = [Order([0; STEP]); 1 << CODES];
    let mut longer = 0;
    while longer < orders.len() {
        let (mut code, mut byte, mut at) = (0, 0, 0);
        while at < STEP {
            let is_longer = longer >> code & 1 == 1;
            // All bytes of a longer one but the last are the same.
            let from = match byte {
                8 => 7,
                byte if is_longer => byte / 8,
                byte => byte,
            };
            orders[longer].0[at] = (code * 8 + 7 - from) as u8;
            (at, byte) = (at + 1, byte + 1);
            if byte == 8 + is_longer as usize {
                (code, byte) = (code + 1, 0);
            }
        }
        longer += 1;
    }
    orders
}

/// How many of the codes up to each are longer, a byte each, by which ones are. Looked up, for the compiler counts
/// the bits of four numbers in vectors, which it has to put together and take apart.
static COUNTS: [u64; 1 << CODES] = counts();

const fn counts() -> [u64; 1 << CODES] {
    let mut counts = [0; 1 << CODES];
    let mut longer = 0;
    while longer < counts.len() {
        let mut code = 0;
        while code < CODES {
            let up_to = longer & ((2 << code) - 1);
            counts[longer] |= (up_to.count_ones() as u64) << (8 * code);
            code += 1;
        }
        longer += 1;
    }
    counts
}

/// Appends the rows below `rows / 8 * 8` of adjacent columns of eight bytes to `out` from `at` on,
/// and their ends to `ends`. Returns the number of rows written and where the last one ends: fewer
/// than that if `out` is too short for more.
///
/// Benefit: 3.9x the path of AVX2 for one column, 2.7x for two. Of four columns 17.5 us for 31 of half a register at
/// a time. Of ten columns, a word of rows read before it is written takes 40.5 us for 49, of 50 columns 185 for 204, of
/// which eight codes at a time instead of four are 7 (Zen 5; on Zen 4 those were no gain, since a store of 64 bytes
/// crosses a line almost always). Codes that are sums, in the machine's byte order until they are permuted, and the last two
/// columns with the one before them: ten columns 48.5 us for 59, 50 248 for 277 (Zen 4).
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI, BMI2 and GFNI; each lane holds values and validity bits of
/// all `rows`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt,gfni")]
pub(in crate::kernel::rows) unsafe fn grow(
    lanes: &[Lane<'_>],
    rows: usize,
    at: usize,
    out: &mut [u8],
    ends: &mut Vec<u32>,
) -> (usize, usize) {
    let sums = lanes.iter().all(|lane| lane.code.big && lane.code.is_sum());
    let ahead = lanes.len() > FORESEEN;
    // SAFETY: as this function's, for so many lanes.
    unsafe {
        match (lanes.len(), sums) {
            (1, true) => packed::<1, true>(lanes, rows, at, out, ends),
            (1, false) => packed::<1, false>(lanes, rows, at, out, ends),
            (2, true) => packed::<2, true>(lanes, rows, at, out, ends),
            (2, false) => packed::<2, false>(lanes, rows, at, out, ends),
            (4, true) => packed::<4, true>(lanes, rows, at, out, ends),
            (4, false) => packed::<4, false>(lanes, rows, at, out, ends),
            (_, true) if ahead => by_blocks::<true, true>(lanes, rows, at, out, ends),
            (_, true) => by_blocks::<true, false>(lanes, rows, at, out, ends),
            (_, false) if ahead => by_blocks::<false, true>(lanes, rows, at, out, ends),
            (_, false) => by_blocks::<false, false>(lanes, rows, at, out, ends),
        }
    }
}

/// Rows of `N` columns, of which a register holds one or more as they are.
///
/// # Safety
/// As [`grow`], for `N` lanes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt,gfni")]
unsafe fn packed<const N: usize, const SUMS: bool>(
    lanes: &[Lane<'_>],
    rows: usize,
    mut at: usize,
    out: &mut [u8],
    ends: &mut Vec<u32>,
) -> (usize, usize) {
    let block = Block::<N>::new(lanes);
    ends.reserve(rows);
    let start = out.as_mut_ptr();
    let whole = rows / GROUP * GROUP;
    for word in (0..whole).step_by(WORD) {
        let behind = whole.min(word + WORD);
        if out.len() < at + (behind - word) / GROUP * N * WRITTEN {
            return (word, at);
        }
        let valid = block.valid(word);
        // SAFETY: the lanes hold these rows, and there is room for the end of each and for `WRITTEN` bytes of
        // each register.
        unsafe {
            let mut end = ends.as_mut_ptr().add(ends.len());
            for group in 0..(behind - word) / GROUP {
                let mut codes = Codes8::none();
                block.read::<SUMS>(word, group, &valid, &mut codes);
                for (v, longer) in codes.rows.into_iter().zip(codes.longer) {
                    let counts = counts_of(longer);
                    put_ends::<N>(at as u32, counts, end);
                    end = end.add(GROUP / N);
                    at += put(v, longer, counts, start.add(at));
                }
            }
            ends.set_len(ends.len() + behind - word);
        }
    }
    (whole, at)
}

/// Rows of any columns, eight in a register, and up to four of the last ones in half of one, or two in a quarter: a word of
/// rows of each eight, and then row by row of all.
///
/// # Safety
/// As [`grow`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt,gfni")]
unsafe fn by_blocks<const SUMS: bool, const AHEAD: bool>(
    lanes: &[Lane<'_>],
    rows: usize,
    mut at: usize,
    out: &mut [u8],
    ends: &mut Vec<u32>,
) -> (usize, usize) {
    let (eights, last) = match lanes.len() % CODES {
        last @ 1..=4 => lanes.split_at(lanes.len() - last),
        _ => (lanes, &[][..]),
    };
    let mut eights: Vec<_> = eights.chunks(CODES).map(|lanes| Words::<8>::new(lanes)).collect();
    let mut last = Last::new(last);
    // How many eights are written by themselves, and bytes that are too many.
    let (alone, missing) = match &last {
        Last::None => (eights.len(), eights.last().map_or(0, Words::missing)),
        Last::Two(words) => (eights.len() - 1, words.missing()),
        Last::Four(words) => (eights.len(), words.missing()),
    };
    let most = GROUP * lanes.len() * 9 + WRITTEN;
    let start = out.as_mut_ptr();
    let whole = rows / GROUP * GROUP;
    ends.reserve(rows);
    for word in (0..whole).step_by(WORD) {
        let groups = WORD.min(whole - word) / GROUP;
        // SAFETY: the lanes hold these rows.
        unsafe {
            eights.iter_mut().for_each(|words| words.read::<SUMS, AHEAD>(word, groups));
            match &mut last {
                Last::None => {}
                Last::Two(words) => words.read::<SUMS, AHEAD>(word, groups),
                Last::Four(words) => words.read::<SUMS, AHEAD>(word, groups),
            }
        }
        for group in 0..groups {
            if out.len() < at + most {
                return (word + group * GROUP, at);
            }
            for index in 0..GROUP {
                // SAFETY: these rows end at most `most` bytes behind the first of them, less what is written at
                // once; there is room for their ends. A row of `N` codes is taken as a register of as many.
                unsafe {
                    for words in &eights[..alone] {
                        let (codes, longer) = words.groups[group].row(index);
                        at += put(codes, longer, counts_of(longer), start.add(at));
                    }
                    match &last {
                        Last::None => {}
                        Last::Two(words) => {
                            let eight = eights[alone].groups[group].row(index);
                            at += put_ten(eight, words.groups[group].row(index), start.add(at));
                        }
                        Last::Four(words) => {
                            let (codes, longer) = words.groups[group].row(index);
                            at += put_half(codes, longer, start.add(at));
                        }
                    }
                    at -= missing;
                    ends.as_mut_ptr().add(ends.len()).write(at as u32);
                    ends.set_len(ends.len() + 1);
                }
            }
        }
    }
    (whole, at)
}

/// The last few columns, if they take half a register or less.
enum Last<'a> {
    None,
    Two(Box<Words<'a, 2>>),
    Four(Box<Words<'a, 4>>),
}

impl<'a> Last<'a> {
    /// Up to four columns, or none.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(lanes: &'a [Lane<'a>]) -> Self {
        match lanes.len() {
            0 => Self::None,
            1 | 2 => Self::Two(Box::new(Words::new(lanes))),
            _ => Self::Four(Box::new(Words::new(lanes))),
        }
    }
}

/// How many of the codes up to each are `longer`, a byte each.
#[inline(always)]
fn counts_of(longer: u8) -> u64 {
    let mut counts = COUNTS[usize::from(longer)];
    // The compiler takes it for any number: it would look up those of four registers by one gather and put four
    // rows together again, 25 us instead of 18.
    // SAFETY: there is no instruction.
    unsafe { asm!("/* {0} */", inout(reg) counts, options(pure, nomem, nostack, preserves_flags)) };
    counts
}

/// Writes the codes of a register, of which some are `longer`; returns their bytes.
///
/// # Safety
/// The CPU has the features of [`grow`]; `target` may be written for [`WRITTEN`] bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt,gfni")]
unsafe fn put(v: __m512i, longer: u8, counts: u64, target: *mut u8) -> usize {
    let bytes = STEP + (counts >> (8 * (CODES - 1))) as usize;
    // SAFETY: an order has 64 bytes, as has a register; the last code, of which all bytes but the last of a
    // longer one are the same, ends where all of them end.
    unsafe {
        let order = _mm512_load_si512(ORDERS[usize::from(longer)].0.as_ptr().cast());
        _mm512_storeu_si512(target.cast(), _mm512_permutexvar_epi8(order, v));
        put_second(_mm512_extracti32x4_epi32(v, 3), target.add(bytes - 8));
    }
    bytes
}

/// Writes four codes, of which some are `longer`; returns their bytes.
///
/// # Safety
/// As [`put`], for 40 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt,gfni")]
unsafe fn put_half(v: __m256i, longer: u8, target: *mut u8) -> usize {
    // SAFETY: an order has 64 bytes; otherwise as this function's.
    unsafe {
        let order = _mm512_load_si512(ORDERS[usize::from(longer)].0.as_ptr().cast());
        let v = _mm512_permutexvar_epi8(order, _mm512_castsi256_si512(v));
        // Narrow stores cross from one cache line to the next less often than one of 64 bytes.
        _mm256_storeu_si256(target.cast(), _mm512_castsi512_si256(v));
        _mm_storel_epi64(target.add(32).cast(), _mm512_extracti32x4_epi32(v, 2));
    }
    STEP / 2 + longer.count_ones() as usize
}

/// Writes eight codes and the two behind them, each with which of them are longer; returns their bytes. The last of the
/// eight is written once more with the two, so that two stores are enough.
///
/// # Safety
/// As [`put`], for 96 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt,gfni")]
unsafe fn put_ten(eight: (__m512i, u8), two: (__m128i, u8), target: *mut u8) -> usize {
    let three = _mm512_setr_epi64(7, 8, 9, 9, 9, 9, 9, 9);
    let three = _mm512_permutex2var_epi64(eight.0, three, _mm512_castsi128_si512(two.0));
    let bytes = STEP + eight.1.count_ones() as usize;
    // SAFETY: an order has 64 bytes, as has a register; three codes have 26 at the most.
    unsafe {
        let order = _mm512_load_si512(ORDERS[usize::from(eight.1)].0.as_ptr().cast());
        _mm512_storeu_si512(target.cast(), _mm512_permutexvar_epi8(order, eight.0));
        let order = _mm256_load_si256(ORDERS[usize::from(two.1) << 1].0.as_ptr().cast());
        let three = _mm256_permutexvar_epi8(order, _mm512_castsi512_si256(three));
        _mm256_storeu_si256(target.add(bytes - 8).cast(), three);
    }
    bytes + STEP / 4 + two.1.count_ones() as usize
}

/// Writes the second of two codes as one that is not longer.
///
/// # Safety
/// As [`put`], for 8 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt,gfni")]
unsafe fn put_second(v: __m128i, target: *mut u8) {
    let turn = _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
    // SAFETY: as this function's.
    unsafe { _mm_storeh_pd(target.cast(), _mm_castsi128_pd(_mm_shuffle_epi8(v, turn))) };
}

/// Writes where the rows of a register end that begin at `at`, `counts` of whose codes are longer.
///
/// # Safety
/// The CPU has the features of [`grow`]; `target` may be written for `8 / N` ends.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt,gfni")]
unsafe fn put_ends<const N: usize>(at: u32, counts: u64, target: *mut u32) {
    // Those of the last codes of the rows, in as many bits as these codes are apart.
    let counts = counts >> (8 * (N - 1));
    // SAFETY: each store is of `8 / N` ends.
    unsafe {
        match N {
            1 => {
                let ends = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(counts as i64));
                let bytes = _mm256_setr_epi32(8, 16, 24, 32, 40, 48, 56, 64);
                let bytes = _mm256_add_epi32(bytes, _mm256_set1_epi32(at as i32));
                _mm256_storeu_si256(target.cast(), _mm256_add_epi32(ends, bytes));
            }
            2 => {
                let ends = _mm_cvtsi64_si128((counts & 0x00ff_00ff_00ff_00ff) as i64);
                let bytes =
                    _mm_add_epi32(_mm_setr_epi32(16, 32, 48, 64), _mm_set1_epi32(at as i32));
                _mm_storeu_si128(target.cast(), _mm_add_epi32(_mm_cvtepu16_epi32(ends), bytes));
            }
            _ => {
                let at = u64::from(at) << 32 | u64::from(at);
                let ends = (counts & 0xff_0000_00ff) + at + (64 << 32 | 32);
                target.cast::<u64>().write_unaligned(ends);
            }
        }
    }
}
