//! Run-end arrays: the run of each row.

use arrow_array::types::RunEndIndexType;
use arrow_array::{Array, ArrayRef, RunArray, downcast_run_array};
use arrow_buffer::ArrowNativeType;

/// Returns the values of the runs of `array`, and the position of each row's run among the values.
/// Returns `None` for an array without runs.
pub(super) fn runs(array: &dyn Array) -> Option<(&ArrayRef, Vec<u64>)> {
    downcast_run_array!(
        array => Some(runs_of(array)),
        _ => None
    )
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
