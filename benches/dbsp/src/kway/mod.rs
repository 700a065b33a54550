//! K sorted batches into one: DBSP's `ListMerger` beside ours.
//!
//! | case | DBSP | Windrow |
//! |---|---|---|
//! | in memory | vectors to vectors | chunks to chunks of a pool that recycles them |
//! | files | as they are, no filters, a cache of 32 MiB | as they are, no filters, 32 MiB in all |
//! | files, as they come | Snappy, Bloom filters or bitmaps, caches of 512 MiB | LZ4, filters, 32 MiB in all |
//!
//! Batches are made before the clock starts. Ours takes its inputs apart while it merges them; DBSP's are dropped when the
//! clock has stopped. Files are whole when it stops.

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

/// Bytes that ours may take where batches are in files, and DBSP's cache where it is told.
const LIMIT: usize = 32 << 20;

/// Where batches are, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Memory,
    /// Neither compressed nor filtered.
    Files,
    /// As DBSP is without any options.
    AsTheyCome,
}

const PLACES: [(Place, &str); 3] = [
    (Place::Memory, "in memory"),
    (Place::Files, "files"),
    (Place::AsTheyCome, "files, as they come"),
];

/// Measures all cases that are wanted.
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
    // It lives through all cases, and keeps what is freed.
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

/// Nanoseconds a record of ours and of DBSP's, whose results must be the same.
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
    /// How DBSP is to store batches.
    fn storage(self) -> Option<StorageOptions> {
        match self {
            Self::Memory => None,
            Self::Files => Some(StorageOptions {
                compression: StorageCompression::None,
                cache_mib: Some(LIMIT >> 20),
                // Outside of what is valid, which means none.
                bloom_false_positive_rate: Some(0.0),
                ..StorageOptions::default()
            }),
            Self::AsTheyCome => Some(StorageOptions::default()),
        }
    }

    /// True if batches have filters of their keys.
    fn filters(self) -> bool {
        self == Self::AsTheyCome
    }

    /// Where ours has its chunks.
    fn pool(self) -> Result<Pool> {
        let limited = |options| Pool::new(Budget::bytes(LIMIT), options);
        Ok(match self {
            Self::Memory => Pool::unlimited(),
            Self::Files => limited(PoolOptions::new())?,
            Self::AsTheyCome => limited(PoolOptions::new().codec(Codec::Lz4).policy(ForceSpill))?,
        })
    }

    /// Seconds of our merge, and what came out of it.
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

    /// Seconds of DBSP's merge, and what came out of it.
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
