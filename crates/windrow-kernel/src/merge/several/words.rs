//! Words of rows: the bits that distinguish the rows of a block, and the number of their run.
//!
//! ```text
//! row     | the same in all rows | 16 bytes: some bits of them vary | ...
//!                                    x  x xx      x x        x
//! word    | 0 | xxxxxxx | run |        compares as the rows do, and then by run
//! ```
//!
//! The varying bits are first guessed, from a few rows or from the bits of the block before. A row
//! that differs in another bit is a stray: that bit is extracted from then on, and all current
//! words are made again.
//!
//! Invariant: if two rows that were seen sort one way, their words do not sort the other way.

use super::super::bytes::word_at;
use super::super::level::Level;

/// The bits of a row from which its word is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// Offsets of the two source words in a row.
    at: [usize; 2],
    /// Usable bits of both words: the second word may overlap the first.
    valid: [u64; 2],
    mask: [u64; 2],
    /// The two source words of one of the rows, and the bits in which all rows must equal `base`.
    base: [u64; 2],
    alike: [u64; 2],
    /// All bits known to vary.
    varying: [u64; 2],
    /// Number of bits extracted from the second word.
    low: u32,
    /// Bits of a run number.
    shift: u32,
}

/// Varying bits and their offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    at: [usize; 2],
    varying: [u64; 2],
}

/// Returns the word of an exhausted run: greater than the words of all rows, and different from
/// every other word above the run number.
pub(super) fn none(run: usize) -> u64 {
    1 << 63 | (run as u64) << 32 | run as u64
}

impl Words {
    /// Creates words of rows like `row`. The rows agree in their first `at` bytes and have at least
    /// `body` compared bytes, at least 8. A run number takes `shift` bits, at most 6.
    ///
    /// # Safety
    /// `row` points to `body` readable bytes, at least 8.
    pub(super) unsafe fn new(row: *const u8, at: usize, body: usize, shift: u32) -> Self {
        let first = at.min(body - 8);
        let second = (first + 8).min(body - 8);
        let twice = 8 * (first + 8 - second) as u32;
        let valid = [u64::MAX, u64::MAX.checked_shr(twice).unwrap_or(0)];
        let at = [first, second];
        let none = [0; 2];
        let mut words =
            Self { at, valid, mask: none, base: none, alike: none, varying: none, low: 0, shift };
        // SAFETY: the caller provides `body` bytes, and both words end within them.
        words.base = unsafe { words.both(row) };
        words
    }

    /// Returns the varying bits of the rows so far.
    pub(super) fn seen(&self) -> Seen {
        Seen { at: self.at, varying: self.varying }
    }

    /// Adopts the bits that varied in earlier rows. The row of [`Words::new`] is the least row, and
    /// `greatest` the greatest. Returns false if `seen` does not cover the bytes that words are
    /// made of.
    ///
    /// # Safety
    /// `greatest` points to as many bytes as the row of [`Words::new`].
    pub(super) unsafe fn expect(&mut self, seen: Option<Seen>, greatest: *const u8) -> bool {
        // SAFETY: the caller provides as many bytes as in `new`.
        unsafe { self.see(greatest) };
        let Some(seen) = seen.filter(|seen| seen.at == self.at) else { return false };
        // SAFETY: the caller provides as many bytes as in `new`.
        let ends = unsafe { self.both(greatest) };
        let mut apart = false;
        for (index, end) in ends.into_iter().enumerate() {
            // Above the first difference of the least and the greatest row, all rows agree.
            let alike = if apart { 0 } else { (end ^ self.base[index]).leading_zeros() };
            let below = u64::MAX.checked_shr(alike).unwrap_or(0);
            self.varying[index] |= seen.varying[index] & below & self.valid[index];
            apart |= end != self.base[index];
        }
        true
    }

