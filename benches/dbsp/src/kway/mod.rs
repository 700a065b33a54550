//! Merges of K sorted batches into one: DBSP's `ListMerger` against Windrow.
//!
//! | case | DBSP | Windrow |
//! |---|---|---|
//! | in memory | vectors to vectors | chunks to chunks of a pool that recycles them |
//! | files | as they are, no filters, a cache of 32 MiB | as they are, no filters, 32 MiB in all |
//! | files, as they come | Snappy, Bloom filters or bitmaps, caches of 512 MiB | LZ4, filters, 32 MiB in all |
//!
//! Batches are built before the clock starts. Windrow frees its inputs during the merge; DBSP's
//! inputs are dropped after the clock has stopped. Output files are complete when the clock stops.

mod ours;
mod theirs;

use dbsp::storage::file::FilterKind;
use dbsp::trace::{Batch as _, BatchLocation, BatchReader as _};
use feldera_types::config::{StorageCompression, StorageOptions};
use windrow::{Batch, Budget, Codec, ForceSpill, Layout, Pool, PoolOptions};

use crate::data::{Runs, Work, chain, layout, records, runs};
use crate::harness::{Cells, contender, seconds};
use crate::{Options, Result, TURNS, runtime};

/// Memory limit of Windrow with batches in files, and the size of DBSP's cache where configured.
const LIMIT: usize = 32 << 20;

/// The location and form of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Memory,
    /// Neither compressed nor filtered.
    Files,
    /// DBSP's defaults.
    AsTheyCome,
}

const PLACES: [(Place, &str); 3] = [
    (Place::Memory, "in memory"),
    (Place::Files, "files"),
    (Place::AsTheyCome, "files, as they come"),
];

/// The measured distributions of keys, by name. Values are random u64, so neither engine gains by
/// compression.
const KEYS: [(Work, &str); 3] = [
    (Work::FewKeys, "keys 100"),
    (Work::ManyKeys, "keys 1e8"),
    (Work::Duplicates, "80% duplicates"),
];

/// Measures all selected cases.
pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<Cells> {
    for (place, name) in PLACES {
        let options = options.clone();
        cells = runtime::run(place.storage(), place.filters(), move || {
            cases(place, name, &options, cells)
        })?;
    }
    Ok(cells)
}

fn cases(place: Place, name: &str, options: &Options, mut cells: Cells) -> Result<Cells> {
    // The pool keeps freed memory through all cases.
    let pool = place.pool()?;
    for (keys, of_keys) in KEYS {
        let layout = layout(keys)?;
        for &count in &options.batches {
            let case = format!("{name}, {of_keys} K={count}");
            if !cells.wants(&case) {
                continue;
            }
            let mut sides = [
                contender("ours", |runs: &Runs, _| place.ours(&layout, &pool, runs)),
                contender("ListMerger", |runs: &Runs, _| place.theirs(runs)),
            ];
            let fresh = |round: usize| {
                let seed = (round as u64 + 1) << 32 | count as u64;
                let runs = runs(keys, count, options.records, 64, seed);
                let items = records(&runs);
                Ok((runs, items))
            };
            cells.race(&case, TURNS, fresh, &mut sides)?;
        }
    }
    Ok(cells)
}

impl Place {
    /// Returns DBSP's storage options for batches.
    fn storage(self) -> Option<StorageOptions> {
        match self {
            Self::Memory => None,
            Self::Files => Some(StorageOptions {
                compression: StorageCompression::None,
                cache_mib: Some(LIMIT >> 20),
                // Outside of the valid range, which disables filters.
                bloom_false_positive_rate: Some(0.0),
                ..StorageOptions::default()
            }),
            Self::AsTheyCome => Some(StorageOptions::default()),
        }
    }

    /// Returns true if batches have key filters.
    fn filters(self) -> bool {
        self == Self::AsTheyCome
    }

    /// Returns Windrow's pool.
    fn pool(self) -> Result<Pool> {
        let limited = |options| Ok(Pool::new(Budget::bytes(LIMIT), options)?);
        match self {
            Self::Memory => Ok(Pool::unlimited()),
            Self::Files => limited(PoolOptions::new()),
            Self::AsTheyCome => limited(PoolOptions::new().codec(Codec::Lz4).policy(ForceSpill)),
        }
    }

    /// Returns the seconds of Windrow's merge, and a digest of the result.
    fn ours(self, layout: &Layout, pool: &Pool, runs: &Runs) -> Result<(f64, u64)> {
        let batch = |run: &Vec<_>| {
            let batch = chain(layout, pool, Work::ManyKeys, run)?;
            Ok(if self == Self::Memory { batch } else { batch.spill()? })
        };
        let batches = runs.iter().map(batch).collect::<Result<Vec<Batch>>>()?;
        pool.wait_for_spills();
        let (seconds, merged) = seconds(|| ours::merge(self, layout, pool, batches))?;
        Ok((seconds, ours::digest(merged)?))
    }

    /// Returns the seconds of DBSP's merge, and a digest of the result.
    fn theirs(self, runs: &Runs) -> Result<(f64, u64)> {
        let mut batches: Vec<theirs::Batch> = Vec::new();
        for run in runs {
            let batch = theirs::batch(run);
            batches.push(if self == Self::Memory {
                batch
            } else {
                batch.persisted().ok_or("a batch that is in a file already")?
            });
        }
        let to = match self {
            Self::Memory => BatchLocation::Memory,
            Self::Files | Self::AsTheyCome => BatchLocation::Storage,
        };
        let (seconds, merged) = seconds(|| Ok(theirs::merge(&mut batches, to)))?;
        if merged.location() != to {
            return Err(format!("DBSP merged to {:?}", merged.location()).into());
        }
        let filter = merged.membership_filter_kind();
        if (filter != FilterKind::None) != self.filters() {
            return Err(format!("DBSP merged to a batch with filters: {filter:?}").into());
        }
        Ok((seconds, theirs::digest(&merged)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cells, run};
    use crate::{Options, harness::Select};

    #[test]
    fn both_merge_to_the_same_records_everywhere() {
        let select = Select { only: Vec::new(), rounds: Some(1) };
        let (batches, records, keys) = (vec![5], 20_000, 0);
        let cells = Cells::new("dbsp", "ns/record", select.clone());
        let done = run(&Options { select, batches, records, keys }, cells);
        assert!(done.is_ok_and(|cells| cells.cells.len() == 9));
    }
}
