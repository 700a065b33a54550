//! Hash and partition id, against ahash and modulo.
//!
//! The rival goes column by column, like DataFusion's repartition: it hashes each value, combines
//! the hash with the previous columns', and takes the remainder at the end.

use std::hint::black_box;

use ahash::RandomState;
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use windrow::{Order, Partitioner};

use super::cases::REFRESHED;
use super::data::{Type, record_batch};
use super::{Options, TURNS, contender, least};
use crate::Result;
use crate::cells::Cells;
use crate::columns::Kind;

/// Record batches in rotation.
const ROTATION: usize = 8;
const COLUMNS: Type = ("keys", &[Kind::I64, Kind::I64, Kind::I32, Kind::Utf8("", 0, 24)]);

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    let cases: [(&str, &[&str]); 5] = [
        ("hash 1 column of 8 bytes", &["c0"]),
        ("hash 1 column of 4 bytes", &["c2"]),
        ("hash 2 columns", &["c0", "c2"]),
        ("hash 3 columns", &["c0", "c1", "c2"]),
        ("hash 1 column of text", &["c3"]),
    ];
    for partitions in [16, 100, 1024] {
        for (name, key) in cases {
            let name = format!("{name} P{partitions}");
            if !options.wants(&name) {
                continue;
            }
            let all = record_batch(COLUMNS, 4, ROTATION * options.rows, false);
            let slice = |at| all.slice(at * options.rows, options.rows);
            let batches: Vec<_> = (0..ROTATION).map(slice).collect();
            let layout = Order::by(key.to_vec()).bind(&batches[0].schema())?;
            let mut ours = Partitioner::hash(&layout, partitions);
            let (mut ids, mut others, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
            let state = RandomState::with_seeds(1, 2, 3, 4);
            let mut contenders = [
                contender("ours", |turn| {
                    ours.assign(&batches[turn % ROTATION], &mut ids).expect("the schema is known");
                    black_box(&ids);
                }),
                contender("ahash and modulo", |turn| {
                    let batch = &batches[turn % ROTATION];
                    hashes.clear();
                    hashes.resize(batch.num_rows(), 0);
                    for (index, column) in key.iter().enumerate() {
                        absorb(&state, &batch[*column], index > 0, &mut hashes);
                    }
                    let partitions = black_box(partitions as u64);
                    others.clear();
                    others.extend(hashes.iter().map(|hash| (hash % partitions) as u32));
                    black_box(&others);
                }),
            ];
            let turns = options.samples * REFRESHED;
            let times = least(&mut contenders, turns, TURNS, &mut || ());
            cells.push_in("us", &name, times[0], (contenders[1].0, times[1]));
        }
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
