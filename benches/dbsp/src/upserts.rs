//! Upserts of a table with a key, beside a circuit of one `input_map` operator.
//!
//! ```text
//! load     every key once, in scattered order     1,000 rows a call, or a step of the circuit
//! upserts  a quarter as many of random keys
//! ```
//! `input_map` looks old rows up and emits changes, which are added up here; a table emits nothing, and
//! reads during merges. Sums of the remaining values are compared.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dbsp::circuit::CircuitConfig;
use dbsp::operator::Update;
use dbsp::utils::Tup2;
use dbsp::{IndexedZSetReader, Runtime};
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::UInt64Type;
use windrow::arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use windrow::{Pool, Table};

use crate::harness::{Cells, Figure, Outcome, Turns, contender, seconds};
use crate::rng::Rng;
use crate::{Options, Result};

/// Rows of a call.
const CALL: usize = 1000;
/// A prime: its multiples modulo the number of keys visit all keys in scattered order.
const FACTOR: u64 = 2_654_435_761;

/// Keys and values of the load, and of the upserts.
type Rows = [Vec<(u64, u64)>; 2];

/// Measures both parts, given the conversion of a call's rows and the call.
fn timed<C>(
    rows: &Rows,
    of: impl Fn(&[(u64, u64)]) -> Result<C>,
    mut call: impl FnMut(&mut C) -> Result<()>,
) -> Result<Vec<Figure>> {
    let part = |(name, rows): (&str, &Vec<_>)| {
        let mut calls = rows.chunks(CALL).map(&of).collect::<Result<Vec<_>>>()?;
        let ns = seconds(|| calls.iter_mut().try_for_each(&mut call))?.0 * 1e9;
        Ok((name.to_owned(), "ns/row", vec![ns / rows.len() as f64]))
    };
    [", load", ""].into_iter().zip(rows).map(part).collect()
}

fn record_batch(rows: &[(u64, u64)]) -> Result<RecordBatch> {
    let (keys, values): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
    let column = |name, values: Vec<u64>| (name, Arc::new(UInt64Array::from(values)) as ArrayRef);
    Ok(RecordBatch::try_from_iter([column("key", keys), column("value", values)])?)
}

fn ours(rows: &Rows) -> Result<Outcome> {
    let mut table = Table::new(&record_batch(&[])?.schema(), "key", &Pool::unlimited())?;
    let figures = timed(rows, record_batch, |call| {
        table.upsert(call)?;
        Ok(table.forget_before(table.now())?)
    })?;
    let mut left = 0;
    for batch in table.scan().batches(8192)? {
        left += batch?.column(1).as_primitive::<UInt64Type>().values().iter().sum::<u64>();
    }
    Ok(Outcome { figures, digest: Some(left) })
}

fn theirs(rows: &Rows) -> Result<Outcome> {
    let sum = Arc::new(AtomicU64::new(0));
    let inspected = Arc::clone(&sum);
    let (mut circuit, mut input) =
        Runtime::init_circuit(CircuitConfig::with_workers(1), move |circuit| {
            let (table, input) = circuit.add_input_map::<u64, u64, u64, _>(|old, new| *old = *new);
            table.inspect(move |changes| {
                changes.iter().for_each(|(_, value, diff)| {
                    inspected.fetch_add(value.wrapping_mul(diff as u64), Relaxed);
                });
            });
            Ok(input)
        })?;
    let update = |&(key, value): &(u64, u64)| Tup2(key, Update::Insert(value));
    let updates = |rows: &[(u64, u64)]| Ok(rows.iter().map(update).collect());
    let figures = timed(rows, updates, |call: &mut Vec<_>| {
        input.append(call);
        Ok(circuit.transaction()?)
    })?;
    circuit.kill().map_err(|_| "a thread of DBSP's runtime panicked")?;
    Ok(Outcome { figures, digest: Some(sum.load(Relaxed)) })
}

/// Measures the load and the upserts.
pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<Cells> {
    let fresh = |round: usize| {
        let (mut rng, keys) = (Rng::new(round as u64 + 1), options.keys);
        let load = (0..keys).map(|at| (at * FACTOR % keys, at)).collect();
        let upserts = (0..keys / 4).map(|_| (rng.below(keys), rng.below(1 << 40))).collect();
        Ok(([load, upserts], 1.0))
    };
    if cells.wants("upserts") {
        let theirs = contender("input_map", |rows, _| theirs(rows));
        let mut sides = [contender("ours", |rows, _| ours(rows)), theirs];
        cells.race("upserts", Turns { rounds: 3, warm: 0, calls: 1 }, fresh, &mut sides)?;
    }
    Ok(cells)
}
