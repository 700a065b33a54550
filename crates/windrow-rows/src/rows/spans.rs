//! Positions of the values of lists, dictionaries and runs in their child arrays.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::RunEndIndexType;
use arrow_array::{
    Array, ArrayRef, GenericListArray, GenericListViewArray, OffsetSizeTrait, RunArray,
    downcast_run_array,
};
use arrow_buffer::NullBuffer;

/// Start and end of each list.
pub(super) type Spans = Vec<(usize, usize)>;

/// Returns the spans of lists, and the elements.
pub(super) fn of_list<O: OffsetSizeTrait>(array: &GenericListArray<O>) -> (Spans, ArrayRef) {
    (of_offsets(array.offsets()), Arc::clone(array.values()))
}

/// Returns the spans between offsets.
pub(super) fn of_offsets<O: OffsetSizeTrait>(offsets: &[O]) -> Spans {
    offsets.windows(2).map(|ends| (ends[0].as_usize(), ends[1].as_usize())).collect()
}

/// Returns spans and elements like [`of_list`], for list views.
pub(super) fn of_views<O: OffsetSizeTrait>(array: &GenericListViewArray<O>) -> (Spans, ArrayRef) {
    let span = |(start, size): (&O, &O)| (start.as_usize(), start.as_usize() + size.as_usize());
    let spans = array.offsets().iter().zip(array.sizes()).map(span).collect();
    (spans, Arc::clone(array.values()))
}

/// Slices `elements` to the part that lists use, and makes the spans relative to this part.
pub(super) fn used(spans: &mut Spans, elements: &ArrayRef) -> ArrayRef {
    let lists = spans.iter().filter(|(start, end)| start < end);
    let first = lists.clone().map(|span| span.0).min().unwrap_or(0);
    let last = lists.map(|span| span.1).max().unwrap_or(0);
    spans.iter_mut().for_each(|(start, end)| {
        (*start, *end) = if start < end { (*start - first, *end - first) } else { (0, 0) };
    });
    elements.slice(first, last - first)
}

/// Returns the position of each row's value.
pub(super) fn of_runs<R: RunEndIndexType>(array: &RunArray<R>) -> Vec<usize> {
    (0..array.len()).map(|row| array.get_physical_index(row)).collect()
}

/// Returns the position of each row's value in the dictionary; arbitrary for nulls.
pub(super) fn of_keys(array: &dyn Array) -> Vec<usize> {
    let dictionary = array.as_any_dictionary();
    // Without values all keys are null.
    if dictionary.values().is_empty() { vec![0; array.len()] } else { dictionary.normalized_keys() }
}

/// Resolves dictionaries and runs, also within each other. Returns the position of each row's value
/// (`None` if the array is plain), the null rows, and the plain values. Ignores the nulls of
/// unions.
pub(super) fn resolved(array: &ArrayRef) -> (Option<Vec<usize>>, Option<NullBuffer>, ArrayRef) {
    let own = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
    let (keys, values) = if let Some(dictionary) = array.as_any_dictionary_opt() {
        (of_keys(array), Arc::clone(dictionary.values()))
    } else {
        let run = array.as_ref();
        downcast_run_array! {
            run => (of_runs(run), Arc::clone(run.values())),
            _ => return (None, own, Arc::clone(array)),
        }
    };
    let (inner, nulls, values) = resolved(&values);
    let of_values = nulls.map(|nulls| keys.iter().map(|&key| nulls.is_valid(key)).collect());
    let nulls = NullBuffer::union(own.as_ref(), of_values.as_ref());
    let keys = match inner {
        Some(inner) => keys.iter().map(|&key| inner.get(key).copied().unwrap_or(0)).collect(),
        None => keys,
    };
    (Some(keys), nulls, values)
}
