//! Several columns and one list of places: lines gathered in the order of the rows that they come from.
//!
//! ```text
//! places    | 1 4 6 9 .. | 0 2 3 8 .. | 5 7 11 ..      eight places: a line of eight-byte values
//! sweep       lines by their first place: 1 0 2
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
//! partitions that a line's rows are from everywhere.
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

/// So many columns are worth the search for places after targets, and for an order of lines.
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

/// The order of steps; keeps its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Sweep {
    steps: Vec<u16>,
}

impl Sweep {
    /// Forgets the order.
    pub(super) fn clear(&mut self) {
        self.steps.clear();
    }

    /// Writes `source[place]` for each of `places` to its out, of one column or two. Places are those of all
    /// calls until the next [`Sweep::clear`], of `partitions` partitions; for the only column, which comes
    /// `once`, lines are not ordered.
    ///
    /// # Safety
    /// The CPU has what [`super::Level::Avx512`] says; places are below the lengths of `sources`; `W` is a
    /// power of two up to 16.
    ///
    /// # Panics
    /// If there are not as many values as places, or there is no room for them.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) unsafe fn gather<const N: usize, const W: usize>(
        &mut self,
        once: bool,
        partitions: usize,
        places: &[u16],
        sources: [&[[u8; W]]; N],
        outs: [&mut [[u8; W]]; N],
    ) {
        let len = places.len();
        assert!(sources.iter().all(|source| source.len() == len));
        assert!(outs.iter().all(|out| out.len() >= len));
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
        if once || len * W <= CACHED || len < LEAST_MEAN * partitions {
            (0..steps).for_each(step);
        } else {
            self.find(places);
            self.steps.iter().for_each(|&at| step(at.into()));
        }
        for row in steps * STEP..len {
            for (source, to) in sources.into_iter().zip(to) {
                // SAFETY: there is room for as many values as places.
                unsafe { *to.add(row) = source[usize::from(places[row])] };
            }
        }
    }

    /// Orders the steps of `places` by the blocks that their first rows are in, unless that is done.
    fn find(&mut self, places: &[u16]) {
        let steps = places.len() / STEP;
        if self.steps.len() == steps {
            return;
        }
        let blocks = places.as_chunks::<STEP>().0.iter().map(|step| usize::from(step[0]) / BLOCK);
        let mut next = [0u16; MOST_BLOCKS];
        blocks.clone().for_each(|block| next[block] += 1);
        let mut sum = 0;
        for next in &mut next[..places.len().div_ceil(BLOCK).min(MOST_BLOCKS)] {
            sum += std::mem::replace(next, sum);
        }
        self.steps.resize(steps, 0);
        for (step, block) in blocks.enumerate() {
            self.steps[usize::from(next[block])] = step as u16;
            next[block] += 1;
        }
    }
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
        fn check<const W: usize>(sweep: &mut Sweep, places: &[u16], partitions: usize) {
            let source: Vec<u8> = (0..W * places.len()).map(|i| (i * 7 % 251) as u8).collect();
            let (source, _) = source.as_chunks::<W>();
            let mut other = source.to_vec();
            other.reverse();
            let [mut one, mut first, mut second] = [(); 3].map(|()| vec![[0; W]; places.len()]);
            let mut expected = one.clone();
            // SAFETY: places are below their number, of which there are as many values; the CPU can.
            unsafe {
                sweep.gather(partitions == 7, partitions, places, [source], [&mut one]);
                sweep.gather(
                    false,
                    partitions,
                    places,
                    [source, &other],
                    [&mut first, &mut second],
                );
                gather(source, places, &mut expected);
                assert!(one == expected && first == expected, "{} of {W} bytes", places.len());
                gather(&other, places, &mut expected);
                assert!(second == expected, "{} of {W} bytes", places.len());
            }
        }
        let mut sweep = Sweep::default();
        for rows in [0, 1, 7, 8, 9, 1000, 5123, 12_000, 65_535, 65_536] {
            for partitions in [2, 7, 100, 1000] {
                let id = |row: u16| u32::from(row).wrapping_mul(0x9e37_79b9) >> 16;
                let mut places: Vec<u16> = (0..rows).map(|row: u32| row as u16).collect();
                places.sort_by_key(|&row| (id(row) * partitions as u32) >> 16);
                sweep.clear();
                check::<1>(&mut sweep, &places, partitions);
                check::<2>(&mut sweep, &places, partitions);
                check::<4>(&mut sweep, &places, partitions);
                check::<8>(&mut sweep, &places, partitions);
                check::<16>(&mut sweep, &places, partitions);
            }
        }
    }
}
