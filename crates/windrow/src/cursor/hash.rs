//! Hashes of searched keys, and tests of filters by them.

use crate::chunk::KeyHash;
use crate::merge::Fences;

/// Tests of [key filters](crate::Batch::filtered).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterTests {
    /// Number of tested filters: one for each key and batch that may have it by its order.
    pub tests: u64,
    /// Number of tests that did not exclude their key.
    pub passes: u64,
}

/// The hash of a key, computed on first use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hash(Option<KeyHash>);

impl Hash {
    #[inline(always)]
    pub(super) fn of(&mut self, key: &[u8]) -> KeyHash {
        *self.0.get_or_insert_with(|| KeyHash::of(key))
    }
}

impl FilterTests {
    /// Returns false if the filter of the chunk, if there is one, excludes the key.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        (fences, chunk): (&Fences, usize),
        key: &[u8],
        hash: &mut Hash,
    ) -> bool {
        if !fences.has_filter(chunk) {
            return true;
        }
        let passes = fences.may_have(chunk, hash.of(key));
        self.tests += 1;
        self.passes += u64::from(passes);
        passes
    }
}
