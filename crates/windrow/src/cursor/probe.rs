//! Batched look-ups: a block of keys in one reader, then in the next.
//!
//! ```text
//! keys      k0 k1 k2 k3 ...               1. chunk of each key, by fences; prefetch its filter
//! reader 0  at -- -- near                 2. filter; guess the row and prefetch it, twice closer
//! reader 1  -- at -- --                      or, for close keys, the rows one after another
//! reader 2  -- -- -- near                 3. key by key: the readers with the key, and their rows
//! ```
//! Prefetches overlap the cache misses of many keys. If nearly all rows of a run are requested, one
//! pass finds all keys.
//!
//! Invariant: a reader whose hint is `Absent` does not have the key.

use super::Cursor;
use super::hash::Hash;
use super::reader::{Place, Reader};
use crate::chunk::{Sought, View, word_at};
use crate::merge::Fences;
use windrow_kernel::prefetch::prefetch_row;
use windrow_rows::{Result, Time};

/// Keys per block: more loads than a CPU has in flight, few enough for the block's state to stay in
/// the first-level cache.
pub(super) const BLOCK: usize = 64;

/// Mean rows per key up to which rows are scanned; with more rows, the filter is checked first.
const DENSE: usize = 6;

/// Rows of a chunk that is searched at once: a chunk of fewer rows is in the first-level cache.
const FEW: usize = 64;

/// No chunk.
const NOWHERE: usize = usize::MAX;

/// A look-up hint: where a reader may have a key.
#[derive(Clone, Copy, Debug)]
enum Spot {
    /// The key is absent.
    Absent,
    /// The key's first row.
    At(Place),
    /// An interpolated position in a chunk that is not at hand.
    Near(Place),
    /// The run has no fence pointers.
    Unknown,
}

/// The look-up state of a block of keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    hashes: Vec<Hash>,
    /// By reader, then by key.
    spots: Vec<Spot>,
    /// By key: one bit per reader that may have the key, 64 to a word.
    may_have: Vec<u64>,
    /// Words per key in `may_have`.
    words: usize,
}

impl Hints {
    /// Looks up at most [`BLOCK`] keys in all readers.
    pub(super) fn locate(&mut self, readers: &[Reader], keys: &[&[u8]]) {
        let ascend = keys.is_sorted_by(|a, b| match (word_at(a, 0), word_at(b, 0)) {
            (a, b) if a != b => a < b,
            _ => a < b,
        });
        let Self { hashes, spots, may_have, words } = self;
        *words = readers.len().div_ceil(64);
        hashes.clear();
        hashes.resize(keys.len(), Hash::default());
        spots.resize(readers.len() * BLOCK, Spot::Absent);
        may_have.clear();
        may_have.resize(keys.len() * *words, 0);
        for (at, reader) in readers.iter().enumerate() {
            let spots = &mut spots[at * BLOCK..][..keys.len()];
            match reader.run().fences() {
                Some(fences) => locate(reader, fences, (keys, ascend), hashes, spots),
                None => spots.fill(Spot::Unknown),
            }
            let (word, bit) = (at / 64, 1 << (at % 64));
            for (spot, may_have) in spots.iter().zip(may_have.chunks_exact_mut(*words)) {
                may_have[word] |= if matches!(spot, Spot::Absent) { 0 } else { bit };
            }
        }
    }
}

/// Computes the hints of `reader` for `keys`; `fences` are those of its run.
fn locate(
    reader: &Reader,
    fences: &Fences,
    (keys, ascend): (&[&[u8]], bool),
    hashes: &mut [Hash],
    spots: &mut [Spot],
) {
    spots.fill(Spot::Absent);
    // Chunks of the keys that are not searched at once.
    let mut chunks = [NOWHERE; BLOCK];
    let mut start = 0;
    while start < keys.len() {
        let sought = fences.sought(keys[start]);
        let chunk = fences.chunk_of(reader.run(), &sought);
        let is_here = |key: &&[u8]| fences.holds(chunk, &fences.sought(key));
        let behind = &keys[start + 1..];
        let count = match behind.last() {
            Some(last) if ascend && is_here(last) => behind.len(),
            _ => behind.iter().take_while(|key| is_here(key)).count(),
        };
        let range = start..start + 1 + count;
        start = range.end;
        if chunk == reader.run().chunks() {
            continue;
        }
        let (keys, spots) = (&keys[range.clone()], &mut spots[range.clone()]);
        match reader.rows_at_hand(chunk) {
            Some(rows) if ascend && (rows.len() < FEW || are_dense(fences, chunk, keys)) => {
                walk(rows, fences, chunk, keys, spots);
            }
            _ => chunks[range].fill(chunk),
        }
    }
    scatter(reader, fences, (keys, &chunks), hashes, spots);
}

/// Returns true if the keys are about as many as the rows between the first and the last key.
fn are_dense(fences: &Fences, chunk: usize, keys: &[&[u8]]) -> bool {
    let [Some(first), Some(last)] = [keys.first(), keys.last()] else { return false };
    let [first, last] = [first, last].map(|key| fences.guess(chunk, &fences.sought(key)));
    last >= first && last - first <= keys.len() * DENSE
}

