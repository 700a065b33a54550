//! Several columns and one list of places: lines gathered in the order of the rows that they come from.
//!
//! ```text
//! places    | 1 4 6 9 .. | 0 2 3 8 .. | 5 7 11 ..      eight places: a line of eight-byte values
//! sweep       lines by the row that comes first: 1 0 2
//! column      read once from front to back, about as many lines at hand as partitions
//! out         written line by line, each once
//! ```
//!
//! A scatter takes a store for each value, of which CPUs retire one a cycle. A line that is gathered
//! takes one for all of its values, and loads, of which there are two or three a cycle; nor is a branch
//! guessed wrong, as there is where runs of partitions end. Places and the order of lines are the same
//! for all columns, so that they cost little for each of ten.
//!
//! What fits the first-level cache is gathered in the order that it comes out; so is what goes to so many
//! partitions that a line's rows are from everywhere. Else lines are sorted by their first row; or, where rows
//! are spread evenly, taken in turns or at a pace, which is nearly that order for less: ten columns of eight
//! bytes take 25 us instead of 27 with four partitions, 30.8 instead of 31.5 with 64.
//!
//! Ten columns of 10,000 values, us (Sapphire Rapids; where rows go is known):
//!
//! | | 4 bytes, 4 partitions | 16 | 256 | 1024 | 8 bytes, 4 | 16 | 256 | 1024 |
//! |---|---|---|---|---|---|---|---|---|
//! | scattered, two columns at a time | | | | | 32 | 33 | 49 | 82 |
//! | as records | 21 | 21 | 25 | 32 | 40 | 40 | 46 | 55 |
//! | gathered as it comes out | 20 | 16 | 15 | 15 | 28 | 30 | 30 | 30 |
//! | gathered in order | 18 | 18 | 19 | 20 | 23 | 22 | 27 | 33 |
//!
//! *Where it loses*: on Zen 4, whose second level is no faster for lines than for values, and whose first
//! is too small for a column; see `docs/decisions/017-what-bounds-a-split.md`. The portable twin is
//! `fixed::gather`.

use std::arch::x86_64::*;

/// So many columns are worth the search for places after targets, and that lines are sorted.
pub(super) const SWEPT: usize = 3;
/// Rows of a step: a line of eight-byte values.
const STEP: usize = 8;
/// Bytes of a column that the first-level cache holds beside what is written.
const CACHED: usize = 40 << 10;
/// With fewer rows than this a partition, the rows of a step are from a quarter of the column.
const LEAST_MEAN: usize = 32;
/// Rows whose steps are in any order: so few that partitions' steps seldom meet in one.
const BLOCK: usize = 32;
/// Blocks of the most rows that places tell apart.
const MOST_BLOCKS: usize = (1 << 16) / BLOCK;

/// Numbers of two bytes, and of four, in a register.
const LANES: usize = 32;
const HALF: usize = LANES / 2;
/// Up to so many partitions steps take turns: of a column by itself, and of two at a time, where the rows of a
/// turn may be less far apart. Up to so many they are paced.
const MOST_TURNS_ONCE: usize = LANES;
const MOST_TURNS: usize = 12;
const MOST_PACED: usize = 128;
/// Partitions of more than this many times the steps they have on average are uneven.
const MOST_UNEVEN: usize = 2;

/// The order of steps; keeps its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Sweep {
    steps: Vec<u16>,
    /// The first step of each partition, and behind the last the number of steps.
    firsts: Vec<u32>,
    /// Whether rows may be spread evenly.
    spread: bool,
}

impl Sweep {
    /// Forgets the order. Only partitions that rows are `spread` over take turns, or a pace; not where ids take
    /// turns themselves: a line of one has rows up to a line behind those of another, and sorted they come 4 to
    /// 12 % faster (Sapphire Rapids).
    pub(super) fn clear(&mut self, spread: bool) {
        self.steps.clear();
        self.spread = spread;
    }

