//! Samples: the distribution of a large record batch's numbers, estimated from a few rows.
//!
//! ```text
//! spread    | .  . .   .  .    . . .   .  .  .|      all bits distinguish: no counting pass
//! window    |       ......:.:.....        .   |      most values are here: a few bits distinguish
//!                   least       top                  them, and the rest is sorted separately
//! ```

use super::key::Key;
use super::rows::Rows;

/// A few numbers of a large record batch, sorted. Numbers of nulls are arbitrary.
pub(super) struct Sample([u64; Sample::SIZE]);

impl Sample {
    const SIZE: usize = 64;
    /// Minimum number of rows for a sample to pay.
    const LEAST_ROWS: usize = 1024;
    /// Minimum number of the sample's values in a window.
    const MOST: usize = 48;

    pub(super) fn of<R: Rows>(key: &Key, rows: &R) -> Option<Self> {
        // Not for selected rows: a window might leave out nearly all of them, time and again.
        if rows.len() < Self::LEAST_ROWS || !R::ALL {
            return None;
        }
        let (values, code) = key.numbers()?;
        let step = rows.len() / Self::SIZE;
        let number = |index: usize| code.code(u64::from_ne_bytes(values[rows.get(index * step)]));
        let mut sample: [u64; Self::SIZE] = std::array::from_fn(number);
        sample.sort_unstable();
        Some(Self(sample))
    }

    /// Counts the bits that the numbers need at least.
    pub(super) fn bits(&self) -> u32 {
        let [first, .., last] = self.0;
        u64::BITS - (last - first).leading_zeros()
    }

    /// Returns true if no part of the numbers is much denser than the whole, and the range is
    /// nearly all 64 bits.
    pub(super) fn is_spread(&self) -> bool {
        let (narrow, _) = self.narrowest();
        self.bits() == u64::BITS && narrow >> (u64::BITS - 4) > 0
    }

    /// Returns the least span that contains most of the sample, and its first number.
    fn narrowest(&self) -> (u64, u64) {
        let starts = 0..=Self::SIZE - Self::MOST;
        let spans = starts.map(|at| (self.0[at + Self::MOST - 1] - self.0[at], self.0[at]));
        spans.min().unwrap_or((u64::MAX, 0))
    }

    /// Returns a window around most numbers, if its codes need at most `room` bits and all numbers
    /// need more: the least number in the window, and the code above the window.
    pub(super) fn window(&self, room: u32) -> Option<(u64, u64)> {
        let (span, first) = self.narrowest();
        // Widens the window on both sides, for numbers that the sample missed.
        let (least, span) = (first.saturating_sub(span / 8).max(1), span + span / 4);
        let top = span.checked_add(2)?;
        let bits = u64::BITS - top.leading_zeros();
        (bits <= room && self.bits() > room).then_some((least, top))
    }
}
