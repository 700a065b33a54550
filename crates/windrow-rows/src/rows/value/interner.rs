//! Distinct byte strings, numbered in the order of arrival.
//!
//! ```text
//! slots    | - | 2 | - | 0 | 1 | - | - | - |     probed from the hash on: the first free or equal
//! entries  | words, end | words, end | ...       by number; words: the first 16 bytes
//! bytes    | value 0 | value 1 | value 2 |
//! ```
//!
//! Invariant: at most a quarter of the slots are taken, so every search ends, mostly at the first
//! slot.

use std::hash::{BuildHasher, RandomState};

use windrow_kernel::rows::block::{self, Block};

/// Slots of the first table.
const SLOTS: usize = 1024;
const FREE: u32 = u32::MAX;

/// Numbers byte strings.
pub(crate) struct Interner {
    slots: Vec<u32>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// Random for each interner: nobody can choose values with collisions.
    seed: u64,
}

struct Entry {
    /// First sixteen bytes, with zeros after the end.
    words: [u64; 2],
    len: usize,
    hash: u64,
    end: usize,
}

impl Default for Interner {
    fn default() -> Self {
        let seed = RandomState::new().hash_one(0u8);
        Self { slots: Vec::new(), entries: Vec::new(), bytes: Vec::new(), seed }
    }
}

impl Interner {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of the first `len` bytes of `bytes`, and true if the value is new.
    pub(crate) fn intern(&mut self, bytes: &[u8], len: usize) -> (usize, bool) {
        let words = words(bytes, len);
        let mut hash = self.hash(words, len);
        for at in (block::BLOCK..len).step_by(block::BLOCK) {
            hash = self.hash(self::words(&bytes[at..], len - at), hash as usize);
        }
        match self.find(hash, words, len, |own| own == &bytes[..len]) {
            Ok(number) => (number, false),
            Err(slot) => (self.add(slot, hash, words, &bytes[..len]), true),
        }
    }

    /// Numbers the first `len` bytes of `block` like [`Interner::intern`].
    #[inline(always)]
    pub(super) fn intern_short(&mut self, block: Block, len: usize) -> (usize, bool) {
        self.intern_words(words_of(block::first(block, [0; block::BLOCK], len)), len)
    }

    /// Numbers the first `len` bytes of `words` like [`Interner::intern`], least significant bytes
    /// first. Zeros must follow in the words.
    #[inline(always)]
    pub(crate) fn intern_words(&mut self, words: [u64; 2], len: usize) -> (usize, bool) {
        let hash = self.hash(words, len);
        match self.find(hash, words, len, |_| true) {
            Ok(number) => (number, false),
            Err(slot) => {
                let bytes = words.map(u64::to_le_bytes);
                (self.add(slot, hash, words, &bytes.as_flattened()[..len]), true)
            }
        }
    }

    /// Returns the number of a value, or the free slot for a new value. The words of values of up
    /// to sixteen bytes are compared alone; `is_same` compares longer values.
    #[inline(always)]
    fn find(
        &self,
        hash: u64,
        words: [u64; 2],
        len: usize,
        is_same: impl Fn(&[u8]) -> bool,
    ) -> Result<usize, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = hash as usize & mask;
        while let Some(&number) = self.slots.get(slot)
            && number != FREE
        {
            let entry = &self.entries[number as usize];
            if entry.words == words
                && entry.len == len
                && (len <= block::BLOCK || is_same(&self.bytes[entry.end - len..entry.end]))
            {
                return Ok(number as usize);
            }
            slot = (slot + 1) & mask;
        }
        Err(slot)
    }

    /// Numbers a new value, in its free slot.
    #[cold]
    fn add(&mut self, mut slot: usize, hash: u64, words: [u64; 2], value: &[u8]) -> usize {
        let number = self.entries.len();
        self.bytes.extend_from_slice(value);
        self.entries.push(Entry { words, len: value.len(), hash, end: self.bytes.len() });
        if (number + 1) * 4 > self.slots.len() {
            self.slots = vec![FREE; (self.slots.len() * 4).max(SLOTS)];
            (0..number).for_each(|number| {
                let slot = self.free_slot(self.entries[number].hash);
                self.slots[slot] = number as u32;
            });
            slot = self.free_slot(hash);
        }
        self.slots[slot] = number as u32;
        number
    }

    fn free_slot(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot] != FREE {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Removes all values, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.slots.fill(FREE);
        self.entries.clear();
        self.bytes.clear();
    }

    /// Hashes by multiplication and folding.
    #[inline(always)]
    fn hash(&self, words: [u64; 2], salt: usize) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let (a, b) = (words[0] ^ self.seed, words[1] ^ (ODD ^ salt as u64));
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    }
}

/// Returns the first sixteen of `len` bytes, with zeros after the end.
#[inline(always)]
fn words(bytes: &[u8], len: usize) -> [u64; 2] {
    let block = match bytes.first_chunk() {
        Some(block) => block::first(*block, [0; block::BLOCK], len),
        None => {
            let mut block = [0; block::BLOCK];
            block[..len].copy_from_slice(&bytes[..len]);
            block
        }
    };
    words_of(block)
}

#[inline(always)]
fn words_of(block: Block) -> [u64; 2] {
    let (words, _) = block.as_chunks::<8>();
    [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_numbers() {
        let mut interner = Interner::default();
        for _ in 0..2 {
            let value = |n: usize| vec![n as u8; n % 37].into_iter().chain(n.to_le_bytes());
            let values: Vec<Vec<u8>> = (0..2000).map(|n| value(n).collect()).collect();
            for (number, value) in values.iter().enumerate() {
                assert_eq!(interner.intern(value, value.len()), (number, true));
                assert_eq!(
                    interner.intern(&values[number / 2], values[number / 2].len()),
                    (number / 2, false)
                );
            }
            assert_eq!(interner.intern(&[1, 2], 0), (2000, true));
            interner.clear();
            assert!(interner.is_empty());
        }
    }
}
