//! `merge`: two chains of sorted chunks into one, against the mergers of differential-dataflow.
//! `batcher`: 64 pushes of unordered changes and one seal, against its batchers.
//!
//! Each round has a new data set, built freshly for every contender, and the fastest round of each
//! counts. The cost of reading the clock, half the cost of appending one chunk to another, is
//! subtracted from every figure. Each contender first works on a data set that does not count, to
//! warm up its output memory. All outputs must have the same number of records. Output memory is
//! recycled: Windrow's by a pool for the whole bench, the rivals' by the allocator's heap and the
//! mergers' stash. Results are dropped after the clock has stopped.
//!
//! *Merges.* Only the merge is measured. Inputs are chains of ship-sized chunks, owned by the merge.
//!
//! *Batchers.* Each side starts from its users' input: Windrow from record batches of one schema,
//! so encoding is included; the rivals from vectors of owned tuples, which their chunkers sort in
//! place or copy. A push has at least 64 changes, as in the benchmark of Materialize's batcher,
//! whose smallest case has 4,096 records according to its times and throughputs. 32 KiB over 64
//! pushes, 5 to 16 changes each, is a separate case, `32K in all`.
//!
//! The rivals need the feature `differential`: differential-dataflow 0.22's columnation, and the Vec
//! and trie chunks of 0.26. The lower bound is one `memcpy` of the rows into warm memory. `copy of
//! the columns` is the lower bound for any consumer of record batches: each column of each batch is
//! appended to a buffer. `resident` cells compare bytes per record of Windrow's chunks with bytes of
//! records as Rust values.

mod data;
#[cfg(feature = "differential")]
mod differential;

use std::cell::{Cell, RefCell};
use std::hint::black_box;

use windrow::arrow_array::RecordBatch;
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::{Int64Type, UInt64Type};
use windrow::arrow_schema::SchemaRef;
use windrow::{Antichain, Batch, Batcher, Order, Pool};

use crate::Result;
use crate::cells::{Cells, keep_freed_memory, least, seconds};
use data::{Change, Integers, Regime, RowKeyed, Shape, Wide};

const PUSHES: usize = 64;
/// Minimum number of changes of a push.
const CHANGES: usize = 64;

/// Options of the benches `merge` and `batcher`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Sizes, per side or in all, in KiB
    #[arg(long, value_delimiter = ',', default_value = "32,512,8192,131072")]
    sizes: Vec<usize>,
    /// Bytes of records that a cell measures, in MiB; more give more rounds
    #[arg(long, default_value_t = 256)]
    effort: usize,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Merge,
    Batcher,
}

/// Changes of a shape.
type Changes<S> = Vec<Change<<S as Shape>::Key, <S as Shape>::Val>>;
/// The two sides of a merge, or the pushes of a batcher.
type Inputs<S> = [Changes<S>];
/// A rival's name, and a function that returns seconds and the number of output records.
type Rival<K, V> = (&'static str, fn(&[Vec<Change<K, V>>]) -> (f64, usize));
/// A contender's name and its work; a lower bound outputs no records.
type Contender<'a, S> =
    (&'static str, Box<dyn Fn(&Inputs<S>) -> Result<(f64, Option<usize>)> + 'a>);

impl Work {
    fn regimes(self) -> &'static [Regime] {
        use Regime::*;
        match self {
            Self::Merge => &[Random, Alternating, Equal, Runs, Disjoint, Sorted],
            Self::Batcher => &[Random, Equal, Runs, Disjoint, Sorted],
        }
    }

    /// Returns the names and the record counts, of a side or in all, of the cases of a size.
    fn cases<S: Shape>(self, regime: Regime, kib: usize) -> Vec<(String, usize)> {
        let size = if kib < 1024 { format!("{kib}K") } else { format!("{}M", kib / 1024) };
        let case = format!("{} {} {size}", S::NAME, regime.name());
        let count = (kib << 10) / S::BYTES;
        if self == Self::Merge || count >= PUSHES * CHANGES {
            return vec![(case, count)];
        }
        vec![(format!("{case} in all"), count), (case, PUSHES * CHANGES)]
    }

    fn inputs<S: Shape>(self, regime: Regime, count: usize, seed: u64) -> Vec<Changes<S>> {
        if self == Self::Merge {
            let (a, b) = data::pair(regime, count, seed);
            return vec![S::sorted(&a), S::sorted(&b)];
        }
        let pushes = data::pushes(regime, count, PUSHES, seed);
        if regime != Regime::Sorted {
            return pushes.iter().map(|push| S::changes(push)).collect();
        }
        // Sorted in the shape's order, which differs where integers become text.
        let all = S::sorted(&pushes.concat());
        all.chunks(pushes[0].len().max(1)).map(<[_]>::to_vec).collect()
    }
}

