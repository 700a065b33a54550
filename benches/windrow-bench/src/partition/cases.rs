//! The cells of the matrix, and of a record batch larger than any cache.

use std::cell::RefCell;

use windrow::Partitioner;

use super::data::{BIGINT, INTEGER, Ids, Shape, TYPES, Type, record_batch};
use super::rivals::{Loops, grouped};
use super::{Options, TURNS};
use crate::Result;
use crate::harness::{Cells, Turns, timed};

/// Number of rows of a large record batch: 256 MiB of four-byte values, and as many bytes of ids.
const LARGE: usize = 64 << 20;

struct Case {
    name: String,
    kind: Type,
    columns: usize,
    rows: usize,
    partitions: usize,
    shape: Shape,
    nulls: bool,
    /// True if outputs go to memory not yet supplied by the system: for Windrow, a partitioner's
    /// first split. Otherwise it was touched before.
    is_fresh: bool,
}

/// Measures the matrix of types, columns, partitions, and with `--full` shapes and nulls.
pub(super) fn matrix(options: &Options, cells: &mut Cells) -> Result<()> {
    let shapes = [Shape::Uniform, Shape::Skewed, Shape::Sorted];
    let shapes = shapes.into_iter().flat_map(|shape| [(shape, false), (shape, true)]);
    let shapes = shapes.take(if options.full { 6 } else { 1 });
    let columns = TYPES.iter().flat_map(|&kind| [(kind, 1), (kind, 10)]);
    let cases = columns.flat_map(|of| [2, 4, 8, 16, 64, 256, 1024, 4096].map(|count| (of, count)));
    for ((kind, columns), partitions) in cases {
        for (shape, nulls) in shapes.clone() {
            let suffix = if nulls { " nulls" } else { "" };
            let name = format!("{} x{columns} P{partitions} {}{suffix}", kind.0, shape.name());
            let (rows, is_fresh) = (options.rows, false);
            let case = Case { name, kind, columns, rows, partitions, shape, nulls, is_fresh };
            measure(options, &case, cells)?;
        }
    }
    Ok(())
}

/// Measures record batches of 64M rows, in nanoseconds a row.
pub(super) fn large(options: &Options, cells: &mut Cells) -> Result<()> {
    cells.unit = "ns";
    let (columns, rows, nulls) = (1, LARGE, false);
    for (kind, shape) in
        [(INTEGER, Shape::Uniform), (INTEGER, Shape::Skewed), (BIGINT, Shape::Uniform)]
    {
        for partitions in [4, 16, 64, 256, 1024] {
            for (is_fresh, suffix) in [(true, "fresh"), (false, "recycled")] {
                let name = format!("{} 64M P{partitions} {} {suffix}", kind.0, shape.name());
                let case = Case { name, kind, columns, rows, partitions, shape, nulls, is_fresh };
                measure(options, &case, cells)?;
            }
        }
    }
    Ok(())
}

fn measure(options: &Options, case: &Case, cells: &mut Cells) -> Result<()> {
    if !cells.wants(&case.name) {
        return Ok(());
    }
    let is_large = case.rows == LARGE;
    let batch = record_batch(case.kind, case.columns, case.rows, case.nulls)?;
    let sets = if is_large { 1 } else { TURNS.warm + TURNS.calls };
    let all = RefCell::new(Ids::new(case.shape, case.rows, case.partitions, sets));
    let mut ours = Partitioner::ids(case.partitions);
    let mut lists = vec![Vec::new(); case.partitions];
    let loops = Loops::new(&batch).map(RefCell::new);
    let mut contenders = vec![
        timed("ours", |_, turn| {
            if case.is_fresh {
                ours = Partitioner::ids(case.partitions);
            }
            Ok(ours.split_by_ids(&batch, all.borrow().set(turn))?)
        }),
        timed("grouped", |_, turn| Ok(grouped(&mut lists, &batch, all.borrow().set(turn)))),
    ];
    if let Some(loops) = &loops {
        let scatter = |turn, by_four| {
            if case.is_fresh {
                loops.borrow_mut().forget();
            }
            Ok(loops.borrow_mut().scatter(&all.borrow(), turn, by_four))
        };
        contenders.extend([
            timed("naive", move |_, turn| scatter(turn, false)),
            timed("unrolled", move |_, turn| scatter(turn, true)),
            timed("copy", |_, _| Ok(loops.borrow_mut().copy())),
        ]);
    }
    let (turns, items) = if is_large {
        (Turns { rounds: 3, warm: 1, calls: 1 }, case.rows as f64)
    } else {
        (Turns { rounds: options.samples * TURNS.rounds, ..TURNS }, 1.0)
    };
    let fresh = |_| {
        if !is_large {
            all.borrow_mut().refresh();
        }
        Ok(((), items))
    };
    cells.race(&case.name, turns, fresh, &mut contenders)
}
