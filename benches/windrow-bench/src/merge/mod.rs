//! `merge`: two chains of sorted chunks into one, against the mergers of differential-dataflow.
//!
//! Only the merge is measured. Inputs are chains of ship-sized chunks, owned by the merge. Each
//! round has a new data set, built freshly for every contender, and the fastest round of each
//! counts. The cost of reading the clock, half the cost of appending one chunk to another, is
//! subtracted from every figure. Each contender first merges a data set that does not count, to
//! warm up its output memory. All outputs must have the same number of records. Output memory is
//! recycled: Windrow's by a pool for the whole bench, the rivals' by the allocator's heap and the
//! mergers' stash.
//!
//! The rivals need the feature `differential`: differential-dataflow 0.22's columnation merger, and
//! the Vec and trie chunks of 0.26. The lower bound is one `memcpy` of both inputs' rows into warm
//! memory. `resident` cells compare bytes per record of Windrow's merged chunks with bytes of
//! records as Rust values.

pub(crate) mod data;
#[cfg(feature = "differential")]
pub(crate) mod differential;

use std::hint::black_box;

use windrow::{Batch, Batcher, Layout, Order, Pool};

use crate::Result;
use crate::cells::{Cells, keep_freed_memory, seconds};
use data::{Change, Integers, Regime, RowKeyed, Shape, Wide};

const REGIMES: [Regime; 6] = [
    Regime::Random,
    Regime::Alternating,
    Regime::Equal,
    Regime::Runs,
    Regime::Disjoint,
    Regime::Sorted,
];

/// Options of the benches `merge` and `batcher`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Sizes, per side or in all, in KiB
    #[arg(long, value_delimiter = ',', default_value = "32,512,8192,131072")]
    pub(crate) sizes: Vec<usize>,
    /// Bytes of records that a cell measures, in MiB; more give more rounds
    #[arg(long, default_value_t = 256)]
    pub(crate) effort: usize,
}

/// A contender's time for one data set, and the number of output records.
pub(crate) type Outcome = (f64, usize);
/// A function that merges two sides.
pub(crate) type Contender<K, V> = fn(&[Change<K, V>], &[Change<K, V>]) -> Outcome;
/// A contender and its name.
type Rival<S> = (&'static str, Contender<<S as Shape>::Key, <S as Shape>::Val>);

pub(crate) fn least(values: Vec<f64>) -> f64 {
    values.into_iter().fold(f64::INFINITY, f64::min)
}

pub(crate) fn size_name(kib: usize) -> String {
    if kib < 1024 { format!("{kib}K") } else { format!("{}M", kib / 1024) }
}

/// Returns the number of rounds of `bytes` for the effort, within limits.
pub(crate) fn rounds(options: &Options, bytes: usize) -> usize {
    ((options.effort << 20) / bytes).clamp(3, 300)
}

pub(crate) fn layout<S: Shape>() -> Result<Layout> {
    let schema = S::record_batch(&[]).schema();
    let key = &S::COLUMNS[..S::COLUMNS.len() - 2];
    Ok(Order::by(key.to_vec()).time("time").diff("diff").bind(&schema)?)
}

/// Builds a batch of one chain.
fn chain<S: Shape>(
    layout: &Layout,
    pool: &Pool,
    changes: &[Change<S::Key, S::Val>],
) -> Result<Batch> {
    let mut batcher = Batcher::new(layout, pool);
    for piece in changes.chunks(8192) {
        batcher.push(&S::record_batch(piece))?;
    }
    Ok(batcher.finish()?.settle()?)
}

pub(crate) fn run(options: &Options) -> Result<()> {
    keep_freed_memory();
    let mut cells = Cells::new("merge", "ns/record");
    #[cfg(feature = "differential")]
    {
        use differential as d;
        shape::<Integers>(
            options,
            &mut cells,
            &[("columnation 0.22", d::columnation), ("Vec 0.26", d::vec), ("trie 0.26", d::trie)],
        )?;
        shape::<RowKeyed>(
            options,
            &mut cells,
            &[("columnation 0.22", d::columnation), ("Vec 0.26", d::vec), ("trie 0.26", d::trie)],
        )?;
        shape::<Wide>(
            options,
            &mut cells,
            &[("columnation 0.22", d::columnation), ("Vec 0.26", d::vec)],
        )?;
    }
    #[cfg(not(feature = "differential"))]
    {
        shape::<Integers>(options, &mut cells, &[])?;
        shape::<RowKeyed>(options, &mut cells, &[])?;
        shape::<Wide>(options, &mut cells, &[])?;
    }
    cells.finish()
}

fn shape<S: Shape>(options: &Options, cells: &mut Cells, rivals: &[Rival<S>]) -> Result<()> {
    let layout = layout::<S>()?;
    let pool = Pool::unlimited();
    for regime in REGIMES {
        for &kib in &options.sizes {
            let case = format!("{} {} {}", S::NAME, regime.name(), size_name(kib));
            if !case.contains(&options.only) {
                continue;
            }
            let count = (kib << 10) / S::BYTES;
            let mut ours = Vec::new();
            let mut copies = Vec::new();
            let mut theirs = vec![Vec::new(); rivals.len()];
            let mut resident = 0.0;
            for round in 0..rounds(options, (2 * kib) << 10) {
                // The first set does not count: it warms every contender's memory.
                let sets = [0, 1].map(|set| {
                    let seed = (round as u64 + 1) << 32 | set << 31 | kib as u64;
                    let (a, b) = data::pair(regime, count, seed);
                    (S::sorted(&a), S::sorted(&b))
                });
                let mut expected = [0; 2];
                let mut last = 0.0;
                for ((a, b), expected) in sets.iter().zip(&mut expected) {
                    let chains = [chain::<S>(&layout, &pool, a)?, chain::<S>(&layout, &pool, b)?];
                    let (elapsed, merged) =
                        seconds(|| Ok(Batch::union(&layout, &pool, chains).settle()?))?;
                    *expected = merged.rows().unwrap_or(0) as usize;
                    resident = merged.resident_bytes() as f64 / (a.len() + b.len()) as f64;
                    last = elapsed;
                }
                let records = sets[1].0.len() + sets[1].1.len();
                ours.push(last * 1e9 / records as f64);
                for ((name, rival), times) in rivals.iter().zip(&mut theirs) {
                    for ((a, b), out) in sets.iter().zip(expected) {
                        let (elapsed, got) = rival(a, b);
                        if got != out {
                            return Err(format!("{case}: {out} records, {name} has {got}").into());
                        }
                        last = elapsed;
                    }
                    times.push(last * 1e9 / records as f64);
                }
                let from = vec![1u8; records * S::BYTES];
                let mut to = vec![2u8; from.len()];
                let (elapsed, ()) = seconds(|| {
                    black_box(&mut to).copy_from_slice(black_box(&from));
                    Ok(())
                })?;
                copies.push(elapsed * 1e9 / records as f64);
            }
            let ours = least(ours);
            for ((name, _), times) in rivals.iter().zip(theirs) {
                cells.push(&case, ours, name, least(times));
            }
            cells.push(&case, ours, "memcpy", least(copies));
            let values = size_of::<Change<S::Key, S::Val>>() as f64;
            cells.push_in(&case, resident, "resident, values", values, "bytes/record");
        }
    }
    Ok(())
}
