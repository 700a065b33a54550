//! What the footer of a Parquet file tells of the order of its rows, before any row is read.

use arrow_array::{Array, ArrayRef};
use arrow_ord::ord::make_comparator;
use arrow_schema::SortOptions;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use windrow::SortColumn;

use crate::input::{Footer, common_order};
use crate::verbs::sort_columns;

/// Returns true if the rows of a file may be in an order: the footer declares a part of the order or
/// more, or declares none and has row groups whose bounds ascend.
pub(super) fn may_be_in_order(footer: &Footer, order: &[SortColumn]) -> bool {
    let (declared, wanted) = (common_order(footer.metadata()), sort_columns(order));
    if !declared.is_empty() {
        return declared.starts_with(&wanted) || wanted.starts_with(&declared);
    }
    order.first().is_some_and(|first| bounds_ascend(footer, first) == Some(true))
}

/// Returns whether the bounds of several row groups ascend in a column; `None` if they are not known.
fn bounds_ascend(footer: &Footer, by: &SortColumn) -> Option<bool> {
    let (firsts, lasts) = ends_of_groups(footer, by).filter(|(firsts, _)| firsts.len() > 1)?;
    let compare = make_comparator(&lasts, &firsts, SortOptions::default()).ok()?;
    // Of the earlier row group the last value, and of the later one the first.
    Some((1..firsts.len()).all(|group| match by.descending {
        false => compare(group - 1, group).is_le(),
        true => compare(group - 1, group).is_ge(),
    }))
}

/// Returns the first value that each row group may have in a column, and the last one; `None` if the footer
/// does not tell, or there are nulls, which have no place in statistics.
pub(super) fn ends_of_groups(footer: &Footer, by: &SortColumn) -> Option<(ArrayRef, ArrayRef)> {
    let groups = footer.metadata().row_groups();
    let parquet = footer.metadata().file_metadata().schema_descr();
    let column = StatisticsConverter::try_new(&by.name, footer.schema(), parquet).ok()?;
    let column = column.with_missing_null_counts_as_zero(false);
    let nulls = column.row_group_null_counts(groups).ok()?;
    let (mins, maxes) = (column.row_group_mins(groups).ok()?, column.row_group_maxes(groups).ok()?);
    let all = mins.null_count() + maxes.null_count() == 0 && nulls.iter().all(|n| n == Some(0));
    all.then_some(if by.descending { (maxes, mins) } else { (mins, maxes) })
}
