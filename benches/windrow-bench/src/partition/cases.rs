//! The cells of the matrix.

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
        cells.push_in("us", &case.name(), times[0], (rival.0, *time));
    }
}

/// Turns per sample, for calls of a few microseconds.
pub(super) const REFRESHED: usize = 8;
