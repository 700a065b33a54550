//! Bitmaps in a new order: up to eight at a time, as one byte a row.
//!
//! ```text
//! bitmap 0   1 0 0 1 ...         row 0 1 2 3              in order 2 0 3 1
//! bitmap 1   1 1 0 0 ...  --->      3 2 0 1  ---gather--->  0 3 1 2  --->  bitmaps
//! ```
//!
//! Eight bitmaps and eight rows are a matrix of 64 bits, transposed in a register. So the bytes of
//! eight bitmaps are moved for the price of one column of bytes. Where masks are known, bits are
//! extracted by them instead, 64 rows at a time.

use std::ops::Range;

use super::fixed::{Place, gather};
use super::order::{Mover, Planned};

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

    /// Writes the bits to `words`; behind the last, anything.
    fn write_words(&self, words: &mut Vec<u64>) {
        words.clear();
        words.extend((0..self.len).step_by(64).map(|at| self.word(at)));
    }
}

/// Working memory for bitmaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    words: Vec<u64>,
    bytes: Vec<u8>,
    dealt: Vec<[u8; 1]>,
}

impl Planned<'_> {
    /// Brings up to [`GROUP`] bitmaps into order. Each of `out` has a bit for every row, in whole
    /// words; bits behind the last row are anything.
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
        assert!(out.iter().all(|words| words.len() >= self.rows().div_ceil(64)));
        let mut extracted = true;
        for (source, out) in sources.iter().zip(out.iter_mut()) {
            if extracted {
                source.write_words(&mut scratch.words);
                extracted = self.extract(&scratch.words, out);
            }
        }
        if extracted {
            return;
        }
        if let ([source], [out], true) = (sources, &mut *out, self.deals_out()) {
            return self.deal(*source, out, scratch);
        }
        out.iter_mut().for_each(|words| words.fill(0));
        let bytes = &mut scratch.bytes;
        self.each_run(&mut Bytes { sources, out, bytes });
    }

    /// Brings the only bitmap into order, as bytes.
    fn deal(&mut self, source: Bits<'_>, out: &mut [u64], scratch: &mut Scratch) {
        source.write_words(&mut scratch.words);
        scratch.bytes.clear();
        for word in &scratch.words {
            for eight in word.to_le_bytes() {
                scratch.bytes.extend_from_slice(&spread(eight).to_le_bytes());
            }
        }
        let (blocks, _) = scratch.bytes.as_chunks::<1>();
        scratch.dealt.resize(scratch.bytes.len(), [0]);
        self.deal_out(blocks, &mut scratch.dealt);
        let (blocks, _) = scratch.dealt.as_flattened().as_chunks::<64>();
        for (block, out) in blocks.iter().zip(out) {
            let (eights, _) = block.as_chunks::<8>();
            let bits = eights.iter().rev().map(|eight| gathered(u64::from_le_bytes(*eight)));
            *out = bits.fold(0, |word, bits| word << 8 | u64::from(bits));
        }
    }
}

/// Bitmaps on their way through bytes.
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
            for eight in 0..8 {
                let rows = words.map(|word| (word >> (8 * eight)) as u8);
                let rows = transpose(u64::from_le_bytes(rows));
                self.bytes.extend_from_slice(&rows.to_le_bytes());
            }
        }
    }

    unsafe fn run<P: Place>(&mut self, _base: usize, places: &[P], target: usize) {
        let bytes = self.bytes.as_chunks::<1>().0;
        let mut at = target;
        for places in places.chunks(64) {
            let mut rows = [[0]; 64];
            // SAFETY: places are rows of the chunk, each of which has a byte.
            unsafe { gather(bytes, places, &mut rows[..places.len()]) };
            let (eights, _) = rows.as_flattened().as_chunks::<8>();
            let mut words = [0; GROUP];
            for (index, eight) in eights.iter().enumerate() {
                let bits = transpose(u64::from_le_bytes(*eight)).to_le_bytes();
                for (word, bits) in words.iter_mut().zip(bits) {
                    *word |= u64::from(bits) << (8 * index);
                }
            }
            for (out, word) in self.out.iter_mut().zip(words) {
                append(out, at, word);
            }
            at += places.len();
        }
    }
}

/// Eight bits as the lowest of eight bytes.
#[inline(always)]
fn spread(bits: u8) -> u64 {
    // A copy of the bits in each byte, of which it keeps one; then that one becomes the lowest.
    let kept = (u64::from(bits) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    ((kept + 0x7f7f_7f7f_7f7f_7f7f) | kept) >> 7 & 0x0101_0101_0101_0101
}

/// The lowest bits of eight bytes as a byte; undoes [`spread`].
#[inline(always)]
fn gathered(bytes: u64) -> u8 {
    (bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// Adds the bits of `word` to `out` from bit `at` on; those that do not fit are zero.
#[inline(always)]
fn append(out: &mut [u64], at: usize, word: u64) {
    let (index, shift) = (at / 64, at % 64);
    out[index] |= word << shift;
    if let Some(next) = out.get_mut(index + 1) {
        *next |= word >> 1 >> (63 - shift);
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
    fn bits_spread_and_gather() {
        for bits in 0..=u8::MAX {
            let bytes = spread(bits).to_le_bytes();
            assert!((0..8).all(|bit| bytes[bit] == bits >> bit & 1), "{bits:08b}");
            assert_eq!(gathered(u64::from_le_bytes(bytes)), bits);
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
