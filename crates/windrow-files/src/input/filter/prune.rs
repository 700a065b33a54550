//! Pruning of Parquet row groups and pages by statistics: finds the ones with possible matches of a
//! filter.
//!
//! Unknown statistics never rule anything out: missing bounds, NaN bounds, and bounds of text and
//! unsigned integers in the first form of statistics, whose order is not the order of the values.
//! Truncated bounds are still bounds. Bounds do not include NaN, the greatest value: a maximum
//! never rules out a group of floats.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, Scalar, UInt64Array};
use arrow_cast::cast;
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, Schema};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{LogicalType, Type};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use crate::equality::{one_form, plain_type};
use crate::input::options::filter::Op;
use crate::input::row_groups::Footer;
use crate::paths;

use super::{Bound, BoundCondition, BoundTest};

/// Returns for each row group of `footer` whether its rows can meet the filter. `schema` is the
/// schema of all inputs.
pub(in crate::input) fn groups(filter: &Bound, footer: &Footer, schema: &Schema) -> Vec<bool> {
    let metadata = footer.metadata();
    let allowed = &mut |condition: &BoundCondition| {
        let known = converter(condition, footer, schema)
            .and_then(|(column, kind)| Statistics::of_groups(&column, &kind, footer))
            .map(Statistics::in_one_form);
        let allow = |group| known.as_ref().is_none_or(|known| known.allow(condition, group));
        Ok::<Vec<bool>, ()>((0..metadata.num_row_groups()).map(allow).collect())
    };
    let joined = filter.0.fold(allowed, &|any, one, other| {
        let pairs = one.into_iter().zip(other);
        pairs.map(|(one, other)| if any { one || other } else { one && other }).collect()
    });
    joined.unwrap_or_default()
}

/// Ascending ranges of a row group's rows that can meet the filter; `None` if all of them can.
pub(in crate::input) type KeptRows = Option<Vec<Range<u64>>>;

/// Minimum number of rows between two ranges. Ranges with smaller gaps are joined, since reading on
/// costs less than starting again.
const GAP: u64 = 16 << 10;

/// Returns for each row group of `footer`, by its page index, the rows that can meet the filter.
pub(in crate::input) fn rows(filter: &Bound, footer: &Footer, schema: &Schema) -> Vec<KeptRows> {
    let groups = footer.metadata().row_groups().iter().enumerate();
    let rows = groups.map(|(index, group)| {
        let all = 0..group.num_rows().unsigned_abs();
        let allowed = &mut |condition: &BoundCondition| {
            let known = converter(condition, footer, schema)
                .and_then(|(column, kind)| Statistics::of_pages(&column, &kind, footer, index))
                .map(Statistics::in_one_form);
            let Some(known) = known else { return Ok(Vec::from([all.clone()])) };
            let allowed = known.rows.iter().enumerate();
            let allowed = allowed.filter(|(page, _)| known.allow(condition, *page));
            Ok::<Vec<Range<u64>>, ()>(allowed.map(|(_, rows)| rows.clone()).collect())
        };
        let kept = filter.0.fold(allowed, &|any, mut one, other| {
            if !any {
                return in_both(&one, &other);
            }
            one.extend(other);
            one.sort_unstable_by_key(|rows| rows.start);
            joined(one)
        });
        kept.ok().map(joined).filter(|kept| kept.first() != Some(&all))
    });
    rows.collect()
}

/// Returns the intersection of two sets of ascending ranges.
fn in_both(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    let common = pairs.map(|(a, b)| a.start.max(b.start)..a.end.min(b.end));
    common.filter(|range| !range.is_empty()).collect()
}

/// Joins ranges, ascending by their starts, with less than [`GAP`] rows between them.
fn joined(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if range.start < last.end + GAP => last.end = range.end.max(last.end),
            _ => all.push(range),
        }
    }
    all
}

type Comparison = fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError>;

/// Statistics of a column, with an entry for each row group or each page of a row group.
pub(crate) struct Statistics {
    /// Rows of each page within its row group. Rows of each row group from zero on.
    pub(crate) rows: Vec<Range<u64>>,
    pub(crate) least: ArrayRef,
    pub(crate) most: ArrayRef,
    pub(crate) nulls: UInt64Array,
}

impl Statistics {
    /// Returns the statistics of row groups in the column of `converter`, with bounds of type `kind`.
    pub(crate) fn of_groups(
        converter: &StatisticsConverter<'_>,
        kind: &DataType,
        footer: &Footer,
    ) -> Option<Self> {
        let groups = footer.metadata().row_groups();
        Some(Self {
            rows: groups.iter().map(|group| 0..group.num_rows().unsigned_abs()).collect(),
            least: cast(&converter.row_group_mins(groups).ok()?, kind).ok()?,
            most: cast(&converter.row_group_maxes(groups).ok()?, kind).ok()?,
            nulls: converter.row_group_null_counts(groups).ok()?,
        })
    }

