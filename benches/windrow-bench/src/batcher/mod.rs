//! `batcher`: 64 pushes of unordered changes and one seal, against the batchers of
//! differential-dataflow.
//!
//! Each side starts from its users' input: Windrow from record batches of one schema, so encoding
//! is included; the rivals from vectors of owned tuples, which their chunkers sort in place or
//! copy. Results are dropped after the clock has stopped. Every round has fresh data, and the
//! fastest counts. Output memory is recycled: Windrow's by a pool for the whole bench, the rivals'
//! by the allocator's heap. Each contender first seals a data set that does not count.
//!
//! A push has at least 64 changes, as in the benchmark of Materialize's batcher, whose smallest
//! case has 4,096 records according to its times and throughputs. 32 KiB over 64 pushes, 5 to 16
//! changes each, is a separate case, `32K in all`.
//!
//! `resident` cells compare bytes per record of Windrow's sealed chunks with bytes of records as
//! Rust values. `copy of the columns` is the lower bound for any consumer of record batches: each
//! column of each batch is appended to a buffer. The rivals' input has no columns.

use std::hint::black_box;

use windrow::arrow_array::RecordBatch;
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::{Int64Type, UInt64Type};
use windrow::{Antichain, Batcher, Pool};

use crate::Result;
use crate::cells::{Cells, keep_freed_memory, seconds};
use crate::merge::data::{self, Change, Integers, Regime, RowKeyed, Shape, Wide};
#[cfg(feature = "differential")]
use crate::merge::differential as d;
use crate::merge::{Options, Outcome, layout, least, rounds, size_name};

const REGIMES: [Regime; 5] =
    [Regime::Random, Regime::Equal, Regime::Runs, Regime::Disjoint, Regime::Sorted];
const PUSHES: usize = 64;
/// Minimum number of changes of a push.
const CHANGES: usize = 64;

/// A batcher: takes pushes and seals them.
type Contender<K, V> = fn(Vec<Vec<Change<K, V>>>) -> Outcome;

