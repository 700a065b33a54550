//! Hashes of searched keys.

use crate::chunk::KeyHash;

/// The hash of a key, computed on first use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hash(Option<KeyHash>);

impl Hash {
    #[inline(always)]
    pub(super) fn of(&mut self, key: &[u8]) -> KeyHash {
        *self.0.get_or_insert_with(|| KeyHash::of(key))
    }
}
