//! Bitmaps in a new order: up to eight at a time, as one byte a row.
//!
//! ```text
//! bitmap 0   1 0 0 1 ...         row 0 1 2 3              in order 2 0 3 1
//! bitmap 1   1 1 0 0 ...  --->      3 2 0 1  ---gather--->  0 3 1 2  --->  bitmaps
//! ```
//!
//! Eight bitmaps and eight rows are a matrix of 64 bits, transposed in a register. So the bytes of
//! eight bitmaps are moved for the price of one column of bytes. Where masks are known, the bits of
//! one or two bitmaps are extracted by them instead, 64 rows at a time.

use std::ops::Range;

use super::Level;
use super::fixed::{Place, gather};
use super::order::{Mover, PAD, Planned};

/// Bitmaps that share the bytes of rows.
pub(crate) const GROUP: usize = 8;

/// Bits of rows, the first one anywhere in a byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    offset: usize,
    len: usize,
}

impl<'a> Bits<'a> {
    /// `len` bits from bit `offset` of `bytes` on.
    ///
    /// # Panics
    /// If `bytes` has fewer.
    pub(crate) fn new(bytes: &'a [u8], offset: usize, len: usize) -> Self {
        assert!(bytes.len() >= (offset + len).div_ceil(8));
        Self { bytes, offset, len }
    }

    /// The 64 bits from bit `at` on; zeros behind the end of the bytes.
    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        let (byte, shift) = ((self.offset + at) / 8, (self.offset + at) % 8);
        let rest = &self.bytes[byte.min(self.bytes.len())..];
        if let Some(nine) = rest.first_chunk::<9>() {
            let word = u64::from_le_bytes([
                nine[0], nine[1], nine[2], nine[3], nine[4], nine[5], nine[6], nine[7],
            ]);
            // The shift by 64 of a whole word is two shifts.
            return word >> shift | u64::from(nine[8]) << 1 << (63 - shift);
        }
        let mut word = [0; 16];
        word[..rest.len()].copy_from_slice(rest);
        (u128::from_le_bytes(word) >> shift) as u64
    }

    /// The bits as whole words and one more for what is left, behind which is anything. Bits that
    /// do not start with a word are copied to `words`, which is as long as they are.
    fn words<'b>(&self, words: &'b mut [u64]) -> Words<'b>
    where
        'a: 'b,
    {
        let whole = self.len / 64;
        let last = if self.len.is_multiple_of(64) { 0 } else { self.word(whole * 64) };
        // Most bitmaps start with a word: to copy them takes a third of their extraction.
        if self.offset.is_multiple_of(8) {
            // SAFETY: any eight bytes are a word.
            let (front, words, _) = unsafe { self.bytes[self.offset / 8..].align_to() };
            if front.is_empty() && words.len() >= whole {
                return Words { whole: &words[..whole], last };
            }
        }
        for (index, word) in words[..whole].iter_mut().enumerate() {
            *word = self.word(index * 64).to_le();
        }
        Words { whole: &words[..whole], last }
    }
}

/// The bits of rows, 64 at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Words<'a> {
    /// Little-endian.
    pub(super) whole: &'a [u64],
    /// Of the rows behind them, if there are any.
    pub(super) last: u64,
}

impl Words<'_> {
    /// The word at `index`.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> u64 {
        self.whole.get(index).map_or(self.last, |&word| u64::from_le(word))
    }
}

/// Working memory for bitmaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    words: Vec<u64>,
    bytes: Vec<u8>,
    moved: Vec<u8>,
}

