//! Fence pointers: a compact index of a run that finds the chunk of a key.
//!
//! ```text
//! run      | ann ... eve | fay ... kim | lea ... zoe |        a chunk each, in memory or stored
//! firsts     ann           fay           lea                  words from the first difference on
//! lasts              eve           kim           zoe
//! filters    yes           yes           -
//! ```
//! Built for the first cursor on a run. A look-up searches `lasts` and checks one filter. It reads
//! no chunk, and no scattered heap memory, unless the key may be present.
//!
//! Invariant: a key excluded by the fence pointers is not in the run.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::run::Run;
use crate::chunk::{Filter, KeyHash, Sought, View, between, bisect, word_at};
use windrow_rows::{Layout, key_len};

/// A compacted run, with its fence pointers once they are built.
#[derive(Debug, Default)]
pub(crate) struct FencedRun {
    run: Run,
    fences: OnceLock<Option<Fences>>,
}

impl FencedRun {
    pub(crate) fn new(run: Run) -> Self {
        Self { run, fences: OnceLock::new() }
    }

    /// Builds the fence pointers. Reads the metadata of every chunk, once.
    pub(crate) fn make_fences(&self, layout: &Layout) {
        self.fences.get_or_init(|| Fences::of(layout, &self.run));
    }

    /// Returns false if the key is absent, as far as fence pointers and filters tell.
    pub(crate) fn may_have(&self, layout: &Layout, key: &[u8]) -> bool {
        self.make_fences(layout);
        let Some(fences) = self.fences() else { return true };
        let sought = fences.sought(key);
        let chunk = fences.chunk_of(self, &sought);
        chunk < self.chunks()
            && !fences.begins_behind(chunk, &sought)
            && (!fences.has_filter(chunk) || fences.may_have(chunk, KeyHash::of(key)))
    }

    /// Returns the fence pointers if they were built. `None` also if the first or the last row of a
    /// chunk is too long to stay in memory.
    #[inline(always)]
    pub(crate) fn fences(&self) -> Option<&Fences> {
        self.fences.get()?.as_ref()
    }
}

impl Deref for FencedRun {
    type Target = Run;

    #[inline(always)]
    fn deref(&self) -> &Run {
        &self.run
    }
}

/// Facts about the chunks of a run, which has at least one.
#[derive(Debug)]
pub(crate) struct Fences {
    /// The prefix of all rows; words follow it.
    shared: Box<[u8]>,
    firsts: Box<[u64]>,
    lasts: Box<[u64]>,
    rows: Box<[u32]>,
    filters: Box<[Option<Arc<Filter>>]>,
}

impl Fences {
    fn of(layout: &Layout, run: &Run) -> Option<Self> {
        let [first, last] = run.ends()?;
        let key = key_len(layout, first);
        let shared = match layout.stride() {
            // One word holds the whole key, and all keys have one length.
            Some(_) if key <= size_of::<u64>() => 0,
            _ => first.iter().zip(last).take_while(|(a, b)| a == b).count().min(key),
        };
        let all = 0..run.chunks();
        let word = |row: Option<&[u8]>| row.map(|row| word_at(row, shared));
        Some(Self {
            shared: first[..shared].into(),
            firsts: all.clone().map(|at| word(run.first_row_of(at))).collect::<Option<_>>()?,
            lasts: all.clone().map(|at| word(run.last_row_of(at))).collect::<Option<_>>()?,
            rows: all.clone().map(|at| run.rows_of(at) as u32).collect(),
            filters: all.map(|at| run.filter_of(at).cloned()).collect(),
        })
    }

    /// Returns the probe key for `key` in the run.
    #[inline(always)]
    pub(crate) fn sought<'a>(&self, key: &'a [u8]) -> Sought<'a> {
        Sought::new(key, &self.shared)
    }

    /// Returns true if all rows share a prefix, which words follow.
    #[inline(always)]
    pub(crate) fn has_prefix(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Returns true if the words place the first row of the run that does not sort before the key
    /// in this chunk.
    #[inline(always)]
    pub(crate) fn holds(&self, chunk: usize, sought: &Sought<'_>) -> bool {
        let word = sought.low;
        self.lasts.get(chunk).is_some_and(|&last| last > word)
            && (chunk == 0 || self.lasts[chunk - 1] < word)
    }

    /// Returns the chunk with the first row of `run` that does not sort before the key, or the
    /// number of chunks. The fence pointers must be those of `run`.
    #[inline]
    pub(crate) fn chunk_of(&self, run: &Run, sought: &Sought<'_>) -> usize {
        let word = sought.low;
        let low = self.lasts.partition_point(|&last| last < word);
        if sought.inexact && self.lasts.get(low) == Some(&word) {
            return self.exact_chunk_of(run, sought, low);
        }
        low
    }

    /// Does the same as [`Fences::chunk_of`] if the last row of chunk `low` has the word of the
    /// key.
    #[cold]
    fn exact_chunk_of(&self, run: &Run, sought: &Sought<'_>, low: usize) -> usize {
        let word = sought.low;
        let high = self.lasts.partition_point(|&last| last <= word);
        bisect(low..high, |chunk| {
            let last = || run.last_row_of(chunk).unwrap_or_default();
            sought.is_behind(self.lasts[chunk], last)
        })
    }

    /// Returns true if the words show that all rows of the chunk sort after the key.
    #[inline(always)]
    pub(crate) fn begins_behind(&self, chunk: usize, sought: &Sought<'_>) -> bool {
        sought.ends_before(self.firsts[chunk])
    }

    /// Returns true if the chunk has a filter.
    #[inline(always)]
    pub(crate) fn has_filter(&self, chunk: usize) -> bool {
        self.filters[chunk].is_some()
    }

    /// Prefetches the filter block of the key.
    #[inline(always)]
    pub(crate) fn prefetch(&self, chunk: usize, hash: KeyHash) {
        if let Some(filter) = &self.filters[chunk] {
            filter.prefetch(hash);
        }
    }

    /// Returns false if the chunk has no row with a key of this hash.
    #[inline(always)]
    pub(crate) fn may_have(&self, chunk: usize, hash: KeyHash) -> bool {
        self.filters[chunk].as_ref().is_none_or(|filter| filter.may_have(hash))
    }

    /// Returns the number of rows of a chunk.
    #[inline(always)]
    pub(crate) fn rows(&self, chunk: usize) -> usize {
        self.rows[chunk] as usize
    }

    /// Returns the words of the first and the last row of a chunk.
    #[inline(always)]
    pub(crate) fn words(&self, chunk: usize) -> [u64; 2] {
        [self.firsts[chunk], self.lasts[chunk]]
    }

    /// Returns the word of a row, or the greatest word after the last row.
    #[inline(always)]
    pub(crate) fn word_of(&self, rows: View<'_>, row: usize) -> u64 {
        if row < rows.len() { rows.word(row, self.shared.len()) } else { u64::MAX }
    }

    /// Interpolates the position of the key in a chunk.
    #[inline(always)]
    pub(crate) fn guess(&self, chunk: usize, sought: &Sought<'_>) -> usize {
        between(sought.low, self.words(chunk), self.rows(chunk))
    }
}
