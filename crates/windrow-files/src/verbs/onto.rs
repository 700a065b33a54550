//! Changes in terms of a table: the columns and the types of the table, a mark for deletes, and the
//! columns that order changes and rows.
//!
//! ```text
//!  log      seq  op  id: Int64  amount: Float64     note
//!  table             id: Int32  amount: Decimal(9, 2)
//!  changes           id: Int32  amount: Decimal(9, 2)  __windrow_deleted       note is an error
//! ```
//! A value that the type of the table cannot hold is an error. Numbers are no times: producers
//! count in different units.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use windrow::SortColumn as Column;

use crate::changelog::{self, DELETED, Ranks};
use crate::columns::TextAs;
use crate::equality::plain_type;
use crate::error::{Error, Result, failed};
use crate::names::Places;
use crate::settings::Preset;
use crate::settings::Setting;

/// The table that changes are to be applied to.
pub(crate) struct Onto {
    /// The columns of the table, and behind them the members of structs that the key or the order
    /// name.
    pub(crate) table: SchemaRef,
    /// Number of the table's own columns.
    pub(crate) width: usize,
    /// Whether table columns that the changes lack are null in new rows.
    pub(crate) lacking_is_null: bool,
    /// The order of changes and rows, if the table has all columns of the order.
    pub(crate) order: Option<(Vec<Column>, Ranks)>,
}

impl Onto {
    /// Sets the order of changes and rows to `order_by`.
    pub(super) fn compare(
        &mut self,
        order_by: &[Column],
        preset: Option<Preset>,
        texts: &[(String, TextAs)],
    ) -> Result<()> {
        let places = Places::of(self.table.fields());
        if !order_by.is_empty() && order_by.iter().all(|column| places.has(&column.name)) {
            let mut order = order_by.to_vec();
            let ranks = Ranks::bind(&self.table, preset, &mut order, texts, None)?;
            self.order = Some((order, ranks));
        }
        Ok(())
    }

    /// Returns the positions in `schema` of the columns to keep: those of the table, of the order,
    /// and the mark of deletes. `ignored` are columns that describe the change.
    pub(super) fn projection(
        &self,
        schema: &Schema,
        order_by: &[Column],
        ignored: &[String],
        select: &Option<Vec<String>>,
    ) -> Result<Vec<usize>> {
        let (places, of_table) = (Places::of(schema.fields()), Places::of(self.table.fields()));
        let wanted = |name: &str| select.iter().flatten().any(|other| other == name);
        let ignored: HashSet<&str> = ignored.iter().map(String::as_str).collect();
        let orders = |name: &str| order_by.iter().any(|column| column.name == name);
        for name in schema.fields().iter().map(|field| field.name().as_str()) {
            let is_known = of_table.has(name) || ignored.contains(name) || orders(name);
            if !is_known && !changelog::is_own(name) && (select.is_none() || wanted(name)) {
                let message = format!(
                    "the changes have a column {name:?}, and the table has none; add it to the table, or \
                     name the columns to take with {}",
                    Setting::Select
                );
                return Err(Error::usage(message).in_column(name));
            }
        }
        let mut columns = Vec::new();
        for (place, field) in self.table.fields().iter().enumerate() {
            let name = field.name();
            let taken = select.is_none() || wanted(name);
            match places.only(name).filter(|_| taken || ignored.contains(&**name)) {
                Some(place) => columns.push(place),
                None if place >= self.width => {}
                None if self.lacking_is_null && field.is_nullable() => {}
                None => {
                    return Err(Error::usage(format!(
                        "the table has a column {name:?}, and the changes have none; {} makes it null in \
                         the rows of the changes, if the table allows nulls in it",
                        Setting::UnionByName
                    ))
                    .in_column(name));
                }
            }
        }
        let order = self.order.iter().flat_map(|(order, _)| order);
        let own = order.filter_map(|column| places.first(&column.name));
        for place in own.chain(places.first(DELETED)) {
            if !columns.contains(&place) {
                columns.push(place);
            }
        }
        Ok(columns)
    }
}

/// The conversion of columns to the types of a table.
pub(super) struct Conform {
    /// The schema of the converted record batches.
    pub(super) schema: SchemaRef,
    casts: Vec<usize>,
    /// Columns that are never null in the table.
    required: Vec<usize>,
    deleted: Option<usize>,
}

