//! The cells of the matrix, with target ratios.

use std::cell::RefCell;
use std::hint::black_box;

use windrow::Partitioner;

use super::data::{
    BIGINT, BOOLEAN, HUGEINT, INTEGER, Ids, MIXED, Shape, Type, UTF8, VARCHAR, record_batch,
};
use super::rivals::{Loops, grouped};
use super::{Options, TURNS, contender, least};
use crate::cells::Cells;

const TYPES: [Type; 7] = [BOOLEAN, INTEGER, BIGINT, HUGEINT, VARCHAR, UTF8, MIXED];
const PARTITIONS: [usize; 6] = [2, 4, 16, 64, 256, 1024];

struct Case {
    kind: Type,
    columns: usize,
    partitions: usize,
    shape: Shape,
    nulls: bool,
}

impl Case {
    fn name(&self) -> String {
        let nulls = if self.nulls { " nulls" } else { "" };
        let (kind, shape) = (self.kind.0, self.shape.name());
        format!("{kind} x{} P{} {shape}{nulls}", self.columns, self.partitions)
    }

    /// Returns the minimum target speedup over a rival.
    fn bar(&self, rival: &str) -> Option<f64> {
        let (p, uniform) = (self.partitions, self.shape == Shape::Uniform);
        let fixed = [INTEGER, BIGINT, HUGEINT].contains(&self.kind);
        // At most noise slower than naive and grouped, and never slower than striped.
        let none = Some(0.95);
        let (naive, grouped) = match (self.kind.0, self.columns, p) {
            _ if self.shape == Shape::Sorted => (Some(15.0), Some(15.0)),
            _ if self.nulls => match self.columns {
                10 if fixed && uniform && p <= 16 => (Some(5.0), Some(2.0)),
                _ => (none, none),
            },
            ("BOOLEAN", _, ..=4) if uniform => (Some(20.0), Some(20.0)),
            ("INTEGER", 1, 2) if uniform => (Some(9.0), Some(9.0)),
            ("INTEGER", 1, 4) if uniform => (Some(5.0), Some(5.0)),
            ("BIGINT", 1, ..=4) if uniform => (Some(3.5), Some(4.0)),
            (_, 1, 16..=256) if fixed && uniform => (Some(1.1), Some(2.0)),
            (_, 1, 16..=256) if fixed && self.shape == Shape::Skewed => (Some(2.2), Some(2.2)),
            (_, 10, ..=64) if fixed && uniform => (Some(2.5), Some(2.0)),
            (_, 10, 256) if fixed && uniform => (Some(2.0), Some(3.0)),
            (_, 10, 1024) if fixed && uniform => (Some(2.0), Some(8.0)),
            ("UTF8", 10, _) if uniform => (none, Some(2.2)),
            _ => (none, none),
        };
        match rival {
            "naive" => naive,
            "grouped" => grouped,
            "striped" => Some(1.0),
            _ => None,
        }
    }
}

pub(super) fn run(options: &Options, cells: &mut Cells) {
    let with_nulls = if options.full { &[false, true][..] } else { &[false] };
    let shapes = if options.full { &Shape::ALL[..] } else { &[Shape::Uniform] };
    let shapes =
        shapes.iter().flat_map(|shape| with_nulls.iter().map(move |nulls| (*shape, *nulls)));
    for (kind, columns) in TYPES.iter().flat_map(|&kind| [(kind, 1), (kind, 10)]) {
        for partitions in PARTITIONS {
            for (shape, nulls) in shapes.clone() {
                let case = Case { kind, columns, partitions, shape, nulls };
                if options.wants(&case.name()) {
                    measure(options, &case, cells);
                }
            }
        }
    }
}

fn measure(options: &Options, case: &Case, cells: &mut Cells) {
    let batch = record_batch(case.kind, case.columns, options.rows, case.nulls);
    let all = RefCell::new(Ids::new(case.shape, options.rows, case.partitions, TURNS));
    let mut ours = Partitioner::ids(case.partitions);
    let mut lists = vec![Vec::new(); case.partitions];
    let mut loops: Vec<Loops> =
        (0..4).filter_map(|_| Loops::new(&batch, case.partitions)).collect();
    let mut contenders = vec![
        contender("ours", |turn| {
            black_box(ours.split_by_ids(&batch, all.borrow().set(turn).ids()).expect("valid ids"));
        }),
        contender("grouped", |turn| {
            black_box(grouped(&mut lists, &batch, all.borrow().set(turn).ids()));
        }),
    ];
    if let [naive, unrolled, striped, copy] = &mut loops[..] {
        contenders.extend([
            contender("naive", |turn| naive.scatter(all.borrow().set(turn), false)),
            contender("unrolled", |turn| {
                unrolled.scatter(all.borrow().set(turn), true);
            }),
            contender("striped", |turn| striped.striped(all.borrow().set(turn))),
            contender("copy", |_| copy.copy()),
        ]);
    }
    let refresh = &mut || all.borrow_mut().refresh();
    let times = least(&mut contenders, options.samples * REFRESHED, TURNS, refresh);
    for (rival, time) in contenders.iter().zip(&times).skip(1) {
        cells.push_in("us", &case.name(), times[0], (rival.0, *time), case.bar(rival.0));
    }
}

/// Turns per sample, for calls of a few microseconds.
pub(super) const REFRESHED: usize = 8;
