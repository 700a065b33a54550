//! Up to 256 partitions: which row comes where, found one digit of the id after the other.
//!
//! ```text
//! ids     5 2 4 2 7 0      groups of four    0: rows 1 3 5, ids 2 2 0      places   5 1 3 2 0 4
//!                                            1: rows 0 2 4, ids 5 4 7
//! ```
//!
//! 64 ids are a register of bytes. For each group of partitions, the numbers of its rows are compressed,
//! and their ids; then, group by group, those of each partition. No load depends on a store and no branch
//! on an id. Two digits take as many steps as they have values together, where masks take one for each
//! partition, and a count with its cursors two stores for each row: of 10,000 rows, ten columns and their
//! places take 1.2 us less with 16 partitions, and 3 with 32 (Sapphire Rapids). With more than 32 partitions
//! there are three digits of four values each: 64 partitions take 3.65 us, where two digits of eight take 4.6;
//! and four with more than 64. With fewer than twelve masks are faster, with more than 256 ids are no bytes.
//!
//! The portable twin is the way of segments; `tests` holds them against each other.

use std::arch::x86_64::*;

use super::compress::store;
use super::masks::{RANKS, any, bytes, padded};
use super::order::PAD;

/// Values of a digit, but for the first of two.
const FOUR: usize = 4;
/// The most values of the first digit.
const GROUPS: usize = 8;
/// The most partitions of two digits, of three and of four.
const MOST_OF_TWO: usize = GROUPS * FOUR;
const MOST_OF_THREE: usize = FOUR * FOUR * FOUR;
const MOST: usize = MOST_OF_THREE * FOUR;

/// Working memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Digits {
    /// By the first digit.
    first: Lists,
    /// Of one of its values, by the second, and of one of both by the third.
    others: [Lists; 2],
    masks: Vec<u64>,
}

/// Rows and their ids, group by group, each with room for all.
#[derive(Clone, Debug, Default)]
struct Lists {
    rows: Vec<u16>,
    ids: Vec<u8>,
    /// Rows that a group has room for.
    room: usize,
}

impl Lists {
    /// Makes room for `rows` rows, and [`PAD`] more, in each of so many groups.
    fn resize(&mut self, groups: usize, rows: usize) {
        self.room = rows + PAD;
        self.rows.resize(groups * self.room, 0);
        self.ids.resize(groups * self.room, 0);
    }

    /// The first `len` rows of a group, and their ids, with what is in the pad behind them.
    fn get(&self, group: usize, len: usize) -> (&[u16], &[u8]) {
        let range = group * self.room..group * self.room + len + PAD;
        (&self.rows[range.clone()], &self.ids[range])
    }

    /// Where the row and the id at `place` of a group are written.
    fn at(&mut self, group: usize, place: usize) -> (*mut u16, *mut u8) {
        let at = group * self.room + place;
        (self.rows.as_mut_ptr().wrapping_add(at), self.ids.as_mut_ptr().wrapping_add(at))
    }
}

impl Digits {
    /// Writes which row comes where to `places`, which has [`PAD`] places more than `ids`, and where
    /// partitions end to `ends`. False if an id is not below their number; then nothing is known.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; there are at most 65,536 ids.
    ///
    /// # Panics
    /// If there are too many partitions, or too few places.
    pub(super) unsafe fn places(
        &mut self,
        ids: &[u32],
        ends: &mut [u32],
        places: &mut [u16],
    ) -> bool {
        assert!(ends.len() <= MOST && places.len() >= ids.len() + PAD);
        // SAFETY: as the caller promised.
        unsafe {
            if ends.len() <= MOST_OF_TWO {
                self.places_of::<4>(ids, ends, places)
            } else if ends.len() <= MOST_OF_THREE {
                self.places_of::<16>(ids, ends, places)
            } else {
                self.places_of::<64>(ids, ends, places)
            }
        }
    }

