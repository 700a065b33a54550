//! `spine`: lookups in batches of changes, and a table under updates.
//!
//! `probes` look up existing sorted keys in a spine, against a `BTreeMap` as the lower bound.
//! `absent` keys are looked up in a batch with filters and in one without, in memory and with all
//! chunks on disk. `table` takes reads and upserts, nine reads to one upsert, a thousand rows per
//! call, with rows of a u64 and 100 bytes. Rivals are a `BTreeMap` and, with the feature `stores`,
//! redb in memory and fjall in cached files, with transactions of the same size. A second table is
//! merged by a background thread, like fjall's. `--only limited` runs the same workload in memory
//! cgroups limited to a fraction of the rows (`--part`), including the page cache. `rest` counts
//! bytes per row in memory. With the feature `dataflow`, differential-dataflow's spine takes probes
//! as well.

#[cfg(feature = "stores")]
mod limited;
#[cfg(feature = "dataflow")]
mod ord_val;
#[cfg(feature = "stores")]
mod stores;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use clap::Args;
use windrow::arrow_array::{
    ArrayRef, BinaryArray, Int64Array, RecordBatch, UInt32Array, UInt64Array,
};
use windrow::{
    Antichain, Batch, Batcher, Budget, Cursor, ForceSpill, Layout, Mergers, Merging, Order, Pool,
    PoolOptions, RowEncoder, Rows, Spine, Table,
};

use crate::Result;
use crate::cells::{Cells, keep_freed_memory, seconds};
use windrow_testdata::rng::Rng;

/// Bytes of a value of the table.
const VALUE: usize = 100;
/// Rows of a call.
const BATCH: usize = 1000;
/// Number of batches in the spine.
const BATCHES: u64 = 16;

/// Name of the case that runs only on request: it takes long, and needs the permission to create
/// memory cgroups.
#[cfg(feature = "stores")]
const LIMITED: &str = "limited";
/// Bytes of fjall's own cache when memory is ample.
#[cfg(feature = "stores")]
const CACHE: u64 = 4 << 30;
/// Memory for the single chunk being read.
const ROOM: usize = 1 << 20;

/// What is measured, and how often.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Keys
    #[arg(long, default_value_t = 2_000_000)]
    keys: u64,
    /// Calls of a thousand rows each of the table
    #[arg(long, default_value_t = 500)]
    calls: usize,
    /// `limited` has memory for one part in so many of the rows
    #[arg(long, default_value_t = 4)]
    part: u64,
    /// What the process of one store measures
    #[arg(long, hide = true)]
    engine: Option<String>,
    /// Rounds, of which the fastest counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Cases whose name has this
    #[arg(long, default_value = "")]
    only: String,
}

/// Runs the bench and writes the results.
pub(crate) fn run(options: &Options) -> Result<()> {
    #[cfg(feature = "stores")]
    if let Some(engine) = &options.engine {
        return limited::child(options, engine);
    }
    keep_freed_memory();
    let mut cells = Cells::new("spine", "ns/key");
    if "probes".contains(&options.only) {
        probes(options, &mut cells)?;
    }
    if "absent".contains(&options.only) {
        absent(options, &mut cells)?;
    }
    if "rest".contains(&options.only) {
        rest(options, &mut cells)?;
    }
    if "table".contains(&options.only) {
        table(options, &mut cells)?;
    }
    #[cfg(feature = "stores")]
    if options.only == LIMITED {
        limited::limited(options, &mut cells)?;
    }
    cells.finish()
}

/// Creates changes of `keys`, each its own value, at `time`.
fn changes(keys: impl Iterator<Item = u64>, time: u64) -> Result<RecordBatch> {
    let keys: Vec<u64> = keys.collect();
    let numbers = |values: Vec<u64>| Arc::new(UInt64Array::from(values)) as ArrayRef;
    let count = keys.len();
    Ok(RecordBatch::try_from_iter([
        ("key", numbers(keys.clone())),
        ("value", numbers(keys)),
        ("time", numbers(vec![time; count])),
        ("diff", Arc::new(Int64Array::from(vec![1; count])) as ArrayRef),
    ])?)
}

