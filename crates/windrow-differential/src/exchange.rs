//! Exchange: routes rows to the workers that own their keys.
//!
//! ```text
//! containers --> hash of the key's bytes --> a piece per worker --64 KiB, or end--> worker
//!                                            equal rows are one
//! ```
//! All arrangements route a key to the same worker, whatever the value, so any two of them join.
//!
//! Invariant: between two flushes, the number of sent records equals the number of received ones.

use timely::communication::Push;
use timely::dataflow::channels::Message;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::progress::Stamp;
use windrow::{Layout, key_len};

use crate::combine::Piece;
use crate::updates::PIECE;
use crate::{DiffCode, RowCode, TimeCode, Updates};

/// Bytes hashed at once.
const WORD: usize = 8;
/// Odd numbers with as many ones as zeros, in no pattern.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const FINAL: u64 = 0xd6e8_feb8_6659_fd93;

/// Hashes a key word by word: multiplies, then folds the halves of the product. The hash is the
/// same in every process and does not depend on the rest of the row.
pub(crate) fn hash_of(key: &[u8]) -> u64 {
    let fold = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(FACTOR);
        (product as u64) ^ (product >> 64) as u64
    };
    let (words, rest) = key.as_chunks::<WORD>();
    let mut hash = words
        .iter()
        .fold(key.len() as u64 ^ FINAL, |hash, word| fold(hash, u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut last = [0; WORD];
        last[..rest.len()].copy_from_slice(rest);
        hash = fold(hash, u64::from_le_bytes(last));
    }
    fold(hash, FINAL)
}

/// Returns the worker, of `peers`, that owns keys with hash `hash`.
pub(crate) fn owner_of(hash: u64, peers: usize) -> usize {
    ((u128::from(hash) * peers as u128) >> 64) as usize
}

/// Sends rows to the workers that own their keys. Used containers that a receiver returns are
/// dropped.
pub(crate) struct RowDistributor<K, V, T, R> {
    layout: Layout,
    pieces: Vec<Piece<K, V, T, R>>,
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> RowDistributor<K, V, T, R> {
    /// Creates a distributor of rows of `layout` to `peers` workers.
    pub(crate) fn new(layout: Layout, peers: usize) -> Self {
        Self { layout, pieces: (0..peers).map(|_| Piece::default()).collect() }
    }
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> Distributor<Updates<K, V, T, R>>
    for RowDistributor<K, V, T, R>
{
    fn partition<S: Clone, P: Push<Message<S, Updates<K, V, T, R>>>>(
        &mut self,
        container: &mut Updates<K, V, T, R>,
        stamp: &Stamp<S>,
        pushers: &mut [P],
    ) {
        for row in container.iter() {
            let key_len = K::WIDTH.unwrap_or_else(|| key_len(&self.layout, row));
            let hash = hash_of(&row[..key_len]);
            let owner = owner_of(hash, pushers.len());
            let piece = &mut self.pieces[owner];
            piece.push(row, hash, key_len);
            if piece.bytes() >= PIECE {
                Message::push_at(&mut piece.take(), stamp.clone(), &mut pushers[owner]);
            }
        }
        container.clear();
    }

    fn flush<S: Clone, P: Push<Message<S, Updates<K, V, T, R>>>>(
        &mut self,
        stamp: &Stamp<S>,
        pushers: &mut [P],
    ) {
        for (piece, pusher) in self.pieces.iter_mut().zip(pushers) {
            if !piece.is_empty() {
                Message::push_at(&mut piece.take(), stamp.clone(), pusher);
            }
        }
    }
}