    /// [`Digits::places`], where the first digit tells `LOW` partitions from the next.
    ///
    /// # Safety
    /// As there.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
    unsafe fn places_of<const LOW: usize>(
        &mut self,
        ids: &[u32],
        ends: &mut [u32],
        places: &mut [u16],
    ) -> bool {
        let groups = ends.len().div_ceil(LOW);
        assert!(groups <= GROUPS);
        // SAFETY: as the caller promised.
        let Some(lens) = (unsafe { self.group::<LOW>(ids, groups) }) else { return false };
        let mut to = Placed { masks: &mut self.masks, places, placed: 0 };
        for (group, ends) in ends.chunks_mut(LOW).enumerate() {
            let list = self.first.get(group, lens[group]);
            // SAFETY: as the caller promised, and groups have no row in common.
            unsafe { to.put::<LOW>(list, group, &mut self.others, ends) };
        }
        // A row that was not placed has an id that is no partition.
        to.placed == ids.len()
    }

    /// Appends the rows and ids of each group, of `LOW` partitions, to its own. Says how many each has, or
    /// nothing if an id has more bits than partitions.
    ///
    /// # Safety
    /// As [`Digits::places`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
    unsafe fn group<const LOW: usize>(
        &mut self,
        ids: &[u32],
        groups: usize,
    ) -> Option<[usize; GROUPS]> {
        self.first.resize(groups, ids.len());
        let digits = LOW.ilog(FOUR) as usize;
        self.others[..digits - 1].iter_mut().for_each(|lists| lists.resize(FOUR, ids.len()));
        self.masks.resize(FOUR * ids.len().div_ceil(64), 0);
        let mut lens = [0; GROUPS];
        let mut seen = _mm512_setzero_si512();
        // SAFETY: 64 bytes.
        let ranks = unsafe { _mm512_loadu_si512(RANKS.as_ptr().cast()) };
        let high = _mm512_set1_epi8(-(LOW as i8));
        let (mut first, step) = (_mm512_setzero_si512(), _mm512_set1_epi16(64));
        let (blocks, rest) = ids.as_chunks::<64>();
        let last = (padded(rest), (1 << rest.len()) - 1);
        let blocks = blocks.iter().map(|block| (block, u64::MAX));
        for (block, valid) in blocks.chain((!rest.is_empty()).then_some((&last.0, last.1))) {
            let bytes = bytes(block, &mut seen);
            let digits = _mm512_and_si512(bytes, high);
            for (group, len) in lens[..groups].iter_mut().enumerate() {
                let wanted = _mm512_set1_epi8((group * LOW) as i8);
                let mask = _mm512_mask_cmpeq_epi8_mask(valid, digits, wanted);
                let row = |ranks: __m256i| _mm512_add_epi16(_mm512_cvtepu8_epi16(ranks), first);
                // SAFETY: a group has no more rows than there are in front, and room for those and 64
                // more.
                unsafe { *len += append(mask, ranks, bytes, row, self.first.at(group, *len)) };
            }
            first = _mm512_add_epi16(first, step);
        }
        (any(seen) < MOST as u32).then_some(lens)
    }
}

/// Writes the rows and ids of a list, behind which are [`PAD`] of any value, to four: by the digit that tells
/// `LOW` partitions from the next. Says how many each has.
///
/// # Safety
/// The CPU has what [`super::Level::Avx512`] says; `fours` have room for all.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
unsafe fn regroup<const LOW: usize>(
    (rows, ids): (&[u16], &[u8]),
    fours: &mut Lists,
) -> [usize; FOUR] {
    let len = rows.len() - PAD;
    debug_assert!(ids.len() == rows.len() && fours.room >= rows.len());
    let mut lens = [0; FOUR];
    // SAFETY: 64 bytes.
    let ranks = unsafe { _mm512_loadu_si512(RANKS.as_ptr().cast()) };
    for (word, (rows, ids)) in rows.chunks_exact(64).zip(ids.chunks_exact(64)).enumerate() {
        // The pad is a whole word: what is left of the rows has one.
        let valid = below(len, word);
        // SAFETY: 64 numbers are two registers, and as many ids one.
        let (low, high, ids) = unsafe {
            let rows = rows.as_ptr();
            (
                _mm512_loadu_si512(rows.cast()),
                _mm512_loadu_si512(rows.add(32).cast()),
                _mm512_loadu_si512(ids.as_ptr().cast()),
            )
        };
        let digits = _mm512_and_si512(ids, _mm512_set1_epi8((LOW * (FOUR - 1)) as i8));
        for (four, len) in lens.iter_mut().enumerate() {
            let wanted = _mm512_set1_epi8((four * LOW) as i8);
            let mask = _mm512_mask_cmpeq_epi8_mask(valid, digits, wanted);
            let row = |ranks| _mm512_permutex2var_epi16(low, _mm512_cvtepu8_epi16(ranks), high);
            // SAFETY: a list has no more rows than there are in front, and room for those and 64 more.
            unsafe { *len += append(mask, ranks, ids, row, fours.at(four, *len)) };
        }
    }
    lens
}

