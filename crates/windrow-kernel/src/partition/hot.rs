//! One partition with most of the rows: targets from masks of its rows and a list of all other
//! rows.
//!
//! ```text
//! ids       7 7 2 7 7 7 0 7
//! mask      1 1 0 1 1 1 0 1      rows of 7
//! others        2       6        all other rows: counted, and moved by cursors
//! targets   2 3 1 4 5 6 0 7      the start of 7, plus its rows so far
//! ```
//!
//! Benefit: the cursor of such a partition waits for the store of the row before; masks make no row
//! wait and take half the time. The portable twin is a count and then cursors, see `cursors`.

use std::arch::x86_64::*;

use super::masks::RANKS;

/// Rows of a mask.
const LANES: usize = 32;
/// Rows that two bytes can number.
pub(super) const MOST: usize = 1 << 16;

/// The rows of the hot partition, and the targets of all rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Hot {
    /// A bit for each row of the hot partition, [`LANES`] rows a mask.
    masks: Vec<u32>,
    /// The other rows.
    others: Vec<u16>,
    /// Target of the first row of the hot partition.
    start: u16,
    /// Target of the first row of each partition.
    starts: Vec<u16>,
    /// Target of the next row of each partition.
    moving: Vec<u16>,
}

impl Hot {
    /// Counts `ids`, most of which are `hot`, and writes the ends of partitions to `ends`. Returns
    /// false if an id is not below the number of partitions; nothing was counted then.
    ///
    /// # Safety
    /// The CPU has the instructions of [`super::Level::Avx512`].
    ///
    /// # Panics
    /// If there are more than 65,536 ids.
    pub(super) unsafe fn count(&mut self, hot: u32, ids: &[u32], ends: &mut [u32]) -> bool {
        assert!(ids.len() <= MOST);
        // SAFETY: the caller promises the level, and the assertion allows at most 65,536 ids.
        let most = unsafe { self.tell_apart(hot, ids) };
        if most.max(hot) as usize >= ends.len() {
            return false;
        }
        ends.fill(0);
        for &row in &self.others {
            ends[ids[usize::from(row)] as usize] += 1;
        }
        ends[hot as usize] = (ids.len() - self.others.len()) as u32;
        self.starts.clear();
        let mut sum = 0;
        for end in ends {
            self.starts.push(sum as u16);
            sum += *end;
            *end = sum;
        }
        self.start = self.starts[hot as usize];
        true
    }

    /// Writes the target of each row to `targets`, each number below the rows once, if `ids` are
    /// the counted ids.
    ///
    /// # Safety
    /// The CPU has the instructions of [`super::Level::Avx512`].
    ///
    /// # Panics
    /// If the numbers of ids or targets differ from the counted number.
    pub(super) unsafe fn targets(&mut self, ids: &[u32], targets: &mut [u16]) {
        assert_eq!(ids.len(), targets.len());
        assert_eq!(self.masks.len(), targets.len().div_ceil(LANES));
        // SAFETY: the caller promises the level, and there is a mask for each 32 targets, as
        // asserted.
        unsafe { self.number(targets) };
        self.moving.clone_from(&self.starts);
        for &row in &self.others {
            let next = &mut self.moving[ids[usize::from(row)] as usize];
            targets[usize::from(row)] = *next;
            *next = next.wrapping_add(1);
        }
    }

    /// Finds the masks and the other rows. Returns the greatest id.
    ///
    /// # Safety
    /// The CPU has the instructions of [`super::Level::Avx512`]. There are at most 65,536 ids.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    unsafe fn tell_apart(&mut self, hot: u32, ids: &[u32]) -> u32 {
        self.masks.clear();
        self.others.clear();
        self.others.reserve(ids.len() + LANES);
        let hot = _mm512_set1_epi32(hot.cast_signed());
        // SAFETY: `RANKS` has 64 bytes, of which 32 are read.
        let ranks = unsafe { _mm256_loadu_si256(RANKS.as_ptr().cast()) };
        let ranks = _mm512_cvtepu8_epi16(ranks);
        let mut most = _mm512_setzero_si512();
        for (index, block) in ids.chunks(LANES).enumerate() {
            let own = u32::MAX >> (LANES - block.len());
            // SAFETY: the masks limit the loads to the ids of the block. `others` has capacity for
            // all rows and a register more.
            unsafe {
                let low = _mm512_maskz_loadu_epi32(own as u16, block.as_ptr().cast());
                let high = block.as_ptr().wrapping_add(LANES / 2).cast();
                let high = _mm512_maskz_loadu_epi32((own >> 16) as u16, high);
                most = _mm512_max_epu32(most, _mm512_max_epu32(low, high));
                let mask = u32::from(_mm512_cmpeq_epi32_mask(low, hot))
                    | u32::from(_mm512_cmpeq_epi32_mask(high, hot)) << 16;
                let others = own & !mask;
                self.masks.push(own & mask);
                let rows = _mm512_add_epi16(ranks, _mm512_set1_epi16((index * LANES) as i16));
                let rows = _mm512_maskz_compress_epi16(others, rows);
                let len = self.others.len();
                _mm512_storeu_si512(self.others.as_mut_ptr().add(len).cast(), rows);
                self.others.set_len(len + others.count_ones() as usize);
            }
        }
        _mm512_reduce_max_epu32(most)
    }

    /// Writes consecutive numbers from the partition's start to the targets of the rows in the
    /// masks. Targets of other rows get values to be overwritten.
    ///
    /// # Safety
    /// The CPU has the instructions of [`super::Level::Avx512`]. There is a mask for each 32
    /// targets.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    unsafe fn number(&self, targets: &mut [u16]) {
        let mut next = self.start;
        // SAFETY: `RANKS` has 64 bytes, of which 32 are read.
        let ranks = unsafe { _mm256_loadu_si256(RANKS.as_ptr().cast()) };
        let ranks = _mm512_cvtepu8_epi16(ranks);
        for (&mask, block) in self.masks.iter().zip(targets.chunks_mut(LANES)) {
            let own = u32::MAX >> (LANES - block.len());
            let v = _mm512_maskz_expand_epi16(mask, ranks);
            let v = _mm512_add_epi16(v, _mm512_set1_epi16(next.cast_signed()));
            // SAFETY: the mask limits the store to the targets of the block.
            unsafe { _mm512_mask_storeu_epi16(block.as_mut_ptr().cast(), own, v) };
            next = next.wrapping_add(mask.count_ones() as u16);
        }
    }
}