pub(crate) fn run(work: Work, options: &Options) -> Result<()> {
    keep_freed_memory();
    let name = if work == Work::Merge { "merge" } else { "batcher" };
    let mut cells = Cells::new(name, "ns/record");
    #[cfg(feature = "differential")]
    let (ints, row_keyed, wide) = {
        use differential::{rivals, trie};
        ([rivals(work), trie(work)].concat(), [rivals(work), trie(work)].concat(), rivals(work))
    };
    #[cfg(not(feature = "differential"))]
    let (ints, row_keyed, wide) = Default::default();
    shape::<Integers>(work, options, &mut cells, ints)?;
    shape::<RowKeyed>(work, options, &mut cells, row_keyed)?;
    shape::<Wide>(work, options, &mut cells, wide)?;
    cells.finish()
}

fn shape<S: Shape>(
    work: Work,
    options: &Options,
    cells: &mut Cells,
    rivals: Vec<Rival<S::Key, S::Val>>,
) -> Result<()> {
    let (schema, pool) = (S::schema(), Pool::unlimited());
    let (resident, buffer) = (Cell::new(0), RefCell::new(Vec::new()));
    let ours = |inputs: &Inputs<S>| {
        let (elapsed, batch) = ours::<S>(work, &schema, &pool, inputs)?;
        resident.set(batch.resident_bytes());
        Ok((elapsed, Some(batch.rows().unwrap_or(0) as usize)))
    };
    let mut contenders: Vec<Contender<'_, S>> = Vec::new();
    contenders.push(("ours", Box::new(ours)));
    for (name, rival) in rivals {
        let rival = move |inputs: &Inputs<S>| {
            let (elapsed, records) = rival(inputs);
            Ok((elapsed, Some(records)))
        };
        contenders.push((name, Box::new(rival)));
    }
    if work == Work::Batcher {
        let copy = |inputs: &Inputs<S>| {
            let batches = record_batches::<S>(&schema, inputs, usize::MAX)?;
            let (elapsed, ()) = seconds(|| copy_columns(&batches, &mut buffer.borrow_mut()))?;
            Ok((elapsed, None))
        };
        contenders.push(("copy of the columns", Box::new(copy)));
    }
    let copy = |inputs: &Inputs<S>| {
        let from = vec![1u8; inputs.iter().map(Vec::len).sum::<usize>() * S::BYTES];
        let mut to = vec![2u8; from.len()];
        let (elapsed, ()) = seconds(|| {
            black_box(&mut to).copy_from_slice(black_box(&from));
            Ok(())
        })?;
        Ok((elapsed, None))
    };
    contenders.push(("memcpy", Box::new(copy)));

    for (regime, kib) in
        work.regimes().iter().flat_map(|r| options.sizes.iter().map(move |k| (*r, *k)))
    {
        for (case, count) in work.cases::<S>(regime, kib) {
            if !case.contains(&options.only) {
                continue;
            }
            let sides = if work == Work::Merge { 2 } else { 1 };
            let rounds = ((options.effort << 20) / (sides * count * S::BYTES)).clamp(3, 300);
            let mut records = 0.0;
            let times = least(rounds, |round| {
                // The first data set does not count: it warms every contender's memory.
                let sets = [0, 1].map(|set| {
                    let seed = (round as u64 + 1) << 32 | set << 31 | count as u64;
                    work.inputs::<S>(regime, count, seed)
                });
                records = sets[1].iter().map(Vec::len).sum::<usize>() as f64;
                let times = measured::<S>(&case, &contenders, &sets)?;
                Ok(times.iter().map(|time| time * 1e9 / records).collect::<Vec<_>>())
            })?;
            let rivals = contenders.iter().zip(&times).skip(1);
            cells.push(&case, times[0], rivals.map(|((name, _), time)| (name, *time)));
            let values = ("resident, values", size_of::<Change<S::Key, S::Val>>() as f64);
            cells.push_in("bytes/record", &case, resident.get() as f64 / records, values);
        }
    }
    Ok(())
}

