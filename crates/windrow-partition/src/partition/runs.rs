//! Run-end arrays: the run of each row.

use std::sync::Arc;

use arrow_array::types::RunEndIndexType;
use arrow_array::{Array, ArrayRef, PrimitiveArray, RunArray};
use arrow_array::{downcast_run_array, downcast_run_end_index};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

/// Returns the values of the runs of `array`, and the position of each row's run among the values.
/// Returns `None` for an array without runs.
pub(super) fn runs(array: &dyn Array) -> Option<(&ArrayRef, Vec<u64>)> {
    downcast_run_array!(
        array => Some(runs_of(array)),
        _ => None
    )
}

/// Builds an array of run ends, or `None` if an end does not fit the type.
pub(crate) fn run_ends(data_type: &DataType, ends: &[usize]) -> Option<ArrayRef> {
    macro_rules! of {
        ($type:ty) => {{
            let ends: Option<Vec<_>> = ends.iter().map(|&end| end.try_into().ok()).collect();
            Some(Arc::new(PrimitiveArray::<$type>::new(ends?.into(), None)))
        }};
    }
    downcast_run_end_index! {
        data_type => (of),
        _ => None,
    }
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