    /// # Safety
    /// `row` points to as many bytes as the row of [`Words::new`].
    #[inline(always)]
    unsafe fn both(&self, row: *const u8) -> [u64; 2] {
        // SAFETY: the caller provides as many bytes as in `new`, and both words end within them.
        unsafe { [word_at(row, self.at[0]), word_at(row, self.at[1])] }
    }

    /// Returns the word of a row of run number `run`, and the bits in which it strays.
    ///
    /// # Safety
    /// `row` points to as many bytes as the row of [`Words::new`], and the CPU has the level's
    /// instructions.
    #[inline(always)]
    pub(super) unsafe fn of<L: Level>(&self, row: *const u8, run: usize) -> (u64, u64) {
        // SAFETY: the caller provides as many bytes as in `new`, and a CPU of the level.
        unsafe {
            let [x, y] = self.both(row);
            let bits = L::extract(x, self.mask[0]) << self.low | L::extract(y, self.mask[1]);
            let stray = (x ^ self.base[0]) & self.alike[0] | (y ^ self.base[1]) & self.alike[1];
            (bits << self.shift | run as u64, stray)
        }
    }

    /// Adds the bits in which a row differs from the others.
    ///
    /// # Safety
    /// `row` points to as many bytes as the row of [`Words::new`].
    pub(super) unsafe fn see(&mut self, row: *const u8) {
        // SAFETY: the caller provides as many bytes as in `new`.
        let words = unsafe { self.both(row) };
        for (index, word) in words.into_iter().enumerate() {
            self.varying[index] |= (word ^ self.base[index]) & self.valid[index];
        }
    }

    /// Chooses the most significant varying bits, as many as fit.
    pub(super) fn choose(&mut self) {
        // The highest bit marks exhausted runs.
        let mut left = u64::BITS - 1 - self.shift;
        for index in 0..2 {
            let mut mask = self.varying[index];
            while mask.count_ones() > left {
                mask &= mask - 1;
            }
            left -= mask.count_ones();
            self.mask[index] = mask;
            // Bits below the last extracted bit do not matter.
            let from = if left > 0 { 0 } else { mask.trailing_zeros() };
            let above = u64::MAX.checked_shl(from).unwrap_or(0);
            self.alike[index] = self.valid[index] & !mask & above;
        }
        self.low = self.mask[1].count_ones();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::level::Plain;
    use super::*;

    proptest! {
        #[test]
        fn words_sort_as_rows_do_until_one_strays(
            mut rows in prop::collection::vec(prop::collection::vec(0u8..4, 24), 2..60),
            body in 8usize..24,
            seen in 1usize..4,
            spread in 0u32..7,
            shift in 0u32..7,
        ) {
            for row in &mut rows {
                row.iter_mut().step_by(3).for_each(|byte| *byte <<= spread);
            }
            rows.sort();
            let (first, last) = (&rows[0][..body], &rows[rows.len() - 1][..body]);
            let at = first.iter().zip(last).take_while(|(a, b)| a == b).count();
            // SAFETY: all rows have `body` bytes.
            unsafe {
                let mut words = Words::new(rows[0].as_ptr(), at, body, shift);
                rows.iter().take(seen).for_each(|row| words.see(row.as_ptr()));
                words.choose();
                for row in &rows {
                    if words.of::<Plain>(row.as_ptr(), 0).1 != 0 {
                        words.see(row.as_ptr());
                        words.choose();
                        prop_assert_eq!(words.of::<Plain>(row.as_ptr(), 0).1, 0);
                    }
                }
                for pair in rows.windows(2) {
                    let [a, b] = [0, 1].map(|at| words.of::<Plain>(pair[at].as_ptr(), 0));
                    prop_assert_eq!((a.1, b.1), (0, 0));
                    prop_assert!(a.0 <= b.0 && b.0 < none(0));
                    prop_assert!(pair[0][..body] != pair[1][..body] || a.0 == b.0);
                }
            }
        }
    }
}
