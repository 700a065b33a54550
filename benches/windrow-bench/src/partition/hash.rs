//! Hash and partition id, against ahash and modulo.
//!
//! The rival goes column by column, like DataFusion's repartition: it hashes each value, combines
//! the hash with the previous columns', and takes the remainder at the end.

use std::hint::black_box;
use std::sync::Arc;

use ahash::RandomState;
use arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use windrow::{Order, Partitioner};

use super::{Contender, Options, least};
use crate::Result;
use crate::cells::Cells;
use windrow_testdata::rng::Rng;

/// Record batches in rotation.
const ROTATION: usize = 8;

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    println!("{:<34} {:>8} {:>10} {:>8} {:>8}", "ns a row", "ours", "ahash, %", "ratio", "bar");
    let cases: [(&str, &[&str], f64); 5] = [
        ("hash 1 column of 8 bytes", &["a"], 2.0),
        ("hash 1 column of 4 bytes", &["c"], 2.0),
        ("hash 2 columns", &["a", "c"], 2.0),
        ("hash 3 columns", &["a", "b", "c"], 3.0),
        ("hash 1 column of text", &["d"], 1.0),
    ];
    for partitions in [16, 100, 1024] {
        for (name, key, bar) in cases {
            let name = format!("{name} P{partitions}");
            if !options.wants(&name) {
                continue;
            }
            let batches: Vec<RecordBatch> =
                (0..ROTATION).map(|seed| record_batch(options.rows, seed as u64)).collect();
            let layout = Order::by(key.to_vec()).bind(&batches[0].schema())?;
            let mut ours = Partitioner::hash(&layout, partitions);
            let (mut ids, mut others) = (Vec::new(), Vec::new());
            let mut hashes = Vec::new();
            let state = RandomState::with_seeds(1, 2, 3, 4);
            let mut contenders = [
                Contender::new("ours", |turn| {
                    ours.assign(&batches[turn % ROTATION], &mut ids).expect("the schema is known");
                    black_box(&ids);
                }),
                Contender::new("ahash and modulo", |turn| {
                    let batch = &batches[turn % ROTATION];
                    hashes.clear();
                    hashes.resize(batch.num_rows(), 0);
                    for (index, column) in key.iter().enumerate() {
                        let column = batch.column_by_name(column).expect("a column of the bench");
                        absorb(&state, column, index > 0, &mut hashes);
                    }
                    let partitions = black_box(partitions as u64);
                    others.clear();
                    others.extend(hashes.iter().map(|hash| (hash % partitions) as u32));
                    black_box(&others);
                }),
            ];
            let times = least(&mut contenders, options.samples);
            let [ours, rival] = [0, 1].map(|index| times[index] * 1e3 / options.rows as f64);
            cells.push(&name, times[0], contenders[1].name, times[1]);
            let ratio = rival / ours;
            println!("{name:<34} {ours:>8.2} {rival:>10.2} {ratio:>7.2}x {bar:>7.1}x");
        }
    }
    Ok(())
}

fn absorb(state: &RandomState, column: &ArrayRef, more: bool, hashes: &mut [u64]) {
    fn each<T: std::hash::Hash>(
        state: &RandomState,
        values: impl Iterator<Item = T>,
        more: bool,
        hashes: &mut [u64],
    ) {
        if more {
            for (hash, value) in hashes.iter_mut().zip(values) {
                let value = state.hash_one(value);
                *hash = (17u64.wrapping_mul(37).wrapping_add(value))
                    .wrapping_mul(37)
                    .wrapping_add(*hash);
            }
        } else {
            for (hash, value) in hashes.iter_mut().zip(values) {
                *hash = state.hash_one(value);
            }
        }
    }
    match column.data_type() {
        DataType::Int32 => {
            each(state, column.as_primitive::<Int32Type>().values().iter(), more, hashes);
        }
        DataType::Int64 => {
            each(state, column.as_primitive::<Int64Type>().values().iter(), more, hashes);
        }
        _ => each(state, column.as_string::<i32>().iter().flatten(), more, hashes),
    }
}

fn record_batch(rows: usize, seed: u64) -> RecordBatch {
    let mut rng = Rng::new(seed);
    let a = Int64Array::from_iter_values((0..rows).map(|_| rng.next_u64() as i64));
    let b = Int64Array::from_iter_values((0..rows).map(|_| rng.next_u64() as i64));
    let c = Int32Array::from_iter_values((0..rows).map(|_| rng.next_u64() as i32));
    let d = StringArray::from_iter_values(
        (0..rows).map(|_| format!("{:.*}", rng.below(25) as usize, "abcdefghijklmnopqrstuvwxyz")),
    );
    let columns: [(&str, ArrayRef); 4] =
        [("a", Arc::new(a)), ("b", Arc::new(b)), ("c", Arc::new(c)), ("d", Arc::new(d))];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}
