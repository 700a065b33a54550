//! Filters: which keys a chunk may have, without reading its rows.
//!
//! ```text
//! hash of the key   | block, by its upper half | 8 bits, by its lower half |
//! filter            | 8 words | 8 words | ...   one bit in each word of a block, half a cache line
//! ```
//! A split block Bloom filter with the block layout and factors of the Parquet format, ten bits per
//! key. Of a hundred absent keys, about one passes.
//!
//! Invariant: every key of the chunk passes.

use super::view::View;
use windrow_kernel::partition::hash::fold;
use windrow_kernel::partition::string_hash::{SALTS, word};
use windrow_kernel::prefetch::prefetch_value;
use windrow_pool::{Lease, Pool};
use windrow_rows::{Layout, key_len};

const BITS_PER_KEY: usize = 10;
/// Words of a block; each key sets one bit in each word.
const WORDS: usize = 8;
const BLOCK_BITS: usize = WORDS * u32::BITS as usize;
/// Chunks of fewer rows have no filter: a search takes as long as a filter check.
const LEAST_ROWS: usize = 32;
/// Odd numbers, one per word: the top five bits of the product select the bit (factors of the
/// Parquet format).
const FACTORS: [u32; WORDS] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// The hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    #[inline]
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(fold(word(key), SALTS[1]))
    }

    /// Returns the block of the key, of `blocks` many.
    #[inline(always)]
    fn block(self, blocks: usize) -> usize {
        (((self.0 >> 32) * blocks as u64) >> 32) as usize
    }

    #[inline(always)]
    fn bits(self) -> [u32; WORDS] {
        FACTORS.map(|factor| 1 << ((self.0 as u32).wrapping_mul(factor) >> 27))
    }
}

/// The keys that a chunk may have.
#[derive(Debug)]
pub(crate) struct Filter {
    blocks: Box<[[u32; WORDS]]>,
    _lease: Lease,
}

impl Filter {
    /// Returns the filter of `rows`, or `None` if there are too few rows.
    pub(super) fn of(layout: &Layout, pool: &Pool, rows: View<'_>) -> Option<Self> {
        if rows.len() < LEAST_ROWS {
            return None;
        }
        let budget = pool.budget();
        let _hashed = budget.lease(rows.len() * size_of::<KeyHash>());
        let mut hashes = Vec::with_capacity(rows.len());
        let mut before: Option<&[u8]> = None;
        for row in (0..rows.len()).map(|index| rows.row(index)) {
            if !before.is_some_and(|key| row.starts_with(key)) {
                let key = &row[..key_len(layout, row)];
                hashes.push(KeyHash::of(key));
                before = Some(key);
            }
        }
        let count = (hashes.len() * BITS_PER_KEY).div_ceil(BLOCK_BITS);
        let mut blocks = vec![[0; WORDS]; count].into_boxed_slice();
        for hash in hashes {
            let block = &mut blocks[hash.block(count)];
            block.iter_mut().zip(hash.bits()).for_each(|(word, bit)| *word |= bit);
        }
        Some(Self { _lease: budget.lease(size_of_val(&*blocks)), blocks })
    }

    /// Prefetches the block of the key.
    #[inline]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        prefetch_value(&self.blocks[hash.block(self.blocks.len())]);
    }

    /// Returns false if the key is absent.
    #[inline]
    pub(crate) fn may_have(&self, hash: KeyHash) -> bool {
        let block = &self.blocks[hash.block(self.blocks.len())];
        block.iter().zip(hash.bits()).all(|(word, bit)| word & bit != 0)
    }
}
