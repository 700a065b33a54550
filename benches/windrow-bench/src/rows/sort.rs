//! Benches of sorting: columns to a permutation.

use std::hint::black_box;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{SortColumn, lexsort_to_indices};
use windrow::{Argsorter, Layout, Order, argsort};

use super::codec::converter;
use super::data::{Shape, sort_shapes};
use super::{Contender, Options, race};
use crate::Result;
use crate::cells::Cells;

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    for (rows, label) in [(8192, "8K"), (1 << 20, "1M")] {
        for shape in sort_shapes() {
            let name = format!("sort {label} {}", shape.name);
            let skipped = options.quick && rows > 8192 && options.only.is_empty();
            if name.contains(&options.only) && !skipped {
                measure(&shape, &name, rows, options, cells)?;
            }
        }
    }
    Ok(())
}

fn measure(
    shape: &Shape,
    name: &str,
    rows: usize,
    options: &Options,
    cells: &mut Cells,
) -> Result<()> {
    let inputs_count = if rows > 8192 { 2 } else { 8 };
    let rounds = match (rows > 8192, options.quick) {
        (false, false) => 100,
        (false, true) => 24,
        (true, false) => 7,
        (true, true) => 3,
    };
    let inputs: Vec<RecordBatch> =
        (0..inputs_count).map(|seed| shape.batch(seed as u64, rows)).collect::<Result<_>>()?;
    let schema = inputs[0].schema();
    let columns: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let layout = Order::by(columns).bind(&schema)?;
    inputs.iter().try_for_each(|batch| check(&layout, batch))?;
    let converter = converter(&inputs[0])?;
    let (mut sorter, mut rows) = (Argsorter::default(), converter.empty_rows(0, 0));
    let mut contenders: [Contender<'_>; 3] = [
        (
            "argsort",
            Box::new(|at| {
                black_box(sorter.sort(&layout, &inputs[at])?);
                Ok(())
            }),
        ),
        (
            "arrow-row convert and sort",
            Box::new(|at| {
                rows.clear();
                converter.append(&mut rows, inputs[at].columns())?;
                let mut order: Vec<_> = rows.iter().enumerate().collect();
                order.sort_unstable_by_key(|&(_, row)| row);
                let order = order.iter().map(|(at, _)| *at as u32);
                black_box(UInt32Array::from_iter_values(order));
                Ok(())
            }),
        ),
        (
            "lexsort_to_indices",
            Box::new(|at| {
                black_box(lexsort_to_indices(&sort_columns(&inputs[at]), None)?);
                Ok(())
            }),
        ),
    ];
    let times = race(rounds, 1, inputs_count, &mut contenders)?;
    cells.push(name, times[0], "arrow-row convert + sort", times[1]);
    cells.push(name, times[0], "lexsort_to_indices", times[2]);
    Ok(())
}

fn sort_columns(batch: &RecordBatch) -> Vec<SortColumn> {
    let options = arrow::compute::SortOptions { descending: false, nulls_first: false };
    let column = |values: &arrow::array::ArrayRef| SortColumn {
        values: values.clone(),
        options: Some(options),
    };
    batch.columns().iter().map(column).collect()
}

/// Checks the permutation, to make sure that a sort is measured.
fn check(layout: &Layout, batch: &RecordBatch) -> Result<()> {
    let order = argsort(layout, batch)?;
    let sorted = arrow::compute::take_record_batch(batch, &order)?;
    let rows = converter(batch)?.convert_columns(sorted.columns())?;
    // arrow-row's default puts nulls first, Windrow puts nulls last, so only rows without nulls are
    // compared.
    let has_nulls = sorted.columns().iter().any(|column| column.null_count() > 0);
    if !has_nulls && (1..rows.num_rows()).any(|row| rows.row(row - 1) > rows.row(row)) {
        return Err("the permutation is not in order".into());
    }
    Ok(())
}