/// Writes those of 64 rows, and their ids, that are in `mask` to where `to` says; says how many. `row` gives
/// rows of what number they are of the 64, for which `ranks` are.
///
/// # Safety
/// The CPU has what [`super::Level::Avx512`] says; there is room for 64 rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,popcnt")]
unsafe fn append(
    mask: u64,
    ranks: __m512i,
    ids: __m512i,
    row: impl Fn(__m256i) -> __m512i,
    to: (*mut u16, *mut u8),
) -> usize {
    let count = mask.count_ones() as usize;
    let chosen = _mm512_maskz_compress_epi8(mask, ranks);
    // Half of what it takes to compress them as well.
    let found = _mm512_permutexvar_epi8(chosen, ids);
    // SAFETY: as the caller promised.
    unsafe {
        _mm512_storeu_si512(to.0.cast(), row(_mm512_castsi512_si256(chosen)));
        _mm256_storeu_si256(to.1.cast(), _mm512_castsi512_si256(found));
        if count > 32 {
            let back = row(_mm512_extracti64x4_epi64::<1>(chosen));
            _mm512_storeu_si512(to.0.add(32).cast(), back);
            _mm512_storeu_si512(to.1.cast(), found);
        }
    }
    count
}

/// The rows of word `word` that are below `len`.
#[inline(always)]
fn below(len: usize, word: usize) -> u64 {
    match len.saturating_sub(word * 64) {
        left @ ..64 => (1 << left) - 1,
        _ => u64::MAX,
    }
}

/// Places, as far as they are known.
struct Placed<'a> {
    masks: &'a mut [u64],
    places: &'a mut [u16],
    placed: usize,
}

impl Placed<'_> {
    /// Writes the rows of a group of `LOW` partitions, behind which are [`PAD`] of any value, and where the
    /// partitions end to `ends`. `lists` are for what is grouped again. An id that is no partition has no
    /// place.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; there are places for all rows, and [`PAD`] more, and
    /// as much room in `lists`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
    unsafe fn put<const LOW: usize>(
        &mut self,
        list: (&[u16], &[u8]),
        group: usize,
        lists: &mut [Lists],
        ends: &mut [u32],
    ) {
        // SAFETY: as the caller promised: those of a part have no row of another.
        unsafe {
            match (LOW, lists) {
                (64, [fours, lists @ ..]) => self.put_parts::<16>(list, group, fours, lists, ends),
                (16, [fours, lists @ ..]) => self.put_parts::<4>(list, group, fours, lists, ends),
                _ => self.put_four(list, group, ends),
            }
        }
    }

    /// [`Placed::put`], of four parts that have `LOW` partitions.
    ///
    /// # Safety
    /// As there.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
    unsafe fn put_parts<const LOW: usize>(
        &mut self,
        list: (&[u16], &[u8]),
        group: usize,
        fours: &mut Lists,
        lists: &mut [Lists],
        ends: &mut [u32],
    ) {
        // SAFETY: as the caller promised.
        let lens = unsafe { regroup::<LOW>(list, fours) };
        for (part, ends) in ends.chunks_mut(LOW).enumerate() {
            let list = fours.get(part, lens[part]);
            // SAFETY: as above.
            unsafe { self.put::<LOW>(list, group * FOUR + part, lists, ends) };
        }
    }

    /// [`Placed::put`], of four partitions.
    ///
    /// # Safety
    /// As there.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
    unsafe fn put_four(&mut self, (rows, ids): (&[u16], &[u8]), group: usize, ends: &mut [u32]) {
        let words = (rows.len() - PAD).div_ceil(64);
        find_masks(ids, group, self.masks);
        for (end, masks) in ends.iter_mut().zip(self.masks.chunks(words.max(1))) {
            // SAFETY: as the caller promised: the masks of a partition have no row of another.
            unsafe {
                let at = self.places.as_mut_ptr().add(self.placed);
                self.placed += put_those(rows, &masks[..words], at);
            }
            *end = self.placed as u32;
        }
    }
}