fn layout() -> Result<Layout> {
    let schema = changes(std::iter::empty(), 0)?.schema();
    Ok(Order::by("key").time("time").diff("diff").bind(&schema)?)
}

/// Encodes keys for cursors.
fn wanted(layout: &Layout, keys: &[u64]) -> Result<Rows> {
    let keys: ArrayRef = Arc::new(UInt64Array::from(keys.to_vec()));
    Ok(RowEncoder::of_keys(layout).encode(&RecordBatch::try_from_iter([("key", keys)])?)?)
}

fn best(times: &mut f64, time: f64) {
    *times = times.min(time);
}

fn probes(options: &Options, cells: &mut Cells) -> Result<()> {
    let (layout, pool) = (layout()?, Pool::unlimited());
    let mut spine = Spine::new(&layout, &pool)?;
    let mut batcher = Batcher::new(&layout, &pool);
    for time in 0..BATCHES {
        let own = (0..options.keys).filter(|key| (key * 7919) % BATCHES == time);
        batcher.push(&changes(own.map(|key| key * 2), time)?)?;
        spine.insert(batcher.seal(&Antichain::at(time + 1))?)?;
    }
    #[cfg(feature = "dataflow")]
    let mut ord_val = {
        let mut ord_val = ord_val::OrdVal::new();
        for time in 0..BATCHES {
            let own = (0..options.keys).filter(|key| (key * 7919) % BATCHES == time);
            ord_val.insert(own.map(|key| key * 2), time);
        }
        ord_val
    };
    let map: BTreeMap<u64, Vec<(u64, u64, i64)>> =
        (0..options.keys).map(|key| (key * 2, vec![(key * 2, 0, 1)])).collect();
    for (case, step) in [("probes of 1 %", 100), ("probes of all", 1)] {
        let keys: Vec<u64> = (0..options.keys).step_by(step).map(|key| key * 2).collect();
        let rows = wanted(&layout, &keys)?;
        let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
        #[cfg(feature = "dataflow")]
        let mut of_ord_val = f64::INFINITY;
        for _ in 0..options.rounds {
            let (time, sum) = seconds(|| {
                let (mut cursor, mut sum) = (spine.idle_cursor()?, 0);
                cursor.probe(&rows, |_, cursor| cursor.map_times(|_, diff| sum += diff))?;
                Ok(sum)
            })?;
            best(&mut ours, time);
            let (time, other) = seconds(|| {
                let found = keys.iter().filter_map(|key| map.get(key));
                Ok(found.flatten().map(|&(_, _, diff)| diff).sum::<i64>())
            })?;
            best(&mut theirs, time);
            #[cfg(feature = "dataflow")]
            {
                let (time, third) = seconds(|| ord_val.probe(&keys))?;
                best(&mut of_ord_val, time);
                if third != sum {
                    return Err(format!("{case}: {sum} changes, OrdVal has {third}").into());
                }
            }
            if sum != other || sum != keys.len() as i64 {
                return Err(format!("{case}: {sum} changes, the map has {other}").into());
            }
        }
        let per_key = |time: f64| time * 1e9 / keys.len() as f64;
        let case = format!("{case}, {} batches", spine.batches().count());
        cells.push(&case, per_key(ours), "BTreeMap", per_key(theirs));
        #[cfg(feature = "dataflow")]
        cells.push(&case, per_key(ours), "OrdVal", per_key(of_ord_val));
    }
    Ok(())
}

