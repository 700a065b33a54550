//! Where the values of lists, dictionaries and run ends lie among those that they are made of.

use arrow_array::types::RunEndIndexType;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RunArray};

/// Begin and end of each list.
pub(super) type Spans = Vec<(usize, usize)>;

/// Of lists with offsets.
pub(super) fn of_offsets<O: OffsetSizeTrait>(offsets: &[O]) -> Spans {
    offsets.windows(2).map(|ends| (ends[0].as_usize(), ends[1].as_usize())).collect()
}

/// Of views.
pub(super) fn of_views<O: OffsetSizeTrait>(offsets: &[O], sizes: &[O]) -> Spans {
    let span = |(start, size): (&O, &O)| (start.as_usize(), start.as_usize() + size.as_usize());
    offsets.iter().zip(sizes).map(span).collect()
}

/// The elements that lists have, of an array that may hold many more; the spans then count from the
/// first of them.
pub(super) fn used(spans: &mut Spans, elements: &ArrayRef) -> ArrayRef {
    let lists = spans.iter().filter(|(start, end)| start < end);
    let first = lists.clone().map(|span| span.0).min().unwrap_or(0);
    let last = lists.map(|span| span.1).max().unwrap_or(0);
    spans.iter_mut().for_each(|(start, end)| {
        (*start, *end) = if start < end { (*start - first, *end - first) } else { (0, 0) };
    });
    elements.slice(first, last - first)
}

/// The value of each row.
pub(super) fn of_runs<R: RunEndIndexType>(array: &RunArray<R>) -> Vec<usize> {
    (0..array.len()).map(|row| array.get_physical_index(row)).collect()
}
