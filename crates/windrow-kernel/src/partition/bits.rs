//! Brings bitmaps into a new order: up to eight at a time, as one byte a row.
//!
//! ```text
//! bitmap 0   1 0 0 1 ...         row 0 1 2 3              in order 2 0 3 1
//! bitmap 1   1 1 0 0 ...  --->      3 2 0 1  ---gather--->  0 3 1 2  --->  bitmaps
//! ```
//!
//! Eight bitmaps and eight rows are a matrix of 64 bits, transposed in a register: moving eight
//! bitmaps costs as much as moving one column of bytes.

use std::ops::Range;

use super::Level;
use super::fixed::{Place, gather};
use super::order::{Mover, PAD, Planned};
use crate::rows::Bits;

/// Bitmaps that share the bytes of rows.
pub const GROUP: usize = 8;
/// Rows of a word of a bitmap.
pub const WORD: usize = 64;

/// Working memory for bitmaps.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    bytes: Vec<u8>,
    moved: Vec<u8>,
}

impl Planned<'_> {
    /// Brings up to [`GROUP`] bitmaps into order. Each of `out` has a bit for every row, in whole
    /// words, and one word more; bits after the last row are arbitrary.
    ///
    /// # Panics
    /// If there are more bitmaps, if `out` is not as many, or if one is too short.
    pub fn bits(&mut self, sources: &[Bits<'_>], out: &mut [&mut [u64]], scratch: &mut Scratch) {
        assert!(sources.len() <= GROUP && sources.len() == out.len());
        assert!(sources.iter().all(|bits| bits.holds(self.rows())));
        assert!(out.iter().all(|words| words.len() > self.rows().div_ceil(64)));
        if !self.is_one_run() {
            out.iter_mut().for_each(|words| words.fill(0));
            return self.each_run(&mut Bytes { sources, out, bytes: &mut scratch.bytes });
        }
        let (bytes, moved) = (&mut scratch.bytes, &mut scratch.moved);
        let (level, rows) = (self.level(), self.rows());
        bytes.resize(rows.next_multiple_of(64), 0);
        moved.resize(bytes.len() + PAD, 0);
        spread_all(level, sources, bytes.as_chunks_mut().0);
        self.fixed(1, &bytes[..rows], &mut moved[..rows + PAD]);
        collect_all(level, &moved.as_chunks().0[..rows.div_ceil(64)], out);
    }
}

/// Moves bitmaps as bytes, a chunk at a time.
struct Bytes<'a, 'b> {
    sources: &'a [Bits<'a>],
    out: &'a mut [&'b mut [u64]],
    /// The rows of the chunk.
    bytes: &'a mut Vec<u8>,
}

impl Mover for Bytes<'_, '_> {
    fn chunk(&mut self, rows: Range<usize>) {
        self.bytes.clear();
        for at in rows.step_by(64) {
            let mut words = [0; GROUP];
            for (word, source) in words.iter_mut().zip(self.sources) {
                *word = source.word(at);
            }
            self.bytes.extend_from_slice(&spread(&words));
        }
    }

    unsafe fn run<P: Place>(&mut self, _base: usize, places: &[P], target: usize) {
        let bytes = self.bytes.as_chunks::<1>().0;
        let mut at = target;
        for places in places.chunks(64) {
            let mut rows = [[0]; 64];
            // SAFETY: places are rows of the chunk, each of which has a byte.
            unsafe { gather(bytes, places, &mut rows[..places.len()]) };
            let words = collect(&rows.map(|[row]| row));
            for (out, word) in self.out.iter_mut().zip(words) {
                append(out, at, word);
            }
            at += places.len();
        }
    }
}

/// ORs the bits of `word` into `out` from bit `at` on; bits beyond the end of `out` are zero.
#[inline(always)]
fn append(out: &mut [u64], at: usize, word: u64) {
    let (index, shift) = (at / 64, at % 64);
    out[index] |= word << shift;
    if shift > 0
        && let Some(next) = out.get_mut(index + 1)
    {
        *next |= word >> (64 - shift);
    }
}

