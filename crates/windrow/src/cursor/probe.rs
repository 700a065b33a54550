//! Batched look-ups: a block of keys in one reader, then in the next.
//!
//! ```text
//! keys      k0 k1 k2 k3 ...               1. chunk of each key, by fences; prefetch its filter
//! reader 0  at -- -- near                 2. filter; guess the row and prefetch it
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
use crate::chunk::{View, word_at};
use crate::merge::Fences;
use windrow_kernel::prefetch::prefetch_row;
use windrow_rows::{Result, Time};

/// Keys per block: more loads than a CPU has in flight, few enough for the block's state to stay in
/// the first-level cache.
const BLOCK: usize = 64;

/// Mean rows per key up to which rows are scanned; with more rows, the filter is checked first.
const DENSE: usize = 6;

/// Rows of a chunk that is searched at once: a chunk of fewer rows is in the first-level cache.
const FEW: usize = 64;

/// No chunk.
const NOWHERE: usize = usize::MAX;

/// A lookup hint: where a reader may have a key.
#[derive(Clone, Copy, Debug)]
enum Spot {
    /// The key is absent.
    Absent,
    /// The key's first row.
    At(Place),
    /// An interpolated position, to be refined.
    Near(Place),
    /// The run has no fence pointers.
    Unknown,
}

/// A block of keys and their look-up state.
struct Block<'k> {
    keys: Vec<&'k [u8]>,
    /// Whether the keys ascend strictly.
    ascend: bool,
    hashes: Vec<Hash>,
    /// By reader, then by key.
    spots: Vec<Spot>,
    /// By key: one bit per reader that may have the key, 64 to a word.
    may_have: Vec<u64>,
    /// Words per key in `may_have`.
    words: usize,
}

impl<'k> Block<'k> {
    fn new(readers: usize) -> Self {
        let words = readers.div_ceil(64);
        Self {
            keys: Vec::with_capacity(BLOCK),
            ascend: false,
            hashes: Vec::with_capacity(BLOCK),
            spots: vec![Spot::Absent; readers * BLOCK],
            may_have: vec![0; words * BLOCK],
            words,
        }
    }

    /// Takes the next keys; false if there are none.
    fn fill(&mut self, keys: &mut impl Iterator<Item = &'k [u8]>) -> bool {
        self.keys.clear();
        self.keys.extend(keys.take(BLOCK));
        self.ascend = self.keys.is_sorted_by(|a, b| match (word_at(a, 0), word_at(b, 0)) {
            (a, b) if a != b => a < b,
            _ => a < b,
        });
        self.hashes.clear();
        self.hashes.resize(self.keys.len(), Hash::default());
        self.may_have.fill(0);
        !self.keys.is_empty()
    }

    /// Computes the hints of reader `at`.
    fn locate(&mut self, at: usize, reader: &Reader) {
        let Self { keys, ascend, hashes, spots, may_have, words } = self;
        let spots = &mut spots[at * BLOCK..][..keys.len()];
        match reader.run().fences() {
            Some(fences) => locate(reader, fences, (keys, *ascend), hashes, spots),
            None => spots.fill(Spot::Unknown),
        }
        let (word, bit) = (at / 64, 1 << (at % 64));
        for (spot, may_have) in spots.iter().zip(may_have.chunks_exact_mut(*words)) {
            may_have[word] |= if matches!(spot, Spot::Absent) { 0 } else { bit };
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
    for number in all {
        if let Spot::Near(Place { chunk, row }) = &mut spots[number]
            && let Some(rows) = reader.rows_at_hand(*chunk)
        {
            let sought = fences.sought(keys[number]);
            *row = sought.closer(rows, *row, fences.words(*chunk));
            prefetch_row(rows.row(*row));
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
        let mut block = Block::new(self.readers.len());
        while block.fill(&mut keys) {
            for (at, reader) in self.readers.iter().enumerate() {
                block.locate(at, reader);
            }
            for number in 0..block.keys.len() {
                if self.show(&block, number)? {
                    found(first + number, self)?;
                }
            }
            first += block.keys.len();
        }
        Ok(())
    }

    /// Moves to a key of `block`; false if it is absent.
    fn show(&mut self, block: &Block<'_>, number: usize) -> Result<bool> {
        let key = block.keys[number];
        self.leave_keys();
        let gone = self.go_to_spots(block, number);
        if gone.is_err() {
            self.with_key.clear();
        }
        gone.map(|()| self.take_found(key))
    }

    /// Moves the readers with a key of `block` to the key and collects them in `with_key`.
    fn go_to_spots(&mut self, block: &Block<'_>, number: usize) -> Result<()> {
        let (key, mut hash) = (block.keys[number], block.hashes[number]);
        let words = &block.may_have[number * block.words..][..block.words];
        for (word, mut bits) in words.iter().copied().enumerate() {
            while bits != 0 {
                let at = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let reader = &mut self.readers[at];
                let found = match block.spots[at * BLOCK + number] {
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
