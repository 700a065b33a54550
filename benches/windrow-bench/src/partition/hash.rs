//! Hash and partition id, against ahash and modulo.
//!
//! The rival goes column by column, like DataFusion's repartition: it hashes each value, combines
//! the hash with the previous columns', and takes the remainder at the end.

use ahash::RandomState;
use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use windrow::{Order, Partitioner};

use super::data::{Type, record_batch};
use super::{Options, TURNS};
use crate::Result;
use crate::columns::Kind;
use crate::harness::{Cells, Turns, timed};

/// Record batches in rotation.
const ROTATION: usize = 8;
const COLUMNS: Type = ("keys", &[Kind::I64, Kind::I64, Kind::I32, Kind::Utf8("", 0, 24)]);
const CASES: [(&str, &[&str]); 5] = [
    ("hash 1 column of 8 bytes", &["c0"]),
    ("hash 1 column of 4 bytes", &["c2"]),
    ("hash 2 columns", &["c0", "c2"]),
    ("hash 3 columns", &["c0", "c1", "c2"]),
    ("hash 1 column of text", &["c3"]),
];

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    let all = record_batch(COLUMNS, 4, ROTATION * options.rows, false)?;
    let slice = |at: usize| all.slice(at % ROTATION * options.rows, options.rows);
    let turns = Turns { rounds: options.samples * TURNS.rounds, ..TURNS };
    let state = RandomState::with_seeds(1, 2, 3, 4);
    let cases = [16, 100, 1024].into_iter().flat_map(|count| CASES.map(|case| (count, case)));
    for (partitions, (name, key)) in cases {
        let name = format!("{name} P{partitions}");
        if !cells.wants(&name) {
            continue;
        }
        let layout = Order::by(key.to_vec()).bind(&all.schema())?;
        let mut ours = Partitioner::hash(&layout, partitions);
        let (mut ids, mut others, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
        let mut contenders = [
            timed("ours", |batches: &Vec<RecordBatch>, turn| {
                Ok(ours.assign(&batches[turn % ROTATION], &mut ids)?)
            }),
            timed("ahash and modulo", |batches: &Vec<RecordBatch>, turn| {
                let batch = &batches[turn % ROTATION];
                hashes.clear();
                hashes.resize(batch.num_rows(), 0);
                for (index, column) in key.iter().enumerate() {
                    absorb(&state, &batch[*column], index > 0, &mut hashes);
                }
                others.clear();
                others.extend(hashes.iter().map(|hash| (hash % partitions as u64) as u32));
                Ok(())
            }),
        ];
        let fresh = |_| Ok(((0..ROTATION).map(slice).collect(), 1.0));
        cells.race(&name, turns, fresh, &mut contenders)?;
    }
    Ok(())
}

fn absorb(state: &RandomState, column: &ArrayRef, more: bool, hashes: &mut [u64]) {
    macro_rules! each {
        ($values:expr) => {
            for (hash, value) in hashes.iter_mut().zip($values) {
                let value = state.hash_one(value);
                let combined = 17u64.wrapping_mul(37).wrapping_add(value).wrapping_mul(37);
                *hash = if more { combined.wrapping_add(*hash) } else { value };
            }
        };
    }
    match column.data_type() {
        DataType::Int32 => each!(column.as_primitive::<Int32Type>().values()),
        DataType::Int64 => each!(column.as_primitive::<Int64Type>().values()),
        _ => each!(column.as_string::<i32>().iter().flatten()),
    }
}
