//! Few partitions: which rows go to each, as bits, and the order of rows that follows.
//!
//! ```text
//! ids         1 0 1 2 0 1        mask 0  0 1 0 0 1 0      places: rows compressed   1 4 | 0 2 5 | 3
//!                                mask 1  1 0 1 0 0 1      targets: numbers expanded
//!                                mask 2  0 0 0 1 0 0               2 0 3 5 1 4
//! ```
//!
//! A compressed register is stored whole, and what it has beyond its rows is overwritten by what
//! comes next, at last by nothing: places are [`PAD`] bytes longer than their rows. Cost: a few
//! cycles for 64 rows and partition, whatever the ids are. The portable twin is the way of
//! segments; `tests` holds them against each other.

use std::arch::x86_64::*;

use super::compress::store;
use super::order::Load;

/// Bytes behind the rows of a target that a store may touch.
pub(crate) const PAD: usize = 64;
/// True if masks are the cheapest way to find the order of rows for `partitions` partitions.
pub(super) const fn pay(load: Load, partitions: usize) -> bool {
    match load {
        Load::Bits => partitions <= 32,
        _ => partitions <= 16,
    }
}

/// Up to so many partitions, targets are found from masks; beyond, cheaper from places.
pub(super) const MOST_EXPANDED: usize = 16;

/// The numbers of rows in a register.
const FIRST: [u16; 32] = {
    let mut first = [0; 32];
    let mut row = 0;
    while row < 32 {
        first[row] = row as u16;
        row += 1;
    }
    first
};

/// Which bytes of four registers of ids, shifted into one, are the ids in order.
const BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut row = 0;
    while row < 64 {
        bytes[row] = (row % 16 * 4 + row / 16) as u8;
        row += 1;
    }
    bytes
};

/// The ids of a block as bytes, if they fit; what bits they have is added to `seen`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn bytes(block: &[u32; 64], seen: &mut __m512i) -> __m512i {
    const OR: i32 = 0xfe;
    let [a, b, c, d] = [0, 16, 32, 48].map(|at| {
        // SAFETY: a block is four registers.
        unsafe { _mm512_loadu_si512(block.as_ptr().add(at).cast()) }
    });
    *seen = _mm512_ternarylogic_epi32::<OR>(*seen, a, b);
    *seen = _mm512_ternarylogic_epi32::<OR>(*seen, c, d);
    let (b, c, d) =
        (_mm512_slli_epi32::<8>(b), _mm512_slli_epi32::<16>(c), _mm512_slli_epi32::<24>(d));
    let all = _mm512_or_si512(_mm512_ternarylogic_epi32::<OR>(a, b, c), d);
    // SAFETY: 64 bytes.
    let order = unsafe { _mm512_loadu_si512(BYTES.as_ptr().cast()) };
    _mm512_permutexvar_epi8(order, all)
}

/// The bits of all numbers in `seen`.
#[inline]
#[target_feature(enable = "avx512f")]
fn any(seen: __m512i) -> u32 {
    _mm512_reduce_or_epi32(seen) as u32
}

/// A bit for each row and partition: all words of partition 0, then those of partition 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    masks: Vec<u64>,
    rows: usize,
}

impl Masks {
    pub(super) fn words(&self) -> usize {
        self.rows.div_ceil(64)
    }

