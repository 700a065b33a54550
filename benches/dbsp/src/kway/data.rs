//! The records merged by both engines, and a digest to compare the results.

use crate::rng::Rng;

/// Number of value columns of a record.
pub(super) const VALUES: usize = 10;

/// A key, ten values and a diff: rows of 96 bytes, as in DBSP's own bench of its merger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    pub(super) key: u64,
    pub(super) values: [u64; VALUES],
    pub(super) diff: i64,
}

/// The distribution of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Below 100: the values decide the order.
    Few,
    /// Below 1e8.
    Many,
    /// A fifth as many keys as records, with values determined by the key: four of five records are
    /// duplicates.
    Duplicates,
}

/// The measured distributions, by name.
pub(super) const KEYS: [(Keys, &str); 3] =
    [(Keys::Few, "keys 100"), (Keys::Many, "keys 1e8"), (Keys::Duplicates, "80% duplicates")];

/// Generates `count` sorted runs of `records` in total, each without equal records. Values are
/// random u64, so neither engine gains by compression.
pub(super) fn runs(keys: Keys, count: usize, records: usize, seed: u64) -> Vec<Vec<Record>> {
    let mut rng = Rng::new(seed);
    let mut record = |_| {
        let key = match keys {
            Keys::Few => rng.below(100),
            Keys::Many => rng.below(100_000_000),
            Keys::Duplicates => rng.below(records as u64 / 5),
        };
        let mut of_key = Rng::new(key);
        let from = if keys == Keys::Duplicates { &mut of_key } else { &mut rng };
        Record { key, values: std::array::from_fn(|_| from.next_u64()), diff: 1 }
    };
    let mut run = |_| {
        let mut run: Vec<Record> = (0..records / count).map(&mut record).collect();
        run.sort_unstable();
        run.dedup();
        run
    };
    (0..count).map(&mut run).collect()
}

/// A digest of a result: all of its records, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest {
    records: usize,
    diffs: i64,
    /// Hash of all words, in order.
    hash: u64,
}

impl Digest {
    /// Adds the next record.
    pub(super) fn take(&mut self, record: &Record) {
        self.records += 1;
        self.diffs += record.diff;
        self.word(record.key);
        record.values.iter().for_each(|&value| self.word(value));
        self.word(record.diff as u64);
    }

    fn word(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::{Digest, Keys, runs};

    #[test]
    fn runs_ascend_and_digests_tell_orders_apart() {
        for keys in [Keys::Few, Keys::Many, Keys::Duplicates] {
            let runs = runs(keys, 3, 3000, 1);
            assert!(runs.iter().all(|run| run.is_sorted_by(|a, b| a < b)));
            let digest = |records: &mut dyn Iterator<Item = _>| {
                let mut digest = Digest::default();
                records.for_each(|record| digest.take(record));
                digest
            };
            let run = &runs[0];
            assert_ne!(digest(&mut run.iter()), digest(&mut run.iter().rev()));
        }
    }
}
