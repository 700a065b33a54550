//! Which row groups of Parquet can have rows that count, by their statistics.
//!
//! What is not known is taken to be anything: bounds that are missing, of an order that is not that of the values
//! (the first form of statistics, for text), or NaN. Bounds that were cut short are still bounds. NaN is in no bounds,
//! and greater than all: a group of floats is never ruled out by its maximum.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum, Scalar, UInt64Array};
use arrow::compute::{cast, kernels::cmp};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, Schema};
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{LogicalType, Type};
use parquet::file::metadata::ParquetMetaData;

use super::super::parquet::Footer;
use super::{Bound, BoundCondition, BoundTest, Op};
use crate::equality::{one_form, plain_type};
use crate::paths;

/// For each row group of `footer`, whether rows in it can count. `schema` is that of all inputs.
pub(in crate::input) fn groups(filter: &Bound, footer: &Footer, schema: &Schema) -> Vec<bool> {
    let metadata = footer.metadata();
    let mut kept = vec![true; metadata.num_row_groups()];
    for condition in &filter.0 {
        if let Some(known) = Known::of(condition, footer, schema) {
            for (group, kept) in kept.iter_mut().enumerate() {
                *kept &= known.allow(condition, group);
            }
        }
    }
    kept
}

type Comparison = fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError>;

/// What the statistics tell of a column.
struct Known {
    least: ArrayRef,
    most: ArrayRef,
    nulls: UInt64Array,
    rows: Vec<u64>,
    floats: bool,
}

impl Known {
    /// None for a member of a struct, and for a column that another is called like.
    fn of(condition: &BoundCondition, footer: &Footer, schema: &Schema) -> Option<Self> {
        let [column] = condition.steps[..] else { return None };
        let name = schema.field(column).name();
        let kind = plain_type(paths::field(schema, &condition.steps, name).data_type()).clone();
        let metadata = footer.metadata();
        let there = footer.schema();
        let mut places =
            there.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
        let (Some((_, field)), None) = (places.next(), places.next()) else { return None };
        if field.data_type().is_nested() && plain_type(field.data_type()).is_nested() {
            return None;
        }
        let converter =
            StatisticsConverter::try_new(name, there, metadata.file_metadata().schema_descr())
                .ok()?
                .with_missing_null_counts_as_zero(false);
        let groups = || metadata.row_groups().iter();
        let bounds = |bounds: Result<ArrayRef, _>| cast(&bounds.ok()?, &kind).ok();
        let least = bounds(converter.row_group_mins(groups()))?;
        let most = bounds(converter.row_group_maxes(groups()))?;
        let (least, most) = match converter.parquet_column_index() {
            Some(leaf) if is_of_the_first_form(metadata, leaf) => return None,
            _ => (one_form(&least), one_form(&most)),
        };
        Some(Self {
            least,
            most,
            nulls: converter.row_group_null_counts(groups()).ok()?,
            rows: groups().map(|group| group.num_rows().unsigned_abs()).collect(),
            floats: kind.is_floating(),
        })
    }

    /// Whether rows of `group` can meet the condition.
    fn allow(&self, condition: &BoundCondition, group: usize) -> bool {
        let nulls = self.nulls.is_valid(group).then(|| self.nulls.value(group));
        let none = nulls.is_some_and(|nulls| nulls >= self.rows[group]);
        match &condition.test {
            BoundTest::Null(true) => nulls != Some(0),
            BoundTest::Null(false) => !none,
            BoundTest::Compare(op, value) => !none && self.can_be(group, *op, value),
            BoundTest::In(values, true) => {
                !none && values.iter().any(|value| self.can_be(group, Op::Equal, value))
            }
            BoundTest::In(_, false) => !none,
        }
    }

    /// Whether a value between the bounds can compare like this.
    fn can_be(&self, group: usize, op: Op, value: &Scalar<ArrayRef>) -> bool {
        let bound = |bounds: &ArrayRef, is: Comparison| {
            let bound = bounds.slice(group, 1);
            let met = is(&bound, value);
            // A null, or a NaN, bounds nothing.
            met.map_or(true, |met| met.is_null(0) || is_nan(&bound) || met.value(0))
        };
        let below = |is: Comparison| bound(&self.least, is);
        let above = |is: Comparison| self.floats || bound(&self.most, is);
        match op {
            Op::Less => below(cmp::lt),
            Op::LessOrEqual => below(cmp::lt_eq),
            Op::Greater => above(cmp::gt),
            Op::GreaterOrEqual => above(cmp::gt_eq),
            Op::Equal => below(cmp::lt_eq) && above(cmp::gt_eq),
            Op::NotEqual => self.floats || below(cmp::neq) || above(cmp::neq),
        }
    }
}

fn is_nan(value: &ArrayRef) -> bool {
    match value.data_type() {
        DataType::Float16 => value.as_primitive::<Float16Type>().value(0).is_nan(),
        DataType::Float32 => value.as_primitive::<Float32Type>().value(0).is_nan(),
        DataType::Float64 => value.as_primitive::<Float64Type>().value(0).is_nan(),
        _ => false,
    }
}

/// Whether the bounds of a leaf are of the first form of statistics, which compares all bytes as if they had signs.
fn is_of_the_first_form(metadata: &ParquetMetaData, leaf: usize) -> bool {
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