/// Writes a mask for each partition of a group: those of the first, one word for 64 of `ids`, then those of
/// the second. Behind the ids are [`PAD`] of any value.
#[target_feature(enable = "avx512f,avx512bw")]
fn find_masks(ids: &[u8], group: usize, masks: &mut [u64]) {
    let len = ids.len() - PAD;
    let words = len.div_ceil(64);
    for word in 0..words {
        let valid = below(len, word);
        // SAFETY: 64 bytes behind the ids are there.
        let bytes = unsafe { _mm512_loadu_si512(ids[word * 64..].as_ptr().cast()) };
        for low in 0..FOUR {
            let wanted = _mm512_set1_epi8((group * FOUR + low) as i8);
            masks[low * words + word] = _mm512_mask_cmpeq_epi8_mask(valid, bytes, wanted);
        }
    }
}

/// Writes those of `rows` that are in `mask` to `at`; says how many.
///
/// # Safety
/// The CPU has what [`super::Level::Avx512`] says; there are 64 rows for each word, and room for what the
/// mask has and [`PAD`] places more.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
unsafe fn put_those(rows: &[u16], mask: &[u64], at: *mut u16) -> usize {
    debug_assert!(rows.len() >= mask.len() * 64);
    let mut count = 0;
    for (word, &mask) in mask.iter().enumerate() {
        for (half, mask) in [mask as u32, (mask >> 32) as u32].into_iter().enumerate() {
            // SAFETY: as the caller promised; half of the rows of a word are a register.
            unsafe {
                let rows = _mm512_loadu_si512(rows.as_ptr().add(word * 64 + half * 32).cast());
                let chosen = _mm512_maskz_compress_epi16(mask, rows);
                let more = mask.count_ones() as usize;
                store(at.add(count).cast(), chosen, more * 2, true);
                count += more;
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn places_are_those_of_a_stable_sort() {
        if Level::detect() < Level::Avx512 {
            return;
        }
        let mut digits = Digits::default();
        for partitions in
            [1, 2, 3, 8, 9, 16, 17, 31, 32, 33, 40, 47, 48, 49, 63, 64, 65, 100, 192, 255, 256u32]
        {
            for rows in [0, 1, 63, 64, 65, 1000, 10_000, 65_536] {
                for skewed in [false, true] {
                    let id = |row: u32| match row.wrapping_mul(0x9e37_79b9) >> 12 {
                        hash if skewed && hash % 10 > 0 => partitions - 1,
                        hash => hash / 10 % partitions,
                    };
                    let mut ids: Vec<u32> = (0..rows).map(id).collect();
                    let mut order: Vec<u16> = (0..rows).map(|row| row as u16).collect();
                    order.sort_by_key(|&row| ids[usize::from(row)]);
                    let mut ends = vec![0; partitions as usize];
                    let mut places = vec![0; ids.len() + PAD];
                    // SAFETY: the CPU can.
                    assert!(unsafe { digits.places(&ids, &mut ends, &mut places) });
                    assert!(places[..ids.len()] == order, "{partitions} {rows}");
                    let below = |p: usize| ids.iter().filter(|&&id| id as usize <= p).count();
                    assert!(ends.iter().enumerate().all(|(p, &end)| end as usize == below(p)));
                    for outside in [partitions, partitions + 1, 256, 1 << 20, u32::MAX] {
                        if let Some(id) = ids.last_mut() {
                            *id = outside;
                            // SAFETY: the CPU can.
                            assert!(!unsafe { digits.places(&ids, &mut ends, &mut places) });
                        }
                    }
                }
            }
        }
    }
}
