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

/// The memory of outputs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// Touched before.
    Recycled,
    /// Not yet supplied by the system: for Windrow, a partitioner's first split.
    Fresh,
}

struct Case {
    name: String,
    kind: Type,
    columns: usize,
    rows: usize,
    partitions: usize,
    shape: Shape,
    nulls: bool,
    memory: Memory,
}

/// Measures the matrix of types, columns, partitions, and with `--full` shapes and nulls.
pub(super) fn matrix(options: &Options, cells: &mut Cells) -> Result<()> {
    let (all_shapes, all_nulls) = ([Shape::Uniform, Shape::Skewed, Shape::Sorted], [false, true]);
    let shapes = if options.full { &all_shapes[..] } else { &all_shapes[..1] };
    let nulls = if options.full { &all_nulls[..] } else { &all_nulls[..1] };
    let (rows, memory) = (options.rows, Memory::Recycled);
    let columns = TYPES.iter().flat_map(|&kind| [(kind, 1), (kind, 10)]);
    let columns =
        columns.flat_map(|of| [2, 4, 16, 64, 256, 1024].map(|partitions| (of, partitions)));
    for ((kind, columns), partitions) in columns {
        for (&shape, &nulls) in
            shapes.iter().flat_map(|shape| nulls.iter().map(move |n| (shape, n)))
        {
            let suffix = if nulls { " nulls" } else { "" };
            let name = format!("{} x{columns} P{partitions} {}{suffix}", kind.0, shape.name());
            measure(
                options,
                &Case { name, kind, columns, rows, partitions, shape, nulls, memory },
                cells,
            )?;
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
            for (memory, suffix) in [(Memory::Fresh, "fresh"), (Memory::Recycled, "recycled")] {
                let name = format!("{} 64M P{partitions} {} {suffix}", kind.0, shape.name());
                let case = Case { name, kind, columns, rows, partitions, shape, nulls, memory };
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
            if case.memory == Memory::Fresh {
                ours = Partitioner::ids(case.partitions);
            }
            Ok(ours.split_by_ids(&batch, all.borrow().set(turn))?)
        }),
        timed("grouped", |_, turn| Ok(grouped(&mut lists, &batch, all.borrow().set(turn)))),
    ];
    if let Some(loops) = &loops {
        let scatter = |turn, by_four| {
            if case.memory == Memory::Fresh {
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
