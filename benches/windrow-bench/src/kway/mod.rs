//! `kway`: K sorted runs into one, against a loser tree.
//!
//! Records are a u64 key, ten u64 values and a diff - rows of 96 bytes - or a 24-byte string key
//! and five values. The rivals merge the same records as arrays of words in plain vectors, compared
//! whole, and copied once into an output that is allocated and touched before the clock starts.
//! Like Windrow, the rivals add up equal records. Windrow takes ownership of single-chain batches
//! and compacts them into one, at once or in slices of 1,024 rows; a pool for the whole bench recycles
//! its output memory. Everything is in memory. Each round has fresh data, and the fastest counts.

mod data;
mod rivals;

use std::hint::black_box;

use windrow::{Batch, Merging, Pool};

use crate::Result;
use crate::harness::{Cells, Turns, contender, elapsed, seconds};
use data::{Record, Runs, Text, Words, Work, chain, layout, records, runs, text};

/// Options of the bench.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Numbers of runs
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16,32,64,128,256")]
    runs: Vec<usize>,
    /// Records in all
    #[arg(long, default_value_t = 2_000_000)]
    records: usize,
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

pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<()> {
    let pool = Pool::unlimited();
    for (work, name) in WORKS {
        for &count in &options.runs {
            let case = format!("{name} K={count}");
            if work == Work::Strings {
                let record = |words: &Words| -> Text {
                    let values = std::array::from_fn(|at| words[3 + at]);
                    (*text(words).as_bytes().first_chunk().expect("24 characters"), values)
                };
                measure(options, work, &pool, &case, count, record, &mut cells)?;
            } else {
                measure(options, work, &pool, &case, count, |words| *words, &mut cells)?;
            }
        }
    }
    cells.finish()
}

/// Measures a case, with records as the rivals have them.
fn measure<T: Ord + Copy>(
    options: &Options,
    work: Work,
    pool: &Pool,
    case: &str,
    count: usize,
    record: impl Fn(&Words) -> T,
    cells: &mut Cells,
) -> Result<()> {
    if !cells.wants(case) {
        return Ok(());
    }
    let layout = layout(work)?;
    let output = |runs: &[Vec<Record<T>>]| vec![runs[0][0]; runs.iter().map(Vec::len).sum()];
    type Inputs<T> = (Runs, Vec<Vec<Record<T>>>);
    let merged = |runs: &Runs, merge: &dyn Fn(Vec<Batch>) -> Result<Batch>| {
        let chains = runs.iter().map(|run| chain(&layout, pool, work, run));
        let chains = chains.collect::<Result<Vec<_>>>()?;
        let (time, merged) = seconds(|| merge(chains))?;
        Ok((time, merged.rows().unwrap_or(0)))
    };
    let at_once = |of| Ok(Batch::union(&layout, pool, of).settle_on(options.threads)?);
    let in_slices = |of| {
        let mut merging = Merging::new(&layout, pool, of);
        while !merging.work(&mut 1024)? {}
        Ok(merging.finish()?)
    };
    let mut contenders = [
        contender("ours", |(runs, _): &Inputs<T>, _| merged(runs, &at_once)),
        contender("ours, in slices", |(runs, _), _| merged(runs, &in_slices)),
        contender("loser tree", |(_, runs): &Inputs<T>, _| {
            let mut out = output(runs);
            Ok(elapsed(|| rivals::merge(runs, black_box(&mut out)) as u64))
        }),
        contender("memcpy", |(_, runs): &Inputs<T>, _| {
            let mut out = output(runs);
            let copy = || {
                let mut rest = black_box(&mut out[..]);
                for run in runs {
                    let (to, behind) = rest.split_at_mut(run.len());
                    to.copy_from_slice(run);
                    rest = behind;
                }
            };
            Ok(elapsed(copy).0)
        }),
    ];
    let fresh = |round: usize| {
        let seed = (round as u64 + 1) << 32 | count as u64;
        let runs = runs(work, count, options.records, 32, seed);
        let items = records(&runs);
        let of_run = |run: &Vec<Record<Words>>| {
            run.iter().map(|Record(words, diff)| Record(record(words), *diff)).collect()
        };
        let theirs = runs.iter().map(of_run).collect();
        Ok(((runs, theirs), items))
    };
    cells.race(case, Turns { rounds: 3, warm: 0, calls: 1 }, fresh, &mut contenders)
}
