//! Hints for batched look-ups: a block of keys is searched in one reader, then in the next.
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

use smallvec::SmallVec;

use super::hash::{FilterTests, Hash};
use super::reader::{Place, Reader};
use crate::chunk::{Kept, Sought, View, word_at};
use crate::merge::Fences;
use windrow_kernel::prefetch::prefetch_row;

/// Keys per block: more loads than a CPU has in flight, few enough for the block's state to stay in
/// the first-level cache.
pub(super) const BLOCK: usize = 64;

/// Mean rows per key up to which rows are scanned; with more rows, the filter is checked first.
const DENSE: usize = 6;

/// Rows of a chunk that is searched at once: a chunk of fewer rows is in the first-level cache.
const FEW: usize = 64;

/// Rows of a chunk in which one interpolation from a guess is as close as two in larger chunks.
const FEW_CLOSE: usize = 1024;

/// No chunk.
const NOWHERE: usize = usize::MAX;

/// The chunk that may have a key, and the number of its pin, if it may be evicted.
#[derive(Clone, Copy, Debug)]
struct Home {
    chunk: usize,
    pin: Option<usize>,
}

impl Default for Home {
    fn default() -> Self {
        Self { chunk: NOWHERE, pin: None }
    }
}

/// A look-up hint: where a reader may have a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spot {
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
    pub(super) hashes: Vec<Hash>,
    /// By reader, then by key.
    pub(super) spots: Vec<Spot>,
    /// By key: one bit per reader that may have the key, 64 to a word.
    pub(super) may_have: Vec<u64>,
    /// Words per key in `may_have`.
    pub(super) words: usize,
}

