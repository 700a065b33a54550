//! Benches of sorting: columns to a permutation.

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, take_record_batch};
use windrow::{Argsorter, Layout, argsort};

use super::codec::converter;
use super::data::{Shape, sort_shapes};
use super::{Options, dropped, inputs, race};
use crate::Result;
use crate::cells::Cells;

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    for (rows, label) in [(8192, "8K"), (1 << 20, "1M")] {
        for shape in sort_shapes() {
            let name = format!("sort {label} {}", shape.name);
            let skipped = options.quick && rows > 8192 && options.only.is_empty();
            if name.contains(&options.only) && !skipped {
                measure(&shape, &name, rows, options.quick, cells)?;
            }
        }
    }
    Ok(())
}

fn measure(shape: &Shape, name: &str, rows: usize, quick: bool, cells: &mut Cells) -> Result<()> {
    let (count, rounds) = match (rows > 8192, quick) {
        (false, false) => (8, 100),
        (false, true) => (8, 24),
        (true, false) => (2, 7),
        (true, true) => (2, 3),
    };
    let (inputs, layout) = inputs(shape, count, rows)?;
    inputs.iter().try_for_each(|batch| check(&layout, batch))?;
    let converter = converter(&inputs[0])?;
    let (mut sorter, mut rows) = (Argsorter::default(), converter.empty_rows(0, 0));
    let options = Some(SortOptions { descending: false, nulls_first: false });
    let column = |values: &ArrayRef| SortColumn { values: values.clone(), options };
    let times = race(
        rounds,
        1,
        count,
        &mut [
            &mut |at| dropped(sorter.sort(&layout, &inputs[at])?),
            &mut |at| {
                rows.clear();
                converter.append(&mut rows, inputs[at].columns())?;
                let mut order: Vec<_> = rows.iter().enumerate().collect();
                order.sort_unstable_by_key(|&(_, row)| row);
                let order = order.iter().map(|(at, _)| *at as u32);
                dropped(UInt32Array::from_iter_values(order))
            },
            &mut |at| {
                let columns: Vec<_> = inputs[at].columns().iter().map(column).collect();
                dropped(lexsort_to_indices(&columns, None)?)
            },
        ],
    )?;
    let rivals = ["arrow-row convert + sort", "lexsort_to_indices"];
    cells.push(name, times[0], rivals.into_iter().zip(times[1..].iter().copied()));
    Ok(())
}

/// Checks the permutation, to make sure that a sort is measured.
fn check(layout: &Layout, batch: &RecordBatch) -> Result<()> {
    let sorted = take_record_batch(batch, &argsort(layout, batch)?)?;
    let rows = converter(batch)?.convert_columns(sorted.columns())?;
    // arrow-row's default puts nulls first, Windrow puts nulls last, so only rows without nulls are
    // compared.
    let has_nulls = sorted.columns().iter().any(|column| column.null_count() > 0);
    if !has_nulls && (1..rows.num_rows()).any(|row| rows.row(row - 1) > rows.row(row)) {
        return Err("the permutation is not in order".into());
    }
    Ok(())
}
