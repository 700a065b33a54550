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

mod data;
#[cfg(feature = "stores")]
mod limited;
#[cfg(feature = "dataflow")]
mod ord_val;
#[cfg(feature = "stores")]
mod stores;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use windrow::arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use windrow::{
    Antichain, Batch, Batcher, Budget, Cursor, ForceSpill, Merging, Order, Pool, PoolOptions, Spine,
};

use crate::Result;
use crate::harness::{Cells, Contender, Part, Turns, contender, keep_freed_memory, seconds};
#[cfg(feature = "dataflow")]
use data::keys_of;
use data::{changes, encoded, layout, spine};
use windrow_testdata::rng::Rng;

/// Number of batches in the spine.
const BATCHES: u64 = 16;

/// Memory for the single chunk being read.
const ROOM: usize = 1 << 20;

const TURNS: Turns = Turns { rounds: 3, warm: 0, calls: 1 };

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
}

/// Runs the bench and writes the results.
pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<()> {
    #[cfg(feature = "stores")]
    if let Some(engine) = &options.engine {
        return limited::child(options, engine);
    }
    keep_freed_memory();
    let parts: [Part<Options>; 4] =
        [("probes", probes), ("absent", absent), ("rest", rest), ("table", table::table)];
    cells.parts(options, &parts)?;
    #[cfg(feature = "stores")]
    if cells.is_selective() && cells.wants(limited::LIMITED) {
        limited::limited(options, &mut cells)?;
    }
    cells.finish()
}

fn probes(options: &Options, cells: &mut Cells) -> Result<()> {
    let spine = spine(BATCHES, options.keys)?;
    let map: BTreeMap<u64, Vec<(u64, u64, i64)>> =
        (0..options.keys).map(|key| (key * 2, vec![(key * 2, 0, 1)])).collect();
    for (case, step) in [("probes of 1 %", 100), ("probes of all", 1)] {
        let keys: Vec<u64> = (0..options.keys).step_by(step).map(|key| key * 2).collect();
        let rows = encoded(spine.layout(), &keys)?;
        let sum = |sum: i64| Ok(sum as u64);
        let mut contenders = vec![
            contender("ours", |(), _| {
                seconds(|| {
                    let (mut cursor, mut all) = (spine.idle_cursor()?, 0);
                    cursor.probe(&rows, |_, cursor| cursor.map_times(|_, diff| all += diff))?;
                    sum(all)
                })
            }),
            contender("BTreeMap", |(), _| {
                let found = || keys.iter().filter_map(|key| map.get(key)).flatten();
                seconds(|| sum(found().map(|&(_, _, diff)| diff).sum()))
            }),
        ];
        #[cfg(feature = "dataflow")]
        {
            let mut theirs = ord_val::OrdVal::new();
            (0..BATCHES).for_each(|time| theirs.insert(keys_of(time, BATCHES, options.keys), time));
            let keys = &keys;
            contenders.push(contender("OrdVal", move |(), _| seconds(|| sum(theirs.probe(keys)?))));
        }
        let case = format!("{case}, {} batches", spine.batches().count());
        cells.race(&case, TURNS, |_| Ok(((), keys.len() as f64)), &mut contenders)?;
    }
    Ok(())
}

/// Returns a pool in memory, or one that stores all chunks, within a limit.
fn pool(is_stored: bool, limit: usize) -> Result<Pool> {
    let spilling = PoolOptions::new().policy(ForceSpill);
    Ok(if is_stored { Pool::new(Budget::bytes(limit), spilling)? } else { Pool::unlimited() })
}

/// Builds a batch of the even keys, in memory, or on disk without memory to cache chunks.
fn batch(options: &Options, stored: bool, filtered: bool) -> Result<(Pool, Batch)> {
    let pool = pool(stored, 64 << 20)?;
    let layout = layout(Some(0))?;
    let mut batcher = Batcher::new(&layout, &pool);
    let all: Vec<u64> = (0..options.keys).map(|key| key * 2).collect();
    for keys in all.chunks(8192) {
        batcher.push(&changes(keys.iter().copied(), Some(0))?)?;
    }
    let merging = Merging::new(&layout, &pool, [batcher.finish()?]);
    let batch = if filtered { merging.filtered() } else { merging }.finish()?;
    if !stored {
        return Ok((pool, batch));
    }
    let batch = batch.settle()?;
    pool.wait_for_spills();
    pool.release();
    pool.set_limit(pool.budget().used() + ROOM)?;
    Ok((pool, batch))
}