impl Planned<'_> {
    /// Brings up to [`GROUP`] bitmaps into order. Each of `out` has a bit for every row, in whole
    /// words, and one word more; bits behind the last row are anything.
    ///
    /// # Panics
    /// If there are more bitmaps, or not as many targets, or one is too short.
    pub(crate) fn bits(
        &mut self,
        sources: &[Bits<'_>],
        out: &mut [&mut [u64]],
        scratch: &mut Scratch,
    ) {
        assert!(sources.len() <= GROUP && sources.len() == out.len());
        assert!(sources.iter().all(|bits| bits.len == self.rows()));
        assert!(out.iter().all(|words| words.len() > self.rows().div_ceil(64)));
        let extracted = self.extracts(sources.len());
        if !extracted && !self.is_one_run() {
            out.iter_mut().for_each(|words| words.fill(0));
            let (level, bytes) = (self.level(), &mut scratch.bytes);
            return self.each_run(&mut Bytes { level, sources, out, bytes });
        }
        let len = (self.rows() / 64).max(1);
        scratch.words.resize(sources.len() * len, 0);
        let mut words = [Words::default(); GROUP];
        let copies = scratch.words.chunks_exact_mut(len);
        for ((words, source), copy) in words.iter_mut().zip(sources).zip(copies) {
            *words = source.words(copy);
        }
        let words = &words[..sources.len()];
        if extracted {
            words.iter().zip(out).for_each(|(words, out)| self.extract(*words, out));
            return;
        }
        let (bytes, moved) = (&mut scratch.bytes, &mut scratch.moved);
        let (level, rows) = (self.level(), self.rows());
        bytes.resize(rows.next_multiple_of(64), 0);
        moved.resize(bytes.len() + PAD, 0);
        spread_all(level, words, bytes.as_chunks_mut().0);
        self.fixed(1, &bytes[..rows], &mut moved[..rows + PAD]);
        collect_all(level, &moved.as_chunks().0[..rows.div_ceil(64)], out);
    }
}

/// Bitmaps on their way through bytes.
struct Bytes<'a, 'b> {
    level: Level,
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
            self.bytes.extend_from_slice(&spread(self.level, &words, self.sources.len()));
        }
    }

    unsafe fn run<P: Place>(&mut self, _base: usize, places: &[P], target: usize) {
        let bytes = self.bytes.as_chunks::<1>().0;
        let mut at = target;
        for places in places.chunks(64) {
            let mut rows = [[0]; 64];
            // SAFETY: places are rows of the chunk, each of which has a byte.
            unsafe { gather(bytes, places, &mut rows[..places.len()]) };
            let words = collect(self.level, &rows.map(|[row]| row), self.out.len());
            for (out, word) in self.out.iter_mut().zip(words) {
                append(out, at, word);
            }
            at += places.len();
        }
    }
}

/// Adds the bits of `word` to `out` from bit `at` on; those that do not fit are zero.
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
fn spread_all(level: Level, words: &[Words<'_>], bytes: &mut [[u8; 64]]) {
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx512 {
        // SAFETY: the level says that the CPU can.
        return unsafe { wide::spread_all(words, bytes) };
    }
    let _ = level;
    for (index, bytes) in bytes.iter_mut().enumerate() {
        let mut block = [0; GROUP];
        for (block, words) in block.iter_mut().zip(words) {
            *block = words.get(index);
        }
        *bytes = spread_portable(&block);
    }
}

/// Undoes [`spread_all`]: writes the words of each bitmap to one of `out`.
fn collect_all(level: Level, bytes: &[[u8; 64]], out: &mut [&mut [u64]]) {
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx512 {
        // SAFETY: the level says that the CPU can.
        return unsafe { wide::collect_all(bytes, out) };
    }
    let _ = level;
    for (index, bytes) in bytes.iter().enumerate() {
        for (out, word) in out.iter_mut().zip(collect_portable(bytes)) {
            out[index] = word;
        }
    }
}

/// A byte for each of 64 rows: bit `i` is the row's bit in word `i` of the first `count`.
#[inline(always)]
fn spread(level: Level, words: &[u64; GROUP], count: usize) -> [u8; 64] {
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx512 {
        // SAFETY: the level says that the CPU can.
        return unsafe { wide::spread(words, count) };
    }
    let _ = (level, count);
    spread_portable(words)
}

#[inline(always)]
fn spread_portable(words: &[u64; GROUP]) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (eight, bytes) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let rows = words.map(|word| (word >> (8 * eight)) as u8);
        *bytes = transpose(u64::from_le_bytes(rows)).to_le_bytes();
    }
    bytes
}

