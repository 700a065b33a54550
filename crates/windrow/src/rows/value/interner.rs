//! Distinct byte strings, numbered in the order of arrival.
//!
//! ```text
//! slots    | - | 2 | - | 0 | 1 | - | - | - |     from the hash on, the first that is free or equal
//! entries  | words, end | words, end | ...       by number; words: the first 16 bytes
//! bytes    | value 0 | value 1 | value 2 |
//! ```
//!
//! Invariant: at most half of the slots are taken, so every search ends.

use std::hash::{BuildHasher, RandomState};

use crate::kernel::rows::block;

/// Slots of the first table.
const SLOTS: usize = 256;
const FREE: u32 = u32::MAX;

/// Numbers byte strings.
pub(super) struct Interner {
    slots: Vec<u32>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// Different in every interner: nobody can choose values that collide.
    seed: u64,
}

struct Entry {
    hash: u64,
    /// The first sixteen bytes, zeros behind the end.
    words: [u64; 2],
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

    /// The number of the first `len` bytes of `bytes`, and whether this is the first time.
    #[inline]
    pub(super) fn intern(&mut self, bytes: &[u8], len: usize) -> (usize, bool) {
        if self.entries.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let words = words(bytes, len);
        let hash = self.hash(words, &bytes[..len]);
        let mut at = self.first_slot(hash);
        loop {
            let number = self.slots[at];
            if number == FREE {
                break;
            }
            let number = number as usize;
            let entry = &self.entries[number];
            if entry.words == words && self.len_of(number) == len {
                // Short values are their words.
                if len <= block::BLOCK || self.value(number) == &bytes[..len] {
                    return (number, false);
                }
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        let number = self.entries.len();
        self.slots[at] = number as u32;
        self.bytes.extend_from_slice(&bytes[..len]);
        self.entries.push(Entry { hash, words, end: self.bytes.len() });
        (number, true)
    }

    /// Forgets all values; keeps the memory.
    pub(super) fn clear(&mut self) {
        self.slots.fill(FREE);
        self.entries.clear();
        self.bytes.clear();
    }

    fn first_slot(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn start_of(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.entries[before].end)
    }

    fn len_of(&self, number: usize) -> usize {
        self.entries[number].end - self.start_of(number)
    }

    fn value(&self, number: usize) -> &[u8] {
        &self.bytes[self.start_of(number)..self.entries[number].end]
    }

    /// Multiplied and folded, sixteen bytes at a time.
    #[inline]
    fn hash(&self, words: [u64; 2], value: &[u8]) -> u64 {
        const ODD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];
        let mix = |hash: u64, words: [u64; 2]| {
            let product = u128::from(words[0] ^ hash) * u128::from(words[1] ^ self.seed ^ ODD[1]);
            product as u64 ^ (product >> 64) as u64
        };
        let mut hash = mix(self.seed ^ ODD[0] ^ value.len() as u64, words);
        let mut at = block::BLOCK;
        while at < value.len() {
            hash = mix(hash ^ ODD[0], self::words(&value[at..], value.len() - at));
            at += block::BLOCK;
        }
        hash
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 4).max(SLOTS);
        self.slots = vec![FREE; slots];
        for number in 0..self.entries.len() {
            let mut at = self.first_slot(self.entries[number].hash);
            while self.slots[at] != FREE {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = number as u32;
        }
    }
}

/// The first sixteen of `len` bytes, zeros behind them.
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
