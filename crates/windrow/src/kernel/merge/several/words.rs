//! Words of rows: the bits that tell the rows of a block apart, and the number of their run.
//!
//! ```text
//! row     | the same in all rows | 16 bytes: some bits of them vary | ...
//!                                    x  x xx      x x        x
//! word    | 0 | xxxxxxx | run |        compares as the rows do, and then by run
//! ```
//!
//! Which bits vary is first guessed, from a few rows or those of the block before. A row that differs in another
//! bit is a stray: that bit is taken from then on, and all words that are around are made again.
//!
//! Invariant: if two rows that were seen sort one way, their words do not sort the other way.

use super::super::bytes::word_at;
use super::super::level::Level;

/// The bits that words are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// Where the two words of a row stand that bits are taken from.
    at: [usize; 2],
    /// Bits of these that may be taken: the second may overlap the first.
    valid: [u64; 2],
    mask: [u64; 2],
    /// Words of one of the rows, and the bits in which all have to be like it.
    base: [u64; 2],
    alike: [u64; 2],
    /// All bits that are known to vary.
    varying: [u64; 2],
    /// Bits that are taken from the second word.
    low: u32,
    /// Bits of the number of a run.
    shift: u32,
}

/// Bits that vary, and where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    at: [usize; 2],
    varying: [u64; 2],
}

/// The word of a run that is used up: greater than those of all rows, and like none.
pub(super) fn none(run: usize) -> u64 {
    1 << 63 | (run as u64) << 32 | run as u64
}

impl Words {
    /// Words of rows like `row` that agree in their first `at` bytes and have `body` bytes or more that are
    /// compared, at least 8, with room for a number of `shift` bits, 6 at the most.
    ///
    /// # Safety
    /// `row` points to `body` bytes.
    pub(super) unsafe fn new(row: *const u8, at: usize, body: usize, shift: u32) -> Self {
        let first = at.min(body - 8);
        let second = (first + 8).min(body - 8);
        let twice = 8 * (first + 8 - second) as u32;
        let valid = [u64::MAX, u64::MAX.checked_shr(twice).unwrap_or(0)];
        let at = [first, second];
        let none = [0; 2];
        let mut words =
            Self { at, valid, mask: none, base: none, alike: none, varying: none, low: 0, shift };
        // SAFETY: as the function's.
        words.base = unsafe { words.both(row) };
        words
    }

    /// The bits that vary in the rows so far.
    pub(super) fn seen(&self) -> Seen {
        Seen { at: self.at, varying: self.varying }
    }

    /// Takes what was seen of rows before to vary in these, too, of which the first one is the least and
    /// `greatest` the greatest. False if nothing is known of the bytes that words are made of.
    ///
    /// # Safety
    /// As [`Words::new`]'s.
    pub(super) unsafe fn expect(&mut self, seen: Option<Seen>, greatest: *const u8) -> bool {
        // SAFETY: as the function's.
        unsafe { self.see(greatest) };
        let Some(seen) = seen.filter(|seen| seen.at == self.at) else { return false };
        // SAFETY: as the function's.
        let ends = unsafe { self.both(greatest) };
        let mut apart = false;
        for (index, end) in ends.into_iter().enumerate() {
            // Above the first bit in which the ends differ all rows are like them.
            let alike = if apart { 0 } else { (end ^ self.base[index]).leading_zeros() };
            let below = u64::MAX.checked_shr(alike).unwrap_or(0);
            self.varying[index] |= seen.varying[index] & below & self.valid[index];
            apart |= end != self.base[index];
        }
        true
    }

    /// # Safety
    /// `row` points to as many bytes as [`Words::new`] was told.
    #[inline(always)]
    unsafe fn both(&self, row: *const u8) -> [u64; 2] {
        // SAFETY: as the function's.
        unsafe { [word_at(row, self.at[0]), word_at(row, self.at[1])] }
    }

    /// The word of a row of run number `run`, and bits in which it strays.
    ///
    /// # Safety
    /// As [`Words::new`]'s, and the CPU has the level's instructions.
    #[inline(always)]
    pub(super) unsafe fn of<L: Level>(&self, row: *const u8, run: usize) -> (u64, u64) {
        // SAFETY: as the function's.
        unsafe {
            let [x, y] = self.both(row);
            let bits = L::extract(x, self.mask[0]) << self.low | L::extract(y, self.mask[1]);
            let stray = (x ^ self.base[0]) & self.alike[0] | (y ^ self.base[1]) & self.alike[1];
            (bits << self.shift | run as u64, stray)
        }
    }

    /// Notes the bits in which a row is unlike the others.
    ///
    /// # Safety
    /// As [`Words::new`]'s.
    pub(super) unsafe fn see(&mut self, row: *const u8) {
        // SAFETY: as the function's.
        let words = unsafe { self.both(row) };
        for (index, word) in words.into_iter().enumerate() {
            self.varying[index] |= (word ^ self.base[index]) & self.valid[index];
        }
    }

    /// Takes the most significant bits that vary, as many as there is room for.
    pub(super) fn choose(&mut self) {
        // The highest bit is for runs that are used up.
        let mut left = u64::BITS - 1 - self.shift;
        for index in 0..2 {
            let mut mask = self.varying[index];
            while mask.count_ones() > left {
                mask &= mask - 1;
            }
            left -= mask.count_ones();
            self.mask[index] = mask;
            // Bits below the last one there was room for do not matter.
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
            // SAFETY: rows of `body` bytes.
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
