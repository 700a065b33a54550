//! Narrow cells to columns, 64 rows at a time: each byte of a row becomes a register.
//!
//! ```text
//! row       | 01 h l | b | 01 f |            numbers of two bytes, bytes and Booleans, and markers: 8 or 16 bytes
//! planes    01 01 .. | h h .. | l l .. | b b .. | 01 01 .. | f f ..          a byte of 64 rows each
//! columns   markers and Booleans compared, masks of bits; h and l side by side; bytes as they are
//! ```

use std::arch::x86_64::*;

use super::super::cells::VALUE;
use super::super::lane::Places;
use super::super::take_cells::{Cell, Held};
use super::{GROUP, reached, transpose_8};

/// Rows that are read at once: bytes of a register.
const ROWS: usize = 64;
/// Bytes of a row, at the most.
const MOST: usize = 16;
/// Bytes of rows that are registers together.
const WORD: usize = 8;
/// Bytes behind the place of a row that are read where rows are close together.
const REACH: usize = WORD + ROWS;

/// Numbers of two bytes, the lower and the upper bytes of which are registers: of the first 32 rows, and of the others.
static SIDE_BY_SIDE: [[u8; ROWS]; 2] = {
    let mut both = [[0; ROWS]; 2];
    let mut at = 0;
    while at < ROWS {
        both[0][at] = (at / 2 + ROWS * (at % 2)) as u8;
        both[1][at] = both[0][at] + ROWS as u8 / 2;
        at += 1;
    }
    both
};

/// Where a row has its columns.
#[derive(Debug)]
pub(in crate::kernel::rows) struct ByteOrder {
    /// The byte where each begins.
    starts: Vec<usize>,
    bytes: usize,
}

impl ByteOrder {
    /// That of the first few of `cells`, as many as are narrow and fit, and how many these are.
    pub(in crate::kernel::rows) fn of_first(cells: &[Cell]) -> (usize, Self) {
        let mut own = Self { starts: Vec::new(), bytes: 0 };
        for cell in cells {
            if cell.held().width() > 2 || own.bytes + cell.bytes() > MOST {
                break;
            }
            own.starts.push(own.bytes);
            own.bytes += cell.bytes();
        }
        (own.starts.len(), own)
    }
}

/// As `take_cells` of the module, for whole registers of rows, as far as more of each row may be read than it has;
/// returns how many, and whether they are rows of cells.
///
/// Benefit: four columns of two bytes are read in 5.5 us in place of 14.4 one by one, behind markers in 10.8 of 23.6; of one
/// byte 4.4 of 8.8, and 7.9 of 13.2 (8,192 rows, everything included; Zen 4).
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI; the order is that of `cells`, which lie within `bytes` at the places of all
/// rows, of which there are some.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(in crate::kernel::rows) unsafe fn take_bytes<P: Places>(
    order: &ByteOrder,
    cells: &mut [Cell],
    rows: usize,
    places: P,
    bytes: &[u8],
) -> (usize, bool) {
    let words = order.bytes.div_ceil(WORD);
    let close = places.stride().filter(|&stride| stride <= MOST);
    let reach = if close.is_some() { REACH } else { words * WORD };
    let done = reached(rows, places, reach, bytes.len());
    let turn = Turn::new(close.unwrap_or(WORD));
    let mut columns: Vec<Column<'_>> = cells
        .iter_mut()
        .zip(&order.starts)
        .map(|(cell, &start)| Column { target: cell.room(done), cell, start })
        .collect();
    let mut wrong = 0;
    for first in (0..done).step_by(ROWS) {
        let mut planes = [_mm512_setzero_si512(); MOST];
        for (word, planes) in planes.as_chunks_mut::<GROUP>().0.iter_mut().enumerate().take(words) {
            let places = places.behind(first).shifted(word * WORD);
            // SAFETY: the words of these rows lie within `bytes`, or what is read behind the place of each where they
            // are close together.
            unsafe {
                match close {
                    Some(_) => *planes = turn.close(bytes.as_ptr().add(places.place(0))),
                    None => *planes = turn.scattered(places, bytes.as_ptr()),
                }
            }
        }
        for column in &mut columns {
            // SAFETY: there is room for the values of these rows.
            wrong |= unsafe { column.take(&planes, first) };
        }
    }
    for cell in cells {
        // SAFETY: the first `done` values of each column that has some were written where there is room for them.
        unsafe { cell.grow(done) };
    }
    (done, wrong == 0)
}

/// What takes eight bytes of rows that are some bytes apart, 16 at the most.
struct Turn {
    apart: usize,
    /// Where the bytes of a register come from: from eight rows, or twice four.
    order: __m512i,
}

impl Turn {
    #[target_feature(enable = "avx512f")]
    fn new(apart: usize) -> Self {
        let order: [u8; ROWS] = std::array::from_fn(|at| {
            let (byte, row) = (at / GROUP, at % GROUP);
            match row / 4 {
                1 if apart > WORD => (ROWS + (row - 4) * apart + byte) as u8,
                _ => (row * apart + byte) as u8,
            }
        });
        // SAFETY: the array has 64 bytes.
        let order = unsafe { _mm512_loadu_si512(order.as_ptr().cast()) };
        Self { apart, order }
    }

