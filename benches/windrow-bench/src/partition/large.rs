//! A record batch larger than any cache.
//!
//! Two cells each: `fresh` writes to memory not yet supplied by the system - for Windrow, a
//! partitioner's first split - and `recycled` writes to memory touched before. Takes allocate in
//! both cases. The bounds of memory are a copy of the column and a copy of the ids, both to warm
//! memory.

use std::cell::RefCell;
use std::hint::black_box;

use windrow::Partitioner;

use super::data::{BIGINT, INTEGER, Ids, Shape, Type, record_batch};
use super::rivals::{Loops, grouped};
use super::{Options, contender, least};
use crate::cells::Cells;

/// Number of rows: 256 MiB of four-byte values, and as many bytes of ids.
const ROWS: usize = 64 << 20;
/// Samples of each contender; the minimum counts.
const SAMPLES: usize = 3;

pub(super) fn run(options: &Options, cells: &mut Cells) {
    for (kind, shape) in
        [(INTEGER, Shape::Uniform), (INTEGER, Shape::Skewed), (BIGINT, Shape::Uniform)]
    {
        for partitions in [4, 16, 64, 256, 1024] {
            let name = format!("{} 64M P{partitions} {}", kind.0, shape.name());
            if options.wants(&name) {
                measure(&name, kind, shape, partitions, cells);
            }
        }
    }
}

fn measure(name: &str, kind: Type, shape: Shape, partitions: usize, cells: &mut Cells) {
    let batch = record_batch(kind, 1, ROWS, false);
    let ids = Ids::new(shape, ROWS, partitions, 1);
    let mut lists = vec![Vec::new(); partitions];
    let loops = RefCell::new(Loops::new(&batch, partitions).expect("numbers have a loop"));
    let mut recycled = Partitioner::ids(partitions);
    let split = |ours: &mut Partitioner| {
        black_box(ours.split_by_ids(&batch, ids.set(0).ids()).expect("valid ids"));
    };
    let mut copied_ids = vec![0; ROWS];
    let mut contenders = [
        contender("ours, fresh", |_| split(&mut Partitioner::ids(partitions))),
        contender("ours, recycled", |_| split(&mut recycled)),
        contender("naive, recycled", |_| loops.borrow_mut().scatter(ids.set(0), false)),
        contender("naive, fresh", |_| {
            loops.borrow_mut().forget();
            loops.borrow_mut().scatter(ids.set(0), false);
        }),
        contender("grouped", |_| {
            black_box(grouped(&mut lists, &batch, ids.set(0).ids()));
        }),
        contender("copy of the column", |_| loops.borrow_mut().copy()),
        contender("copy of the ids", |_| {
            copied_ids.copy_from_slice(black_box(ids.set(0).ids()));
            black_box(&mut copied_ids);
        }),
    ];
    let times = least(&mut contenders, SAMPLES, 2, &mut || ());
    let per_row = |at: usize| times[at] * 1e3 / ROWS as f64;
    for (memory, ours, naive) in [("fresh", 0, 3), ("recycled", 1, 2)] {
        let name = format!("{name} {memory}");
        for rival in [naive, 4, 5, 6] {
            let theirs = (contenders[rival].0, per_row(rival));
            cells.push_in("ns", &name, per_row(ours), theirs);
        }
    }
}
