//! `merge`: two chains of sorted chunks into one, against the mergers of differential-dataflow.
//! `batcher`: 64 pushes of unordered changes and one seal, against its batchers.
//!
//! Each round has a new data set, built freshly for every contender, and the fastest round of each
//! counts. Each contender first works on a data set that does not count, to warm up its output
//! memory. All outputs must have the same number of records. Output memory is recycled: Windrow's by
//! a pool for the whole bench, the rivals' by the allocator's heap and the mergers' stash. Results
//! are dropped after the clock has stopped.
//!
//! *Merges.* Only the merge is measured. Inputs are chains of ship-sized chunks, owned by the merge.
//!
//! *Batchers.* Each side starts from its users' input: Windrow from record batches of one schema,
//! so encoding is included; the rivals from vectors of owned tuples, which their chunkers sort in
//! place or copy. A push has at least 64 changes, as in the benchmark of Materialize's batcher,
//! whose smallest case has 4,096 records according to its times and throughputs. 32 KiB over 64
//! pushes, 5 to 16 changes each, is a separate case, `32K in all`.
//!
//! *Pressure* (`--pressure`): each cell beside itself where every chunk leaves memory, by target and
//! codec, and where a limit is so far away that none does.
//!
//! *A memory group* (`batcher --group`): our spill beside the system's swap.
//!
//! *Seals.* Two million changes, whose times are spread, are sealed time by time, beside one seal of
//! the same changes and beside 0.26's batcher over vectors. A seal that holds all or half of the rows
//! back is also measured with accounting, and within a limit with and without a policy that hears
//! events.
//!
//! The rivals need the feature `differential`: differential-dataflow 0.22's columnation, the Vec and
//! trie chunks of 0.26, and the column merger of Materialize's pull request. The lower bound is one
//! `memcpy` of the rows into warm memory. `copy of the columns` is the lower bound for any consumer of
//! record batches: each column of each batch is appended to a buffer. `resident` cells compare bytes
//! per record of Windrow's chunks with bytes of records as Rust values.

#[cfg(feature = "differential")]
mod column;
mod data;
#[cfg(feature = "differential")]
mod differential;
mod group;

use std::cell::Cell;
use std::hint::black_box;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use windrow::arrow_array::RecordBatch;
use windrow::{
    Accounting, Antichain, Batch, Batcher, Budget, Codec, Decision, ForceSpill, Layout, Offer,
    Order, Pool, PoolOptions, SpillEvent, SpillPolicy, SpillTo, Tiered,
};

use crate::Result;
use crate::harness::{Cells, Turns, contender, elapsed, keep_freed_memory, seconds};
use data::{Ints, Regime, SHAPES, Shape};

const PUSHES: usize = 64;
/// Minimum number of changes of a push.
const CHANGES: usize = 64;

/// Options of the benches `merge` and `batcher`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Sizes, per side or in all, in KiB
    #[arg(long, value_delimiter = ',', default_value = "32,512,8192,131072")]
    sizes: Vec<usize>,
    /// Bytes of records that a cell measures, in MiB; more give more rounds
    #[arg(long, default_value_t = 256)]
    effort: usize,
    /// Windrow alone, beside itself with a limit that is never reached, and with every chunk in files
    /// or in memory outside of the process, as it is and with LZ4
    #[arg(long)]
    pressure: bool,
    /// A batcher of four times as many MiB as a memory group of the kernel's has, by its own spill
    /// and by the system's swap; needs the permission to create memory groups
    #[arg(long)]
    group: Option<usize>,
    /// What the process in a group measures
    #[arg(long, hide = true)]
    engine: Option<String>,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Merge,
    Batcher,
}

