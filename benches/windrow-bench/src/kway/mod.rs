//! `kway`: K sorted runs into one, against a binary heap and a loser tree.
//!
//! Records are a u64 key, ten u64 values and a diff - rows of 96 bytes - or a 24-byte string key
//! and five values. The rivals merge the same records as arrays of words in plain vectors, compared
//! whole, and copied once into an output that is allocated and touched before the clock starts.
//! Like Windrow, the rivals add up equal records. Windrow takes ownership of single-chain batches
//! and compacts them into one; a pool for the whole bench recycles its output memory. Everything is
//! in memory, except for the cases named `files`. Each round has fresh data, and the fastest
//! counts.

mod file;
mod rivals;

use std::hint::black_box;
use std::sync::Arc;

use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use windrow::{Batch, Batcher, Layout, Order, Pool};

use crate::Result;
use crate::cells::{Cells, seconds};
use crate::merge::least;
use rivals::{Filled, Merged, Record, Slices, Text};
use windrow_testdata::rng::Rng;

/// Options of the bench.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Numbers of runs
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16,32,64,128,256")]
    runs: Vec<usize>,
    /// Records in all
    #[arg(long, default_value_t = 2_000_000)]
    records: usize,
    /// Rounds, each with data of its own
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Threads that ours merges on, in memory; the rivals have one
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

/// The relation between the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Keys below 100: the values decide the order.
    FewKeys,
    /// Keys below 1e8.
    ManyKeys,
    /// Four of five records are duplicates.
    Duplicates,
    Disjoint,
    /// String keys of 24 bytes.
    Strings,
}

const WORKS: [(Work, &str); 5] = [
    (Work::FewKeys, "keys 100"),
    (Work::ManyKeys, "keys 1e8"),
    (Work::Duplicates, "80% duplicates"),
    (Work::Disjoint, "disjoint"),
    (Work::Strings, "strings"),
];

/// Numbers of runs that are also merged from files.
const IN_FILES: [usize; 3] = [2, 8, 64];

/// Generates `count` sorted runs, each without equal records.
fn runs(work: Work, count: usize, records: usize, seed: u64) -> Vec<Vec<Record>> {
    let mut rng = Rng::new(seed);
    let each = (records / count) as u64;
    let mut run = |run: u64| {
        let mut record = |_| {
            let key = match work {
                Work::FewKeys => rng.below(100),
                Work::ManyKeys | Work::Strings => rng.below(100_000_000),
                Work::Duplicates => rng.below(records as u64 / 5),
                Work::Disjoint => (run << 32) + rng.below(100_000_000),
            };
            let mut words = [key; 12];
            for (word, factor) in words[1..11].iter_mut().zip(3u64..) {
                // For duplicates, the same key implies the same record.
                let duplicate = key.wrapping_mul(factor) & 0xffff;
                *word = if work == Work::Duplicates { duplicate } else { rng.below(1 << 32) };
            }
            words[11] = 1;
            Record(words)
        };
        let mut out: Vec<Record> = (0..each).map(&mut record).collect();
        out.sort_unstable();
        out.dedup_by(|next, kept| next.same(kept));
        out
    };
    (0..count as u64).map(&mut run).collect()
}

