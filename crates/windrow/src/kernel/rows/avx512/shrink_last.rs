//! The last two columns of rows of which some take a byte more, behind others.
//!
//! ```text
//! cursor   v                                v end
//!          | aaaaaaaa | 11111111 0 |        a and b: the eight bytes in front of the end are all that is to be known of b,
//!                                           longer or not, and how long the row is says which
//! ```

use std::arch::x86_64::*;

use super::GROUP;
use super::shrink::Block;

impl Block {
    /// Whether it is read by [`Block::take_last`], where it is the last of several.
    pub(super) fn is_last_two(&self) -> bool {
        self.turned && self.columns.start > 0 && self.columns.len() == 2
    }

    /// Reads eight rows whose last codes begin at the `cursors`, and that end at `ends`, which are rows `row` to `row + 8` of
    /// the targets and group `group` of a word of rows. Returns whether one of them is wrong.
    ///
    /// Benefit: 84 us for ten columns in place of 95 with the last two as four are read.
    ///
    /// # Safety
    /// The CPU has the features of `shrink`; `bytes` may be read for 18 bytes behind each cursor; `targets`, one for each
    /// column, have room for the rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
    pub(super) unsafe fn take_last<const SUMS: bool>(
        &mut self,
        bytes: *const u8,
        group: usize,
        targets: &[*mut u64],
        row: usize,
        cursors: __m512i,
        ends: __m512i,
    ) -> bool {
        let one = _mm512_set1_epi64(1);
        // How many of the two are longer; none is read beyond.
        let more = _mm512_sub_epi64(_mm512_sub_epi64(ends, cursors), _mm512_set1_epi64(16));
        let mut fits = _mm512_cmple_epu64_mask(more, _mm512_set1_epi64(2));
        let more = _mm512_maskz_mov_epi64(fits, more);
        let (mut places, mut behind) = ([0usize; GROUP], [0usize; GROUP]);
        // SAFETY: the arrays have 64 bytes; what is read begins at most ten bytes behind a cursor.
        let (first, first_behind, edge, second) = unsafe {
            _mm512_storeu_si512(places.as_mut_ptr().cast(), cursors);
            _mm512_storeu_si512(behind.as_mut_ptr().cast(), _mm512_add_epi64(cursors, more));
            (
                words_at!(|row: usize| bytes.add(places[row])),
                words_at!(|row: usize| bytes.add(places[row] + 1)),
                words_at!(|row: usize| bytes.add(behind[row] + 7)),
                words_at!(|row: usize| bytes.add(behind[row] + 8)),
            )
        };
        let (back, back_too) = (self.back(0), self.back(1));
        let is_longer = _mm512_mask_cmpeq_epi64_mask(back.escapes, first, self.edge);
        let left = _mm512_mask_sub_epi64(more, is_longer, more, one);
        let too_is_longer = _mm512_cmpeq_epi64_mask(left, one);
        fits &= _mm512_cmple_epu64_mask(left, one);
        fits &= !too_is_longer | _mm512_mask_cmpeq_epi64_mask(back_too.escapes, edge, self.edge);
        fits &= too_is_longer | !_mm512_mask_cmpeq_epi64_mask(back_too.escapes, second, self.edge);
        let turn = _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
        let turn = _mm512_broadcast_i32x4(turn);
        let first = _mm512_mask_mov_epi64(first, is_longer, first_behind);
        let mut wrong = _mm512_setzero_si512();
        let first = _mm512_shuffle_epi8(first, turn);
        let (value, nulls) = back.values::<SUMS>(first, is_longer, &mut wrong);
        let second = _mm512_shuffle_epi8(second, turn);
        let (value_too, nulls_too) = back_too.values::<SUMS>(second, too_is_longer, &mut wrong);
        // SAFETY: as this function's.
        unsafe {
            _mm512_storeu_si512(targets[self.columns.start].add(row).cast(), value);
            _mm512_storeu_si512(targets[self.columns.start + 1].add(row).cast(), value_too);
        }
        self.nulls[group] = u64::from(nulls) | u64::from(nulls_too) << GROUP;
        fits != 0xff || _mm512_test_epi64_mask(wrong, wrong) != 0
    }
}