/// Builds a batch of the even keys, in memory, or on disk without memory to cache chunks.
fn batch(options: &Options, stored: bool, filtered: bool) -> Result<(Pool, Batch)> {
    let pool = match stored {
        true => {
            let spilling = PoolOptions::new().policy(ForceSpill);
            Pool::new(Budget::bytes(64 << 20), spilling)?
        }
        false => Pool::unlimited(),
    };
    let layout = layout()?;
    let mut batcher = Batcher::new(&layout, &pool);
    let all: Vec<u64> = (0..options.keys).map(|key| key * 2).collect();
    for keys in all.chunks(8192) {
        batcher.push(&changes(keys.iter().copied(), 0)?)?;
    }
    let merging = Merging::new(&layout, &pool, [batcher.finish()?]);
    let batch = if filtered { merging.filtered() } else { merging }.finish()?;
    if stored {
        let batch = batch.settle()?;
        pool.wait_for_spills();
        pool.release();
        pool.set_limit(pool.budget().used() + ROOM)?;
        return Ok((pool, batch));
    }
    Ok((pool, batch))
}

fn absent(options: &Options, cells: &mut Cells) -> Result<()> {
    let layout = layout()?;
    for (place, stored, count) in [("memory", false, 200_000), ("a store", true, 2000)] {
        let with = batch(options, stored, true)?;
        let without = batch(options, stored, false)?;
        let mut rng = Rng::new(3);
        let keys: Vec<u64> = (0..count).map(|_| rng.below(options.keys) * 2 + 1).collect();
        let rows = wanted(&layout, &keys)?;
        let mut times = [f64::INFINITY; 2];
        for _ in 0..options.rounds {
            for ((_, batch), times) in [&with, &without].into_iter().zip(&mut times) {
                let mut cursor = Cursor::new([batch])?;
                let (time, found) = seconds(|| {
                    let mut found = 0;
                    cursor.probe(&rows, |_, _| {
                        found += 1;
                        Ok(())
                    })?;
                    Ok(found)
                })?;
                best(times, time);
                if found != 0 {
                    return Err(format!("{found} keys that are not there").into());
                }
            }
        }
        let [ours, theirs] = times.map(|time| time * 1e9 / f64::from(count));
        cells.push(&format!("absent keys, in {place}"), ours, "without filters", theirs);
    }
    Ok(())
}

/// Measures bytes per row of numbers at one time and of edges of degree 16, in memory and on disk,
/// against the columns' size. Also measures a scan from disk against rows stored as they are.
fn rest(options: &Options, cells: &mut Cells) -> Result<()> {
    let same =
        |value: u64| Arc::new(UInt64Array::from(vec![value; options.keys as usize])) as ArrayRef;
    let ones = || Arc::new(Int64Array::from(vec![1; options.keys as usize])) as ArrayRef;
    let edges = |time: u64| -> Result<RecordBatch> {
        let all = || 0..options.keys;
        let from = UInt32Array::from_iter_values(all().map(|edge| (edge / 16) as u32));
        let to = all().map(|edge| ((edge * 7919 + time) % options.keys) as u32);
        Ok(RecordBatch::try_from_iter([
            ("key", Arc::new(from) as ArrayRef),
            ("to", Arc::new(UInt32Array::from_iter_values(to)) as ArrayRef),
            ("time", same(time)),
            ("diff", ones()),
        ])?)
    };
    let numbers = |time: u64| changes((0..options.keys).map(|key| key * FAN_IN + time), time);
    in_memory("(u64, u64)", 32.0, numbers, cells)?;
    in_memory("edges (u32, u32)", 24.0, edges, cells)?;
    at_rest("(u64, u64)", 32.0, numbers, options, cells)?;
    at_rest("edges (u32, u32)", 24.0, edges, options, cells)
}

/// Measures bytes per row of a fully merged spine in memory at one time: all leased bytes,
/// including filters.
fn in_memory(
    case: &str,
    columns: f64,
    of: impl Fn(u64) -> Result<RecordBatch>,
    cells: &mut Cells,
) -> Result<()> {
    let layout = Order::by("key").time("time").diff("diff").bind(&of(0)?.schema())?;
    let pool = Pool::unlimited();
    let mut spine = Spine::new(&layout, &pool)?;
    spine.set_since(&Antichain::at(FAN_IN))?;
    let mut batcher = Batcher::new(&layout, &pool);
    for time in 0..FAN_IN {
        batcher.push(&of(time)?)?;
        spine.insert(batcher.seal(&Antichain::at(time + 1))?.settle()?)?;
        while !spine.work(&mut i64::MAX.clone())? {}
    }
    drop(batcher);
    pool.release();
    let rows: u64 = spine.batches().filter_map(Batch::rows).sum();
    let bytes = pool.budget().used() as f64 / rows as f64;
    cells.push_in(&format!("rest: {case}, in memory"), bytes, "columns", columns, "B/row");
    Ok(())
}