    /// Writes `source[place]` for each of `places` to its out, of one column or two. Places are those of all
    /// calls until the next [`Sweep::clear`], of partitions that start at `starts`, the last of which is where
    /// all end. `columns` says how many are gathered in all; for one or two lines are not sorted.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; places are below the lengths of `sources`; `W` is a
    /// power of two up to 16.
    ///
    /// # Panics
    /// If there are not as many values as places, or there is no room for them, or partitions have not as many.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
    pub(super) unsafe fn gather<const N: usize, const W: usize>(
        &mut self,
        columns: usize,
        starts: &[usize],
        places: &[u16],
        sources: [&[[u8; W]]; N],
        outs: [&mut [[u8; W]]; N],
    ) {
        let len = places.len();
        assert!(sources.iter().all(|source| source.len() == len));
        assert!(outs.iter().all(|out| out.len() >= len));
        assert!(starts.first() == Some(&0) && starts.last() == Some(&len));
        debug_assert!(places.iter().all(|&place| usize::from(place) < len));
        let steps = len / STEP;
        let to = outs.map(<[_]>::as_mut_ptr);
        let step = |step: usize| {
            // SAFETY: as the caller promised; steps are below the whole steps of places, where there are
            // any as many values, and room for those. Eight places are a register of 16 bytes.
            unsafe {
                let places = _mm_loadu_si128(places.as_ptr().add(step * STEP).cast());
                for (source, to) in sources.into_iter().zip(to) {
                    eight(source, places, to.add(step * STEP));
                }
            }
        };
        let scattered = len < LEAST_MEAN * (starts.len() - 1);
        if len * W <= CACHED || scattered || !self.find(columns, starts, places) {
            (0..steps).for_each(step);
        } else {
            self.steps.iter().for_each(|&at| step(at.into()));
        }
        for row in steps * STEP..len {
            for (source, to) in sources.into_iter().zip(to) {
                // SAFETY: there is room for as many values as places.
                unsafe { *to.add(row) = source[usize::from(places[row])] };
            }
        }
    }

    /// Orders the steps of `places`, of partitions that start at `starts`, unless that is done. False if it is
    /// not worth it for so many `columns`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
    fn find(&mut self, columns: usize, starts: &[usize], places: &[u16]) -> bool {
        let steps = places.len() / STEP;
        if self.steps.len() == steps {
            return true;
        }
        self.firsts.clear();
        self.firsts.extend(starts.iter().map(|start| start.div_ceil(STEP).min(steps) as u32));
        let most = self.firsts.windows(2).map(|firsts| (firsts[1] - firsts[0]) as usize).max();
        let (partitions, most) = (self.firsts.len() - 1, most.unwrap_or(0));
        let even = self.spread && most <= (steps / partitions + STEP) * MOST_UNEVEN;
        self.steps.resize(steps + LANES, 0);
        match partitions {
            ..=MOST_TURNS_ONCE if even && columns == 1 => self.take_turns(most),
            ..=MOST_TURNS if even => self.take_turns(most),
            ..=MOST_PACED if even => self.pace(places),
            _ if columns < SWEPT => self.steps.clear(),
            _ => self.sort(places),
        }
        self.steps.truncate(steps);
        self.steps.len() == steps
    }

