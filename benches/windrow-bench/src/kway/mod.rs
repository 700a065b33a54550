//! `kway`: K sorted runs into one, against a loser tree.
//!
//! Records are a u64 key, ten u64 values and a diff - rows of 96 bytes - or a 24-byte string key
//! and five values. The rivals merge the same records as arrays of words in plain vectors, compared
//! whole, and copied once into an output that is allocated and touched before the clock starts.
//! Like Windrow, the rivals add up equal records. Windrow takes ownership of single-chain batches
//! and compacts them into one; a pool for the whole bench recycles its output memory. Everything is
//! in memory. Each round has fresh data, and the fastest counts.

mod data;
mod rivals;

use std::hint::black_box;

use windrow::{Batch, Layout, Pool};

use crate::Result;
use crate::cells::{Cells, least, seconds};
use data::{Record, Text, Words, Work, chain, layout, runs, text};
use rivals::Runs;

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
    /// Threads that ours merges on; the rivals have one
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

const WORKS: [(Work, &str); 5] = [
    (Work::FewKeys, "keys 100"),
    (Work::ManyKeys, "keys 1e8"),
    (Work::Duplicates, "80% duplicates"),
    (Work::Disjoint, "disjoint"),
    (Work::Strings, "strings"),
];

/// Returns the seconds of the loser tree, which must output `expected` records, and of a copy.
fn rivals<T: Ord + Copy>(runs: &[Vec<Record<T>>], expected: usize) -> Result<[f64; 2]> {
    let Some(any) = runs.iter().flatten().next() else { return Ok([0.0; 2]) };
    let mut out = vec![*any; runs.iter().map(Vec::len).sum()];
    let (tree, len) = seconds(|| {
        let (out, mut len) = (black_box(&mut out[..]), 0);
        // Appends a record, or adds its diff to an equal last record.
        rivals::loser_tree(Runs::new(runs), |record: &Record<T>| {
            if len > 0 && out[len - 1].0 == record.0 {
                out[len - 1].1 += record.1;
                len -= usize::from(out[len - 1].1 == 0);
            } else {
                out[len] = *record;
                len += 1;
            }
        });
        Ok(len)
    })?;
    if len != expected {
        return Err(format!("{expected} records, the tree has {len}").into());
    }
    let (copy, ()) = seconds(|| {
        let mut rest = black_box(&mut out[..]);
        for run in runs {
            let (to, behind) = rest.split_at_mut(run.len());
            to.copy_from_slice(run);
            rest = behind;
        }
        Ok(())
    })?;
    Ok([tree, copy])
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cells = Cells::new("kway", "ns/record");
    let pool = Pool::unlimited();
    for (work, name) in WORKS {
        let layout = layout(work)?;
        for &count in &options.runs {
            let case = format!("{name} K={count}");
            if case.contains(&options.only) {
                in_memory(options, work, (&layout, &pool), &case, count, &mut cells)?;
            }
        }
    }
    cells.finish()
}

fn in_memory(
    options: &Options,
    work: Work,
    (layout, pool): (&Layout, &Pool),
    case: &str,
    count: usize,
    cells: &mut Cells,
) -> Result<()> {
    let [ours, tree, copy] = least(options.rounds, |round| {
        let seed = (round as u64 + 1) << 32 | count as u64;
        let runs = runs(work, count, options.records, 32, seed);
        let chains = runs.iter().map(|run| chain(layout, pool, work, run));
        let chains = chains.collect::<Result<Vec<_>>>()?;
        let (ours, merged) =
            seconds(|| Ok(Batch::union(layout, pool, chains).settle_on(options.threads)?))?;
        let expected = merged.rows().unwrap_or(0) as usize;
        drop(merged);
        let [tree, copy] = if work == Work::Strings {
            let of = |Record(words, diff): &Record<Words>| {
                let values = std::array::from_fn(|at| words[3 + at]);
                let key = *text(words).as_bytes().first_chunk().expect("24 characters");
                Record::<Text>((key, values), *diff)
            };
            let texts = runs.iter().map(|run| run.iter().map(of).collect());
            rivals(&texts.collect::<Vec<Vec<_>>>(), expected)?
        } else {
            rivals(&runs, expected)?
        };
        let records = runs.iter().map(Vec::len).sum::<usize>() as f64;
        Ok([ours, tree, copy].map(|elapsed| elapsed * 1e9 / records))
    })
    .map_err(|error| format!("{case}: {error}"))?;
    cells.push(case, ours, [("loser tree", tree), ("memcpy", copy)]);
    Ok(())
}
