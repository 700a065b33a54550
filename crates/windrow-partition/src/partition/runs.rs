//! Run-end arrays: the run of each row.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, RunArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

/// Returns the values of the runs of `array`, and the position of each row's run among the values.
/// Returns `None` for an array without runs.
pub(super) fn runs(array: &dyn Array) -> Option<(&ArrayRef, Vec<u64>)> {
    let DataType::RunEndEncoded(ends, _) = array.data_type() else { return None };
    Some(match ends.data_type() {
        DataType::Int16 => runs_of(array.as_run::<Int16Type>()),
        DataType::Int32 => runs_of(array.as_run::<Int32Type>()),
        _ => runs_of(array.as_run::<Int64Type>()),
    })
}

fn runs_of<R: RunEndIndexType>(array: &RunArray<R>) -> (&ArrayRef, Vec<u64>) {
    let ends = array.run_ends();
    let (offset, len) = (ends.offset(), ends.len());
    let mut rows = Vec::with_capacity(len);
    for (run, end) in ends.values().iter().enumerate() {
        let end = end.as_usize().saturating_sub(offset).min(len);
        rows.resize(end.max(rows.len()), run as u64);
    }
    (array.values(), rows)
}
