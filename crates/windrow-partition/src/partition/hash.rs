//! Partition ids by a hash of the key.
//!
//! ```text
//! word of column 0 --\
//! word of column 1 ----> state of the row --> id = state * partitions / 2^64
//! ...                    (seed, round)
//! ```
//!
//! Invariant: rows with equal keys get equal ids, in every process, on every machine and in every
//! release that has the same [`VERSION`]. `docs/partition-hash.md` is the specification.

use arrow_array::RecordBatch;

use super::words::Words;
use windrow_kernel::partition::hash::{Keys, absorb, fused, reduce, remix};
use windrow_rows::{Layout, Result};

/// Version of the function, which must change whenever any id changes.
pub(super) const VERSION: u32 = 1;
/// Rows whose words and states are in the cache together.
const BLOCK: usize = 1024;
/// Maximum number of columns absorbed in one pass.
const GROUP: usize = 4;

/// A hash of the columns of a key.
#[derive(Clone, Debug)]
pub(super) struct Hash {
    pub(super) layout: Layout,
    pub(super) seed: u64,
    pub(super) round: u64,
}

impl Hash {
    pub(super) fn new(layout: &Layout) -> Self {
        Self { layout: layout.clone(), seed: 0, round: 0 }
    }

    /// Writes an id below `partitions` for every row.
    pub(super) fn ids(&self, batch: &RecordBatch, partitions: u32, ids: &mut [u32]) -> Result<()> {
        self.layout.check_schema(batch.schema_ref())?;
        if partitions == 1 {
            ids.fill(0);
            return Ok(());
        }
        let columns = self.layout.key().map(|column| Words::of(batch.column(column)));
        let columns: Vec<Words<'_>> = columns.collect();
        // Constant keys are hashed once.
        let hashed = if columns.iter().all(Words::are_one) { ids.len().min(1) } else { ids.len() };
        let (ids, others) = ids.split_at_mut(hashed);
        let again = (self.round > 0).then(|| keys(self.seed, self.round));
        let keys = keys(self.seed, 0);
        let mut blocks = vec![[0; BLOCK]; columns.len().min(GROUP)];
        let mut states = [0; BLOCK];
        for (index, ids) in ids.chunks_mut(BLOCK).enumerate() {
            let start = index * BLOCK;
            if columns.len() <= GROUP && again.is_none() {
                let words = words(&columns, start, ids.len(), &mut blocks);
                match *words.as_slice() {
                    [] => fused(keys, [], partitions, ids),
                    [a] => fused(keys, [a], partitions, ids),
                    [a, b] => fused(keys, [a, b], partitions, ids),
                    [a, b, c] => fused(keys, [a, b, c], partitions, ids),
                    _ => fused(keys, [words[0], words[1], words[2], words[3]], partitions, ids),
                }
                continue;
            }
            let states = &mut states[..ids.len()];
            states.fill(keys.addend);
            for columns in columns.chunks(2) {
                let words = words(columns, start, ids.len(), &mut blocks);
                match *words.as_slice() {
                    [a, b] => absorb(keys, [a, b], states),
                    _ => words.iter().for_each(|words| absorb(keys, [words], states)),
                }
            }
            if let Some(again) = again {
                remix(again, states);
            }
            for (id, state) in ids.iter_mut().zip(states) {
                *id = reduce(*state, partitions);
            }
        }
        others.fill(ids.first().copied().unwrap_or(0));
        Ok(())
    }
}

fn words<'b>(
    columns: &'b [Words<'_>],
    start: usize,
    rows: usize,
    blocks: &'b mut [[u64; BLOCK]],
) -> Vec<&'b [u64]> {
    let pairs = columns.iter().zip(blocks);
    pairs.map(|(column, block)| column.block(start, &mut block[..rows])).collect()
}

/// Returns the constants of a seed and a round.
fn keys(seed: u64, round: u64) -> Keys {
    let nth = |n: u64| mix(mix(seed).wrapping_add(n.wrapping_mul(GOLDEN)));
    let pair = round.wrapping_mul(2);
    Keys { multiplier: nth(pair) | 1, addend: nth(pair.wrapping_add(1)) }
}

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
