//! Masks of few partitions: a bit for each row and partition, and the order of rows that follows
//! from them.
//!
//! ```text
//! ids         1 0 1 2 0 1        mask 0  0 1 0 0 1 0    places: rows compressed   1 4 | 0 2 5 | 3
//!                                mask 1  1 0 1 0 0 1    targets: numbers expanded
//!                                mask 2  0 0 0 1 0 0             2 0 3 5 1 4
//! ```
//!
//! A row's target is the next place of its partition at this word of masks, plus the number of
//! earlier rows of the partition in the word. The first is looked up by id in a register; the
//! second comes from numbers expanded to the rows of a mask, as bytes, 64 at a time.
//!
//! A compressed register is stored whole, and the next store overwrites its surplus; after the
//! last, places are [`PAD`] longer than their rows. Cost: a few cycles for 64 rows and a partition,
//! for any ids. The portable twin counts by segments; `tests` compares both.

use std::arch::x86_64::*;

use super::ids::PAD;

/// Most partitions whose targets are found: their next places take half a register.
const MOST_EXPANDED: usize = 16;
/// Words of masks whose rows are counted together: a register.
const COUNTED: usize = 8;
/// Ids prefetched ahead, from the second-level cache: reading ids dominates the cost of masks.
const AHEAD: usize = 512;

/// Makes a register's worth of numbers, each computed from its index.
macro_rules! table {
    ($number:ty, $row:ident => $of:expr) => {{
        let mut table = [0; 64 / size_of::<$number>()];
        let mut $row = 0;
        while $row < table.len() {
            table[$row] = $of as $number;
            $row += 1;
        }
        table
    }};
}

/// The order of ids among the bytes of four registers of ids, shifted into one.
const BYTES: [u8; 64] = table!(u8, row => row % 16 * 4 + row / 16);
/// The numbers of rows in a register, as bytes.
pub(super) const RANKS: [u8; 64] = table!(u8, row => row);
/// The lower half of each id of two registers.
const HALVES: [u16; 32] = table!(u16, row => 2 * row);

/// Returns the ids of a block as bytes, if they fit; ORs their bits into `seen`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn bytes(block: &[u32; 64], seen: &mut __m512i) -> __m512i {
    const OR: i32 = 0xfe;
    let [a, b, c, d] = [0, 16, 32, 48].map(|at| {
        let from = block.as_ptr().wrapping_add(at);
        _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast());
        // SAFETY: a block is four registers.
        unsafe { _mm512_loadu_si512(from.cast()) }
    });
    *seen = _mm512_ternarylogic_epi32::<OR>(*seen, a, b);
    *seen = _mm512_ternarylogic_epi32::<OR>(*seen, c, d);
    let (b, c, d) =
        (_mm512_slli_epi32::<8>(b), _mm512_slli_epi32::<16>(c), _mm512_slli_epi32::<24>(d));
    let all = _mm512_or_si512(_mm512_ternarylogic_epi32::<OR>(a, b, c), d);
    // SAFETY: `BYTES` has 64 bytes.
    let order = unsafe { _mm512_loadu_si512(BYTES.as_ptr().cast()) };
    _mm512_permutexvar_epi8(order, all)
}