    /// The first step of each partition, the second of each: where few partitions are even, these are from
    /// about the same rows. As many rounds at once as a register has room for.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    fn take_turns(&mut self, most: usize) {
        let (mut firsts, mut counts) = ([0u16; LANES], [0u16; LANES]);
        let partitions = self.firsts.len() - 1;
        let rounds = LANES / partitions;
        for (lane, (first, count)) in
            firsts.iter_mut().zip(&mut counts).enumerate().take(rounds * partitions)
        {
            let (partition, round) = (lane % partitions, (lane / partitions) as u32);
            let (start, end) = (self.firsts[partition], self.firsts[partition + 1]);
            (*first, *count) = ((start + round) as u16, (end - start).saturating_sub(round) as u16);
        }
        // SAFETY: 32 numbers are a register.
        let [firsts, counts] =
            unsafe { [firsts, counts].map(|numbers| _mm512_loadu_si512(numbers.as_ptr().cast())) };
        let mut at = 0;
        for round in (0..most).step_by(rounds) {
            let round = _mm512_set1_epi16(round as i16);
            let left = _mm512_cmplt_epu16_mask(round, counts);
            let chosen = _mm512_maskz_compress_epi16(left, _mm512_add_epi16(firsts, round));
            let to: &mut [u16; LANES] = self.steps[at..].first_chunk_mut().expect("room");
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), chosen) };
            at += left.count_ones() as usize;
        }
    }

    /// Steps whose first row is below a limit, one of each partition at most, and the limit three quarters of
    /// a step further on each time: so that a partition that is behind comes up again. 0.4 us of 10,000 rows
    /// in 64 partitions, for 1.2 to sort them.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
    fn pace(&mut self, places: &[u16]) {
        const MOST: usize = MOST_PACED / HALF;
        let (partitions, steps) = (self.firsts.len() - 1, places.len() / STEP);
        let registers = partitions.div_ceil(HALF);
        // The next step of each partition, the first row of that, and where its steps end.
        let mut next = [_mm512_setzero_si512(); MOST];
        let (mut rows, mut ends) = (next, next);
        for (register, firsts) in self.firsts[..partitions].chunks(HALF).enumerate() {
            let lanes = u16::MAX >> (HALF - firsts.len());
            // SAFETY: only lanes of partitions are read; behind the first step of each there is another.
            unsafe {
                next[register] = _mm512_maskz_loadu_epi32(lanes, firsts.as_ptr().cast());
                ends[register] = _mm512_maskz_loadu_epi32(lanes, firsts.as_ptr().add(1).cast());
            }
            let left = _mm512_cmplt_epu32_mask(next[register], ends[register]);
            // SAFETY: steps in front of an end are whole.
            rows[register] = unsafe { first_rows(places, next[register], left) };
        }
        let pace = _mm512_set1_epi32((STEP * partitions * 3 / 4) as i32);
        let (mut limit, mut at) = (pace, 0);
        while at < steps {
            let registers = next.iter_mut().zip(&mut rows).zip(&ends).take(registers);
            for ((next, rows), ends) in registers {
                let due = _mm512_cmplt_epu32_mask(*rows, limit);
                let chosen = _mm512_maskz_compress_epi32(due, *next);
                let to: &mut [u16; HALF] = self.steps[at..].first_chunk_mut().expect("room");
                // SAFETY: 16 numbers are half a register.
                unsafe {
                    _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm512_cvtepi32_epi16(chosen))
                };
                at += due.count_ones() as usize;
                *next = _mm512_mask_add_epi32(*next, due, *next, _mm512_set1_epi32(1));
                let left = _mm512_mask_cmplt_epu32_mask(due, *next, *ends);
                // SAFETY: as above.
                let found = unsafe { first_rows(places, *next, left) };
                *rows = _mm512_mask_mov_epi32(*rows, due, found);
            }
            limit = _mm512_add_epi32(limit, pace);
        }
    }

    /// Orders steps by the blocks that their first rows are in.
    fn sort(&mut self, places: &[u16]) {
        let blocks = places.as_chunks::<STEP>().0.iter().map(|step| usize::from(step[0]) / BLOCK);
        let mut next = [0u16; MOST_BLOCKS];
        blocks.clone().for_each(|block| next[block] += 1);
        let mut sum = 0;
        for next in &mut next[..places.len().div_ceil(BLOCK).min(MOST_BLOCKS)] {
            sum += std::mem::replace(next, sum);
        }
        for (step, block) in blocks.enumerate() {
            self.steps[usize::from(next[block])] = step as u16;
            next[block] += 1;
        }
    }
}

/// The first row of each of `steps` that is in `wanted`; of others, one that is behind all rows.
///
/// # Safety
/// The CPU has AVX-512F; steps that are wanted are whole steps of `places`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn first_rows(places: &[u16], steps: __m512i, wanted: u16) -> __m512i {
    /// Bytes of a step are a power of two.
    const SHIFT: u32 = (STEP * size_of::<u16>()).ilog2();
    let (none, row) = (_mm512_set1_epi32(-1), _mm512_set1_epi32(u16::MAX.into()));
    let from = places.as_ptr().cast();
    // SAFETY: four bytes are two of the places of a step.
    let two = unsafe {
        let at = _mm512_slli_epi32::<SHIFT>(steps);
        _mm512_mask_i32gather_epi32::<1>(none, wanted, at, from)
    };
    _mm512_mask_and_epi32(none, wanted, two, row)
}

