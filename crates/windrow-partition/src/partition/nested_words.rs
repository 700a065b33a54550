//! Words of nested values: the words of their parts, folded in sequence.
//!
//! ```text
//! struct       its fields                      \
//! list, map    its elements; of a map, structs  > fold, as many as there are
//! union        the type id, and the value      /
//! ```
//!
//! Invariant: as in [`super::words`]. Elements under a null, between lists or in front of a slice
//! have no effect, and lists of all kinds have the words of their elements.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, GenericListArray, GenericListViewArray, OffsetSizeTrait, UnionArray,
};
use arrow_schema::DataType;

use super::words::{NULL, all};
use windrow_kernel::partition::hash::fold;
use windrow_kernel::partition::string_hash::SALTS;

/// Returns the words of every value of `array`, if its type is nested.
pub(super) fn nested(array: &ArrayRef) -> Option<Vec<u64>> {
    let mut words = match array.data_type() {
        DataType::Struct(_) => {
            let columns: Vec<_> = array.as_struct().columns().iter().map(all).collect();
            let row = |row: usize| folded(columns.len(), columns.iter().map(|words| words[row]));
            (0..array.len()).map(row).collect()
        }
        DataType::List(_) => list(array.as_list::<i32>()),
        DataType::LargeList(_) => list(array.as_list::<i64>()),
        DataType::ListView(_) => views(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => views(array.as_list_view::<i64>()),
        DataType::FixedSizeList(_, _) => {
            let array = array.as_fixed_size_list();
            let len = array.value_length() as usize;
            let ranges = (0..array.len()).map(|row| row * len..(row + 1) * len);
            elements(array.values(), ranges)
        }
        DataType::Map(_, _) => {
            let array = array.as_map();
            let entries: ArrayRef = Arc::new(array.entries().clone());
            let ranges = array.offsets().windows(2).map(|ends| ends[0] as usize..ends[1] as usize);
            elements(&entries, ranges)
        }
        DataType::Union(_, _) => union(array.as_union()),
        _ => return None,
    };
    if let Some(nulls) = array.nulls() {
        let rows = words.iter_mut().zip(nulls);
        rows.filter(|(_, valid)| !valid).for_each(|(word, _)| *word = NULL);
    }
    Some(words)
}

/// Folds `count` words into one.
fn folded(count: usize, words: impl Iterator<Item = u64>) -> u64 {
    let state = words.fold(SALTS[0] ^ count as u64, |state, word| fold(state ^ word, SALTS[1]));
    fold(state, SALTS[2])
}

/// Returns the words of lists, each of a range of `values`.
fn elements(values: &ArrayRef, ranges: impl Iterator<Item = Range<usize>> + Clone) -> Vec<u64> {
    let used = || ranges.clone().filter(|range| !range.is_empty());
    let start = used().map(|range| range.start).min().unwrap_or(0);
    let end = used().map(|range| range.end).max().unwrap_or(start);
    let words = all(&values.slice(start, end - start));
    let list = |range: Range<usize>| match range.is_empty() {
        true => folded(0, std::iter::empty()),
        false => folded(range.len(), words[range.start - start..range.end - start].iter().copied()),
    };
    ranges.map(list).collect()
}

fn list<O: OffsetSizeTrait>(array: &GenericListArray<O>) -> Vec<u64> {
    let ranges = array.offsets().windows(2).map(|ends| ends[0].as_usize()..ends[1].as_usize());
    elements(array.values(), ranges)
}

fn views<O: OffsetSizeTrait>(array: &GenericListViewArray<O>) -> Vec<u64> {
    let views = array.offsets().iter().zip(array.sizes());
    let ranges = views.enumerate().map(|(row, (start, size))| match array.is_null(row) {
        true => 0..0,
        false => start.as_usize()..start.as_usize() + size.as_usize(),
    });
    elements(array.values(), ranges)
}

fn union(array: &UnionArray) -> Vec<u64> {
    let mut children: Vec<Option<Vec<u64>>> = vec![None; usize::from(u8::MAX) + 1];
    for &id in array.type_ids() {
        let child = &mut children[usize::from(id as u8)];
        if child.is_none() {
            *child = Some(all(array.child(id)));
        }
    }
    let row = |row: usize| {
        let id = array.type_id(row);
        let child = children[usize::from(id as u8)].as_ref();
        let word = child.map_or(NULL, |words| words[array.value_offset(row)]);
        folded(2, [id as u64, word].into_iter())
    };
    (0..array.len()).map(row).collect()
}