/// Writes [`spread`] bytes for all rows.
fn spread_all(level: Level, sources: &[Bits<'_>], bytes: &mut [[u8; 64]]) {
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx512 {
        // SAFETY: the CPU has the instructions of the level.
        return unsafe { wide::spread_all(sources, bytes) };
    }
    let _ = level;
    for (index, bytes) in bytes.iter_mut().enumerate() {
        let mut block = [0; GROUP];
        for (word, source) in block.iter_mut().zip(sources) {
            *word = source.word(index * 64);
        }
        *bytes = spread(&block);
    }
}

/// Undoes [`spread_all`]: writes the words of each bitmap to one of `out`.
fn collect_all(level: Level, bytes: &[[u8; 64]], out: &mut [&mut [u64]]) {
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx512 {
        // SAFETY: the CPU has the instructions of the level.
        return unsafe { wide::collect_all(bytes, out) };
    }
    let _ = level;
    for (index, bytes) in bytes.iter().enumerate() {
        for (out, word) in out.iter_mut().zip(collect(bytes)) {
            out[index] = word;
        }
    }
}

/// Returns a byte for each of 64 rows: bit `i` is the row's bit in word `i`.
#[inline(always)]
pub fn spread(words: &[u64; GROUP]) -> [u8; WORD] {
    let mut bytes = [0; 64];
    for (eight, bytes) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let rows = words.map(|word| (word >> (8 * eight)) as u8);
        *bytes = transpose(u64::from_le_bytes(rows)).to_le_bytes();
    }
    bytes
}

/// Returns the words of 64 rows whose bits are in `bytes`; undoes [`spread`].
#[inline(always)]
fn collect(bytes: &[u8; 64]) -> [u64; GROUP] {
    let mut words = [0; GROUP];
    for (eight, bytes) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let bits = transpose(u64::from_le_bytes(*bytes)).to_le_bytes();
        for (word, bits) in words.iter_mut().zip(bits) {
            *word |= u64::from(bits) << (8 * eight);
        }
    }
    words
}

/// 64 rows in a register: a bitmap is a mask.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    use super::Bits;

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn spread_all(sources: &[Bits<'_>], bytes: &mut [[u8; 64]]) {
        for (index, bytes) in bytes.iter_mut().enumerate() {
            let (mut rows, mut bit) = (_mm512_setzero_si512(), _mm512_set1_epi8(1));
            for source in sources {
                rows = _mm512_mask_add_epi8(rows, source.word(index * 64), rows, bit);
                bit = _mm512_add_epi8(bit, bit);
            }
            // SAFETY: `bytes` has 64 bytes.
            unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), rows) };
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn collect_all(bytes: &[[u8; 64]], out: &mut [&mut [u64]]) {
        for (index, bytes) in bytes.iter().enumerate() {
            // SAFETY: `bytes` has 64 bytes.
            let rows = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
            let mut bit = _mm512_set1_epi8(1);
            for out in out.iter_mut() {
                out[index] = _mm512_test_epi8_mask(rows, bit);
                bit = _mm512_add_epi8(bit, bit);
            }
        }
    }
}

/// Transposes a matrix of eight by eight bits (Warren, "Hacker's Delight", 7-3).
#[inline(always)]
fn transpose(mut bits: u64) -> u64 {
    let swap = (bits ^ (bits >> 7)) & 0x00aa_00aa_00aa_00aa;
    bits ^= swap ^ (swap << 7);
    let swap = (bits ^ (bits >> 14)) & 0x0000_cccc_0000_cccc;
    bits ^= swap ^ (swap << 14);
    let swap = (bits ^ (bits >> 28)) & 0x0000_0000_f0f0_f0f0;
    bits ^ swap ^ (swap << 28)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_spread_and_collected_the_same_way_everywhere() {
        for seed in 1..50u64 {
            let word = |index: u64| (seed * 8 + index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let rows: [[u64; GROUP]; 3] = std::array::from_fn(|row| {
                std::array::from_fn(|index| word((row * 8 + index) as u64))
            });
            let expected = rows.map(|words| spread(&words));
            for (words, bytes) in rows.iter().zip(&expected) {
                for (row, byte) in bytes.iter().enumerate() {
                    let bit = |index: usize| (words[index] >> row & 1) as u8;
                    assert!((0..8).all(|index| byte >> index & 1 == bit(index)));
                }
                assert_eq!(collect(bytes), *words);
            }
            for level in Level::all() {
                let bitmaps: [Vec<u8>; GROUP] = std::array::from_fn(|index| {
                    rows.iter().flat_map(|words| words[index].to_le_bytes()).collect()
                });
                let sources: [Bits<'_>; GROUP] =
                    std::array::from_fn(|index| Bits { bytes: &bitmaps[index], first: 0 });
                let mut bytes = [[0; 64]; 3];
                spread_all(level, &sources, &mut bytes);
                assert_eq!(bytes, expected);
                let mut out = [[0; 3]; GROUP];
                collect_all(level, &bytes, &mut out.each_mut().map(|out| &mut out[..]));
                assert!((0..GROUP).all(|index| out[index] == rows.map(|words| words[index])));
            }
        }
    }

    #[test]
    fn transposed_twice_is_the_same() {
        for seed in 0..100u64 {
            let bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            assert_eq!(transpose(transpose(bits)), bits);
            let (rows, columns) = (bits.to_le_bytes(), transpose(bits).to_le_bytes());
            for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
                assert_eq!(rows[row] >> column & 1, columns[column] >> row & 1);
            }
        }
    }
}
