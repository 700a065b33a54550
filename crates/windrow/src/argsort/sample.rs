//! A guess at what the numbers of a large record batch are, made of a few of them.
//!
//! ```text
//! spread    | .  . .   .  .    . . .   .  .  .|      all bits tell: no pass to find out how many
//! window    |       ......:.:.....        .   |      most are here: a few bits tell these apart, and
//!                   least       top                  the others are sorted by themselves
//! ```

use super::key::Key;
use super::plan::Rows;

/// A few numbers of a large record batch, in order; under nulls there may be any.
pub(super) struct Sample([u64; Sample::SIZE]);

impl Sample {
    const SIZE: usize = 64;
    /// Record batches that are large enough for a guess to pay.
    const LEAST_ROWS: usize = 1024;
    /// Numbers of the sample that a window has to hold.
    const MOST: usize = 48;

    pub(super) fn of<R: Rows>(key: &Key, rows: &R) -> Option<Self> {
        // Not within groups: what a window leaves out might be nearly all of them, time and again.
        if rows.len() < Self::LEAST_ROWS || rows.first().is_none() {
            return None;
        }
        let (values, code) = key.numbers()?;
        let step = rows.len() / Self::SIZE;
        let number = |index: usize| code.code(u64::from_ne_bytes(values[rows.get(index * step)]));
        let mut sample: [u64; Self::SIZE] = std::array::from_fn(number);
        sample.sort_unstable();
        Some(Self(sample))
    }

    /// Bits that the numbers need at the least.
    pub(super) fn bits(&self) -> u32 {
        let [first, .., last] = self.0;
        u64::BITS - (last - first).leading_zeros()
    }

    /// True if no part of the numbers is much denser than the whole, which begins about at 0.
    pub(super) fn is_spread(&self) -> bool {
        let (narrow, _) = self.narrowest();
        self.bits() == u64::BITS && narrow >> (u64::BITS - 4) > 0
    }

    /// The least difference between numbers of which most of the sample are, and the first of them.
    fn narrowest(&self) -> (u64, u64) {
        let starts = 0..=Self::SIZE - Self::MOST;
        let spans = starts.map(|at| (self.0[at + Self::MOST - 1] - self.0[at], self.0[at]));
        spans.min().unwrap_or((u64::MAX, 0))
    }

    /// Where most numbers are, if that takes up to `room` bits and all of them take more: the least
    /// of them, and the code of what is above.
    pub(super) fn window(&self, room: u32) -> Option<(u64, u64)> {
        let (span, first) = self.narrowest();
        // Somewhat more on both sides, for what the sample has missed.
        let (least, span) = (first.saturating_sub(span / 8).max(1), span + span / 4);
        let top = span.checked_add(2)?;
        let bits = u64::BITS - top.leading_zeros();
        (bits <= room && self.bits() > room).then_some((least, top))
    }
}