/// The two sides of a merge, or the pushes of a batcher.
type Inputs = Vec<Vec<Ints>>;
/// A name, and the work, which returns seconds and the number of output records.
type Rival = (&'static str, Box<dyn Fn(Work, &Inputs) -> (f64, u64)>);

impl Work {
    fn regimes(self) -> &'static [Regime] {
        use Regime::*;
        match self {
            Self::Merge => &[Random, Alternating, Equal, Runs, Disjoint, Sorted],
            Self::Batcher => &[Random, Equal, Runs, Disjoint, Sorted],
        }
    }

    /// Returns the names and the record counts, of a side or in all, of the cases of a size.
    fn cases(self, shape: &Shape, regime: Regime, kib: usize) -> Vec<(String, Regime, usize)> {
        let size = if kib < 1024 { format!("{kib}K") } else { format!("{}M", kib / 1024) };
        let case = format!("{} {} {size}", shape.name, regime.name());
        let count = (kib << 10) / shape.bytes;
        if self == Self::Merge || count >= PUSHES * CHANGES {
            return vec![(case, regime, count)];
        }
        vec![(format!("{case} in all"), regime, count), (case, regime, PUSHES * CHANGES)]
    }

    fn inputs(self, shape: &Shape, regime: Regime, count: usize, seed: u64) -> Inputs {
        if self == Self::Merge {
            let mut sides = data::pair(regime, count, seed);
            sides.iter_mut().for_each(|side| shape.sort(side));
            return sides.to_vec();
        }
        let pushes = data::pushes(regime, count, PUSHES, seed);
        if regime != Regime::Sorted {
            return pushes;
        }
        // Sorted in the shape's order, which differs where integers become text.
        let mut all = pushes.concat();
        shape.sort(&mut all);
        all.chunks(pushes[0].len().max(1)).map(<[_]>::to_vec).collect()
    }
}

pub(crate) fn run(work: Work, options: &Options, mut cells: Cells) -> Result<()> {
    if let Some(mebibytes) = options.group {
        return match &options.engine {
            Some(engine) => group::child(mebibytes, engine),
            None => group::beside_swap(mebibytes, cells),
        };
    }
    keep_freed_memory();
    #[cfg(feature = "differential")]
    let mut rivals = differential::rivals();
    #[cfg(not(feature = "differential"))]
    let mut rivals: [Vec<Rival>; 3] = Default::default();
    if options.pressure {
        rivals = Default::default();
    }
    for (shape, rivals) in SHAPES.iter().zip(rivals) {
        cells.bytes = shape.bytes as f64;
        measure(work, options, shape, rivals, &mut cells)?;
    }
    if work == Work::Batcher && !options.pressure {
        SEALS.into_iter().try_for_each(|of| seals(of, &mut cells))?;
    }
    cells.finish()
}

/// The default policy, which counts events.
#[derive(Debug, Default)]
struct Counted(AtomicI64);

impl SpillPolicy for Counted {
    fn decide(&self, offer: &Offer) -> Decision {
        Tiered.decide(offer)
    }