impl Conform {
    /// Converts the columns of `changes` that have the name of a column of `table`.
    ///
    /// # Errors
    /// `Usage` for types without a conversion.
    pub(super) fn of(changes: &SchemaRef, table: &Schema) -> Result<Self> {
        let of_table = Places::of(table.fields());
        let (mut casts, mut required, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for (place, field) in changes.fields().iter().enumerate() {
            let theirs = of_table.first(field.name()).map(|theirs| table.field(theirs));
            let (Some(theirs), false) = (theirs, changelog::is_own(field.name())) else {
                fields.push(Arc::clone(field));
                continue;
            };
            let (from, to) = (field.data_type(), theirs.data_type());
            if !converts(from, to) {
                return Err(Error::usage(format!(
                    "column {:?} is {from} in the changes and {to} in the table, and values of the one \
                     are not values of the other; convert it in the changes first",
                    field.name()
                ))
                .in_column(field.name()));
            }
            if from != to {
                casts.push(place);
            }
            if !theirs.is_nullable() {
                required.push(place);
            }
            fields.push(Arc::new(Field::new(field.name(), to.clone(), true)) as FieldRef);
        }
        let schema = Schema::new_with_metadata(fields, changes.metadata().clone());
        let deleted = changes.index_of(DELETED).ok();
        Ok(Self { schema: Arc::new(schema), casts, required, deleted })
    }

    /// Converts `batch`. `row` maps a row of the batch to its number in the input.
    pub(super) fn apply(
        &self,
        batch: &RecordBatch,
        row: impl Fn(usize) -> u64,
    ) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        for &place in &self.casts {
            let field = self.schema.field(place);
            columns[place] = converted(&columns[place], field.data_type()).map_err(|cause| {
                let what = format!("does not fit the table, where it is {}", field.data_type());
                let of_one = |i: &usize| {
                    converted(&batch.column(place).slice(*i, 1), field.data_type()).is_err()
                };
                match (0..batch.num_rows()).find(of_one) {
                    Some(i) => Error::of_value(row(i), field.name(), format!("{what}: {cause}")),
                    None => failed(cause),
                }
            })?;
        }
        let deleted = self.deleted.map(|place| columns[place].as_boolean().clone());
        for &place in &self.required {
            let Some(nulls) = columns[place].logical_nulls() else { continue };
            let is_kept = |i: &usize| deleted.as_ref().is_none_or(|deleted| !deleted.value(*i));
            if let Some(i) = (0..nulls.len()).filter(is_kept).find(|i| nulls.is_null(*i)) {
                let what = "is null, and the table allows no nulls in it";
                return Err(Error::of_value(row(i), self.schema.field(place).name(), what));
            }
        }
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &rows).map_err(failed)
    }
}

/// Returns true if values of `from` may be values of `to`.
fn converts(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let (from, to) = (plain_type(from), plain_type(to));
    match (from, to) {
        _ if from == to => true,
        (T::Null, _) => true,
        (T::Timestamp(_, one), T::Timestamp(_, other)) => one.is_some() == other.is_some(),
        (T::Date32 | T::Date64, T::Date32 | T::Date64)
        | (T::Time32(_) | T::Time64(_), T::Time32(_) | T::Time64(_))
        | (T::Duration(_), T::Duration(_)) => true,
        (T::Struct(one), T::Struct(other)) => {
            let alike = |(a, b): (&FieldRef, &FieldRef)| {
                a.name() == b.name() && converts(a.data_type(), b.data_type())
            };
            one.len() == other.len() && one.iter().zip(other).all(alike)
        }
        (T::List(one) | T::LargeList(one), T::List(other) | T::LargeList(other)) => {
            converts(one.data_type(), other.data_type())
        }
        _ if from.is_string() => {
            to.is_string() || to.is_numeric() || to.is_temporal() || *to == T::Boolean
        }
        _ => from.is_numeric() && to.is_numeric() || from.is_binary() && to.is_binary(),
    }
}

/// Converts `values` to `to`. A value that would change is an error, except for a float of fewer
/// digits.
fn converted(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let converted = cast_with_options(values, to, &options)?;
    let (from, kind) = (plain_type(values.data_type()), plain_type(to));
    let can_lose = from.is_numeric() || from.is_temporal() || from.is_nested();
    if !can_lose || from.is_floating() && kind.is_floating() {
        return Ok(converted);
    }
    let back = cast_with_options(&converted, values.data_type(), &options)?;
    match back.to_data() == values.to_data() {
        true => Ok(converted),
        false => Err(ArrowError::CastError("a value would be rounded".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Decimal128Array, Float64Array, Int64Array, StringArray};
    use arrow_schema::TimeUnit;

    use super::*;

    #[test]
    fn values_are_converted_or_refused() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let bytes = converted(&numbers, &DataType::Int8).expect("small numbers");
        assert_eq!(bytes.data_type(), &DataType::Int8);
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![300]));
        assert!(converted(&numbers, &DataType::Int8).is_err());
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.1, 12.5]));
        let decimals = converted(&floats, &DataType::Decimal128(9, 2)).expect("two digits");
        let expected = Decimal128Array::from(vec![10, 1250]).with_precision_and_scale(9, 2);
        assert_eq!(decimals.to_data(), expected.expect("a type").to_data());
        assert!(converted(&floats, &DataType::Int32).is_err(), "12.5 is no integer");
        assert!(converted(&floats, &DataType::Float32).is_ok());
        let text: ArrayRef = Arc::new(StringArray::from(vec!["2026-01-31", "x"]));
        assert!(converted(&text, &DataType::Date32).is_err());
        assert!(converted(&text.slice(0, 1), &DataType::Date32).is_ok());
    }

    #[test]
    fn numbers_are_no_times() {
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert!(!converts(&DataType::Int64, &time));
        assert!(converts(&DataType::Utf8, &time));
        assert!(converts(&DataType::Null, &time));
        assert!(!converts(&time, &DataType::Int64));
    }
}