/// Batches that a spine merges at once.
const FAN_IN: u64 = 4;

fn at_rest(
    case: &str,
    columns: f64,
    of: impl Fn(u64) -> Result<RecordBatch>,
    options: &Options,
    cells: &mut Cells,
) -> Result<()> {
    let layout = Order::by("key").time("time").diff("diff").bind(&of(0)?.schema())?;
    let pool = Pool::new(Budget::bytes(1 << 30), PoolOptions::new().policy(ForceSpill))?;
    let mut spine = Spine::new(&layout, &pool)?;
    spine.set_since(&Antichain::at(FAN_IN))?;
    let mut batcher = Batcher::new(&layout, &pool);
    let mut plain = Vec::new();
    for time in 0..FAN_IN {
        batcher.push(&of(time)?)?;
        let batch = batcher.seal(&Antichain::at(time + 1))?.settle()?;
        plain.extend(batch.try_clone());
        pool.wait_for_spills();
        let before = pool.stats().stored_bytes;
        spine.insert(batch)?;
        while !spine.work(&mut i64::MAX.clone())? {}
        pool.wait_for_spills();
        let stored = (pool.stats().stored_bytes - before) as f64;
        if stored > 0.0 {
            let rows: u64 = spine.batches().filter_map(Batch::rows).sum();
            let case = format!("rest: {case}, in a store");
            cells.push_in(&case, stored / rows as f64, "columns", columns, "B/row");
        }
    }
    let merged = Merging::new(&layout, &pool, plain).advancing(&Antichain::at(FAN_IN))?;
    let plain = merged.finish()?;
    pool.wait_for_spills();
    pool.release();
    // Chunks do not stay in memory after a read.
    pool.set_limit(pool.budget().used() + 4 * ROOM)?;
    let mut times = [f64::INFINITY; 2];
    let rows = plain.rows().unwrap_or(0);
    for _ in 0..options.rounds {
        let mut counts = [0, 0];
        for (at, times) in times.iter_mut().enumerate() {
            let (time, count) = seconds(|| {
                let mut cursor = if at == 0 { spine.cursor()? } else { Cursor::new([&plain])? };
                let mut count = 0;
                while cursor.has_key() {
                    while cursor.has_value() {
                        cursor.map_times(|_, diff| count += diff)?;
                        cursor.step_value()?;
                    }
                    cursor.step_key()?;
                }
                Ok(count)
            })?;
            best(times, time);
            counts[at] = count;
        }
        if counts[0] != counts[1] {
            return Err(format!("{case}: {counts:?} changes").into());
        }
    }
    let [ours, theirs] = times.map(|time| time * 1e9 / rows as f64);
    cells.push_in(&format!("scan: {case}, from a store"), ours, "as they are", theirs, "ns/row");
    Ok(())
}

/// A store with reads and upserts.
trait Store {
    fn upsert(&mut self, keys: &[u64], values: &[Vec<u8>]) -> Result<()>;

    /// Returns the total bytes of the values of found keys.
    fn read(&mut self, keys: &[u64]) -> Result<usize>;
}

struct Ours(Table);

fn rows_of(keys: &[u64], values: &[Vec<u8>]) -> Result<RecordBatch> {
    let values = BinaryArray::from_iter_values(values);
    Ok(RecordBatch::try_from_iter([
        ("key", Arc::new(UInt64Array::from(keys.to_vec())) as ArrayRef),
        ("value", Arc::new(values) as ArrayRef),
    ])?)
}