impl Hints {
    /// Looks up at most [`BLOCK`] keys in all readers. `ascend` says that the keys ascend strictly.
    pub(super) fn locate(
        &mut self,
        readers: &[Reader],
        keys: &[&[u8]],
        ascend: bool,
        tested: &mut FilterTests,
    ) {
        let Self { hashes, spots, may_have, words } = self;
        *words = readers.len().div_ceil(64);
        hashes.clear();
        hashes.resize(keys.len(), Hash::default());
        spots.resize(readers.len() * keys.len(), Spot::Absent);
        may_have.clear();
        may_have.resize(keys.len() * *words, 0);
        let (mut soughts, mut is_plain) = (SmallVec::<[Sought<'_>; BLOCK]>::new(), false);
        for (at, reader) in readers.iter().enumerate() {
            let spots = &mut spots[at * keys.len()..][..keys.len()];
            match reader.run.fences() {
                Some(fences) => {
                    // Runs whose rows share no prefix are searched for the same words.
                    if !is_plain || fences.has_prefix() {
                        soughts.clear();
                        soughts.extend(keys.iter().map(|key| fences.sought(key)));
                        is_plain = !fences.has_prefix();
                    }
                    locate(reader, fences, (&soughts, ascend), (hashes, spots), tested);
                }
                None => spots.fill(Spot::Unknown),
            }
            let (word, bit) = (at / 64, 1 << (at % 64));
            for (spot, may_have) in spots.iter().zip(may_have.chunks_exact_mut(*words)) {
                may_have[word] |= if matches!(spot, Spot::Absent) { 0 } else { bit };
            }
        }
    }
}

/// Returns true if `before` sorts before `next`.
#[inline]
pub(super) fn ascends(before: &[u8], next: &[u8]) -> bool {
    match (word_at(before, 0), word_at(next, 0)) {
        (a, b) if a != b => a < b,
        _ => before < next,
    }
}

/// Computes the hints of `reader` for `keys`; `fences` are those of its run.
fn locate(
    reader: &Reader,
    fences: &Fences,
    (keys, ascend): (&[Sought<'_>], bool),
    (hashes, spots): (&mut [Hash], &mut [Spot]),
    tested: &mut FilterTests,
) {
    spots.fill(Spot::Absent);
    // Chunks of the keys that are not searched at once.
    let mut homes = [Home::default(); BLOCK];
    let (mut pins, mut start) = (SmallVec::<[Kept; 4]>::new(), 0);
    while start < keys.len() {
        let chunk = fences.chunk_of(&reader.run, &keys[start]);
        let is_here = |sought: &&Sought<'_>| fences.holds(chunk, sought);
        let behind = &keys[start + 1..];
        let count = match behind.last() {
            Some(last) if ascend && is_here(&last) => behind.len(),
            _ => behind.iter().take_while(is_here).count(),
        };
        let range = start..start + 1 + count;
        start = range.end;
        if chunk == reader.run.chunks() {
            continue;
        }
        let (keys, spots) = (&keys[range.clone()], &mut spots[range.clone()]);
        let pin = reader.pin(chunk);
        let rows = pin.as_ref().map(|pin| pin.rows()).or_else(|| reader.rows_at_hand(chunk));
        match rows {
            Some(rows) if ascend && (rows.len() < FEW || are_dense(fences, chunk, keys)) => {
                walk(rows, fences, chunk, keys, spots);
            }
            _ => {
                let home = Home { chunk, pin: pin.is_some().then_some(pins.len()) };
                homes[range].fill(home);
                pins.extend(pin);
            }
        }
    }
    let rows_of = |home: Home| match home.pin {
        Some(pin) => Some(pins[pin].rows()),
        None => reader.rows_at_hand(home.chunk),
    };
    scatter(reader, fences, (keys, &homes), rows_of, (hashes, spots), tested);
}

/// Returns true if the keys are about as many as the rows between the first and the last key.
fn are_dense(fences: &Fences, chunk: usize, keys: &[Sought<'_>]) -> bool {
    let [Some(first), Some(last)] = [keys.first(), keys.last()] else { return false };
    let [first, last] = [first, last].map(|sought| fences.guess(chunk, sought));
    last >= first && last - first <= keys.len() * DENSE
}

/// Searches the rows of a chunk for ascending keys, each from the position of the previous key.
fn walk(rows: View<'_>, fences: &Fences, chunk: usize, keys: &[Sought<'_>], spots: &mut [Spot]) {
    let Some(first) = keys.first() else { return };
    let mut row = first.find(rows, fences.guess(chunk, first));
    let mut word = fences.word_of(rows, row);
    for (sought, spot) in keys.iter().zip(spots) {
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

/// Checks the chunks' filters, and searches chunks at hand for keys that may be present, all keys
/// side by side.
fn scatter<'r>(
    reader: &'r Reader,
    fences: &Fences,
    (keys, homes): (&[Sought<'_>], &[Home; BLOCK]),
    rows_of: impl Fn(Home) -> Option<View<'r>>,
    (hashes, spots): (&mut [Hash], &mut [Spot]),
    tested: &mut FilterTests,
) {
    let all = (0..keys.len()).filter(|&number| homes[number].chunk != NOWHERE);
    for number in all.clone() {
        if fences.has_filter(homes[number].chunk) {
            fences.prefetch(homes[number].chunk, hashes[number].of(keys[number].key));
        }
    }
    for number in all.clone() {
        let (chunk, sought) = (homes[number].chunk, &keys[number]);
        let may_have = tested.pass((fences, chunk), sought.key, &mut hashes[number]);
        if may_have && !fences.begins_behind(chunk, sought) {
            let row = fences.guess(chunk, sought);
            spots[number] = Spot::Near(Place { chunk, row });
            match rows_of(homes[number]) {
                Some(rows) if rows.len() < FEW => {
                    let row = sought.find(rows, row);
                    spots[number] = spot_of(rows, sought, Place { chunk, row });
                }
                Some(rows) => prefetch_row(rows.row(row)),
                None if keys.len() > 1 => reader.run.prefetch_part(chunk, sought.key),
                None => {}
            }
        }
    }
    // A guess is off by about the square root of the rows, and a closer one by the root of that.
    for is_first in [true, false] {
        for number in all.clone() {
            if let Spot::Near(Place { chunk, row }) = &mut spots[number]
                && let Some(rows) = rows_of(homes[number])
            {
                let is_small = rows.len() < FEW_CLOSE;
                if is_first || !is_small {
                    *row = keys[number].closer(rows, *row, fences.words(*chunk));
                    let span = if is_first && !is_small {
                        *row..*row + 1
                    } else {
                        Sought::around(rows, *row)
                    };
                    prefetch_row(rows.span(span));
                }
            }
        }
    }
    for number in all {
        if let Spot::Near(Place { chunk, row }) = spots[number]
            && let Some(rows) = rows_of(homes[number])
        {
            let row = keys[number].find_close(rows, row);
            spots[number] = spot_of(rows, &keys[number], Place { chunk, row });
        }
    }
}

/// Returns the hint of a key whose first row is at `place`, if the key is present.
#[inline(always)]
fn spot_of(rows: View<'_>, sought: &Sought<'_>, place: Place) -> Spot {
    match place.row < rows.len() && sought.is(rows, place.row) {
        true => Spot::At(place),
        false => Spot::Absent,
    }
}