/// Copies the values at eight places to `to`.
///
/// # Safety
/// The CPU has AVX-512F, BW and VL; there are eight places, below the length of `source`, which is at
/// least eight, and room for eight; `W` is a power of two up to 16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn eight<const W: usize>(source: &[[u8; W]], places: __m128i, to: *mut [u8; W]) {
    let from = source.as_ptr();
    // SAFETY: as the caller promised; eight values are a register or two.
    unsafe {
        match W {
            1 | 2 => {
                // Four bytes are read for each, none behind the end: the last ones are shifted down.
                let places = _mm256_cvtepu16_epi32(places);
                let last = _mm256_set1_epi32((source.len() - 4 / W) as i32);
                let read = _mm256_min_epu32(places, last);
                let shift = _mm256_mullo_epi16(
                    _mm256_sub_epi32(places, read),
                    _mm256_set1_epi32(W as i32 * 8),
                );
                if W == 1 {
                    let four = _mm256_i32gather_epi32::<1>(from.cast(), read);
                    let values = _mm256_cvtepi32_epi8(_mm256_srlv_epi32(four, shift));
                    _mm_storel_epi64(to.cast(), values);
                } else {
                    let four = _mm256_i32gather_epi32::<2>(from.cast(), read);
                    let values = _mm256_cvtepi32_epi16(_mm256_srlv_epi32(four, shift));
                    _mm_storeu_si128(to.cast(), values);
                }
            }
            4 => {
                let values =
                    _mm256_i32gather_epi32::<4>(from.cast(), _mm256_cvtepu16_epi32(places));
                _mm256_storeu_si256(to.cast(), values);
            }
            8 => {
                let values =
                    _mm512_i64gather_epi64::<8>(_mm512_cvtepu16_epi64(places), from.cast());
                _mm512_storeu_si512(to.cast(), values);
            }
            _ => {
                let pairs = [_mm_cvtsi128_si64(places), _mm_extract_epi64::<1>(places)];
                for (k, shift) in (0..8).zip([0, 16, 32, 48].into_iter().cycle()) {
                    let place = (pairs[k / 4] >> shift) as u16;
                    to.add(k).copy_from_nonoverlapping(from.add(place.into()), 1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::super::fixed::gather;
    use super::*;

    #[test]
    fn swept_columns_are_gathered_ones() {
        if Level::detect() < Level::Avx512 {
            return;
        }
        fn check<const W: usize>(sweep: &mut Sweep, places: &[u16], starts: &[usize]) {
            let source: Vec<u8> = (0..W * places.len()).map(|i| (i * 7 % 251) as u8).collect();
            let (source, _) = source.as_chunks::<W>();
            let mut other = source.to_vec();
            other.reverse();
            let [mut one, mut first, mut second] = [(); 3].map(|()| vec![[0; W]; places.len()]);
            let mut expected = one.clone();
            // SAFETY: places are below their number, of which there are as many values; the CPU can.
            unsafe {
                sweep.gather(starts.len() % SWEPT, starts, places, [source], [&mut one]);
                sweep.gather(SWEPT, starts, places, [source, &other], [&mut first, &mut second]);
                gather(source, places, &mut expected);
                assert!(one == expected && first == expected, "{} of {W} bytes", places.len());
                gather(&other, places, &mut expected);
                assert!(second == expected, "{} of {W} bytes", places.len());
            }
        }
        let mut sweep = Sweep::default();
        for rows in [0, 1, 7, 8, 9, 1000, 5123, 12_000, 65_535, 65_536] {
            for partitions in [1, 2, 7, 12, 13, 64, 100, 128, 1000] {
                for skewed in [false, true] {
                    let id = |row: u16| match u32::from(row).wrapping_mul(0x9e37_79b9) >> 16 {
                        hash if skewed && hash % 10 > 0 => partitions / 2,
                        hash => (hash * partitions) >> 16,
                    };
                    let mut places: Vec<u16> = (0..rows).map(|row: u32| row as u16).collect();
                    places.sort_by_key(|&row| id(row));
                    let start = |partition| places.partition_point(|&row| id(row) < partition);
                    let starts: Vec<usize> = (0..=partitions).map(start).collect();
                    sweep.clear(partitions != 2);
                    check::<1>(&mut sweep, &places, &starts);
                    check::<2>(&mut sweep, &places, &starts);
                    check::<4>(&mut sweep, &places, &starts);
                    check::<8>(&mut sweep, &places, &starts);
                    check::<16>(&mut sweep, &places, &starts);
                    // Every step once, however they are ordered.
                    let mut steps = sweep.steps.clone();
                    steps.sort_unstable();
                    assert!(steps.is_empty() || steps.iter().copied().eq(0..(rows / 8) as u16));
                }
            }
        }
    }
}
