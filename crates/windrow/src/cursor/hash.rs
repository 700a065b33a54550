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

impl FilterTests {
    pub(super) fn add<'a>(&mut self, hashes: impl IntoIterator<Item = &'a Hash>) {
        for Hash { tested, .. } in hashes {
            self.tests += tested.tests;
            self.passes += tested.passes;
        }
    }
}

/// The hash of a key, computed on first use, and the tests by it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hash {
    hash: Option<KeyHash>,
    tested: FilterTests,
}

impl Hash {
    #[inline(always)]
    pub(super) fn of(&mut self, key: &[u8]) -> KeyHash {
        *self.hash.get_or_insert_with(|| KeyHash::of(key))
    }

    /// Returns false if the filter of the chunk, if there is one, excludes the key.
    #[inline(always)]
    pub(super) fn may_be_in(&mut self, fences: &Fences, chunk: usize, key: &[u8]) -> bool {
        if !fences.has_filter(chunk) {
            return true;
        }
        let passes = fences.may_have(chunk, self.of(key));
        self.tested.tests += 1;
        self.tested.passes += u64::from(passes);
        passes
    }
}
