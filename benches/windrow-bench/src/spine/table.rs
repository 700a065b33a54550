//! A table with a key under upserts and reads, beside key-value stores.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::{ArrayRef, BinaryArray, RecordBatch, UInt64Array};
use windrow::{Mergers, Pool, Table};

use super::Options;
#[cfg(feature = "stores")]
use super::stores;
use crate::Result;
use crate::harness::{Cells, seconds};
use windrow_testdata::rng::Rng;

/// Bytes of a value.
pub(super) const VALUE: usize = 100;
/// Rows of a call.
const BATCH: usize = 1000;
/// Bytes of fjall's own cache when memory is ample.
#[cfg(feature = "stores")]
const CACHE: u64 = 4 << 30;
/// A prime: its multiples modulo the number of keys visit all keys in scattered order.
const FACTOR: u64 = 2_654_435_761;

/// A store with reads and upserts.
pub(super) trait Store {
    fn upsert(&mut self, keys: &[u64], values: &[Vec<u8>]) -> Result<()>;

    /// Returns the total bytes of the values of found keys.
    fn read(&mut self, keys: &[u64]) -> Result<usize>;
}

/// Windrow's table.
pub(super) fn ours(pool: &Pool, mergers: Option<&Mergers>) -> Result<Box<dyn Store>> {
    let mut table = Table::new(&rows_of(&[], &[])?.schema(), "key", pool)?;
    if let Some(mergers) = mergers {
        table.merge_on(mergers);
    }
    Ok(Box::new(table))
}

fn rows_of(keys: &[u64], values: &[Vec<u8>]) -> Result<RecordBatch> {
    let values = BinaryArray::from_iter_values(values);
    Ok(RecordBatch::try_from_iter([
        ("key", Arc::new(UInt64Array::from(keys.to_vec())) as ArrayRef),
        ("value", Arc::new(values) as ArrayRef),
    ])?)
}

impl Store for Table {
    fn upsert(&mut self, keys: &[u64], values: &[Vec<u8>]) -> Result<()> {
        Table::upsert(self, &rows_of(keys, values)?)?;
        let now = self.now();
        Ok(self.forget_before(now)?)
    }

    fn read(&mut self, keys: &[u64]) -> Result<usize> {
        let keys: ArrayRef = Arc::new(UInt64Array::from(keys.to_vec()));
        let found = self.get(&RecordBatch::try_from_iter([("key", keys)])?)?;
        Ok(found.column(1).as_binary::<i32>().value_data().len())
    }
}

impl Store for BTreeMap<u64, Vec<u8>> {
    fn upsert(&mut self, keys: &[u64], values: &[Vec<u8>]) -> Result<()> {
        self.extend(keys.iter().copied().zip(values.iter().cloned()));
        Ok(())
    }

    fn read(&mut self, keys: &[u64]) -> Result<usize> {
        // As in all stores, the caller owns the values.
        let found: Vec<Vec<u8>> = keys.iter().filter_map(|key| self.get(key)).cloned().collect();
        Ok(black_box(found).iter().map(Vec::len).sum())
    }
}

/// Seconds of loading, of upserts and of reads, and the bytes read.
pub(super) type Figures = ([f64; 3], usize);

/// Loads all keys, `load` rows a call, then runs rounds of one call of upserts and nine of reads.
/// All stores receive the same calls, in turns.
pub(super) fn measured(
    options: &Options,
    load: usize,
    stores: &mut [Box<dyn Store>],
) -> Result<Vec<Figures>> {
    let mut rng = Rng::new(11);
    let mut figures = vec![Figures::default(); stores.len()];
    let upsert = |at,
                  keys: &[u64],
                  rng: &mut Rng,
                  stores: &mut [Box<dyn Store>],
                  figures: &mut [Figures]| {
        let mut word = || (rng.below(1 << 32) as u32).to_le_bytes();
        let value = |_| (0..VALUE / 4).flat_map(|_| word()).collect();
        let values: Vec<Vec<u8>> = keys.iter().map(value).collect();
        for (store, (times, _)) in stores.iter_mut().zip(figures) {
            times[at] += seconds(|| store.upsert(keys, &values))?.0;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    for start in (0..options.keys).step_by(load) {
        let end = options.keys.min(start + load as u64);
        let keys: Vec<u64> = (start..end).map(|at| at * FACTOR % options.keys).collect();
        upsert(0, &keys, &mut rng, stores, &mut figures)?;
    }
    for _ in 0..options.calls {
        let mut draw = || (0..BATCH).map(|_| rng.below(options.keys)).collect::<Vec<u64>>();
        let (reads, writes): (Vec<Vec<u64>>, Vec<u64>) = ((0..9).map(|_| draw()).collect(), draw());
        upsert(1, &writes, &mut rng, stores, &mut figures)?;
        for (store, (times, bytes)) in stores.iter_mut().zip(&mut figures) {
            let (time, read) =
                seconds(|| reads.iter().map(|keys| store.read(keys)).sum::<Result<usize>>())?;
            times[2] += time;
            *bytes += read;
        }
    }
    Ok(figures)
}

/// Compares each table of Windrow's with each other store.
pub(super) fn report(
    options: &Options,
    part: &str,
    figures: &[(&str, Figures)],
    cells: &mut Cells,
) -> Result<()> {
    if figures.windows(2).any(|pair| pair[0].1.1 != pair[1].1.1) {
        return Err("stores have read different bytes".into());
    }
    let (own, rivals): (Vec<_>, Vec<_>) =
        figures.iter().partition(|(name, _)| name.starts_with("ours"));
    let calls = (options.calls * BATCH) as f64;
    let kinds = [("load", options.keys as f64), ("upserts", calls), ("reads", 9.0 * calls)];
    for (at, (kind, rows)) in kinds.into_iter().enumerate() {
        for (name, (ours, _)) in &own {
            let theirs = rivals.iter().map(|(name, (times, _))| (name, times[at] * 1e9 / rows));
            let case = format!("table of {name}{part}: {kind}");
            cells.push("ns/row", &case, ours[at] * 1e9 / rows, theirs);
        }
    }
    Ok(())
}

/// Measures with ample memory.
pub(super) fn table(options: &Options, cells: &mut Cells) -> Result<()> {
    let pool = Pool::unlimited();
    // fjall merges on threads of its own.
    let mergers = Mergers::new(1)?;
    let mut names = vec!["ours", "ours, merging on a thread", "BTreeMap"];
    let mut all: Vec<Box<dyn Store>> =
        vec![ours(&pool, None)?, ours(&pool, Some(&mergers))?, Box::new(BTreeMap::new())];
    #[cfg(feature = "stores")]
    {
        names.extend(["redb in memory", "fjall"]);
        all.push(Box::new(stores::Redb::new(None)?));
        all.push(Box::new(stores::Fjall::new(CACHE)?));
    }
    let figures = measured(options, 100 * BATCH, &mut all)?;
    let figures: Vec<_> = names.drain(..).zip(figures).collect();
    report(options, "", &figures, cells)
}
