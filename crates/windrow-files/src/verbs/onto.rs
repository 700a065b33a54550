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
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};

use super::compact::CompactSpec;
use super::project::find;
use crate::changelog::{self, DELETED};
use crate::columns::{are_of, names};
use crate::derived::Derived;
use crate::equality::plain_type;
use crate::error::{Error, Result, failed};
use crate::input::exact;
use crate::names::Places;
use crate::nested::{strict_cast, with_rows};
use crate::settings::{Preset, Setting};

/// The table that changes are to be applied to.
pub(crate) struct Onto {
    /// The columns of the table, and behind them the members of structs that the key or the order
    /// name.
    table: SchemaRef,
    /// Number of the table's own columns.
    width: usize,
    /// The columns of the key and of the order.
    ordered: Vec<String>,
    /// Whether table columns that the changes lack are null in new rows.
    lacking_is_null: bool,
    /// The format of the changes.
    pub(crate) preset: Option<Preset>,
}

impl Onto {
    pub(crate) fn of(table: &SchemaRef, spec: &CompactSpec, lacking_is_null: bool) -> Self {
        let ordered = [names(&spec.key), names(&spec.order_by)].concat();
        let derived = Derived::of(table, ordered.iter().map(String::as_str));
        let (table, width) = (Arc::clone(&derived.schema), table.fields().len());
        Self { table, width, ordered, lacking_is_null, preset: None }
    }

    /// Returns the conversion of `changes` to the types of the table.
    pub(super) fn conform(&self, changes: &SchemaRef) -> Result<Conform> {
        Conform::of(changes, &self.table)
    }

    /// Returns the positions in `schema` of the columns to keep: those of the table, and the mark of
    /// deletes. `ignored` are columns that describe the change. The columns of the key and of the order
    /// need no `select`.
    pub(super) fn projection(
        &self,
        schema: &Schema,
        ignored: &[String],
        select: &Option<Vec<String>>,
    ) -> Result<Vec<usize>> {
        select.iter().flatten().try_for_each(|name| find(schema, name).map(drop))?;
        let (places, of_table) = (Places::of(schema.fields()), Places::of(self.table.fields()));
        let wanted = |name: &str| select.iter().flatten().any(|other| other == name);
        let ignored: HashSet<&str> = ignored.iter().map(String::as_str).collect();
        let orders = |name: &str| are_of(&self.ordered, name);
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
            let taken = select.is_none() || wanted(name) || orders(name);
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
        columns.extend(places.first(DELETED));
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
        with_rows(&self.schema, columns, batch.num_rows()).map_err(failed)
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
        // Writers give entries, keys and values names of their own.
        (T::Map(one, _), T::Map(other, _)) => match (one.data_type(), other.data_type()) {
            (T::Struct(one), T::Struct(other)) => {
                one.iter().zip(other).all(|(a, b)| converts(a.data_type(), b.data_type()))
            }
            _ => false,
        },
        _ if from.is_string() => {
            to.is_string() || to.is_numeric() || to.is_temporal() || *to == T::Boolean
        }
        _ => from.is_numeric() && to.is_numeric() || from.is_binary() && to.is_binary(),
    }
}

/// Converts `values` to `to`. A value that would change is an error, except for a float of fewer
/// digits.
fn converted(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let (from, kind) = (plain_type(values.data_type()), plain_type(to));
    if from.is_string() && !kind.is_string() {
        let text = strict_cast(values, &DataType::Utf8)?;
        return strict_cast(&exact(text.as_string(), kind).map_err(ArrowError::CastError)?, to);
    }
    let converted = strict_cast(values, to)?;
    if !(from.is_numeric() || from.is_temporal() || from.is_nested()) {
        return Ok(converted);
    }
    let back = strict_cast(&converted, values.data_type())?;
    let is_same = if from.is_floating() && kind.is_floating() {
        let [before, after] = [values, &back].map(|values| strict_cast(values, &DataType::Float64));
        let (before, after) = (before?, after?);
        let [before, after] = [&before, &after].map(|all| all.as_primitive::<Float64Type>());
        let overflows = |(a, b): (&f64, &f64)| a.is_finite() && b.is_infinite();
        !before.values().iter().zip(after.values()).any(overflows)
    } else {
        back.to_data() == values.to_data()
    };
    match is_same {
        true => Ok(converted),
        false => Err(ArrowError::CastError("a value would be rounded".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
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
        let large: ArrayRef = Arc::new(Float64Array::from(vec![1e300]));
        assert!(converted(&large, &DataType::Float32).is_err(), "no infinity");
        let text: ArrayRef = Arc::new(StringArray::from(vec!["2026-01-31", "x"]));
        assert!(converted(&text, &DataType::Date32).is_err());
        assert!(converted(&text.slice(0, 1), &DataType::Date32).is_ok());
        let [millis, micros] = [TimeUnit::Millisecond, TimeUnit::Microsecond];
        for (text, kind, fits) in [
            ("1.25", DataType::Decimal128(9, 2), true),
            ("1.239", DataType::Decimal128(9, 2), false),
            ("2026-01-31T12:00:00", DataType::Date32, false),
            ("2026-01-31T00:00:00.123456", DataType::Timestamp(millis, None), false),
            ("2026-01-31T00:00:00.123456", DataType::Timestamp(micros, None), true),
            ("2026-01-31T00:00:00+02:00", DataType::Timestamp(micros, None), false),
            ("9999-12-31T00:00:00Z", DataType::Timestamp(micros, Some("UTC".into())), true),
        ] {
            let values: ArrayRef = Arc::new(StringArray::from(vec![text]));
            assert_eq!(converted(&values, &kind).is_ok(), fits, "{text} as {kind}");
        }
    }

    #[test]
    fn maps_have_entries_of_any_name() {
        let map = |name: &str, keys: &str, kind: DataType| {
            let entries =
                [Field::new(keys, DataType::Utf8, false), Field::new("value", kind, true)];
            let entries = Field::new(name, DataType::Struct(entries.to_vec().into()), false);
            DataType::Map(Arc::new(entries), false)
        };
        let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        maps.keys().append_value("a");
        maps.values().append_value(7);
        maps.append(true).expect("a map");
        let maps: ArrayRef = Arc::new(maps.finish());
        let to = map("key_value", "key", DataType::Int32);
        assert!(converts(maps.data_type(), &to));
        assert_eq!(converted(&maps, &to).expect("small numbers").data_type(), &to);
        assert!(!converts(maps.data_type(), &map("key_value", "key", DataType::Date32)));
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
