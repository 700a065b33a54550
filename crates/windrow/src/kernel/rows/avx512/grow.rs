//! Columns to rows of which some take a byte more than most: four columns of a row at a time.
//!
//! ```text
//! four codes of eight bytes, b taking a byte more: all ones, or all zeros, and the last byte
//! transposed       | aaaaaaaa | 1......0 | cccccccc | dddddddd |
//! permuted         | aaaaaaaa | 11111111 0 | cccccccc | dddddddd |   by which ones are longer
//! stored with what is behind; the next four, or the next row, go where these end
//! ```

use std::arch::x86_64::*;

use super::{Code, Codes, GROUP, Lane, PAIR, code, spread, transpose_4};

/// Columns that are written at once: their longest codes fit a register.
const COLUMNS: usize = 4;
/// Bytes of a register.
const STEP: usize = 64;
/// Bytes that are written at once.
const WRITTEN: usize = 40;
/// Rows of a word of validity.
const WORD: usize = 64;

/// Where the bytes of a row come from, which is the lower or the upper half of a register, by which
/// of its codes take a byte more.
static ORDERS: [[Order; 1 << COLUMNS]; 2] = [orders(0), orders(STEP / 2)];

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Order([u8; STEP]);

const fn orders(first: usize) -> [Order; 1 << COLUMNS] {
    let mut orders = [Order([0; STEP]); 1 << COLUMNS];
    let mut longer = 0;
    while longer < orders.len() {
        let (mut column, mut at) = (0, 0);
        while column < COLUMNS {
            let is_longer = longer >> column & 1 == 1;
            let start = first + column * 8;
            let mut byte = 0;
            while byte < 8 {
                // All bytes of a longer one but the last are the same.
                orders[longer].0[at] = (start + if is_longer { 0 } else { byte }) as u8;
                (at, byte) = (at + 1, byte + 1);
            }
            if is_longer {
                orders[longer].0[at] = (start + 7) as u8;
                at += 1;
            }
            column += 1;
        }
        longer += 1;
    }
    orders
}

/// Appends the rows below `rows / 8 * 8` of adjacent columns of eight bytes to `out` from `at` on,
/// and their ends to `ends`. Returns the number of rows written and where the last one ends: fewer
/// than that if `out` is too short for more.
///
/// Benefit: 1.3x the path of AVX2 for four columns, 1.4x for eight; slower for one and two.
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI, and BMI2; each lane holds values and validity bits of
/// all `rows`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
pub(in crate::kernel::rows) unsafe fn grow(
    lanes: &[Lane<'_>],
    rows: usize,
    mut at: usize,
    out: &mut [u8],
    ends: &mut Vec<u32>,
) -> (usize, usize) {
    let mut blocks: Vec<Block<'_>> = lanes.chunks(COLUMNS).map(|lanes| Block::new(lanes)).collect();
    let most = GROUP * lanes.len() * 9 + WRITTEN;
    let start = out.as_mut_ptr();
    for row in (0..rows / GROUP * GROUP).step_by(GROUP) {
        if out.len() < at + most {
            return (row, at);
        }
        let mut row_ends = [0; GROUP];
        // SAFETY: the lanes hold these rows, which end at most `most` bytes behind `at`, less what
        // is written at once.
        unsafe {
            for block in &mut blocks {
                block.read(row);
            }
            for (index, end) in row_ends.iter_mut().enumerate() {
                for block in &blocks {
                    at = block.put(index, at, start);
                }
                *end = at as u32;
            }
        }
        ends.extend_from_slice(&row_ends);
    }
    (rows / GROUP * GROUP, at)
}

/// Up to four lanes; behind them the first one again, which is not written.
struct Block<'a> {
    lanes: [&'a Lane<'a>; COLUMNS],
    /// Bytes of a row in which no code takes a byte more.
    bytes: usize,
    with: Codes,
    /// What makes of all zeros, or all ones, the first byte of a longer code and its last.
    longer_by: __m512i,
    /// The validity of 64 rows.
    valid: [u64; COLUMNS],
    /// The codes of two rows each, and which of them take a byte more.
    pairs: [__m512i; GROUP / 2],
    longer: [__mmask8; GROUP / 2],
}

impl<'a> Block<'a> {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(lanes: &'a [Lane<'a>]) -> Self {
        let all: [_; COLUMNS] = std::array::from_fn(|at| lanes.get(at).unwrap_or(&lanes[0]));
        let codes: [Code; COLUMNS] = all.map(|lane| lane.code);
        let mut with = Codes::of(&codes);
        // Those of the lanes that are written.
        with.escapes &= (0xf >> (COLUMNS - lanes.len())) * 0x11;
        Self {
            lanes: all,
            bytes: lanes.len() * 8,
            longer_by: with.longer(),
            with,
            valid: [u64::MAX; COLUMNS],
            pairs: [_mm512_setzero_si512(); GROUP / 2],
            longer: [0; GROUP / 2],
        }
    }

    /// Reads the codes of eight rows from `row` on.
    ///
    /// # Safety
    /// The CPU has the features of [`grow`]; the lanes hold these rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn read(&mut self, row: usize) {
        if row.is_multiple_of(WORD) {
            for (valid, lane) in self.valid.iter_mut().zip(self.lanes) {
                *valid = lane.valid.map_or(u64::MAX, |bits| bits.word(row));
            }
        }
        let v = self.lanes.map(|lane| {
            // SAFETY: eight rows from `row` on hold 64 bytes of values.
            unsafe { _mm512_loadu_si512(lane.values.as_ptr().add(row * 8).cast()) }
        });
        let mut valid = 0;
        for (at, word) in self.valid.iter().enumerate() {
            valid |= spread(word >> (row % WORD), at);
        }
        // Two rows in each byte, those of a pair.
        let valid = valid | valid >> PAIR;
        for (pair, v) in transpose_4(v).into_iter().enumerate() {
            let valid = (valid >> (8 * pair)) as __mmask8;
            let v = code::<true, true>(v, &self.with);
            let one = _mm512_set1_epi64(1);
            let edges = _mm512_cmple_epu64_mask(_mm512_add_epi64(v, one), one);
            let longer = edges & valid & self.with.escapes;
            let v = _mm512_mask_add_epi64(v, longer, v, self.longer_by);
            let v = _mm512_mask_mov_epi64(self.with.null, valid, v);
            self.pairs[pair] = _mm512_shuffle_epi8(v, self.with.order);
            self.longer[pair] = longer;
        }
    }

    /// Writes row `index` of the eight to `at`; returns where it ends.
    ///
    /// # Safety
    /// The CPU has the features of [`grow`]; `out` may be written for 40 bytes from `at` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
    unsafe fn put(&self, index: usize, at: usize, out: *mut u8) -> usize {
        let (pair, half) = (index % 4, index / 4);
        let longer = usize::from(self.longer[pair] >> (half * COLUMNS)) % (1 << COLUMNS);
        // SAFETY: an order has 64 bytes, as has a register.
        unsafe {
            let order = _mm512_load_si512(ORDERS[half][longer].0.as_ptr().cast());
            let row = _mm512_permutexvar_epi8(order, self.pairs[pair]);
            // Narrow stores cross from one cache line to the next less often than one of 64 bytes.
            _mm256_storeu_si256(out.add(at).cast(), _mm512_castsi512_si256(row));
            _mm_storel_epi64(out.add(at + 32).cast(), _mm512_extracti32x4_epi32(row, 2));
        }
        at + self.bytes + longer.count_ones() as usize
    }
}
