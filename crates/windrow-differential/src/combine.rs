//! A write buffer for one worker, in which rows with equal key, value and time become one.
//!
//! ```text
//! row --hash--> two slots --> an equal row of the piece    its diff grows
//!                             different rows, or none       the row is added and takes a slot
//! ```
//! The slots are lossy: of all rows that share a pair of slots only the most recent are found. The
//! receiver adds up missed duplicates. The bytes of key, value and time are prefix-free, so equal
//! bytes mean equal rows.
//!
//! Most streams have few duplicates within a piece, and a lookup takes about as long as the copy.
//! If fewer than one in [`WORTH`] rows of a piece were duplicates, the next [`PAUSE`] pieces skip
//! the lookup.
//!
//! Invariant: for each row, the diffs in the piece and the removed zero sums add up to the pushed
//! diffs. The record count is the number of pushed rows.

use windrow::Diff;

use crate::diff::{self, LANE};
use crate::{DiffCode, RowCode, TimeCode, Updates};

/// Slots of a piece: more than its rows, unless rows are shorter than 16 bytes.
const SLOTS: usize = 4096;
/// Lookups continue in the next piece if at least one in `WORTH` rows was a duplicate.
const WORTH: u64 = 8;
/// Pieces without lookups before the next attempt.
const PAUSE: u32 = 15;
/// An odd number with as many ones as zeros, in no pattern.
const FACTOR: u64 = 0xff51_afd7_ed55_8ccd;

/// The buffered rows of one worker.
pub(crate) struct Piece<K, V, T, R> {
    rows: Updates<K, V, T, R>,
    /// For each hash, the start of a row plus one; 0 if the slot is empty.
    slots: Vec<u32>,
    /// Rows that were added to an equal one.
    combined: u64,
    /// True if a sum became zero.
    has_zero: bool,
    pause: u32,
}

impl<K, V, T, R> Default for Piece<K, V, T, R> {
    fn default() -> Self {
        let rows = Updates::default();
        Self { rows, slots: Vec::new(), combined: 0, has_zero: false, pause: 0 }
    }
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> Piece<K, V, T, R> {
    /// Returns the bytes of the rows.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes().len()
    }

