//! Benches of sorting: columns to a permutation.

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, take_record_batch};
use windrow::{Argsorter, argsort};

use super::data::Shape;
use super::inputs;
use crate::Result;
use crate::harness::{Cells, Turns, timed};

pub(super) fn measure(shape: &Shape, rows: usize, quick: bool, cells: &mut Cells) -> Result<()> {
    let (label, count, rounds) = match (rows > 8192, quick) {
        (false, false) => ("8K", 8, 100),
        (false, true) => ("8K", 8, 24),
        (true, false) => ("1M", 2, 7),
        (true, true) => ("1M", 2, 3),
    };
    let name = format!("sort {label} {}", shape.name);
    if !cells.wants(&name) || quick && rows > 8192 && !cells.is_selective() {
        return Ok(());
    }
    let (inputs, layout, converter) = inputs(shape, count, rows)?;
    // Makes sure that a sort is measured.
    for batch in &inputs {
        let sorted = take_record_batch(batch, &argsort(&layout, batch)?)?;
        let rows = converter.convert_columns(sorted.columns())?;
        // arrow-row's default puts nulls first, Windrow puts nulls last, so only rows without nulls
        // are compared.
        let has_nulls = sorted.columns().iter().any(|column| column.null_count() > 0);
        if !has_nulls && (1..rows.num_rows()).any(|row| rows.row(row - 1) > rows.row(row)) {
            return Err("the permutation is not in order".into());
        }
    }
    let (mut sorter, mut rows) = (Argsorter::default(), converter.empty_rows(0, 0));
    let options = Some(SortOptions { descending: false, nulls_first: false });
    let column = |values: &ArrayRef| SortColumn { values: values.clone(), options };
    let mut contenders = [
        timed("ours", |batch: &&RecordBatch, _| Ok(sorter.sort(&layout, batch)?)),
        timed("arrow-row convert + sort", |batch: &&RecordBatch, _| {
            rows.clear();
            converter.append(&mut rows, batch.columns())?;
            let mut order: Vec<_> = rows.iter().enumerate().collect();
            order.sort_unstable_by_key(|&(_, row)| row);
            let order = order.iter().map(|(at, _)| *at as u32);
            Ok(UInt32Array::from_iter_values(order))
        }),
        timed("lexsort_to_indices", |batch: &&RecordBatch, _| {
            let columns: Vec<_> = batch.columns().iter().map(column).collect();
            Ok(lexsort_to_indices(&columns, None)?)
        }),
    ];
    let fresh = |round: usize| Ok((&inputs[round % count], 1.0));
    cells.race(&name, Turns { rounds, warm: 0, calls: 1 }, fresh, &mut contenders)
}