/// The words of which 64 rows have their bits in `bytes`; undoes [`spread`].
#[inline(always)]
fn collect(level: Level, bytes: &[u8; 64], count: usize) -> [u64; GROUP] {
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx512 {
        // SAFETY: the level says that the CPU can.
        return unsafe { wide::collect(bytes, count) };
    }
    let _ = (level, count);
    collect_portable(bytes)
}

#[inline(always)]
fn collect_portable(bytes: &[u8; 64]) -> [u64; GROUP] {
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

    use super::{GROUP, Words};

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn spread_all(words: &[Words<'_>], bytes: &mut [[u8; 64]]) {
        for (index, bytes) in bytes.iter_mut().enumerate() {
            let (mut rows, mut bit) = (_mm512_setzero_si512(), _mm512_set1_epi8(1));
            for words in words {
                rows = _mm512_mask_add_epi8(rows, words.get(index), rows, bit);
                bit = _mm512_add_epi8(bit, bit);
            }
            // SAFETY: 64 bytes.
            unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), rows) };
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn collect_all(bytes: &[[u8; 64]], out: &mut [&mut [u64]]) {
        for (index, bytes) in bytes.iter().enumerate() {
            // SAFETY: 64 bytes.
            let rows = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
            let mut bit = _mm512_set1_epi8(1);
            for out in out.iter_mut() {
                out[index] = _mm512_test_epi8_mask(rows, bit);
                bit = _mm512_add_epi8(bit, bit);
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn spread(words: &[u64; GROUP], count: usize) -> [u8; 64] {
        let mut rows = _mm512_setzero_si512();
        for (index, &word) in words.iter().enumerate().take(count) {
            let bit = _mm512_set1_epi8((1u8 << index) as i8);
            rows = _mm512_or_si512(rows, _mm512_maskz_mov_epi8(word, bit));
        }
        let mut bytes = [0u8; 64];
        // SAFETY: 64 bytes.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), rows) };
        bytes
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn collect(bytes: &[u8; 64], count: usize) -> [u64; GROUP] {
        // SAFETY: 64 bytes.
        let rows = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        let mut words = [0; GROUP];
        for (index, word) in words.iter_mut().enumerate().take(count) {
            *word = _mm512_test_epi8_mask(rows, _mm512_set1_epi8((1u8 << index) as i8));
        }
        words
    }
}

/// Rows for columns of a matrix of eight by eight bits (Warren, "Hacker's Delight", 7-3).
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
            let words: [u64; GROUP] = std::array::from_fn(|index| word(index as u64));
            let bytes = spread_portable(&words);
            for (row, byte) in bytes.iter().enumerate() {
                assert!((0..8).all(|index| byte >> index & 1 == (words[index] >> row & 1) as u8));
            }
            assert_eq!(collect_portable(&bytes), words);
            assert_eq!(spread(Level::detect(), &words, GROUP), bytes);
            assert_eq!(collect(Level::detect(), &bytes, GROUP), words);
            let one = spread(Level::detect(), &[words[0], 0, 0, 0, 0, 0, 0, 0], 1);
            assert_eq!(collect(Level::detect(), &one, 1)[0], words[0]);
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

    #[test]
    fn words_start_at_any_bit() {
        let bytes: Vec<u8> = (0..40).map(|i| (i * 37 + 11) as u8).collect();
        for offset in 0..20 {
            let bits = Bits::new(&bytes, offset, 300 - offset);
            for at in (0..300 - offset).step_by(64) {
                for bit in 0..64.min(300 - offset - at) {
                    let place = offset + at + bit;
                    let expected = u64::from(bytes[place / 8] >> (place % 8) & 1);
                    assert_eq!(bits.word(at) >> bit & 1, expected);
                }
            }
        }
    }
}