    /// Returns true if no row was pushed.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.combined == 0
    }

    /// Adds a row whose key has hash `hash`.
    #[inline]
    pub(crate) fn push(&mut self, row: &[u8], hash: u64, key_len: usize) {
        if self.pause > 0 {
            self.rows.push_row(row);
            return;
        }
        self.combine(row, hash, key_len);
    }

    fn combine(&mut self, row: &[u8], hash: u64, key_len: usize) {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, 0);
        }
        let body = row.len() - R::Lanes::LANES * LANE;
        let hash = crate::exchange::hash_of(&row[key_len..body]) ^ hash.wrapping_mul(FACTOR);
        let at = (hash >> (u64::BITS - SLOTS.ilog2())) as usize;
        let end = self.rows.bytes().len();
        for slot in [at, at ^ 1] {
            let Some(start) = self.slots[slot].checked_sub(1).map(|start| start as usize) else {
                self.slots[slot] = end as u32 + 1;
                self.rows.push_row(row);
                return;
            };
            if start + row.len() > end {
                continue;
            }
            let (old, lanes) = self.rows.own()[start..start + row.len()].split_at_mut(body);
            if old == &row[..body]
                && let Some(is_zero) = diff::add::<R>(lanes, &row[body..])
            {
                self.combined += 1;
                self.has_zero |= is_zero;
                self.rows.records += 1;
                return;
            }
        }
        self.slots[at] = end as u32 + 1;
        self.rows.push_row(row);
    }

    /// Takes the rows, without zero sums, and leaves the piece empty.
    pub(crate) fn take(&mut self) -> Updates<K, V, T, R> {
        let mut rows = std::mem::take(&mut self.rows);
        if self.has_zero {
            rows.retain(|row| !diff::is_zero::<R>(&row[row.len() - R::Lanes::LANES * LANE..]));
        }
        if self.pause > 0 {
            self.pause -= 1;
        } else {
            if self.combined * WORTH < rows.records {
                self.pause = PAUSE;
            }
            self.slots.fill(0);
        }
        (self.combined, self.has_zero) = (0, false);
        rows
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use timely::container::PushInto;

    use super::{PAUSE, Piece};
    use crate::exchange::hash_of;
    use crate::format::Format;
    use crate::updates::Updates;

    type Words = Updates<u64, String, u64, isize>;
    type Update = ((u64, String), u64, isize);

    /// Returns the sums that the receiver computes.
    fn sums(pieces: &[Words]) -> BTreeMap<Vec<u8>, i64> {
        let mut sums = BTreeMap::new();
        for row in pieces.iter().flat_map(|piece| piece.iter()) {
            let (body, diff) = row.split_at(row.len() - 8);
            let sum: &mut i64 = sums.entry(body.to_vec()).or_default();
            *sum = sum.wrapping_add(i64::from_le_bytes(diff.try_into().unwrap()));
        }
        sums.retain(|_, sum| *sum != 0);
        sums
    }

    fn row_of(update: &Update) -> Vec<u8> {
        let mut row = Vec::new();
        Format::put(update, &mut row);
        row
    }

    fn push(piece: &mut Piece<u64, String, u64, isize>, update: &Update) {
        let row = row_of(update);
        piece.push(&row, hash_of(&row[..8]), 8);
    }

    /// Generates updates of a few keys and values, so that many are equal.
    fn updates(count: u64, keys: u64) -> Vec<Update> {
        let mut state = 1_u64;
        let mut next = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let word = |number: u64| "x".repeat(number as usize);
        (0..count).map(|_| ((next(keys), word(next(20))), next(2), next(3) as isize - 1)).collect()
    }

    #[test]
    fn equal_rows_become_one_and_all_records_are_counted() {
        for keys in [1, 3, 100, 100_000] {
            let updates = updates(20_000, keys);
            let (mut piece, mut plain, mut sent) = (Piece::default(), Words::default(), Vec::new());
            for update in &updates {
                push(&mut piece, update);
                plain.push_into(update.clone());
                if piece.bytes() > 8192 {
                    sent.push(piece.take());
                }
            }
            sent.push(piece.take());
            assert!(piece.is_empty());
            assert_eq!(sums(&sent), sums(&[plain]), "{keys} keys");
            assert_eq!(sent.iter().map(|words| words.records).sum::<u64>(), 20_000, "{keys} keys");
            let rows: usize = sent.iter().map(|piece| piece.iter().count()).sum();
            match keys {
                1 | 3 => assert!(rows <= 130, "{rows} rows of {keys} keys"),
                100 => assert!(rows < 20_000, "no row of {keys} keys went into another"),
                _ => {}
            }
        }
    }

    #[test]
    fn what_cancels_is_not_sent() {
        let mut piece = Piece::default();
        for diff in [1, -1] {
            for key in 0..100 {
                push(&mut piece, &((key, "word".to_owned()), 7, diff));
            }
        }
        assert!(!piece.is_empty());
        let sent = piece.take();
        assert_eq!((sent.iter().count(), sent.records), (0, 200));
    }

    #[test]
    fn sums_that_do_not_fit_stay_apart() {
        let mut piece = Piece::default();
        for _ in 0..3 {
            push(&mut piece, &((1, String::new()), 0, isize::MAX));
        }
        assert_eq!(piece.take().iter().count(), 3);
    }

    #[test]
    fn pieces_without_equal_rows_are_followed_by_some_that_nobody_looks_at() {
        let mut piece = Piece::default();
        let twice = [((1, String::new()), 0, 1), ((1, String::new()), 0, 1)];
        push(&mut piece, &twice[0]);
        assert_eq!(piece.take().iter().count(), 1);
        for _ in 0..PAUSE {
            twice.iter().for_each(|update| push(&mut piece, update));
            assert_eq!(piece.take().iter().count(), 2);
        }
        twice.iter().for_each(|update| push(&mut piece, update));
        assert_eq!(piece.take().iter().count(), 1);
    }
}