    fn record(&self, _: SpillEvent) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A number of times, the seals, and whether keys decide the times: else they are random.
type Seals = (&'static str, u64, RangeInclusive<u64>, bool);

const SEALS: [Seals; 6] = [
    ("seals at 100 times", 100, 1..=100, false),
    ("seals at 400 times", 400, 1..=400, false),
    ("seals at 1000 times", 1000, 1..=1000, false),
    ("seal of no rows", 2, 0..=0, false),
    ("seal that splits chunks", 2, 1..=1, false),
    ("seal of whole chunks", 2, 1..=1, true),
];

/// Measures seals, beside one of all rows, and where something listens.
fn seals((case, times, uppers, by_key): Seals, cells: &mut Cells) -> Result<()> {
    const CHANGES: u64 = 2_000_000;
    let (shape, pool) = (&SHAPES[0], Pool::unlimited());
    let schema = shape.schema();
    let layout = Order::by(["a", "b"]).time("time").diff("diff").bind(&schema)?;
    let sealed = |mut batcher: Batcher, changes: &Vec<Ints>, uppers: &RangeInclusive<u64>| {
        let batches = changes.chunks(8192).map(|piece| shape.record_batch(&schema, piece));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        seconds(|| {
            batches.iter().try_for_each(|batch| batcher.push(batch))?;
            let mut rows = |upper| Ok(batcher.seal(&Antichain::at(upper))?.rows().unwrap_or(0));
            uppers.clone().map(&mut rows).sum::<Result<u64>>()
        })
    };
    let sealed_in = |pool: &Pool, changes: &Vec<Ints>, uppers: &_| {
        sealed(Batcher::new(&layout, pool), changes, uppers)
    };
    let mut contenders = vec![
        contender("ours", |changes: &Vec<Ints>, _| sealed_in(&pool, changes, &uppers)),
        contender("ours, one seal", |of, _| Ok(sealed_in(&pool, of, &(times..=times))?.0)),
    ];
    if times == 2 {
        contenders.push(contender("ours, accounted", |changes, _| {
            let sum = AtomicI64::new(0);
            let sink = move |change: Accounting| _ = sum.fetch_add(change.bytes, Relaxed);
            sealed(Batcher::accounted(&layout, &pool, sink), changes, &uppers)
        }));
        let within = |options| Pool::new(Budget::bytes(16 << 20), options);
        let counted = within(PoolOptions::new().policy(Counted::default()))?;
        let limited = ("ours, 16 MiB", within(PoolOptions::new())?);
        let (uppers, sealed_in) = (&uppers, &sealed_in);
        for (name, pool) in [limited, ("ours, 16 MiB, events", counted)] {
            contenders.push(contender(name, move |changes, _| sealed_in(&pool, changes, uppers)));
        }
    }
    #[cfg(feature = "differential")]
    contenders.push(contender("Vec 0.26", |changes: &Vec<Ints>, _| {
        Ok(differential::sealed(changes.clone(), &uppers))
    }));
    let fresh = |round: usize| {
        let mut rng = windrow_testdata::rng::Rng::new(round as u64 + 1);
        let change = |_| {
            let (key, time) = (rng.next_u64(), rng.below(times));
            ((key, rng.below(8)), if by_key { key >> 63 } else { time }, 1)
        };
        Ok(((0..CHANGES).map(change).collect(), CHANGES as f64))
    };
    if cells.wants(case) {
        cells.race(case, Turns { rounds: 3, warm: 0, calls: 1 }, fresh, &mut contenders)?;
    }
    Ok(())
}

fn measure(
    work: Work,
    options: &Options,
    shape: &Shape,
    rivals: Vec<Rival>,
    cells: &mut Cells,
) -> Result<()> {
    let (schema, unlimited) = (shape.schema(), Pool::unlimited());
    let names = schema.fields().iter().map(|field| field.name().clone());
    let key: Vec<String> = names.take(schema.fields().len() - 2).collect();
    let layout = Order::by(key).time("time").diff("diff").bind(&schema)?;
    let (resident, mut buffer) = (Cell::new(0), Vec::new());
    // Record batches of up to so many rows.
    let batches = |inputs: &[Vec<Ints>], rows: usize| {
        let pieces = inputs.iter().flat_map(|input| input.chunks(rows));
        pieces.map(|piece| shape.record_batch(&schema, piece)).collect::<Result<Vec<_>>>()
    };
    let ours = |pool: &Pool, inputs: &Inputs| {
        let (time, batch) = if work == Work::Batcher {
            let batches = batches(inputs, usize::MAX)?;
            seconds(|| Ok(pushed(&layout, pool, &batches)?.seal(&Antichain::new())?))?
        } else {
            // A chain of each side.
            let chain = |side| {
                let batches = batches(std::slice::from_ref(side), 8192)?;
                Ok(pushed(&layout, pool, &batches)?.finish()?.settle()?)
            };
            let chains = inputs.iter().map(chain).collect::<Result<Vec<_>>>()?;
            seconds(|| Ok(Batch::union(&layout, pool, chains).settle()?))?
        };
        if !pool.budget().is_limited() {
            resident.set(batch.resident_bytes());
        }
        Ok((time, batch.rows().unwrap_or(0)))
    };
    let with =
        |name, pool| contender(name, move |inputs: &[Inputs; 2], set| ours(&pool, &inputs[set]));
    let mut contenders = vec![with("ours", unlimited)];
    if options.pressure {
        contenders.extend(pressed()?.map(|(name, pool)| with(name, pool)));
    }
    contenders.extend(rivals.into_iter().map(|(name, rival)| {
        contender(name, move |inputs: &[Inputs; 2], set| Ok(rival(work, &inputs[set])))
    }));
    if work == Work::Batcher {
        contenders.push(contender("copy of the columns", |inputs: &[Inputs; 2], set| {
            let batches = batches(&inputs[set], usize::MAX)?;
            let columns = batches.iter().flat_map(RecordBatch::columns);
            let columns: Vec<_> = columns.map(|column| column.to_data()).collect();
            let copy = || {
                buffer.clear();
                columns.iter().flat_map(|c| c.buffers()).for_each(|b| buffer.extend_from_slice(b));
                black_box(&mut buffer);
            };
            Ok(elapsed(copy).0)
        }));
    }
    contenders.push(contender("memcpy", |inputs: &[Inputs; 2], set| {
        let from = vec![1u8; inputs[set].iter().map(Vec::len).sum::<usize>() * shape.bytes];
        let mut to = vec![2u8; from.len()];
        Ok(elapsed(|| black_box(&mut to).copy_from_slice(black_box(&from))).0)
    }));

    let sizes = work
        .regimes()
        .iter()
        .flat_map(|&regime| options.sizes.iter().map(move |&kib| (regime, kib)));
    for (case, regime, count) in sizes.flat_map(|(regime, kib)| work.cases(shape, regime, kib)) {
        if !cells.wants(&case) {
            continue;
        }
        let sides = if work == Work::Merge { 2 } else { 1 };
        let rounds = ((options.effort << 20) / (sides * count * shape.bytes)).clamp(3, 300);
        let mut records = 0.0;
        let fresh = |round: usize| {
            let sets = [0, 1].map(|set| {
                let seed = (round as u64 + 1) << 32 | set << 31 | count as u64;
                work.inputs(shape, regime, count, seed)
            });
            records = sets[1].iter().map(Vec::len).sum::<usize>() as f64;
            Ok((sets, records))
        };
        cells.race(&case, Turns { rounds, warm: 1, calls: 1 }, fresh, &mut contenders)?;
        let values = ("resident, values", shape.bytes as f64);
        cells.push("bytes/record", &case, resident.get() as f64 / records, [values]);
    }
    Ok(())
}

/// Pools whose chunks stay in memory because their limit is far away, and pools whose chunks all
/// leave it.
fn pressed() -> Result<[(&'static str, Pool); 5]> {
    let limited = |options| Pool::new(Budget::bytes(4 << 30), options);
    let options = |to, codec| PoolOptions::new().spill_to(to).codec(codec);
    let forced = |to, codec| limited(options(to, codec).policy(ForceSpill));
    Ok([
        ("a limit far away", limited(PoolOptions::new())?),
        ("files", forced(SpillTo::Disk, Codec::None)?),
        ("files, LZ4", forced(SpillTo::Disk, Codec::Lz4)?),
        ("memory outside", forced(SpillTo::Memory, Codec::None)?),
        ("memory outside, LZ4", forced(SpillTo::Memory, Codec::Lz4)?),
    ])
}

fn pushed(layout: &Layout, pool: &Pool, batches: &[RecordBatch]) -> Result<Batcher> {
    let mut batcher = Batcher::new(layout, pool);
    batches.iter().try_for_each(|batch| batcher.push(batch))?;
    Ok(batcher)
}
