//! Columns to rows of which some take a byte more than most: eight codes of eight bytes at a time, those
//! of two rows of four columns, of four rows of two, or of eight of one.
//!
//! ```text
//! a code that takes a byte more: all ones, or all zeros, but the last byte
//! transposed       | aaaaaaaa | 1......0 | cccccccc | dddddddd | aaaaaaaa | ...
//! permuted         | aaaaaaaa | 11111111 0 | cccccccc | dddddddd | aaaaaaaa | ...   by which ones are longer
//! stored           64 bytes, and the last eight, where they end; there the next eight codes go
//! ```
//!
//! Of more columns, eight codes of a row at a time, and up to four of the last ones in half a register.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Code, Codes, GROUP, Lane, code, in_turns, transpose_8};

/// Codes of a register.
const CODES: usize = 8;
/// Bytes of a register.
const STEP: usize = 64;
/// Bytes that are written at once, where all codes are longer.
const WRITTEN: usize = STEP + CODES;
/// Rows of a word of validity.
const WORD: usize = 64;

/// Where the bytes of a register come from, by which of its codes take a byte more.
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
            orders[longer].0[at] = (code * 8 + from) as u8;
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
/// crosses a line almost always).
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI, and BMI2; each lane holds values and validity bits of
/// all `rows`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
pub(in crate::kernel::rows) unsafe fn grow(
    lanes: &[Lane<'_>],
    rows: usize,
    at: usize,
    out: &mut [u8],
    ends: &mut Vec<u32>,
) -> (usize, usize) {
    let floats = lanes.iter().any(|lane| lane.code.float != 0);
    macro_rules! packed {
        ($($count:literal),*) => {
            match lanes.len() {
                // SAFETY: as this function's.
                $($count if floats => unsafe { packed::<$count, true>(lanes, rows, at, out, ends) },
                // SAFETY: as this function's.
                $count => unsafe { packed::<$count, false>(lanes, rows, at, out, ends) },)*
                // SAFETY: as this function's.
                _ if floats => unsafe { by_blocks::<true>(lanes, rows, at, out, ends) },
                // SAFETY: as this function's.
                _ => unsafe { by_blocks::<false>(lanes, rows, at, out, ends) },
            }
        };
    }
    packed!(1, 2, 4)
}

/// Rows of `N` columns, of which a register holds one or more as they are.
///
/// # Safety
/// As [`grow`], for `N` lanes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
unsafe fn packed<const N: usize, const FLOATS: bool>(
    lanes: &[Lane<'_>],
    rows: usize,
    mut at: usize,
    out: &mut [u8],
    ends: &mut Vec<u32>,
) -> (usize, usize) {
    // SAFETY: there are `N` lanes, which hold these rows.
    let block = unsafe { Block::<N>::new(lanes) };
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
            for row in (word..behind).step_by(GROUP) {
                let mut codes = Codes8::none();
                block.read::<FLOATS>(row, &valid, &mut codes);
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

/// Rows of any columns, eight in a register, and up to four of the last ones in half of one: a word of rows of each
/// eight, and then row by row of all.
///
/// # Safety
/// As [`grow`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
unsafe fn by_blocks<const FLOATS: bool>(
    lanes: &[Lane<'_>],
    rows: usize,
    mut at: usize,
    out: &mut [u8],
    ends: &mut Vec<u32>,
) -> (usize, usize) {
    let (eights, four) = match lanes.len() % CODES {
        last @ 1..=4 => lanes.split_at(lanes.len() - last),
        _ => (lanes, &[][..]),
    };
    // SAFETY: the lanes hold these rows.
    let (mut eights, mut four) = unsafe {
        let eights = eights.chunks(CODES).map(|lanes| Words::<8>::new(lanes));
        (eights.collect::<Vec<_>>(), (!four.is_empty()).then(|| Words::<4>::new(four)))
    };
    let missing = match &four {
        Some(words) => words.block.missing,
        None => eights.last().map_or(0, |words| words.block.missing),
    };
    let most = GROUP * lanes.len() * 9 + WRITTEN;
    let start = out.as_mut_ptr();
    let whole = rows / GROUP * GROUP;
    ends.reserve(rows);
    for word in (0..whole).step_by(WORD) {
        let groups = WORD.min(whole - word) / GROUP;
        // SAFETY: the lanes hold these rows.
        unsafe {
            eights.iter_mut().for_each(|words| words.read::<FLOATS>(word, groups));
            four.iter_mut().for_each(|words| words.read::<FLOATS>(word, groups));
        }
        for group in 0..groups {
            if out.len() < at + most {
                return (word + group * GROUP, at);
            }
            for index in 0..GROUP {
                // SAFETY: these rows end at most `most` bytes behind the first of them, less what is written at
                // once; there is room for their ends.
                unsafe {
                    for words in &eights {
                        let (codes, longer) = words.groups[group].row(index);
                        at += put(codes, longer, counts_of(longer), start.add(at));
                    }
                    if let Some(words) = &four {
                        let (codes, longer) = words.groups[group].half(index);
                        at += put_half(codes, longer, start.add(at));
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

/// A block, and the codes of a word of its rows.
struct Words<'a, const N: usize> {
    block: Block<'a, N>,
    groups: [Codes8<N>; WORD / GROUP],
}

impl<'a, const N: usize> Words<'a, N> {
    /// # Safety
    /// As [`grow`].
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn new(lanes: &'a [Lane<'a>]) -> Self {
        // SAFETY: as the caller promised.
        let block = unsafe { Block::new(lanes) };
        Self { block, groups: std::array::from_fn(|_| Codes8::none()) }
    }

    /// Reads so many groups of rows from `row` on, the first of a word.
    ///
    /// # Safety
    /// As [`Block::read`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
    unsafe fn read<const FLOATS: bool>(&mut self, row: usize, groups: usize) {
        let valid = self.block.valid(row);
        for (group, codes) in self.groups[..groups].iter_mut().enumerate() {
            // SAFETY: as the caller promised.
            unsafe { self.block.read::<FLOATS>(row + group * GROUP, &valid, codes) };
        }
    }
}

/// The codes of eight rows of `N` columns: rows lie one behind the other.
struct Codes8<const N: usize> {
    rows: [__m512i; N],
    longer: [u8; N],
}

impl<const N: usize> Codes8<N> {
    #[target_feature(enable = "avx512f")]
    fn none() -> Self {
        Self { rows: [_mm512_setzero_si512(); N], longer: [0; N] }
    }
}

impl Codes8<8> {
    /// Row `index`, and which of its codes are longer.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn row(&self, index: usize) -> (__m512i, u8) {
        (self.rows[index], self.longer[index])
    }
}

impl Codes8<4> {
    /// Row `index`, and which of its codes are longer.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn half(&self, index: usize) -> (__m256i, u8) {
        let rows: *const __m256i = self.rows.as_ptr().cast();
        // SAFETY: there are eight rows.
        let row = unsafe { rows.add(index % GROUP).read() };
        (row, self.longer[index / 2] >> (4 * (index % 2)) & 0xf)
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
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
unsafe fn put(v: __m512i, longer: u8, counts: u64, target: *mut u8) -> usize {
    let bytes = STEP + (counts >> (8 * (CODES - 1))) as usize;
    // SAFETY: an order has 64 bytes, as has a register; the last code, of which all bytes but the last of a
    // longer one are the same, ends where all of them end.
    unsafe {
        let order = _mm512_load_si512(ORDERS[usize::from(longer)].0.as_ptr().cast());
        _mm512_storeu_si512(target.cast(), _mm512_permutexvar_epi8(order, v));
        let last = _mm_castsi128_pd(_mm512_extracti32x4_epi32(v, 3));
        _mm_storeh_pd(target.add(bytes - 8).cast(), last);
    }
    bytes
}

/// Writes four codes, of which some are `longer`; returns their bytes.
///
/// # Safety
/// As [`put`], for 40 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
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

/// Writes where the rows of a register end that begin at `at`, `counts` of whose codes are longer.
///
/// # Safety
/// The CPU has the features of [`grow`]; `target` may be written for `8 / N` ends.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
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

/// `N` lanes, of which a register holds `8 / N` rows: one, two, four or eight.
struct Block<'a, const N: usize> {
    /// Those that are missing up to `N` are the first one again, which is not longer.
    lanes: [&'a Lane<'a>; N],
    /// Bytes of the codes that are missing.
    missing: usize,
    with: Codes,
    /// Codes that take a byte more come next before these: all zeros and all ones, or none.
    below: __m512i,
    /// What makes of all zeros, or all ones, the first byte of a longer code and its last.
    longer_by: __m512i,
}

impl<'a, const N: usize> Block<'a, N> {
    /// Bits of the first column in a register of rows.
    const FIRST: u64 = u64::MAX / ((1 << N) - 1);

    /// # Safety
    /// As [`grow`].
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn new(lanes: &'a [Lane<'a>]) -> Self {
        let all: [_; N] = std::array::from_fn(|at| lanes.get(at).unwrap_or(&lanes[0]));
        let codes: [Code; N] = all.map(|lane| lane.code);
        let with = Codes::of(&codes);
        let own = Self::FIRST as u8 * (0xff >> (CODES - lanes.len()));
        let below = _mm512_maskz_set1_epi64(with.escapes & own, 2);
        let (missing, longer_by) = ((N - lanes.len()) * 8, with.longer());
        Self { lanes: all, missing, below, longer_by, with }
    }

    /// The validity of the word of rows from `row` on.
    fn valid(&self, row: usize) -> [u64; N] {
        self.lanes.map(|lane| lane.valid.map_or(u64::MAX, |bits| bits.word(row)))
    }

    /// Sets `codes` to those of eight rows from `row` on, whose word has this validity. Short enough to become part of
    /// its callers: codes of four columns that went through memory were waited for, 29 us instead of 18.
    ///
    /// # Safety
    /// The CPU has the features of [`grow`]; the lanes hold these rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
    unsafe fn read<const FLOATS: bool>(&self, row: usize, words: &[u64; N], codes: &mut Codes8<N>) {
        let v = self.lanes.map(|lane| {
            // SAFETY: eight rows from `row` on hold 64 bytes of values.
            unsafe { _mm512_loadu_si512(lane.values.as_ptr().add(row * 8).cast()) }
        });
        let mut valid = 0;
        for (at, word) in words.iter().enumerate() {
            valid |= _pdep_u64(word >> (row % WORD), Self::FIRST << at);
        }
        for (at, v) in rows_of(v).into_iter().enumerate() {
            let valid = (valid >> (CODES * at)) as __mmask8;
            let v = code::<true, FLOATS>(v, &self.with);
            let next = _mm512_add_epi64(v, _mm512_set1_epi64(1));
            let longer = _mm512_mask_cmplt_epu64_mask(valid, next, self.below);
            let v = _mm512_mask_add_epi64(v, longer, v, self.longer_by);
            let v = _mm512_mask_mov_epi64(self.with.null, valid, v);
            codes.rows[at] = _mm512_shuffle_epi8(v, self.with.order);
            codes.longer[at] = longer;
        }
    }
}

/// Eight rows of one, two, four or eight columns, one behind the other.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn rows_of<const N: usize>(v: [__m512i; N]) -> [__m512i; N] {
    let mut rows = v;
    match N {
        2 => (rows[0], rows[1]) = in_turns(v[0], v[1]),
        4 => {
            let near = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
            let far = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
            let (left, right) = (in_turns(v[0], v[1]), in_turns(v[2], v[3]));
            rows[0] = _mm512_permutex2var_epi64(left.0, near, right.0);
            rows[1] = _mm512_permutex2var_epi64(left.0, far, right.0);
            rows[2] = _mm512_permutex2var_epi64(left.1, near, right.1);
            rows[3] = _mm512_permutex2var_epi64(left.1, far, right.1);
        }
        8 => rows.copy_from_slice(&transpose_8(std::array::from_fn(|column| v[column]))),
        _ => {}
    }
    rows
}