/// Returns the seconds of each contender on the second data set.
fn measured<S: Shape>(
    case: &str,
    contenders: &[Contender<'_, S>],
    sets: &[Vec<Changes<S>>; 2],
) -> Result<Vec<f64>> {
    let (mut expected, mut times) = ([None; 2], Vec::new());
    for (name, work) in contenders {
        let mut last = 0.0;
        for (set, expected) in sets.iter().zip(&mut expected) {
            let (elapsed, records) = work(set)?;
            last = elapsed;
            if let Some(got) = records
                && got != *expected.get_or_insert(got)
            {
                return Err(format!("{case}: {expected:?} records, {name} has {got}").into());
            }
        }
        times.push(last);
    }
    Ok(times)
}

/// Converts inputs to record batches of up to `rows` rows.
fn record_batches<S: Shape>(
    schema: &SchemaRef,
    inputs: &Inputs<S>,
    rows: usize,
) -> Result<Vec<RecordBatch>> {
    let pieces = inputs.iter().flat_map(|input| input.chunks(rows));
    pieces.map(|piece| S::record_batch(schema, piece)).collect()
}

/// Merges or pushes, and returns the seconds.
fn ours<S: Shape>(
    work: Work,
    schema: &SchemaRef,
    pool: &Pool,
    inputs: &Inputs<S>,
) -> Result<(f64, Batch)> {
    let names = schema.fields().iter().map(|field| field.name().clone());
    let key: Vec<String> = names.take(schema.fields().len() - 2).collect();
    let layout = Order::by(key).time("time").diff("diff").bind(schema)?;
    let push = |batches: Vec<RecordBatch>| {
        seconds(|| {
            let mut batcher = Batcher::new(&layout, pool);
            batches.iter().try_for_each(|batch| batcher.push(batch))?;
            match work {
                Work::Merge => Ok(batcher.finish()?),
                Work::Batcher => Ok(batcher.seal(&Antichain::new())?),
            }
        })
    };
    if work == Work::Batcher {
        return push(record_batches::<S>(schema, inputs, usize::MAX)?);
    }
    // A chain of each side.
    let chains = inputs
        .chunks(1)
        .map(|side| Ok(push(record_batches::<S>(schema, side, 8192)?)?.1.settle()?));
    let chains = chains.collect::<Result<Vec<_>>>()?;
    seconds(|| Ok(Batch::union(&layout, pool, chains).settle()?))
}

/// Appends the values of all columns: the minimum cost of reading them.
fn copy_columns(batches: &[RecordBatch], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    for column in batches.iter().flat_map(RecordBatch::columns) {
        if let Some(values) = column.as_primitive_opt::<UInt64Type>() {
            out.extend_from_slice(values.values().inner());
        } else if let Some(values) = column.as_primitive_opt::<Int64Type>() {
            out.extend_from_slice(values.values().inner());
        } else if let Some(strings) = column.as_string_opt::<i32>() {
            out.extend_from_slice(strings.offsets().inner().inner());
            out.extend_from_slice(strings.values());
        }
    }
    black_box(out);
    Ok(())
}
