//! A probe key among sorted rows, compared by the first word in which the rows differ.
//!
//! ```text
//! shared by all rows   | word: 8 bytes   | the rest
//! row                  | http://e        | xample.org/pear ...      mostly, the words decide;
//! key                  | http://e        | xample.org/plum          of equal words, all bytes
//! ```
//! A word is a big-endian number, so it compares as its bytes do; shorter rows are padded with
//! zeros. A search interpolates the word's position, then moves in doubling steps (galloping).
//! Evenly spread keys cost as few as two row reads; the worst case costs twice a binary search.
//!
//! Invariant: a row with a smaller word sorts first.

use std::ops::Range;

use super::search::{bisect, gallop};
use super::view::{Starts, View};

/// Bytes of rows that a close search reads first, and bounds on their number: a few cache lines.
const AROUND: usize = 256;
const LEAST_AROUND: usize = 4;
const MOST_AROUND: usize = 8;

/// Returns the eight bytes of `bytes` from `at` on as a number, padded with zeros.
#[inline(always)]
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(word) => u64::from_be_bytes(*word),
        None => padded(rest),
    }
}

/// Returns true if `row` starts with `prefix`; for most keys two words decide.
#[inline]
pub(crate) fn begins(row: &[u8], prefix: &[u8]) -> bool {
    match row.get(..prefix.len()) {
        Some(start) => match prefix.len() {
            4..8 => has_ends::<4>(start, prefix),
            8..=16 => has_ends::<8>(start, prefix),
            _ => start == prefix,
        },
        None => false,
    }
}

#[inline]
fn has_ends<const N: usize>(a: &[u8], b: &[u8]) -> bool {
    a.first_chunk::<N>() == b.first_chunk() && a.last_chunk::<N>() == b.last_chunk()
}

fn padded(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

/// A probe key among rows with a common prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought<'a> {
    /// The key.
    pub(crate) key: &'a [u8],
    /// Offset of the word in a row.
    at: usize,
    /// The least word of a row with the key.
    pub(crate) low: u64,
    /// The greatest word of a row with the key.
    high: u64,
    /// Whether rows with equal words may have different keys.
    pub(crate) inexact: bool,
}

impl<'a> Sought<'a> {
    /// Prepares `key` for rows that start with `shared`.
    #[inline(always)]
    pub(crate) fn new(key: &'a [u8], shared: &[u8]) -> Self {
        let at = shared.len();
        if at > 0 && !key.starts_with(shared) {
            // The key sorts before or after all rows.
            let low = if key < shared { 0 } else { u64::MAX };
            return Self { key, at, low, high: u64::MAX, inexact: true };
        }
        let low = word_at(key, at);
        let behind = (key.len() - at).min(8) as u32;
        let high = low | u64::MAX.checked_shr(8 * behind).unwrap_or(0);
        Self { key, at, low, high, inexact: key.len() > at + 8 }
    }

    /// Returns true if rows with this word sort after all rows with the key.
    #[inline(always)]
    pub(crate) fn ends_before(&self, word: u64) -> bool {
        word > self.high
    }

    /// Returns true if `row`, which has `word`, sorts before all rows with the key.
    #[inline(always)]
    pub(crate) fn is_behind<'r>(&self, word: u64, row: impl FnOnce() -> &'r [u8]) -> bool {
        word < self.low || self.inexact && word == self.low && row() < self.key
    }

    #[inline(always)]
    fn is_behind_row(&self, rows: View<'_>, index: usize) -> bool {
        self.is_behind(rows.word(index, self.at), || rows.row(index))
    }

    /// Returns true if row `index` has the key.
    #[inline(always)]
    pub(crate) fn is(&self, rows: View<'_>, index: usize) -> bool {
        let word = rows.word(index, self.at);
        word >= self.low
            && word <= self.high
            && (!self.inexact || rows.row(index).starts_with(self.key))
    }

    /// Interpolates the key's position from the row at `guess`, if the words of `rows` ascend
    /// evenly from `first` to `last`.
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

    /// Returns the first of `rows` that does not sort before the key, or the number of rows.
    /// Searches both ways from `guess`.
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
        bisect((high + 1).saturating_sub(step)..high, below)
    }

    /// Returns the rows that [`Sought::find_close`] reads first around `guess`.
    #[inline(always)]
    pub(crate) fn around(rows: View<'_>, guess: usize) -> Range<usize> {
        let count = match rows.starts {
            Starts::Every(stride) => (AROUND / stride).clamp(LEAST_AROUND, MOST_AROUND),
            Starts::At(_) => 1,
        };
        let first = guess.saturating_sub(count / 2).min(rows.len().saturating_sub(count));
        first..rows.len().min(first + count)
    }

    /// Does the same as [`Sought::find`] if the key is probably within a few rows of `guess`: counts
    /// the lesser ones of these rows, without a branch that depends on them.
    #[inline]
    pub(crate) fn find_close(&self, rows: View<'_>, guess: usize) -> usize {
        let Starts::Every(stride) = rows.starts else { return self.find(rows, guess) };
        let Range { start, end } = Self::around(rows, guess);
        let words = rows.span(start..end).chunks_exact(stride).map(|row| word_at(row, self.at));
        let at = start + words.map(|word| usize::from(word < self.low)).sum::<usize>();
        let is_between = (start == 0 || at > start) && (at < end || end == rows.len());
        match is_between && !self.inexact {
            true => at,
            false => self.find(rows, guess),
        }
    }

    /// Does the same as [`Sought::find`] if all rows before `from` sort before the key.
    #[inline]
    pub(crate) fn find_ahead(&self, rows: View<'_>, from: usize) -> usize {
        gallop(from..rows.len(), |row| self.is_behind_row(rows, row))
    }
}

/// Interpolates the position of a word among `count` rows whose words ascend evenly from `first` to
/// `last`.
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
            prop_assert_eq!(sought.find_close(view, guess), at);
            prop_assert_eq!(sought.find(view, between(sought.low, words, rows.len())), at);
            for (index, row) in rows.iter().enumerate() {
                let has = row.starts_with(&key);
                prop_assert_eq!(sought.is(view, index), has);
                prop_assert!(!has || !sought.ends_before(word_at(row, shared.len())));
            }
        }
    }
}
