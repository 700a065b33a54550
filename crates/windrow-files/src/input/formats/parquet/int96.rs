//! Exact reading of Parquet's INT96 timestamps.
//!
//! A value consists of a day and the nanoseconds of the day. Nanoseconds in 64 bits reach from 1677
//! to 2262, and the Parquet reader wraps values beyond: 9999-12-31 becomes a day of 1816. Therefore
//!
//! 1. Columns of Spark are read in microseconds, the unit of Spark.
//! 2. Columns of other writers are read in nanoseconds, and also in seconds, to detect wrapped
//!    values:
//!
//! ```text
//!  row group --+-- all columns, INT96 in nanoseconds --> record batches
//!              +-- INT96 columns in seconds -----------> in range, or an error
//! ```
//! Invariant: a time is read as written, or is an error.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampSecondType;
use arrow_array::{Array, RecordBatch, make_array};
use arrow_schema::{DataType, FieldRef, Fields, Schema, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type;
use parquet::errors::Result;

use crate::input::row_groups::Footer;
use crate::input::source::random::RandomFile;
use crate::nested::{mapped, with_type};

use super::chosen::Chosen;
use super::segments::ReadStep;

/// Maximum distance from the epoch, in seconds, of nanoseconds in 64 bits.
const REACH: i64 = i64::MAX / 1_000_000_000 - 1;

/// Prefix of Spark's keys in the metadata.
const SPARK: &str = "org.apache.spark.";

/// Returns the footer, with Spark's times in microseconds.
pub(super) fn settled(footer: Footer) -> Result<Footer> {
    let file = footer.metadata().file_metadata();
    let pairs = file.key_value_metadata().into_iter().flatten();
    if !pairs.into_iter().any(|pair| pair.key.starts_with(SPARK)) || leaves(&footer).is_empty() {
        return Ok(footer);
    }
    in_unit(&footer, TimeUnit::Microsecond)
}

/// A reader of the seconds of all times that are read in nanoseconds.
pub(super) struct Seconds(ParquetRecordBatchReader);

impl Seconds {
    /// Creates a reader of `rows`; `None` without such times.
    pub(super) fn of(
        file: &RandomFile,
        footer: &Footer,
        chosen: &Chosen,
        rows: &ReadStep,
    ) -> Result<Option<Self>> {
        let mut leaves = leaves(footer);
        leaves.retain(|leaf| chosen.reads(*leaf));
        if leaves.is_empty() {
            return Ok(None);
        }
        let schema = footer.metadata().file_metadata().schema_descr();
        let mask = ProjectionMask::leaves(schema, leaves);
        let footer = in_unit(footer, TimeUnit::Second)?;
        let all = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), footer);
        let reader = rows.chosen(all.with_projection(mask));
        reader.build().map(|reader| Some(Self(reader)))
    }

    /// Checks the next record batch, which has the rows of the next batch in nanoseconds.
    pub(super) fn check(&mut self) -> std::result::Result<(), String> {
        let Some(batch) = self.0.next() else { return Ok(()) };
        let batch: RecordBatch = batch.map_err(|cause| cause.to_string())?;
        for (column, field) in batch.columns().iter().zip(batch.schema_ref().fields()) {
            if is_beyond(column) {
                return Err(format!(
                    "column '{}' has a time before 1678 or after 2261 as an INT96, which \
                     nanoseconds in 64 bits do not reach; write the column in microseconds",
                    field.name()
                ));
            }
        }
        Ok(())
    }
}

/// Returns whether a time in `column`, at any depth, is outside of [`REACH`].
fn is_beyond(column: &dyn Array) -> bool {
    match column.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            let seconds = column.as_primitive::<TimestampSecondType>();
            seconds.iter().flatten().any(|second| !(-REACH..=REACH).contains(&second))
        }
        _ => column.to_data().child_data().iter().any(|of| is_beyond(&make_array(of.clone()))),
    }
}

/// Returns the ordinals of the INT96 leaves in nanoseconds, ascending.
fn leaves(footer: &Footer) -> Vec<usize> {
    let mut fields = Vec::new();
    for field in footer.schema().fields() {
        each_leaf(field, &mut |field| {
            fields.push(field.clone());
            field.clone()
        });
    }
    let columns = footer.metadata().file_metadata().schema_descr().columns();
    let are_chosen = columns.iter().zip(fields).map(|(column, field)| {
        let in_nanoseconds =
            matches!(field.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _));
        in_nanoseconds && column.physical_type() == Type::INT96
    });
    are_chosen.enumerate().filter_map(|(leaf, is_chosen)| is_chosen.then_some(leaf)).collect()
}

/// Returns the footer, with the [leaves] in `unit`.
fn in_unit(footer: &Footer, unit: TimeUnit) -> Result<Footer> {
    let chosen = leaves(footer);
    with_leaves(footer, |leaf, field| match chosen.binary_search(&leaf) {
        Ok(_) => with_type(field, DataType::Timestamp(unit, None)),
        Err(_) => field.clone(),
    })
}

/// Returns the footer with each leaf replaced by the result of `change`, which also gets the
/// ordinal of the leaf.
pub(super) fn with_leaves(
    footer: &Footer,
    mut change: impl FnMut(usize, &FieldRef) -> FieldRef,
) -> Result<Footer> {
    let mut leaf = 0;
    let mut change = |field: &FieldRef| {
        leaf += 1;
        change(leaf - 1, field)
    };
    let fields = footer.schema().fields().iter();
    with_fields(footer, fields.map(|field| each_leaf(field, &mut change)).collect())
}

/// Returns the footer with other Arrow fields for its columns.
pub(super) fn with_fields(footer: &Footer, fields: Fields) -> Result<Footer> {
    if fields == *footer.schema().fields() {
        return Ok(footer.clone());
    }
    let schema = Schema::new_with_metadata(fields, footer.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(footer.metadata().clone(), options)
}

/// Returns `field` with each leaf replaced by the result of `change`. Leaves are visited in
/// Parquet's order.
fn each_leaf(field: &FieldRef, change: &mut dyn FnMut(&FieldRef) -> FieldRef) -> FieldRef {
    if has_leaves(field.data_type()) {
        mapped(field, |of| each_leaf(of, change))
    } else {
        change(field)
    }
}

/// Returns whether Parquet has a group for values of this type.
pub(super) fn has_leaves(kind: &DataType) -> bool {
    use DataType as D;
    matches!(kind, D::Struct(_) | D::List(_) | D::LargeList(_) | D::FixedSizeList(..) | D::Map(..))
}
