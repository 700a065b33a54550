//! Codes of columns as rows, and which of them take a byte more: eight of eight bytes in a register.
//!
//! ```text
//! columns     a0 a1 a2 ...   b0 b1 b2 ...        eight rows at a time
//! rows        | a0 b0 c0 d0 a1 b1 c1 d1 | ...    transposed, nulls and longer codes told, in the machine's byte order
//! longer      | 1  0  0  0  1  0  0  0  |        a bit for each
//! ```

use std::arch::x86_64::*;

use super::{Code, Codes, GROUP, Lane, code, in_turns, transpose_8};
use crate::kernel::prefetch::prefetch_near;

/// Codes of a register.
pub(super) const CODES: usize = 8;
/// Rows of a word of validity.
pub(super) const WORD: usize = 64;

/// A block, and the codes of a word of its rows.
pub(super) struct Words<'a, const N: usize> {
    block: Block<'a, N>,
    /// Of eight rows each.
    pub(super) groups: [Codes8<N>; WORD / GROUP],
}

impl<'a, const N: usize> Words<'a, N> {
    /// No rows yet, of up to `N` lanes.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn new(lanes: &'a [Lane<'a>]) -> Self {
        Self { block: Block::new(lanes), groups: std::array::from_fn(|_| Codes8::none()) }
    }

    /// Bytes of a row in a register that are no column's.
    pub(super) fn missing(&self) -> usize {
        self.block.missing
    }

    /// Reads so many groups of rows from `row` on, a word at the most, and asks for those that are a word `AHEAD`.
    ///
    /// # Safety
    /// As [`Block::read`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt,gfni")]
    pub(super) unsafe fn read<const SUMS: bool, const AHEAD: bool>(
        &mut self,
        row: usize,
        groups: usize,
    ) {
        let valid = self.block.valid(row);
        for (group, codes) in self.groups[..groups].iter_mut().enumerate() {
            // SAFETY: as the caller promised.
            unsafe { self.block.read::<SUMS>(row, group, &valid, codes) };
            if AHEAD {
                let next = (row + group * GROUP + WORD) * 8;
                for lane in self.block.lanes {
                    prefetch_near(lane.values.as_ptr().wrapping_add(next));
                }
            }
        }
    }
}

/// The codes of eight rows of `N` columns: rows lie one behind the other.
pub(super) struct Codes8<const N: usize> {
    pub(super) rows: [__m512i; N],
    pub(super) longer: [u8; N],
}

impl<const N: usize> Codes8<N> {
    #[target_feature(enable = "avx512f")]
    pub(super) fn none() -> Self {
        Self { rows: [_mm512_setzero_si512(); N], longer: [0; N] }
    }

    /// Row `index`, and which of its codes are longer.
    ///
    /// # Safety
    /// `V` is a register of `N` codes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn row<V: Copy>(&self, index: usize) -> (V, u8) {
        const { assert!(size_of::<V>() == N * 8, "a register of the codes") };
        let in_register = GROUP / N;
        // SAFETY: there are eight rows, one behind the other, each of which is such a register.
        let row = unsafe { self.rows.as_ptr().cast::<V>().add(index % GROUP).read() };
        let longer = self.longer[index / in_register] >> (N * (index % in_register));
        (row, longer & (u8::MAX >> (CODES - N)))
    }
}

/// `N` lanes, of which a register holds `8 / N` rows: one, two, four or eight.
pub(super) struct Block<'a, const N: usize> {
    /// Those that are missing up to `N` are the first one again, which is not longer.
    lanes: [&'a Lane<'a>; N],
    /// Bytes of the codes that are missing.
    missing: usize,
    with: Codes,
    /// What makes of a value its code, where that is a sum: to turn the sign is to add it.
    sum: __m512i,
    /// Where the bytes of others come from: the bytes of codes that are not big-endian are turned around.
    order: __m512i,
    /// Codes that take a byte more come next before these: all zeros and all ones, or none.
    below: __m512i,
    /// What makes of all zeros, or all ones, the first byte of a longer code and its last.
    longer_by: __m512i,
}

impl<'a, const N: usize> Block<'a, N> {
    /// Bits of the first column in a register of rows.
    const FIRST: u64 = u64::MAX / ((1 << N) - 1);