/// Returns the ids after the last whole block, padded with zeros.
fn padded(rest: &[u32]) -> [u32; 64] {
    let mut block = [0; 64];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// Writes the numbers of the rows in `mask` to `at` and returns their end. With `halves`, a word
/// mostly has at most 32 rows.
///
/// Rows of a word are compressed as bytes and widened to two bytes afterwards: one instead of two
/// of the most expensive instructions for 64 rows. For 10,000 rows in 16 partitions this saves 1.4
/// us, in four 0.5 us (Sapphire Rapids).
///
/// # Safety
/// The CPU has the instructions of [`super::Level::Avx512`]. The rows and [`PAD`] more places are
/// writable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
unsafe fn put_rows(mask: &[u64], mut at: *mut u16, halves: bool) -> *mut u16 {
    // SAFETY: `RANKS` has 64 bytes.
    let ranks = unsafe { _mm512_loadu_si512(RANKS.as_ptr().cast()) };
    let (mut first, step) = (_mm512_setzero_si512(), _mm512_set1_epi16(64));
    for &word in mask {
        let chosen = _mm512_maskz_compress_epi8(word, ranks);
        let count = word.count_ones() as usize;
        let front = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(chosen));
        // SAFETY: the caller provides space for the rows and a pad. A register has 32 numbers, and
        // the pad two registers.
        unsafe {
            _mm512_storeu_si512(at.cast(), _mm512_add_epi16(front, first));
            if !halves || count > 32 {
                let back = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(chosen));
                _mm512_storeu_si512(at.add(32).cast(), _mm512_add_epi16(back, first));
            }
            at = at.add(count);
        }
        first = _mm512_add_epi16(first, step);
    }
    at
}

/// A bit for each row and partition: all words of partition 0, then all words of partition 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    masks: Vec<u64>,
    rows: usize,
}

impl Masks {
    pub(super) fn words(&self) -> usize {
        self.rows.div_ceil(64)
    }

