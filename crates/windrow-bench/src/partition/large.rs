//! One record batch that no cache holds.
//!
//! Every contender gets fresh output memory but `warm`, the naive loop to memory that was touched
//! before.

use std::hint::black_box;

use windrow::Partitioner;

use super::data::{Ids, Kind, Shape, record_batch};
use super::rivals::{Lists, Loops, Unroll};
use super::{Contender, Options, least};
use crate::Result;
use crate::cells::Cells;

/// Rows: 256 MiB of four-byte values, and as many of ids.
const ROWS: usize = 64 << 20;

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    println!(
        "{:<34} {:>8} {:>8} {:>8} {:>8}   ns a row",
        "64M rows", "ours", "naive", "warm", "grouped"
    );
    for (kind, shape) in [
        (Kind::Integer, Shape::Uniform),
        (Kind::Integer, Shape::Skewed),
        (Kind::BigInt, Shape::Uniform),
    ] {
        for partitions in [4, 16, 64, 256, 1024] {
            let name = format!("{} 64M P{partitions} {}", kind.name(), shape.name());
            if !options.wants(&name) {
                continue;
            }
            let batch = record_batch(kind, 1, ROWS, false);
            let ids = Ids::new(shape, ROWS, partitions, 1);
            let loops = || Loops::new(&batch, partitions).expect("numbers have a loop");
            let (mut ours, mut warm) = (Partitioner::ids(partitions), loops());
            let mut lists = Lists::new(partitions);
            let mut naive = loops();
            let mut contenders = [
                Contender::new("ours", |_| {
                    black_box(ours.split_by_ids(&batch, ids.set(0).ids()).expect("valid ids"));
                }),
                Contender::new("naive", |_| {
                    naive.forget();
                    naive.scatter(ids.set(0), Unroll::No);
                }),
                Contender::new("naive, warm", |_| warm.scatter(ids.set(0), Unroll::No)),
                Contender::new("grouped", |_| {
                    black_box(lists.grouped(&batch, ids.set(0).ids()));
                }),
            ];
            let times = least(&mut contenders, 2);
            for (contender, &rival) in contenders.iter().zip(&times).skip(1) {
                cells.push(&name, times[0], contender.name, rival);
            }
            let row = |index: usize| times[index] * 1e3 / ROWS as f64;
            println!(
                "{name:<34} {:>8.2} {:>8.2} {:>8.2} {:>8.2}   {:.2}x naive, {:.2}x warm, {:.2}x grouped",
                row(0),
                row(1),
                row(2),
                row(3),
                row(1) / row(0),
                row(2) / row(0),
                row(3) / row(0),
            );
        }
    }
    Ok(())
}