    /// Sets the bits of `ids`, and `ends` to where partitions end. False if some id is not below
    /// the number of partitions.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; there are fewer than 255 partitions.
    #[target_feature(
        enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq,bmi2,popcnt"
    )]
    pub(super) unsafe fn build(&mut self, ids: &[u32], ends: &mut [u32]) -> bool {
        debug_assert!(ends.len() < 255);
        self.rows = ids.len();
        let words = self.words();
        self.masks.resize(words * ends.len(), 0);
        let known = match ends.len() {
            2 => self.build_of_planes::<2>(ids),
            3 => self.build_of_planes::<3>(ids),
            4 => self.build_of_planes::<4>(ids),
            _ => self.build_of_bytes(ids, ends.len()),
        };
        let rest = ids.as_chunks::<64>().1;
        if !rest.is_empty() {
            self.masks.iter_mut().skip(words - 1).step_by(words).for_each(|word| *word = 0);
        }
        for (row, &id) in rest.iter().enumerate() {
            if (id as usize) < ends.len() {
                self.masks[id as usize * words + words - 1] |= 1 << row;
            }
        }
        let mut sum = 0;
        for (mask, end) in self.masks.chunks_exact(words.max(1)).zip(ends) {
            sum += mask.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() as u32;
            *end = sum;
        }
        // An id that is in no mask is no partition.
        known && sum as usize == ids.len()
    }

    /// Masks of two to four partitions, of whole words: the two lower bits of ids are masks, from
    /// which those of partitions follow 512 rows at a time. False if an id has more bits.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn build_of_planes<const P: usize>(&mut self, ids: &[u32]) -> bool {
        let words = self.words();
        let (zero, rest) = self.masks.split_at_mut(words);
        let (one, rest) = rest.split_at_mut(words);
        let (two, three) = if P > 2 { rest.split_at_mut(words) } else { (rest, [].as_mut_slice()) };
        let mut seen = _mm512_setzero_si512();
        let blocks = ids.as_chunks::<64>().0;
        if P == 2 {
            for (block, one) in blocks.iter().zip(&mut *one) {
                *one = _mm512_test_epi8_mask(bytes(block, &mut seen), _mm512_set1_epi8(1));
            }
            zero.iter_mut().zip(one).for_each(|(zero, one)| *zero = !*one);
            return any(seen) < 2;
        }
        for ((block, one), two) in blocks.iter().zip(&mut *one).zip(&mut *two) {
            let bytes = bytes(block, &mut seen);
            *one = _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(1));
            *two = _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(2));
        }
        if P > 3 {
            three.iter_mut().zip(&*one).zip(&*two).for_each(|((three, one), two)| {
                *three = one & two;
            });
        }
        for ((zero, one), two) in zero.iter_mut().zip(one).zip(two) {
            (*zero, *one, *two) = (!(*one | *two), *one & !*two, *two & !*one);
        }
        any(seen) < 4
    }

    /// Masks of any number of partitions, of whole words. False if an id does not fit a byte.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn build_of_bytes(&mut self, ids: &[u32], partitions: usize) -> bool {
        let words = self.words();
        let mut seen = _mm512_setzero_si512();
        for (word, block) in ids.as_chunks::<64>().0.iter().enumerate() {
            let bytes = bytes(block, &mut seen);
            let mut wanted = _mm512_setzero_si512();
            for mask in self.masks[word..].iter_mut().step_by(words) {
                *mask = _mm512_cmpeq_epi8_mask(bytes, wanted);
                wanted = _mm512_add_epi8(wanted, _mm512_set1_epi8(1));
            }
        }
        debug_assert_eq!(self.masks.len(), partitions * words);
        any(seen) < 256
    }

    /// Writes which row comes where to `places`, which has [`PAD`] bytes more than rows.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; every row is in one mask, and there are at
    /// most 65,536.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
    pub(super) unsafe fn places(&self, places: &mut [u16]) {
        assert!(places.len() >= self.rows + PAD / 2);
        let mut at = places.as_mut_ptr();
        let halves = self.halves();
        for mask in self.partitions() {
            // SAFETY: `FIRST` has 64 bytes. The rows of all masks are `self.rows`, so that `at`
            // stays below the rows, and a store ends within the pad.
            unsafe {
                let mut rows = _mm512_loadu_si512(FIRST.as_ptr().cast());
                let step = _mm512_set1_epi16(32);
                for &word in mask {
                    for half in [word as u32, (word >> 32) as u32] {
                        let chosen = _mm512_maskz_compress_epi16(half, rows);
                        let count = half.count_ones() as usize;
                        store(at.cast(), chosen, count * 2, halves);
                        at = at.add(count);
                        rows = _mm512_add_epi16(rows, step);
                    }
                }
            }
        }
    }

    /// Writes where each row goes to `targets`, which has [`PAD`] bytes more than rows.
    ///
    /// # Safety
    /// As [`Masks::places`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
    pub(super) unsafe fn targets(&self, ends: &[u32], targets: &mut [u16]) {
        assert!(targets.len() >= self.rows + PAD / 2);
        let words = self.words();
        let partitions = self.masks.len() / words.max(1);
        assert!(partitions <= MOST_EXPANDED && ends.len() == partitions);
        // SAFETY: `FIRST` has 64 bytes.
        let first = unsafe { _mm512_loadu_si512(FIRST.as_ptr().cast()) };
        let mut next = [first; MOST_EXPANDED];
        let starts = [0].into_iter().chain(ends.iter().copied());
        for (next, start) in next[..partitions].iter_mut().zip(starts) {
            *next = _mm512_add_epi16(first, _mm512_set1_epi16(start as i16));
        }
        for word in 0..words {
            let mut found = [_mm512_setzero_si512(); 2];
            for (partition, next) in next[..partitions].iter_mut().enumerate() {
                let mask = self.masks[partition * words + word];
                for (found, half) in found.iter_mut().zip([mask as u32, (mask >> 32) as u32]) {
                    *found = _mm512_mask_expand_epi16(*found, half, *next);
                    let count = _mm512_set1_epi16(half.count_ones() as i16);
                    *next = _mm512_add_epi16(*next, count);
                }
            }
            // SAFETY: the rows of a word and the pad are in `targets`: 128 bytes, of which at least
            // one row is there, or 64 and the pad.
            unsafe {
                let at = targets.as_mut_ptr().add(word * 64);
                _mm512_storeu_si512(at.cast(), found[0]);
                if self.rows > word * 64 + 32 {
                    _mm512_storeu_si512(at.add(32).cast(), found[1]);
                }
            }
        }
    }

    /// A mask after the other, each with a word for 64 rows.
    pub(super) fn partitions(&self) -> impl Iterator<Item = &[u64]> {
        self.masks.chunks_exact(self.words().max(1))
    }

    /// True if half of a register mostly holds what a partition has of a whole one.
    pub(super) fn halves(&self) -> bool {
        self.masks.len() > 2 * self.words()
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }
}