    /// Returns the statistics of the column of `converter`, with bounds of type `kind`; `None` if the page
    /// index lacks some of them.
    pub(crate) fn of_pages(
        converter: &StatisticsConverter<'_>,
        kind: &DataType,
        footer: &Footer,
        group: usize,
    ) -> Option<Self> {
        let metadata = footer.metadata();
        let (bounds, places) = (metadata.column_index()?, metadata.offset_index()?);
        let leaf = converter.parquet_column_index()?;
        bounds.get(group)?.get(leaf)?;
        let pages = places.get(group)?.get(leaf)?.page_locations();
        let rows = rows_of(pages, metadata.row_group(group).num_rows().unsigned_abs())?;
        let least = cast(&converter.data_page_mins(bounds, places, [&group]).ok()?, kind).ok()?;
        let most = cast(&converter.data_page_maxes(bounds, places, [&group]).ok()?, kind).ok()?;
        let nulls = converter.data_page_null_counts(bounds, places, [&group]).ok()?;
        let agree = [least.len(), most.len(), nulls.len()] == [rows.len(); 3];
        agree.then_some(Self { rows, least, most, nulls })
    }

    /// Returns the bounds in the form in which values compare.
    fn in_one_form(self) -> Self {
        Self { least: one_form(&self.least), most: one_form(&self.most), ..self }
    }

    /// Returns true if rows of the row group, or of the page, can meet the condition.
    fn allow(&self, condition: &BoundCondition, group: usize) -> bool {
        let nulls = self.nulls.is_valid(group).then(|| self.nulls.value(group));
        let rows = &self.rows[group];
        let none = nulls.is_some_and(|nulls| nulls >= rows.end - rows.start);
        match &condition.test {
            BoundTest::Null(true) => nulls != Some(0),
            BoundTest::Null(false) => !none,
            BoundTest::Compare(op, value) => !none && self.can_be(group, *op, value),
            BoundTest::In(values, true) => {
                !none && values.iter().any(|value| self.can_be(group, Op::Equal, value))
            }
            BoundTest::In(_, false) | BoundTest::Like(..) => !none,
        }
    }

    /// Returns true if a value between the bounds can compare with `value` by `op`.
    fn can_be(&self, group: usize, op: Op, value: &Scalar<ArrayRef>) -> bool {
        let bound = |bounds: &ArrayRef, is: Comparison| {
            let bound = bounds.slice(group, 1);
            let met = is(&bound, value);
            // A null, or a NaN, is no bound.
            met.map_or(true, |met| met.is_null(0) || is_nan(&bound) || met.value(0))
        };
        let floats = self.least.data_type().is_floating();
        let below = |is: Comparison| bound(&self.least, is);
        let above = |is: Comparison| floats || bound(&self.most, is);
        match op {
            Op::Less => below(cmp::lt),
            Op::LessOrEqual => below(cmp::lt_eq),
            Op::Greater => above(cmp::gt),
            Op::GreaterOrEqual => above(cmp::gt_eq),
            Op::Equal => below(cmp::lt_eq) && above(cmp::gt_eq),
            Op::NotEqual => floats || below(cmp::neq) || above(cmp::neq),
        }
    }
}

/// Returns the reader of statistics for a condition's column, and the type of the column's values.
fn converter<'a>(
    condition: &BoundCondition,
    footer: &'a Footer,
    schema: &'a Schema,
) -> Option<(StatisticsConverter<'a>, DataType)> {
    let [column] = condition.steps[..] else { return None };
    let name = schema.field(column).name();
    let kind = plain_type(paths::field(schema, &condition.steps, name).data_type()).clone();
    let metadata = footer.metadata();
    let there = footer.schema();
    let mut places = there.fields().iter().filter(|field| field.name() == name);
    let (Some(field), None) = (places.next(), places.next()) else { return None };
    if field.data_type().is_nested() && plain_type(field.data_type()).is_nested() {
        return None;
    }
    let converter =
        StatisticsConverter::try_new(name, there, metadata.file_metadata().schema_descr())
            .ok()?
            .with_missing_null_counts_as_zero(false);
    match converter.parquet_column_index() {
        Some(leaf) if is_of_the_first_form(metadata, leaf) => None,
        _ => Some((converter, kind)),
    }
}

/// Returns the rows of each page, by the pages' first rows; `None` if these are inconsistent.
fn rows_of(pages: &[PageLocation], rows: u64) -> Option<Vec<Range<u64>>> {
    let starts = pages.iter().map(|page| u64::try_from(page.first_row_index).ok());
    let starts = starts.collect::<Option<Vec<u64>>>()?;
    let ends = starts.iter().skip(1).copied().chain([rows]);
    let ranges: Vec<_> = starts.iter().zip(ends).map(|(&start, end)| start..end).collect();
    let is_whole = starts.first() == Some(&0) && ranges.iter().all(|range| !range.is_empty());
    is_whole.then_some(ranges)
}

fn is_nan(value: &ArrayRef) -> bool {
    match value.data_type() {
        DataType::Float16 => value.as_primitive::<Float16Type>().value(0).is_nan(),
        DataType::Float32 => value.as_primitive::<Float32Type>().value(0).is_nan(),
        DataType::Float64 => value.as_primitive::<Float64Type>().value(0).is_nan(),
        _ => false,
    }
}

/// Returns true if a leaf's bounds have the first form of statistics, which compares all bytes as
/// signed.
pub(crate) fn is_of_the_first_form(metadata: &ParquetMetaData, leaf: usize) -> bool {
    metadata.row_groups().iter().map(|group| group.column(leaf)).any(|column| {
        let text = matches!(column.column_type(), Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY);
        let unsigned = column
            .column_descr()
            .logical_type_ref()
            .is_some_and(|kind| matches!(kind, LogicalType::Integer(int) if !int.is_signed));
        (text || unsigned)
            && column.statistics().is_some_and(|statistics| statistics.is_min_max_deprecated())
    })
}
