//! The cells of the matrix, with target ratios.

use std::cell::RefCell;
use std::hint::black_box;

use windrow::Partitioner;

use super::data::{Ids, Kind, Shape, record_batch};
use super::rivals::{Lists, Loops, Unroll};
use super::{Contender, Options, TURNS, least_of_fresh};
use crate::Result;
use crate::cells::Cells;

const PARTITIONS: [usize; 6] = [2, 4, 16, 64, 256, 1024];

struct Case {
    kind: Kind,
    columns: usize,
    partitions: usize,
    shape: Shape,
    nulls: bool,
}

impl Case {
    fn name(&self) -> String {
        let nulls = if self.nulls { " nulls" } else { "" };
        let (kind, shape) = (self.kind.name(), self.shape.name());
        format!("{kind} x{} P{} {shape}{nulls}", self.columns, self.partitions)
    }

    /// Returns the minimum target speedups over the naive loop and over the grouped take.
    fn bars(&self) -> (Option<f64>, Option<f64>) {
        use Kind::{BigInt, Boolean, HugeInt, Integer, Utf8};
        let (p, uniform) = (self.partitions, self.shape == Shape::Uniform);
        let fixed = matches!(self.kind, Integer | BigInt | HugeInt);
        match (self.kind, self.columns, p) {
            _ if self.shape == Shape::Sorted => (Some(15.0), Some(15.0)),
            _ if self.nulls => match self.columns {
                10 if fixed && uniform && p <= 16 => (Some(5.0), Some(2.0)),
                _ => (None, None),
            },
            (Boolean, _, ..=4) if uniform => (Some(20.0), Some(20.0)),
            (Integer, 1, 2) if uniform => (Some(9.0), Some(9.0)),
            (Integer, 1, 4) if uniform => (Some(5.0), Some(5.0)),
            (BigInt, 1, ..=4) if uniform => (Some(3.5), Some(4.0)),
            (_, 1, 16..=256) if fixed && uniform => (Some(1.1), Some(2.0)),
            (_, 1, 16..=256) if fixed && self.shape == Shape::Skewed => (Some(2.2), Some(2.2)),
            (_, 10, ..=64) if fixed && uniform => (Some(2.5), Some(2.0)),
            (_, 10, 256) if fixed && uniform => (Some(2.0), Some(3.0)),
            (_, 10, 1024) if fixed && uniform => (Some(2.0), Some(8.0)),
            (Utf8, 10, _) if uniform => (None, Some(2.2)),
            _ => (None, None),
        }
    }
}

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    let shapes = if options.full { &Shape::ALL[..] } else { &Shape::ALL[..1] };
    let nulls = if options.full { &[false, true][..] } else { &[false][..] };
    println!(
        "{:<34} {:>8} {:>8} {:>8} | {:>14} {:>8} {:>8} {:>8} {:>14}",
        "us a record batch",
        "ours",
        "sliced",
        "copy",
        "naive",
        "unrolled",
        "striped",
        "take",
        "grouped"
    );
    let mut below = Vec::new();
    for kind in Kind::ALL {
        for columns in [1, 10] {
            for partitions in PARTITIONS {
                for &shape in shapes {
                    for &nulls in nulls {
                        let case = Case { kind, columns, partitions, shape, nulls };
                        if options.wants(&case.name()) {
                            below.extend(measure(options, &case, cells)?);
                        }
                    }
                }
            }
        }
    }
    println!("{} bars or rivals not reached", below.len());
    below.iter().for_each(|line| println!("  {line}"));
    Ok(())
}

/// Measures a case; returns a line for each missed target.
fn measure(options: &Options, case: &Case, cells: &mut Cells) -> Result<Vec<String>> {
    let rows = options.rows;
    let batch = record_batch(case.kind, case.columns, rows, case.nulls);
    let all = RefCell::new(Ids::new(case.shape, rows, case.partitions, TURNS));

    let mut ours = Partitioner::ids(case.partitions);
    let mut sliced = ours.clone();
    let mut lists = [Lists::new(case.partitions), Lists::new(case.partitions)];
    let [take, grouped] = &mut lists;
    let mut loops: Vec<Loops> =
        (0..4).filter_map(|_| Loops::new(&batch, case.partitions)).collect();
    let mut contenders = vec![
        Contender::new("ours", |turn| {
            black_box(ours.split_by_ids(&batch, all.borrow().set(turn).ids()).expect("valid ids"));
        }),
        Contender::new("sliced", |turn| {
            let parts =
                sliced.split_by_ids(&batch, all.borrow().set(turn).ids()).expect("valid ids");
            for part in parts.occupied() {
                black_box(part);
            }
        }),
        Contender::new("take", |turn| {
            black_box(take.take(&batch, all.borrow().set(turn).ids()));
        }),
        Contender::new("grouped", |turn| {
            black_box(grouped.grouped(&batch, all.borrow().set(turn).ids()));
        }),
    ];
    if let [naive, unrolled, striped, copy] = &mut loops[..] {
        contenders.push(Contender::new("naive", |turn| {
            naive.scatter(all.borrow().set(turn), Unroll::No);
        }));
        contenders.push(Contender::new("unrolled", |turn| {
            unrolled.scatter(all.borrow().set(turn), Unroll::Four);
        }));
        contenders.push(Contender::new("striped", |turn| {
            striped.striped(all.borrow().set(turn));
        }));
        contenders.push(Contender::new("copy", |_| copy.copy()));
    }
    let times = least_of_fresh(&mut contenders, options.samples, || all.borrow_mut().refresh());
    let time = |name: &str| {
        contenders.iter().position(|contender| contender.name == name).map(|index| times[index])
    };

    let name = case.name();
    let ours = times[0];
    for (contender, &rival) in contenders.iter().zip(&times).skip(1) {
        if contender.name != "sliced" {
            cells.push(&name, ours, contender.name, rival);
        }
    }
    let mut below = Vec::new();
    let (naive_bar, grouped_bar) = case.bars();
    let mut column = |rival: &str, bar: Option<f64>| -> String {
        let Some(time) = time(rival) else { return "-".into() };
        let ratio = time / ours;
        if bar.is_some_and(|bar| ratio < bar) {
            let bar = bar.unwrap_or_default();
            below.push(format!("{name}: {ratio:.2}x {rival}, at least {bar}x was wanted"));
        }
        format!("{ratio:.2}x")
    };
    // In every cell: at most noise slower than naive and grouped, and never slower than striped.
    let naive = column("naive", naive_bar.or(Some(0.95)));
    let unrolled = column("unrolled", None);
    let striped = column("striped", Some(1.0));
    let take = column("take", None);
    let grouped = column("grouped", grouped_bar.or(Some(0.95)));
    let wanted = |bar: Option<f64>| bar.map_or(String::new(), |bar| format!("/{bar}"));
    let copy = time("copy").map_or("-".into(), |time| format!("{time:.2}"));
    println!(
        "{name:<34} {ours:>8.2} {:>8.2} {copy:>8} | {:>14} {unrolled:>8} {striped:>8} {take:>8} {:>14}",
        times[1],
        naive + &wanted(naive_bar),
        grouped + &wanted(grouped_bar)
    );
    Ok(below)
}