    /// Up to `N` lanes.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn new(lanes: &'a [Lane<'a>]) -> Self {
        let all: [_; N] = std::array::from_fn(|at| lanes.get(at).unwrap_or(&lanes[0]));
        let codes: [Code; N] = all.map(|lane| lane.code);
        let with = Codes::of(&codes);
        let own = Self::FIRST as u8 * (0xff >> (CODES - lanes.len()));
        Self {
            lanes: all,
            missing: (N - lanes.len()) * 8,
            sum: _mm512_add_epi64(with.flip, with.delta),
            order: _mm512_xor_si512(with.order, _mm512_set1_epi8(7)),
            below: _mm512_maskz_set1_epi64(with.escapes & own, 2),
            longer_by: with.longer(),
            with,
        }
    }

    /// The validity of 64 rows from `row` on: a word for each column, or of eight columns for each eight rows.
    #[target_feature(enable = "avx512f,avx512vbmi,gfni")]
    pub(super) fn valid(&self, row: usize) -> [u64; N] {
        let mut words = self.lanes.map(|lane| lane.valid.map_or(u64::MAX, |bits| bits.word(row)));
        if N == CODES {
            turn_bits(&mut words);
        }
        words
    }

    /// Sets `codes` to those of a group of eight rows of the 64 from `first` on, which have this validity. Short enough to become part of
    /// its callers: codes of four columns that went through memory were waited for, 29 us instead of 18.
    ///
    /// # Safety
    /// The CPU has the features of [`Words::read`]; the lanes hold these rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt,gfni")]
    pub(super) unsafe fn read<const SUMS: bool>(
        &self,
        first: usize,
        group: usize,
        words: &[u64; N],
        codes: &mut Codes8<N>,
    ) {
        let row = first + group * GROUP;
        let v = self.lanes.map(|lane| {
            // SAFETY: eight rows from `row` on hold 64 bytes of values.
            unsafe { _mm512_loadu_si512(lane.values.as_ptr().add(row * 8).cast()) }
        });
        let mut valid = 0;
        if N == CODES {
            valid = words[group];
        } else {
            for (at, word) in words.iter().enumerate() {
                valid |= _pdep_u64(word >> (group * GROUP), Self::FIRST << at);
            }
        }
        for (at, v) in rows_of(v).into_iter().enumerate() {
            let valid = (valid >> (CODES * at)) as __mmask8;
            let v = match SUMS {
                true => _mm512_mask_add_epi64(self.with.null, valid, v, self.sum),
                false => {
                    let v = code::<true, true>(v, &self.with);
                    _mm512_mask_mov_epi64(self.with.null, valid, v)
                }
            };
            let next = _mm512_add_epi64(v, _mm512_set1_epi64(1));
            let longer = _mm512_mask_cmplt_epu64_mask(valid, next, self.below);
            let v = _mm512_mask_add_epi64(v, longer, v, self.longer_by);
            codes.rows[at] = if SUMS { v } else { _mm512_shuffle_epi8(v, self.order) };
            codes.longer[at] = longer;
        }
    }
}

/// Of words of eight columns, the bits of each row side by side: eight rows in a word.
///
/// Benefit: what eight deposits for each eight rows did before, a tenth of the time of ten columns.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
fn turn_bits<const N: usize>(words: &mut [u64; N]) {
    assert!(N == CODES, "a register");
    // The bytes of the same eight rows, those of the last column first: as the rows of a matrix they are counted.
    let order: [u8; 64] = std::array::from_fn(|at| ((7 - at % 8) * 8 + at / 8) as u8);
    // SAFETY: the arrays have 64 bytes.
    unsafe {
        let v = _mm512_loadu_si512(words.as_ptr().cast());
        let eights = _mm512_permutexvar_epi8(_mm512_loadu_si512(order.as_ptr().cast()), v);
        // A bit for each byte: the product with the matrix is its transpose.
        let each = _mm512_set1_epi64(0x8040_2010_0804_0201u64 as i64);
        let v = _mm512_gf2p8affine_epi64_epi8::<0>(each, eights);
        _mm512_storeu_si512(words.as_mut_ptr().cast(), v);
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