/// Searches the rows of a chunk for ascending keys, each from the position of the previous key.
fn walk(rows: View<'_>, fences: &Fences, chunk: usize, keys: &[&[u8]], spots: &mut [Spot]) {
    let Some(first) = keys.first().map(|key| fences.sought(key)) else { return };
    let mut row = first.find(rows, fences.guess(chunk, &first));
    let mut word = fences.word_of(rows, row);
    for (key, spot) in keys.iter().zip(spots) {
        let sought = fences.sought(key);
        *spot = Spot::Absent;
        if sought.ends_before(word) {
            continue;
        }
        row = sought.find_ahead(rows, row);
        word = fences.word_of(rows, row);
        if row < rows.len() && sought.is(rows, row) {
            *spot = Spot::At(Place { chunk, row });
        }
    }
}

/// Checks the chunks' filters, and interpolates the rows of keys that may be present.
fn scatter(
    reader: &Reader,
    fences: &Fences,
    (keys, chunks): (&[&[u8]], &[usize; BLOCK]),
    hashes: &mut [Hash],
    spots: &mut [Spot],
) {
    let all = (0..keys.len()).filter(|&number| chunks[number] != NOWHERE);
    for number in all.clone() {
        if fences.has_filter(chunks[number]) {
            fences.prefetch(chunks[number], hashes[number].of(keys[number]));
        }
    }
    for number in all.clone() {
        let (chunk, sought) = (chunks[number], fences.sought(keys[number]));
        let may_have =
            !fences.has_filter(chunk) || fences.may_have(chunk, hashes[number].of(keys[number]));
        if may_have && !fences.begins_behind(chunk, &sought) {
            let row = fences.guess(chunk, &sought);
            spots[number] = Spot::Near(Place { chunk, row });
            match reader.rows_at_hand(chunk) {
                Some(rows) if rows.len() < FEW => {
                    let row = sought.find(rows, row);
                    let is_there = row < rows.len() && sought.is(rows, row);
                    let place = Place { chunk, row };
                    spots[number] = if is_there { Spot::At(place) } else { Spot::Absent };
                }
                Some(rows) => prefetch_row(rows.row(row)),
                None if keys.len() > 1 => reader.run().prefetch_part(chunk, keys[number]),
                None => {}
            }
        }
    }
    // A guess is off by about the square root of the rows, and a closer one by the root of that.
    for _ in 0..2 {
        for number in all.clone() {
            if let Spot::Near(Place { chunk, row }) = &mut spots[number]
                && let Some(rows) = reader.rows_at_hand(*chunk)
            {
                let sought = fences.sought(keys[number]);
                *row = sought.closer(rows, *row, fences.words(*chunk));
                prefetch_row(rows.span(Sought::around(rows, *row)));
            }
        }
    }
    for number in all {
        if let Spot::Near(Place { chunk, row }) = spots[number]
            && let Some(rows) = reader.rows_at_hand(chunk)
        {
            let sought = fences.sought(keys[number]);
            let row = sought.find_close(rows, row);
            let is_there = row < rows.len() && sought.is(rows, row);
            spots[number] = if is_there { Spot::At(Place { chunk, row }) } else { Spot::Absent };
        }
    }
}

impl<T: Time> Cursor<T> {
    /// Looks up `keys` and calls `found` as [`Cursor::probe`] does.
    pub(crate) fn probe_each<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        mut found: impl FnMut(usize, &mut Self) -> Result<()>,
    ) -> Result<()> {
        let (mut keys, mut first) = (keys.fuse(), 0);
        let (mut block, mut hints) = (Vec::with_capacity(BLOCK), std::mem::take(&mut self.hints));
        loop {
            block.clear();
            block.extend(keys.by_ref().take(BLOCK));
            if block.is_empty() {
                self.hints = hints;
                return Ok(());
            }
            hints.locate(&self.readers, &block);
            for (number, key) in block.iter().enumerate() {
                if self.go_to_spots(&hints, number, key)? {
                    self.take_found(key);
                    found(first + number, self)?;
                }
            }
            first += block.len();
        }
    }

    /// Moves the readers with `key`, which has `number` in the located block, to the key, and
    /// collects them in `with_key`; false if there are none.
    pub(super) fn go_to_spots(&mut self, hints: &Hints, number: usize, key: &[u8]) -> Result<bool> {
        self.leave_keys();
        let gone = self.try_spots(hints, number, key);
        if gone.is_err() {
            self.with_key.clear();
        }
        gone.map(|()| self.has_key())
    }

    fn try_spots(&mut self, hints: &Hints, number: usize, key: &[u8]) -> Result<()> {
        let mut hash = hints.hashes[number];
        let words = &hints.may_have[number * hints.words..][..hints.words];
        for (word, mut bits) in words.iter().copied().enumerate() {
            while bits != 0 {
                let at = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let reader = &mut self.readers[at];
                let found = match hints.spots[at * BLOCK + number] {
                    Spot::Absent => false,
                    Spot::At(place) => reader.go_to(place).map(|()| true)?,
                    Spot::Near(place) => reader.find_near_guess(place, key)?,
                    Spot::Unknown => reader.find(key, &mut hash)?,
                };
                if found {
                    self.with_key.push((at, reader.place()));
                }
            }
        }
        Ok(())
    }
}