pub(crate) fn run(options: &Options) -> Result<()> {
    keep_freed_memory();
    let mut cells = Cells::new("batcher", "ns/record");
    #[cfg(feature = "differential")]
    {
        shape::<Integers>(
            options,
            &mut cells,
            &[
                ("columnation 0.22", d::batcher_columnation),
                ("Vec 0.26", d::batcher_vec),
                ("trie 0.26", d::batcher_trie),
            ],
        )?;
        shape::<RowKeyed>(
            options,
            &mut cells,
            &[
                ("columnation 0.22", d::batcher_columnation),
                ("Vec 0.26", d::batcher_vec),
                ("trie 0.26", d::batcher_trie),
            ],
        )?;
        shape::<Wide>(
            options,
            &mut cells,
            &[("columnation 0.22", d::batcher_columnation), ("Vec 0.26", d::batcher_vec)],
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

/// A rival and its name.
type Rival<S> = (&'static str, Contender<<S as Shape>::Key, <S as Shape>::Val>);

fn shape<S: Shape>(options: &Options, cells: &mut Cells, rivals: &[Rival<S>]) -> Result<()> {
    let layout = layout::<S>()?;
    let pool = Pool::unlimited();
    for regime in REGIMES {
        for (case, count) in options.sizes.iter().flat_map(|&kib| cases::<S>(regime, kib)) {
            if !case.contains(&options.only) {
                continue;
            }
            let (mut ours, mut copies, mut columns) = (Vec::new(), Vec::new(), Vec::new());
            let mut theirs = vec![Vec::new(); rivals.len()];
            let mut resident = 0.0;
            for round in 0..rounds(options, count * S::BYTES) {
                // The first data set does not count, as in `merge`.
                let sets = [0, 1].map(|set| {
                    let seed = (round as u64 + 1) << 32 | set << 31 | count as u64;
                    let pushes = data::pushes(regime, count, PUSHES, seed);
                    if regime != Regime::Sorted {
                        return pushes.iter().map(|push| S::changes(push)).collect::<Vec<_>>();
                    }
                    // Sorted in the shape's order, which differs where integers become text.
                    let all = S::sorted(&pushes.concat());
                    all.chunks(pushes[0].len().max(1)).map(<[_]>::to_vec).collect()
                });
                let records = sets[1].iter().map(Vec::len).sum::<usize>() as f64;
                let mut expected = [0; 2];
                let (mut last, mut last_columns) = (0.0, 0.0);
                let mut copy = Vec::with_capacity(2 * records as usize * S::BYTES);
                for (pushes, expected) in sets.iter().zip(&mut expected) {
                    let make =
                        || pushes.iter().map(|push| S::record_batch(push)).collect::<Vec<_>>();
                    // Copies batches as fresh as the pushed ones.
                    let batches = make();
                    (last_columns, ()) = seconds(|| {
                        copy.clear();
                        batches.iter().for_each(|batch| copy_columns(batch, &mut copy));
                        black_box(&mut copy);
                        Ok(())
                    })?;
                    drop(batches);
                    let batches = make();
                    let (elapsed, sealed) = seconds(|| {
                        let mut batcher = Batcher::new(&layout, &pool);
                        for batch in &batches {
                            batcher.push(batch)?;
                        }
                        Ok(batcher.seal(&Antichain::new())?)
                    })?;
                    *expected = sealed.rows().unwrap_or(0) as usize;
                    resident = sealed.resident_bytes() as f64 / records;
                    last = elapsed;
                }
                ours.push(last * 1e9 / records);
                for ((name, rival), times) in rivals.iter().zip(&mut theirs) {
                    for (pushes, out) in sets.iter().zip(expected) {
                        let (elapsed, got) = rival(pushes.clone());
                        if got != out {
                            return Err(format!("{case}: {out} records, {name} has {got}").into());
                        }
                        last = elapsed;
                    }
                    times.push(last * 1e9 / records);
                }
                let from = vec![1u8; records as usize * S::BYTES];
                let mut to = vec![2u8; from.len()];
                let (elapsed, ()) = seconds(|| {
                    black_box(&mut to).copy_from_slice(black_box(&from));
                    Ok(())
                })?;
                copies.push(elapsed * 1e9 / records);
                columns.push(last_columns * 1e9 / records);
            }
            let ours = least(ours);
            for ((name, _), times) in rivals.iter().zip(theirs) {
                cells.push(&case, ours, name, least(times));
            }
            cells.push(&case, ours, "copy of the columns", least(columns));
            cells.push(&case, ours, "memcpy", least(copies));
            let values = size_of::<Change<S::Key, S::Val>>() as f64;
            cells.push_in(&case, resident, "resident, values", values, "bytes/record");
        }
    }
    Ok(())
}

/// Returns the names and record counts of the cases of a size.
fn cases<S: Shape>(regime: Regime, kib: usize) -> Vec<(String, usize)> {
    let case = format!("{} {} {}", S::NAME, regime.name(), size_name(kib));
    let count = (kib << 10) / S::BYTES;
    if count >= PUSHES * CHANGES {
        return vec![(case, count)];
    }
    vec![(format!("{case} in all"), count), (case, PUSHES * CHANGES)]
}

/// Appends the values of all columns: the minimum cost of reading them.
fn copy_columns(batch: &RecordBatch, out: &mut Vec<u8>) {
    for column in batch.columns() {
        if let Some(values) = column.as_primitive_opt::<UInt64Type>() {
            out.extend_from_slice(values.values().inner());
        } else if let Some(values) = column.as_primitive_opt::<Int64Type>() {
            out.extend_from_slice(values.values().inner());
        } else if let Some(strings) = column.as_string_opt::<i32>() {
            out.extend_from_slice(strings.offsets().inner().inner());
            out.extend_from_slice(strings.values());
        }
    }
}