/// Converts records to columns; strings replace the first three words.
fn record_batch(work: Work, records: &[Record]) -> RecordBatch {
    let word = |at: usize| {
        Arc::new(UInt64Array::from_iter_values(records.iter().map(|r| r.0[at]))) as ArrayRef
    };
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    if work == Work::Strings {
        let texts = StringArray::from_iter_values(records.iter().map(Record::text));
        columns.push(("key".into(), Arc::new(texts), false));
        columns.extend((3..8).map(|at| (format!("v{at}"), word(at), false)));
    } else {
        columns.extend((0..11).map(|at| (format!("v{at}"), word(at), false)));
    }
    let diffs = Int64Array::from_iter_values(records.iter().map(Record::diff));
    columns.push(("diff".into(), Arc::new(diffs), false));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

fn chain(layout: &Layout, pool: &Pool, work: Work, run: &[Record]) -> Result<Batch> {
    let mut batcher = Batcher::new(layout, pool);
    for piece in run.chunks(8192) {
        batcher.push(&record_batch(work, piece))?;
    }
    Ok(batcher.finish()?.settle()?)
}

/// Returns the seconds of the heap and of the loser tree; both must output `expected` records.
fn rivals<R: Merged>(case: &str, runs: &[Vec<R>], expected: usize) -> Result<[f64; 2]> {
    let Some(any) = runs.iter().flatten().next() else { return Ok([0.0; 2]) };
    let mut out = vec![*any; runs.iter().map(Vec::len).sum()];
    let mut filled = Filled { out: black_box(&mut out), len: 0 };
    let (heap, ()) = seconds(|| {
        rivals::heap(&mut Slices::new(runs), &mut filled);
        Ok(())
    })?;
    let first = std::mem::take(&mut filled.len);
    let (tree, ()) = seconds(|| {
        rivals::loser_tree(&mut Slices::new(runs), &mut filled);
        Ok(())
    })?;
    if (first, filled.len) != (expected, expected) {
        let found = format!("the heap {first}, the tree {}", filled.len);
        return Err(format!("{case}: {expected} records, {found}").into());
    }
    Ok([heap, tree])
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cells = Cells::new("kway", "ns/record");
    let pool = Pool::unlimited();
    for (work, name) in WORKS {
        let schema = record_batch(work, &[]).schema();
        let layout = Order::by(schema.field(0).name().as_str()).diff("diff").bind(&schema)?;
        for &count in &options.runs {
            let case = format!("{name} K={count}");
            if !case.contains(&options.only) {
                continue;
            }
            let mut times: [Vec<f64>; 4] = Default::default();
            for round in 0..options.rounds {
                let seed = (round as u64 + 1) << 32 | count as u64;
                let runs = runs(work, count, options.records, seed);
                let chains = runs.iter().map(|run| chain(&layout, &pool, work, run));
                let chains = chains.collect::<Result<Vec<_>>>()?;
                let (ours, merged) = seconds(|| {
                    Ok(Batch::union(&layout, &pool, chains).settle_on(options.threads)?)
                })?;
                let expected = merged.rows().unwrap_or(0) as usize;
                drop(merged);
                let [heap, tree] = if work == Work::Strings {
                    let text = |run: &Vec<Record>| run.iter().map(Text::of).collect();
                    rivals::<Text>(&case, &runs.iter().map(text).collect::<Vec<_>>(), expected)?
                } else {
                    rivals(&case, &runs, expected)?
                };
                let mut copied = runs.concat();
                let (copy, ()) = seconds(|| {
                    let mut rest = black_box(&mut copied[..]);
                    for run in &runs {
                        let (to, behind) = rest.split_at_mut(run.len());
                        to.copy_from_slice(run);
                        rest = behind;
                    }
                    Ok(())
                })?;
                let records = copied.len() as f64;
                for (times, elapsed) in times.iter_mut().zip([ours, heap, tree, copy]) {
                    times.push(elapsed * 1e9 / records);
                }
            }
            let [ours, heap, tree, copy] = times.map(least);
            cells.push(&case, ours, "binary heap", heap);
            cells.push(&case, ours, "loser tree", tree);
            cells.push(&case, ours, "memcpy", copy);
        }
        if work == Work::ManyKeys {
            for &count in options.runs.iter().filter(|count| IN_FILES.contains(count)) {
                let case = format!("files, {name} K={count}");
                if case.contains(&options.only) {
                    let size = (count, options.records, options.rounds);
                    file::cells(&mut cells, &layout, &case, size)?;
                }
            }
        }
    }
    cells.finish()
}