impl Store for Ours {
    fn upsert(&mut self, keys: &[u64], values: &[Vec<u8>]) -> Result<()> {
        self.0.upsert(&rows_of(keys, values)?)?;
        let now = self.0.now();
        Ok(self.0.forget_before(now)?)
    }

    fn read(&mut self, keys: &[u64]) -> Result<usize> {
        let keys: ArrayRef = Arc::new(UInt64Array::from(keys.to_vec()));
        let found = self.0.get(&RecordBatch::try_from_iter([("key", keys)])?)?;
        let values = found.column(1).as_any().downcast_ref::<BinaryArray>();
        Ok(values.map_or(0, |values| values.value_data().len()))
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

fn table(options: &Options, cells: &mut Cells) -> Result<()> {
    let pool = Pool::unlimited();
    let schema = rows_of(&[], &[])?.schema();
    // fjall merges on threads of its own.
    let mergers = Mergers::new(1)?;
    let mut threaded = Table::new(&schema, "key", &pool)?;
    threaded.merge_on(&mergers);
    let mut stores: Vec<(&str, Box<dyn Store>)> = vec![
        ("ours", Box::new(Ours(Table::new(&schema, "key", &pool)?))),
        ("ours, merging on a thread", Box::new(Ours(threaded))),
    ];
    let ours = stores.len();
    stores.push(("BTreeMap", Box::new(BTreeMap::new())));
    #[cfg(feature = "stores")]
    {
        stores.push(("redb in memory", Box::new(stores::Redb::new()?)));
        stores.push(("fjall", Box::new(stores::Fjall::new(CACHE)?)));
    }
    let mut rng = Rng::new(11);
    let value = |rng: &mut Rng| -> Vec<u8> {
        (0..VALUE / 4).flat_map(|_| (rng.below(1 << 32) as u32).to_le_bytes()).collect()
    };
    let mut all: Vec<u64> = (0..options.keys).collect();
    for at in (1..all.len()).rev() {
        all.swap(at, rng.below(at as u64 + 1) as usize);
    }
    let mut times = vec![[0.0; 3]; stores.len()];
    for keys in all.chunks(100 * BATCH) {
        let values: Vec<Vec<u8>> = keys.iter().map(|_| value(&mut rng)).collect();
        for ((_, store), times) in stores.iter_mut().zip(&mut times) {
            times[0] += seconds(|| store.upsert(keys, &values))?.0;
        }
    }
    for _ in 0..options.calls {
        let mut draw = || (0..BATCH).map(|_| rng.below(options.keys)).collect::<Vec<u64>>();
        let (reads, writes): (Vec<Vec<u64>>, Vec<u64>) = ((0..9).map(|_| draw()).collect(), draw());
        let values: Vec<Vec<u8>> = writes.iter().map(|_| value(&mut rng)).collect();
        let mut expected = None;
        for ((name, store), times) in stores.iter_mut().zip(&mut times) {
            times[1] += seconds(|| store.upsert(&writes, &values))?.0;
            let (time, bytes) =
                seconds(|| reads.iter().map(|keys| store.read(keys)).sum::<Result<usize>>())?;
            times[2] += time;
            if *expected.get_or_insert(bytes) != bytes {
                return Err(format!("{name} has {bytes} bytes").into());
            }
        }
    }
    let calls = (options.calls * BATCH) as f64;
    for (at, (case, rows)) in [
        ("table of ours: load", options.keys as f64),
        ("table of ours: upserts", calls),
        ("table of ours: reads", 9.0 * calls),
    ]
    .into_iter()
    .enumerate()
    {
        let per_row = |times: &[f64; 3]| times[at] * 1e9 / rows;
        for (own, (name, _)) in stores.iter().enumerate().take(ours) {
            let case = case.replace("ours", name);
            for (rival, (name, _)) in stores.iter().enumerate().skip(ours) {
                cells.push(&case, per_row(&times[own]), name, per_row(&times[rival]));
            }
        }
    }
    Ok(())
}