    /// Each of eight bytes of 64 rows, the first of which begins at `from`.
    ///
    /// # Safety
    /// The CPU has the features of [`take_bytes`]; 64 bytes behind the place of each row may be read.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    unsafe fn close(&self, from: *const u8) -> [__m512i; GROUP] {
        // SAFETY: as this function's.
        let load = |row: usize| unsafe { _mm512_loadu_si512(from.add(row * self.apart).cast()) };
        macro_rules! near {
            ($at:expr) => {
                _mm512_permutexvar_epi8(self.order, load($at * GROUP))
            };
        }
        macro_rules! both {
            ($at:expr) => {
                _mm512_permutex2var_epi8(load($at * GROUP), self.order, load($at * GROUP + 4))
            };
        }
        transpose_8(if self.apart > WORD { in_turn!(both) } else { in_turn!(near) })
    }

    /// Each of eight bytes of the first 64 rows.
    ///
    /// Benefit: put side by side in memory first, and loaded from there, they are waited for: 67 us in place of 61 for 8,192
    /// rows of i64, i32, Boolean and text with nulls.
    ///
    /// # Safety
    /// The CPU has the features of [`take_bytes`]; eight bytes lie within `bytes` at the place of each row.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    unsafe fn scattered<P: Places>(&self, places: P, bytes: *const u8) -> [__m512i; GROUP] {
        macro_rules! eight {
            ($at:expr) => {{
                let places = places.behind($at * GROUP);
                // SAFETY: as this function's.
                let words = unsafe { words_at!(|row: usize| bytes.add(places.place(row))) };
                _mm512_permutexvar_epi8(self.order, words)
            }};
        }
        transpose_8(in_turn!(eight))
    }
}

/// The registers 0 to 7, each by itself: of a loop, or by a closure, they go through memory.
macro_rules! in_turn {
    ($of:ident) => {
        [$of!(0), $of!(1), $of!(2), $of!(3), $of!(4), $of!(5), $of!(6), $of!(7)]
    };
}
use in_turn;

/// A column, where its values go, and the byte of a row where it begins.
struct Column<'a> {
    cell: &'a mut Cell,
    target: *mut u8,
    start: usize,
}

impl Column<'_> {
    /// Appends 64 rows, the first of which is `first`; returns those that are no cells.
    ///
    /// # Safety
    /// The CPU has the features of [`take_bytes`]; `target` may be written for the values of all rows up to these.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    unsafe fn take(&mut self, planes: &[__m512i; MOST], first: usize) -> u64 {
        let same = |byte: u8| _mm512_set1_epi8(byte as i8);
        let (mut at, mut valid, mut wrong) = (self.start, u64::MAX, 0);
        if let Some(null) = self.cell.null {
            valid = _mm512_cmpeq_epi8_mask(planes[at], same(VALUE));
            wrong = !(valid | _mm512_cmpeq_epi8_mask(planes[at], same(null)));
            self.cell.valid.push(valid);
            at += 1;
        }
        match self.cell.held() {
            Held::Nothing => {}
            Held::Bit(flip) => {
                let bit = _mm512_xor_si512(planes[at], same(flip));
                wrong |= _mm512_mask_cmpgt_epu8_mask(valid, bit, same(1));
                self.cell.bits.push(_mm512_mask_cmpeq_epi8_mask(valid, bit, same(1)));
            }
            Held::Byte(flip) => {
                let v = _mm512_maskz_mov_epi8(valid, _mm512_xor_si512(planes[at], same(flip)));
                // SAFETY: as this function's.
                unsafe { _mm512_storeu_si512(self.target.add(first).cast(), v) };
            }
            Held::Number(_, code) => {
                let (low, high) = if code.big { (at + 1, at) } else { (at, at + 1) };
                let flip = _mm512_set1_epi16(code.flip as i16);
                let float = _mm512_set1_epi16(code.float as i16);
                for (half, order) in SIDE_BY_SIDE.iter().enumerate() {
                    // SAFETY: the array has 64 bytes.
                    let order = unsafe { _mm512_loadu_si512(order.as_ptr().cast()) };
                    let v = _mm512_permutex2var_epi8(planes[low], order, planes[high]);
                    let v = _mm512_xor_si512(v, flip);
                    let sign = _mm512_srai_epi16::<15>(v);
                    // v ^ (sign & float)
                    let v = _mm512_ternarylogic_epi64::<0x78>(v, sign, float);
                    let v = _mm512_maskz_mov_epi16((valid >> (half * 32)) as __mmask32, v);
                    // SAFETY: as this function's.
                    unsafe {
                        let to = self.target.add(2 * first + half * ROWS);
                        _mm512_storeu_si512(to.cast(), v);
                    }
                }
            }
        }
        wrong
    }
}