    /// Sets the bits of `ids`, and `ends` to the ends of partitions. Returns false if an id is not
    /// below the number of partitions.
    ///
    /// # Safety
    /// The CPU has the instructions of [`super::Level::Avx512`]. There are fewer than 255
    /// partitions.
    #[target_feature(
        enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq,bmi2,popcnt"
    )]
    pub(super) unsafe fn build(&mut self, ids: &[u32], ends: &mut [u32]) -> bool {
        debug_assert!(ends.len() < 255);
        self.rows = ids.len();
        let words = self.words();
        self.masks.resize(words * ends.len(), 0);
        let (blocks, rest) = ids.as_chunks::<64>();
        let mut known = self.build_blocks(blocks, 0);
        if !rest.is_empty() {
            known &= self.build_blocks(&[padded(rest)], words - 1);
            let rows = (1 << rest.len()) - 1;
            self.masks.iter_mut().skip(words - 1).step_by(words).for_each(|word| *word &= rows);
        }
        let mut sum = 0;
        for (mask, end) in self.masks.chunks_exact(words.max(1)).zip(ends) {
            sum += mask.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() as u32;
            *end = sum;
        }
        // An id in no mask is no partition.
        known && sum as usize == ids.len()
    }

    /// Builds the words of all masks from word `first` on. Returns false if an id does not fit into
    /// a byte.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn build_blocks(&mut self, blocks: &[[u32; 64]], first: usize) -> bool {
        let words = self.words();
        let mut seen = _mm512_setzero_si512();
        for (word, block) in (first..).zip(blocks) {
            let bytes = bytes(block, &mut seen);
            let mut wanted = _mm512_setzero_si512();
            for mask in self.masks[word..].iter_mut().step_by(words) {
                *mask = _mm512_cmpeq_epi8_mask(bytes, wanted);
                wanted = _mm512_add_epi8(wanted, _mm512_set1_epi8(1));
            }
        }
        _mm512_reduce_or_epi32(seen) as u32 <= u32::from(u8::MAX)
    }

    /// Writes the row of each place to `places`, which has [`PAD`] places more than rows.
    ///
    /// # Safety
    /// The CPU has the instructions of [`super::Level::Avx512`]. Every row is in one mask, and
    /// there are at most 65,536 rows.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
    pub(super) unsafe fn places(&self, places: &mut [u16]) {
        assert!(places.len() >= self.rows + PAD);
        let mut at = places.as_mut_ptr();
        let halves = self.halves();
        for mask in self.partitions() {
            // SAFETY: all masks together have `self.rows` rows, so `at` stays below the rows, and
            // stores end within the pad.
            unsafe { at = put_rows(mask, at, halves) };
        }
    }

    /// Writes the target of each row to `targets`, which has [`PAD`] bytes more than rows.
    ///
    /// # Safety
    /// - The CPU has the instructions of [`super::Level::Avx512`].
    /// - Every row is in one mask, and there are at most 65,536 rows.
    /// - The masks are of `ids`, and partitions end at `ends`.
    ///
    /// # Panics
    /// If there are more than [`MOST_EXPANDED`] partitions.
    #[target_feature(
        enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq,popcnt"
    )]
    pub(super) unsafe fn targets(&self, ids: &[u32], ends: &[u32], targets: &mut [u16]) {
        assert!(ids.len() == self.rows && targets.len() >= self.rows + PAD / 2);
        assert!(ends.len() <= MOST_EXPANDED && self.masks.len() == ends.len() * self.words());
        let words = self.words();
        let (blocks, rest) = ids.as_chunks::<64>();
        let last = padded(rest);
        let mut starts = [0; 32];
        for (start, &end) in starts[1..].iter_mut().zip(ends) {
            *start = end as u16;
        }
        // SAFETY: all three arrays have 64 bytes.
        let (mut next, numbers, halves) = unsafe {
            (
                _mm512_loadu_si512(starts.as_ptr().cast()),
                _mm512_loadu_si512(RANKS.as_ptr().cast()),
                _mm512_loadu_si512(HALVES.as_ptr().cast()),
            )
        };
        for first in (0..words).step_by(COUNTED) {
            for (word, counts) in (first..words).zip(self.counts(first)) {
                let mut ranks = _mm512_setzero_si512();
                for partition in 0..ends.len() {
                    // SAFETY: there is a mask of `words` words for each of `ends`, as asserted.
                    let mask = unsafe { *self.masks.get_unchecked(partition * words + word) };
                    ranks = _mm512_mask_expand_epi8(ranks, mask, numbers);
                }
                let block = blocks.get(word).unwrap_or(&last);
                let ranks = [_mm512_castsi512_si256(ranks), _mm512_extracti64x4_epi64::<1>(ranks)];
                let found = [0, 32].map(|at| {
                    // SAFETY: a block is four registers.
                    let (low, high) = unsafe {
                        let ids = block.as_ptr().add(at);
                        (_mm512_loadu_si512(ids.cast()), _mm512_loadu_si512(ids.add(16).cast()))
                    };
                    let ids = _mm512_permutex2var_epi16(low, halves, high);
                    let start = _mm512_permutexvar_epi16(ids, next);
                    _mm512_add_epi16(start, _mm512_cvtepu8_epi16(ranks[at / 32]))
                });
                // SAFETY: `targets` has all rows and a pad of 64 bytes. A word has at least one
                // row, so the first 64 bytes fit into the row and the pad. The second 64 bytes are
                // written only if a row lies in them.
                unsafe {
                    let at = targets.as_mut_ptr().add(word * 64);
                    _mm512_storeu_si512(at.cast(), found[0]);
                    if self.rows > word * 64 + 32 {
                        _mm512_storeu_si512(at.add(32).cast(), found[1]);
                    }
                }
                // SAFETY: `counts` has 16 bytes.
                let counts = unsafe { _mm_loadu_si128(counts.as_ptr().cast()) };
                let counts = _mm512_zextsi256_si512(_mm256_cvtepu8_epi16(counts));
                next = _mm512_add_epi16(next, counts);
            }
        }
    }

    /// Returns the rows of each partition in each of [`COUNTED`] words from word `first` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
    fn counts(&self, first: usize) -> [[u8; MOST_EXPANDED]; COUNTED] {
        let lanes = u8::MAX >> COUNTED.saturating_sub(self.words() - first);
        // A byte for each partition, in the lane of its word; partitions from the ninth on in a
        // second register.
        let mut counts = [_mm512_setzero_si512(); 2];
        for (partition, mask) in self.partitions().enumerate() {
            // SAFETY: only lanes of existing words are read.
            let mask = unsafe { _mm512_maskz_loadu_epi64(lanes, mask[first..].as_ptr().cast()) };
            let shift = _mm_cvtsi32_si128((partition % 8 * 8) as i32);
            let shifted = _mm512_sll_epi64(_mm512_popcnt_epi64(mask), shift);
            counts[partition / 8] = _mm512_or_si512(counts[partition / 8], shifted);
        }
        let [low, high] = counts;
        let even = _mm512_unpacklo_epi64(low, high);
        let odd = _mm512_unpackhi_epi64(low, high);
        let mut sums = [[0; MOST_EXPANDED]; COUNTED];
        for (pair, sums) in sums.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let lane = |of: __m512i| match pair {
                0 => _mm512_extracti32x4_epi32::<0>(of),
                1 => _mm512_extracti32x4_epi32::<1>(of),
                2 => _mm512_extracti32x4_epi32::<2>(of),
                _ => _mm512_extracti32x4_epi32::<3>(of),
            };
            // SAFETY: each sum has 16 bytes.
            unsafe {
                _mm_storeu_si128(sums[0].as_mut_ptr().cast(), lane(even));
                _mm_storeu_si128(sums[1].as_mut_ptr().cast(), lane(odd));
            }
        }
        sums
    }

    /// Returns the masks, each with a word for 64 rows.
    pub(super) fn partitions(&self) -> impl Iterator<Item = &[u64]> {
        self.masks.chunks_exact(self.words().max(1))
    }

    /// Returns whether half a register mostly holds the rows that a partition has of a whole one.
    pub(super) fn halves(&self) -> bool {
        self.masks.len() > 2 * self.words()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn masks_places_and_targets_are_those_of_a_stable_sort() {
        if Level::detect() < Level::Avx512 {
            return;
        }
        let mut masks = Masks::default();
        for (partitions, rows) in (1..=MOST_EXPANDED).flat_map(|partitions| {
            [1, 31, 32, 33, 63, 64, 65, 127, 129, 511, 513, 1000].map(|rows| (partitions, rows))
        }) {
            for step in [1, 7, rows] {
                let id = |row: usize| (row / step * 31 + row * row / 5) % partitions;
                let ids: Vec<u32> = (0..rows).map(|row| id(row) as u32).collect();
                let mut order: Vec<usize> = (0..rows).collect();
                order.sort_by_key(|&row| ids[row]);
                let mut ends = vec![7; partitions];
                // SAFETY: the CPU has the level, and there are fewer than 255 partitions.
                assert!(unsafe { masks.build(&ids, &mut ends) });
                for (partition, (mask, &end)) in masks.partitions().zip(&ends).enumerate() {
                    let is_set = |row: usize| mask[row / 64] >> (row % 64) & 1 == 1;
                    assert!((0..rows).all(|row| is_set(row) == (id(row) == partition)));
                    assert!(mask[rows / 64..].iter().all(|word| word >> (rows % 64) == 0));
                    assert_eq!(
                        end as usize,
                        ids.iter().filter(|&&id| id as usize <= partition).count()
                    );
                }
                let (mut places, mut targets) = (vec![9; rows + PAD], vec![9; rows + PAD]);
                // SAFETY: the CPU has the level. The masks are of these ids, and partitions end at
                // `ends`.
                unsafe {
                    masks.places(&mut places);
                    masks.targets(&ids, &ends, &mut targets);
                }
                let what = format!("{partitions} partitions, {rows} rows, {step}");
                for (at, &row) in order.iter().enumerate() {
                    assert_eq!(usize::from(places[at]), row, "{what}");
                    assert_eq!(usize::from(targets[row]), at, "{what}");
                }
                for (row, outside) in [0, rows / 2, rows - 1].into_iter().flat_map(|row| {
                    [partitions as u32, 255, 256, 1 << 16, u32::MAX].map(|outside| (row, outside))
                }) {
                    let mut ids = ids.clone();
                    ids[row] = outside;
                    // SAFETY: the CPU has the level, and there are fewer than 255 partitions.
                    assert!(!unsafe { masks.build(&ids, &mut ends) }, "{what}: {outside} in {row}");
                }
            }
        }
    }
}
