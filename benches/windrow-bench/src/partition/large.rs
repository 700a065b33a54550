//! A record batch larger than any cache.
//!
//! Two cells each: `fresh` writes to memory not yet supplied by the system - for Windrow, a
//! partitioner's first split - and `recycled` writes to memory touched before. Takes allocate in
//! both cases. The bounds of memory are a copy of the column and a copy of the ids, both to warm
//! memory.

use std::cell::RefCell;
use std::hint::black_box;

use windrow::Partitioner;

use super::data::{Ids, Kind, Shape, record_batch};
use super::rivals::{Lists, Loops, Unroll};
use super::{Contender, Options, least};
use crate::Result;
use crate::cells::Cells;

/// Number of rows: 256 MiB of four-byte values, and as many bytes of ids.
const ROWS: usize = 64 << 20;
/// Samples of each contender; the minimum counts.
const SAMPLES: usize = 3;

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    println!(
        "{:<42} {:>8} {:>8} {:>8} {:>8} {:>8}   ns a row",
        "64M rows", "ours", "naive", "grouped", "column", "ids"
    );
    for (kind, shape) in [
        (Kind::Integer, Shape::Uniform),
        (Kind::Integer, Shape::Skewed),
        (Kind::BigInt, Shape::Uniform),
    ] {
        for partitions in [4, 16, 64, 256, 1024] {
            let name = format!("{} 64M P{partitions} {}", kind.name(), shape.name());
            if options.wants(&name) {
                measure(&name, kind, shape, partitions, cells);
            }
        }
    }
    Ok(())
}

fn measure(name: &str, kind: Kind, shape: Shape, partitions: usize, cells: &mut Cells) {
    let batch = record_batch(kind, 1, ROWS, false);
    let ids = Ids::new(shape, ROWS, partitions, 1);
    let mut lists = Lists::new(partitions);
    let loops = RefCell::new(Loops::new(&batch, partitions).expect("numbers have a loop"));
    let mut recycled = Partitioner::ids(partitions);
    let split = |ours: &mut Partitioner| {
        black_box(ours.split_by_ids(&batch, ids.set(0).ids()).expect("valid ids"));
    };
    let mut copied_ids = vec![0; ROWS];
    let mut contenders = [
        Contender::new("ours, fresh", |_| split(&mut Partitioner::ids(partitions))),
        Contender::new("ours, recycled", |_| split(&mut recycled)),
        Contender::new("naive, recycled", |_| loops.borrow_mut().scatter(ids.set(0), Unroll::No)),
        Contender::new("naive, fresh", |_| {
            loops.borrow_mut().forget();
            loops.borrow_mut().scatter(ids.set(0), Unroll::No);
        }),
        Contender::new("grouped", |_| {
            black_box(lists.grouped(&batch, ids.set(0).ids()));
        }),
        Contender::new("copy of the column", |_| loops.borrow_mut().copy()),
        Contender::new("copy of the ids", |_| {
            copied_ids.copy_from_slice(black_box(ids.set(0).ids()));
            black_box(&mut copied_ids);
        }),
    ];
    let times: Vec<f64> =
        least(&mut contenders, SAMPLES).into_iter().map(|us| us * 1e3 / ROWS as f64).collect();
    for (memory, ours, naive) in [("fresh", 0, 3), ("recycled", 1, 2)] {
        let name = format!("{name} {memory}");
        for rival in [naive, 4, 5, 6] {
            cells.push_in(&name, times[ours], contenders[rival].name, times[rival], "ns");
        }
        println!(
            "{name:<42} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.2}   {:.2}x naive/1.8, {:.2}x grouped/3",
            times[ours],
            times[naive],
            times[4],
            times[5],
            times[6],
            times[naive] / times[ours],
            times[4] / times[ours],
        );
    }
}