fn absent(options: &Options, cells: &mut Cells) -> Result<()> {
    let layout = layout(Some(0))?;
    for (place, stored, count) in [("memory", false, 200_000), ("a store", true, 2000)] {
        let mut rng = Rng::new(3);
        let keys: Vec<u64> = (0..count).map(|_| rng.below(options.keys) * 2 + 1).collect();
        let rows = &encoded(&layout, &keys)?;
        let probe = |name, filtered| -> Result<Contender<'_, ()>> {
            let (pool, batch) = batch(options, stored, filtered)?;
            Ok(contender(name, move |(), _| {
                let _budget = &pool;
                let (mut cursor, mut found) = (Cursor::new([&batch])?, 0);
                let count = |_, _: &mut Cursor| {
                    found += 1;
                    Ok(())
                };
                let (time, ()) = seconds(|| Ok(cursor.probe(rows, count)?))?;
                if found == 0 { Ok(time) } else { Err("keys that are not there".into()) }
            }))
        };
        let mut contenders = [probe("ours", true)?, probe("without filters", false)?];
        let case = format!("absent keys, in {place}");
        cells.race(&case, TURNS, |_| Ok(((), f64::from(count))), &mut contenders)?;
    }
    Ok(())
}

/// Measures bytes per row of numbers at one time and of edges of degree 16, in memory and on disk,
/// against the columns' size.
fn rest(options: &Options, cells: &mut Cells) -> Result<()> {
    let edges = |time: u64| -> Result<RecordBatch> {
        let from = UInt32Array::from_iter_values((0..options.keys).map(|edge| (edge / 16) as u32));
        let to = (0..options.keys).map(|edge| ((edge * 7919 + time) % options.keys) as u32);
        let changes = changes(0..options.keys, Some(time))?;
        Ok(RecordBatch::try_from_iter([
            ("key", Arc::new(from) as ArrayRef),
            ("to", Arc::new(UInt32Array::from_iter_values(to))),
            ("time", Arc::clone(&changes["time"])),
            ("diff", Arc::clone(&changes["diff"])),
        ])?)
    };
    let numbers = |time: u64| changes((0..options.keys).map(|key| key * FAN_IN + time), Some(time));
    for stored in [false, true] {
        at_rest("(u64, u64)", 32.0, &numbers, stored, cells)?;
        at_rest("edges (u32, u32)", 24.0, &edges, stored, cells)?;
    }
    Ok(())
}

/// Batches that a spine merges at once.
const FAN_IN: u64 = 4;

/// Measures bytes per row of a fully merged spine at one time: in memory all leased bytes, including
/// filters, in a store the bytes of the last merge.
fn at_rest(
    case: &str,
    columns: f64,
    of: &dyn Fn(u64) -> Result<RecordBatch>,
    is_stored: bool,
    cells: &mut Cells,
) -> Result<()> {
    let layout = Order::by("key").time("time").diff("diff").bind(&of(0)?.schema())?;
    let pool = pool(is_stored, 1 << 30)?;
    let mut spine = Spine::new(&layout, &pool)?;
    spine.set_since(&Antichain::at(FAN_IN))?;
    let mut batcher = Batcher::new(&layout, &pool);
    let mut stored = 0;
    for time in 0..FAN_IN {
        batcher.push(&of(time)?)?;
        let batch = batcher.seal(&Antichain::at(time + 1))?.settle()?;
        pool.wait_for_spills();
        let before = pool.stats().stored_bytes;
        spine.insert(batch)?;
        while !spine.work(&mut i64::MAX.clone())? {}
        pool.wait_for_spills();
        stored = pool.stats().stored_bytes - before;
    }
    drop(batcher);
    pool.release();
    let rows: u64 = spine.batches().filter_map(Batch::rows).sum();
    let (place, bytes) =
        if is_stored { ("a store", stored) } else { ("memory", pool.budget().used()) };
    let case = format!("rest: {case}, in {place}");
    cells.push("B/row", &case, bytes as f64 / rows as f64, [("columns", columns)]);
    Ok(())
}
