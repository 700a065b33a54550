//! A key that is looked up among sorted rows, by the word in which they differ first.
//!
//! ```text
//! shared by all rows   | word: 8 bytes   | the rest
//! row                  | http://e        | xample.org/pear ...          the words decide, mostly
//! key                  | http://e        | xample.org/plum              where they are equal, all bytes do
//! ```
//! A word is a number that compares as its bytes do, with zeros behind the end of what is shorter. Rows are found by a
//! guess where the word stands between others, and by steps from there that double: as few as two rows are read where
//! keys are spread evenly, and twice a binary search's at the worst.
//!
//! Invariant: of two rows, the one with the smaller word comes first.

use std::ops::Range;

use super::view::View;

/// The eight bytes of `bytes` from `at` on, as a number; zeros are behind their end.
#[inline(always)]
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(word) => u64::from_be_bytes(*word),
        None => padded(rest),
    }
}

fn padded(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

/// A key as it is looked for among rows that share their first bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought<'a> {
    key: &'a [u8],
    /// Where words stand.
    at: usize,
    /// The least word of a row with the key.
    low: u64,
    /// The greatest.
    high: u64,
    /// Equal words do not tell equal keys.
    inexact: bool,
}

impl<'a> Sought<'a> {
    /// `key` among rows that begin with `shared`.
    #[inline(always)]
    pub(crate) fn new(key: &'a [u8], shared: &[u8]) -> Self {
        let at = shared.len();
        if at > 0 && !key.starts_with(shared) {
            // It stands before all rows, or behind them.
            let low = if key < shared { 0 } else { u64::MAX };
            return Self { key, at, low, high: u64::MAX, inexact: true };
        }
        let low = word_at(key, at);
        let behind = (key.len() - at).min(8) as u32;
        let high = low | u64::MAX.checked_shr(8 * behind).unwrap_or(0);
        Self { key, at, low, high, inexact: key.len() > at + 8 }
    }

    /// What is looked for.
    pub(crate) fn key(&self) -> &'a [u8] {
        self.key
    }

    /// The least word of a row with the key.
    #[inline(always)]
    pub(crate) fn word(&self) -> u64 {
        self.low
    }

    /// True if rows with this word stand behind all with the key.
    #[inline(always)]
    pub(crate) fn ends_before(&self, word: u64) -> bool {
        word > self.high
    }

    /// True if the rows with equal words have to be compared in full.
    #[inline(always)]
    pub(crate) fn is_inexact(&self) -> bool {
        self.inexact
    }

    /// True if `row`, which has `word`, stands before all with the key.
    #[inline(always)]
    pub(crate) fn is_behind<'r>(&self, word: u64, row: impl FnOnce() -> &'r [u8]) -> bool {
        word < self.low || self.inexact && word == self.low && row() < self.key
    }

    #[inline(always)]
    fn is_behind_row(&self, rows: View<'_>, index: usize) -> bool {
        self.is_behind(rows.word(index, self.at), || rows.row(index))
    }

    /// True if row `index` has the key.
    #[inline(always)]
    pub(crate) fn is(&self, rows: View<'_>, index: usize) -> bool {
        let word = rows.word(index, self.at);
        word >= self.low
            && word <= self.high
            && (!self.inexact || rows.row(index).starts_with(self.key))
    }

    /// A place near which the key is, told by the row at `guess`, if the words of `rows` ascend evenly from `first` to
    /// `last`.
    #[inline]
    pub(crate) fn closer(&self, rows: View<'_>, guess: usize, [first, last]: [u64; 2]) -> usize {
        let (word, greatest) = (rows.word(guess, self.at), rows.len() - 1);
        let a_word = greatest as f64 / (last.wrapping_sub(first) as f64).max(1.0);
        let off = (self.low.abs_diff(word) as f64 * a_word) as usize;
        match word < self.low {
            true => guess.saturating_add(off).min(greatest),
            false => guess.saturating_sub(off),
        }
    }

    /// The first of `rows` that does not stand before the key, looked for from `guess` on, both ways; their number if all
    /// do.
    #[inline]
    pub(crate) fn find(&self, rows: View<'_>, guess: usize) -> usize {
        let below = |index| self.is_behind_row(rows, index);
        if below(guess) {
            return self.find_ahead(rows, guess + 1);
        }
        let (mut high, mut step) = (guess, 1);
        while step <= high && !below(high - step) {
            high -= step;
            step *= 2;
        }
        self.bisect(rows, (high + 1).saturating_sub(step)..high)
    }

    /// As [`Sought::find`], where all rows before `from` stand before the key.
    #[inline]
    pub(crate) fn find_ahead(&self, rows: View<'_>, from: usize) -> usize {
        let (len, mut low, mut step) = (rows.len(), from, 1);
        let below = |index| self.is_behind_row(rows, index);
        while low + step <= len && below(low + step - 1) {
            low += step;
            step *= 2;
        }
        self.bisect(rows, low..(low + step - 1).min(len))
    }

    /// The first row of `range` that does not stand before the key; its end if all do.
    #[inline]
    fn bisect(&self, rows: View<'_>, range: Range<usize>) -> usize {
        let Range { start: mut low, end: mut high } = range;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.is_behind_row(rows, middle) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// Where a word stands among `count` rows whose words ascend evenly from `first` to `last`.
#[inline(always)]
pub(crate) fn between(word: u64, [first, last]: [u64; 2], count: usize) -> usize {
    if word <= first {
        return 0;
    }
    if word >= last {
        return count - 1;
    }
    ((word - first) as f64 / (last - first) as f64 * (count - 1) as f64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::view::Starts;
    use super::*;

    proptest! {
        #[test]
        fn the_first_row_that_is_not_less(
            mut rows in prop::collection::vec(prop::collection::vec(0u8..3, 0..12), 1..40),
            shared in prop::collection::vec(1u8..3, 0..4),
            key in prop::collection::vec(0u8..4, 0..12),
            guess in any::<prop::sample::Index>(),
            within: bool,
        ) {
            rows.iter_mut().for_each(|row| *row = [&shared[..], row, &[0; 8]].concat());
            rows.sort();
            let key = if within { [&shared[..], &key].concat() } else { key };
            let (mut bytes, mut starts) = (Vec::new(), vec![0]);
            for row in &rows {
                bytes.extend_from_slice(row);
                starts.push(bytes.len() as u32);
            }
            let view = View { bytes: &bytes, starts: Starts::At(&starts) };
            let sought = Sought::new(&key, &shared);
            let guess = guess.index(rows.len());
            let words = [word_at(&rows[0], shared.len()), word_at(&rows[rows.len() - 1], shared.len())];
            let at = sought.find(view, guess);
            prop_assert_eq!(at, rows.partition_point(|row| row < &key));
            prop_assert_eq!(sought.find(view, sought.closer(view, guess, words)), at);
            prop_assert_eq!(sought.find(view, between(sought.word(), words, rows.len())), at);
            for (index, row) in rows.iter().enumerate() {
                let has = row.starts_with(&key);
                prop_assert_eq!(sought.is(view, index), has);
                prop_assert!(!has || !sought.ends_before(word_at(row, shared.len())));
            }
        }
    }
}
