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

mod data;
mod ours;
mod theirs;

use dbsp::storage::file::FilterKind;
use dbsp::trace::{BatchLocation, BatchReader as _};
use feldera_types::config::{StorageCompression, StorageOptions};
use windrow::{Batch, Budget, Codec, ForceSpill, Layout, Pool, PoolOptions};

use crate::cells::seconds;
use crate::{Compared, Options, Result, runtime};
use data::{Digest, KEYS, Record, runs};

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

/// Measures all selected cases.
pub(crate) fn run(options: &Options) -> Result<Vec<Compared>> {
    let mut compared = Vec::new();
    for (place, name) in PLACES {
        let options = options.clone();
        let work = move || cases(place, name, &options);
        compared.extend(runtime::run(place.storage(), place.filters(), work)?);
    }
    Ok(compared)
}

fn cases(place: Place, name: &str, options: &Options) -> Result<Vec<Compared>> {
    let layout = ours::layout()?;
    // The pool keeps freed memory through all cases.
    let pool = place.pool()?;
    let mut compared = Vec::new();
    for (keys, of_keys) in KEYS {
        for &count in &options.batches {
            let case = format!("{name}, {of_keys} K={count}");
            if !options.wants(&case) {
                continue;
            }
            let mut least = [f64::INFINITY; 2];
            for round in 0..options.rounds {
                let seed = (round as u64 + 1) << 32 | count as u64;
                let runs = runs(keys, count, options.records, seed);
                let times = round_of(place, &layout, &pool, &runs, round % 2 == 0);
                let times = times.map_err(|error| format!("{case}: {error}"))?;
                least.iter_mut().zip(times).for_each(|(least, time)| *least = least.min(time));
            }
            let [ours, theirs_ns] = least;
            compared.push(Compared {
                case,
                ours,
                theirs: "ListMerger",
                theirs_ns,
                unit: "ns/record",
            });
        }
    }
    Ok(compared)
}

/// Returns nanoseconds per record of Windrow and of DBSP; both results must be equal.
fn round_of(
    place: Place,
    layout: &Layout,
    pool: &Pool,
    runs: &[Vec<Record>],
    ours_first: bool,
) -> Result<[f64; 2]> {
    let records = runs.iter().map(Vec::len).sum::<usize>() as f64;
    let (mut ours, mut theirs) = (None, None);
    for ours_now in [ours_first, !ours_first] {
        if ours_now {
            ours = Some(place.ours(layout, pool, runs)?);
        } else {
            theirs = Some(place.theirs(runs)?);
        }
    }
    let (ours, theirs) = ours.zip(theirs).ok_or("one of the two did not run")?;
    if ours.1 != theirs.1 {
        return Err(format!("ours {:?}, DBSP's {:?}", ours.1, theirs.1).into());
    }
    Ok([ours.0, theirs.0].map(|seconds| seconds * 1e9 / records))
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
        let limited = |options| Pool::new(Budget::bytes(LIMIT), options);
        Ok(match self {
            Self::Memory => Pool::unlimited(),
            Self::Files => limited(PoolOptions::new())?,
            Self::AsTheyCome => limited(PoolOptions::new().codec(Codec::Lz4).policy(ForceSpill))?,
        })
    }

    /// Returns the seconds of Windrow's merge, and a digest of the result.
    fn ours(self, layout: &Layout, pool: &Pool, runs: &[Vec<Record>]) -> Result<(f64, Digest)> {
        let batch = |run: &Vec<Record>| ours::batch(layout, pool, run);
        let stored = |run: &Vec<Record>| Ok(batch(run)?.spill()?);
        let batches: Result<Vec<Batch>> = match self {
            Self::Memory => runs.iter().map(batch).collect(),
            Self::Files | Self::AsTheyCome => runs.iter().map(stored).collect(),
        };
        let batches = batches?;
        pool.wait_for_spills();
        let (seconds, merged) = seconds(|| match self {
            Self::Memory => ours::merge(layout, pool, batches),
            Self::Files => ours::merge_files(layout, pool, batches),
            Self::AsTheyCome => ours::merge_filtered(layout, pool, batches),
        })?;
        Ok((seconds, ours::digest(merged)?))
    }

    /// Returns the seconds of DBSP's merge, and a digest of the result.
    fn theirs(self, runs: &[Vec<Record>]) -> Result<(f64, Digest)> {
        let mut batches: Vec<theirs::Batch> = Vec::new();
        for run in runs {
            let batch = theirs::batch(run);
            batches.push(if self == Self::Memory { batch } else { theirs::stored(&batch)? });
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
    use super::{KEYS, PLACES, ours, round_of, runs, runtime};

    #[test]
    fn both_merge_to_the_same_records_everywhere() {
        for (place, _) in PLACES {
            let done = runtime::run(place.storage(), place.filters(), move || {
                let (layout, pool) = (ours::layout()?, place.pool()?);
                for (keys, _) in KEYS {
                    round_of(place, &layout, &pool, &runs(keys, 5, 20_000, 1), true)?;
                }
                Ok(())
            });
            assert!(done.is_ok(), "{place:?}: {done:?}");
        }
    }
}
