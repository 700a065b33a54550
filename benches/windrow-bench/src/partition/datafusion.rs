//! Hash, split and a record batch for each partition, against DataFusion's own `BatchPartitioner`.
//!
//! Both hash the first column, like an exchange by key, and output every non-empty partition. The
//! hashes differ, but the work is the same, with one exception: if views pin more than twice the
//! bytes in use, as slices of one record batch do, Windrow copies the used bytes, while DataFusion
//! leaves the copy to the consumer of the partitions. So record batches have bytes of their own
//! here; `slices` shows the cost of the copy.
//!
//! *Output memory.* Windrow's comes from the partitioner's shelf, DataFusion's from the allocator.
//! Both drop a record batch's partitions before the next batch.

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion_physical_plan::PhysicalExpr;
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::metrics::Time;
use datafusion_physical_plan::repartition::BatchPartitioner;
use windrow::{Order, Partitioner};

use super::data::{BIGINT, INTEGER, MIXED, UTF8, VARCHAR, record_batch};
use super::{Options, contender, race};
use crate::Result;
use crate::cells::Cells;

/// Record batches in rotation.
const ROTATION: usize = 4;

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    let kinds = [INTEGER, BIGINT, VARCHAR, UTF8, MIXED].map(|kind| (kind, ""));
    for (kind, slices) in kinds.into_iter().chain([(VARCHAR, " slices")]) {
        for (columns, partitions) in [1, 10]
            .into_iter()
            .flat_map(|columns| [2, 4, 16, 64, 256, 1024].map(|partitions| (columns, partitions)))
        {
            let name = format!("exchange {} x{columns} P{partitions}{slices}", kind.0);
            if !options.wants(&name) {
                continue;
            }
            let batch = record_batch(kind, columns, ROTATION * options.rows, false);
            let slice = |n| batch.slice(n * options.rows, options.rows);
            let batches: Vec<_> = (0..ROTATION)
                .map(|n| if slices.is_empty() { with_own_views(&slice(n)) } else { slice(n) })
                .collect();
            let layout = Order::by(["c0"]).bind(&batch.schema())?;
            let mut ours = Partitioner::hash(&layout, partitions);
            let key: Arc<dyn PhysicalExpr> = Arc::new(Column::new("c0", 0));
            let mut theirs =
                BatchPartitioner::new_hash_partitioner(vec![key], partitions, Time::new())?;
            let contenders = [
                contender("ours", |turn| {
                    let parts = ours.split(&batches[turn % ROTATION]).expect("a known schema");
                    for part in parts.occupied() {
                        black_box(part);
                    }
                }),
                contender("DataFusion", |turn| {
                    let batch = batches[turn % ROTATION].clone();
                    let done = theirs.partition(batch, |partition, rows| {
                        black_box((partition, rows));
                        Ok(())
                    });
                    done.expect("a column of the record batch");
                }),
            ];
            race(&name, contenders, options, None, cells);
        }
    }
    Ok(())
}

/// Copies views, so that no two record batches share bytes.
fn with_own_views(batch: &RecordBatch) -> RecordBatch {
    let columns = batch.columns().iter().map(|column| match column.as_string_view_opt() {
        Some(views) => Arc::new(views.gc()) as ArrayRef,
        None => Arc::clone(column),
    });
    RecordBatch::try_new(batch.schema(), columns.collect()).expect("the same columns")
}
