//! Rows in two forms: as Rust values for differential's own traces, and as columns for Windrow's.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::sync::Arc;

use differential_dataflow::{AsCollection, Collection, Data, VecCollection};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::progress::Timestamp;
use windrow::arrow_array::builder::{Int32Builder, ListBuilder};
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::{
    Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt32Type,
    UInt64Type,
};
use windrow::arrow_array::{
    Array, ArrayRef, Decimal128Array, Float64Array, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use windrow::arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use windrow_differential::{Changes, ColumnCollection};

/// A row with both representations.
pub(crate) trait Record: Data {
    fn schema() -> SchemaRef;
    fn batch(rows: &[Self]) -> RecordBatch;
    fn rows(batch: &RecordBatch) -> Vec<Self>;
}

/// Converts a collection of values into one of record batches.
pub(crate) fn columns_of<'scope, D: Record, T: Timestamp>(
    rows: VecCollection<'scope, T, D, isize>,
) -> ColumnCollection<'scope, T, isize> {
    let batches = rows.inner.unary::<CapacityContainerBuilder<Changes<T, isize>>, _, _, _>(
        Pipeline,
        "ColumnsOf",
        |_, _| {
            move |input, output| {
                input.for_each(|time, updates| {
                    let (mut rows, mut times, mut diffs) = (Vec::new(), Vec::new(), Vec::new());
                    for (row, time, diff) in updates.drain(..) {
                        rows.push(row);
                        times.push(time);
                        diffs.push(diff);
                    }
                    let mut changes = Changes::new(D::batch(&rows), times, diffs).unwrap();
                    output.session(&time).give_container(&mut changes);
                });
            }
        },
    );
    ColumnCollection::new(Collection::new(batches), &D::schema())
}

/// Converts a collection of record batches into one of values.
pub(crate) fn rows_of<'scope, D: Record, T: Timestamp>(
    columns: ColumnCollection<'scope, T, isize>,
) -> VecCollection<'scope, T, D, isize> {
    let kinds = |schema: &Schema| -> Vec<_> {
        let fields = schema.fields().iter();
        fields.map(|field| (field.data_type().clone(), field.is_nullable())).collect()
    };
    assert_eq!(kinds(columns.schema()), kinds(&D::schema()), "{:?}", columns.schema());
    let rows =
        columns.into_inner().inner.unary::<CapacityContainerBuilder<Vec<(D, T, isize)>>, _, _, _>(
            Pipeline,
            "RowsOf",
            |_, _| {
                move |input, output| {
                    input.for_each(|time, changes| {
                        let (batch, times, diffs) = std::mem::take(changes).into_parts();
                        let updates = D::rows(&batch).into_iter().zip(times).zip(diffs);
                        let updates = updates.map(|((row, time), diff)| (row, time, diff));
                        output.session(&time).give_container(&mut updates.collect());
                    });
                }
            },
        );
    rows.as_collection()
}

fn schema<const N: usize>(fields: [(&str, DataType, bool); N]) -> SchemaRef {
    let fields = fields.map(|(name, data_type, nullable)| Field::new(name, data_type, nullable));
    Arc::new(Schema::new(fields.to_vec()))
}

fn batch(schema: SchemaRef, columns: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_new(schema, columns).unwrap()
}

fn text(array: &ArrayRef, row: usize) -> Option<String> {
    let array = array.as_string::<i32>();
    array.is_valid(row).then(|| array.value(row).to_owned())
}

/// Two numbers.
pub(crate) type Pair = (u64, u64);

impl Record for Pair {
    fn schema() -> SchemaRef {
        schema([("number", DataType::UInt64, false), ("other", DataType::UInt64, false)])
    }

    fn batch(rows: &[Self]) -> RecordBatch {
        let numbers = UInt64Array::from_iter_values(rows.iter().map(|row| row.0));
        let others = UInt64Array::from_iter_values(rows.iter().map(|row| row.1));
        batch(Self::schema(), vec![Arc::new(numbers), Arc::new(others)])
    }

    fn rows(batch: &RecordBatch) -> Vec<Self> {
        let column = |at| batch.column(at).as_primitive::<UInt64Type>().values().iter().copied();
        column(0).zip(column(1)).collect()
    }
}

/// A number and a word.
pub(crate) type Word = (u64, String);

impl Record for Word {
    fn schema() -> SchemaRef {
        schema([("number", DataType::UInt64, false), ("word", DataType::Utf8, false)])
    }

    fn batch(rows: &[Self]) -> RecordBatch {
        let numbers = UInt64Array::from_iter_values(rows.iter().map(|row| row.0));
        let words = StringArray::from_iter_values(rows.iter().map(|row| &row.1));
        batch(Self::schema(), vec![Arc::new(numbers), Arc::new(words)])
    }

    fn rows(batch: &RecordBatch) -> Vec<Self> {
        let numbers = batch.column(0).as_primitive::<UInt64Type>();
        let row = |row: usize| (numbers.value(row), text(batch.column(1), row).unwrap());
        (0..batch.num_rows()).map(row).collect()
    }
}

/// From, to.
pub(crate) type Edge = (u32, u32);

impl Record for Edge {
    fn schema() -> SchemaRef {
        schema([("from", DataType::UInt32, false), ("to", DataType::UInt32, false)])
    }

    fn batch(rows: &[Self]) -> RecordBatch {
        let from = UInt32Array::from_iter_values(rows.iter().map(|row| row.0));
        let to = UInt32Array::from_iter_values(rows.iter().map(|row| row.1));
        batch(Self::schema(), vec![Arc::new(from), Arc::new(to)])
    }

    fn rows(batch: &RecordBatch) -> Vec<Self> {
        let column = |at| batch.column(at).as_primitive::<UInt32Type>().values().iter().copied();
        column(0).zip(column(1)).collect()
    }
}

/// An order: user (may be null), cents, time, note, tags.
pub(crate) type Order = (Option<i64>, i128, i64, Option<String>, Vec<i32>);

fn tags() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)))
}

fn money() -> DataType {
    DataType::Decimal128(12, 2)
}

fn moment() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

impl Record for Order {
    fn schema() -> SchemaRef {
        schema([
            ("user", DataType::Int64, true),
            ("amount", money(), false),
            ("at", moment(), false),
            ("note", DataType::Utf8, true),
            ("tags", tags(), false),
        ])
    }

    fn batch(rows: &[Self]) -> RecordBatch {
        let amount = Decimal128Array::from_iter_values(rows.iter().map(|row| row.1));
        let at = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.2));
        batch(
            Self::schema(),
            vec![
                Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
                Arc::new(amount.with_precision_and_scale(12, 2).unwrap()),
                Arc::new(at.with_timezone("UTC")),
                Arc::new(rows.iter().map(|row| row.3.as_deref()).collect::<StringArray>()),
                Arc::new(list(rows.iter().map(|row| &row.4))),
            ],
        )
    }

    fn rows(batch: &RecordBatch) -> Vec<Self> {
        let user = batch.column(0).as_primitive::<Int64Type>();
        let amount = batch.column(1).as_primitive::<Decimal128Type>();
        let at = batch.column(2).as_primitive::<TimestampMicrosecondType>();
        let row = |row: usize| {
            let user = user.is_valid(row).then(|| user.value(row));
            let (note, tags) = (text(batch.column(3), row), of_list(batch.column(4), row));
            (user, amount.value(row), at.value(row), note, tags)
        };
        (0..batch.num_rows()).map(row).collect()
    }
}

fn list<'a>(rows: impl Iterator<Item = &'a Vec<i32>>) -> ListArray {
    let mut lists = ListBuilder::new(Int32Builder::new());
    rows.for_each(|row| lists.append_value(row.iter().copied().map(Some)));
    lists.finish()
}

fn of_list(array: &ArrayRef, row: usize) -> Vec<i32> {
    array.as_list::<i32>().value(row).as_primitive::<Int32Type>().values().to_vec()
}

/// A user: id, name, and an address of place and house number; id and house number may be null.
pub(crate) type Person = (Option<i64>, String, (String, Option<i32>));

fn address() -> Fields {
    Fields::from(vec![
        Field::new("place", DataType::Utf8, false),
        Field::new("house", DataType::Int32, true),
    ])
}

fn structs<'a>(rows: impl Iterator<Item = &'a (String, Option<i32>)> + Clone) -> StructArray {
    let places = StringArray::from_iter_values(rows.clone().map(|row| &row.0));
    let houses: windrow::arrow_array::Int32Array = rows.map(|row| row.1).collect();
    StructArray::new(address(), vec![Arc::new(places), Arc::new(houses)], None)
}

fn of_struct(array: &ArrayRef, row: usize) -> (String, Option<i32>) {
    let parts = array.as_struct();
    let house = parts.column(1).as_primitive::<Int32Type>();
    let house = house.is_valid(row).then(|| house.value(row));
    (text(parts.column(0), row).unwrap(), house)
}

impl Record for Person {
    fn schema() -> SchemaRef {
        schema([
            ("id", DataType::Int64, true),
            ("name", DataType::Utf8, false),
            ("address", DataType::Struct(address()), false),
        ])
    }

    fn batch(rows: &[Self]) -> RecordBatch {
        batch(
            Self::schema(),
            vec![
                Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
                Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.1))),
                Arc::new(structs(rows.iter().map(|row| &row.2))),
            ],
        )
    }

    fn rows(batch: &RecordBatch) -> Vec<Self> {
        let id = batch.column(0).as_primitive::<Int64Type>();
        let row = |row: usize| {
            let id = id.is_valid(row).then(|| id.value(row));
            (id, text(batch.column(1), row).unwrap(), of_struct(batch.column(2), row))
        };
        (0..batch.num_rows()).map(row).collect()
    }
}

/// An order with its buyer: name, cents, tags, address.
pub(crate) type Bought = (String, i128, Vec<i32>, (String, Option<i32>));

impl Record for Bought {
    fn schema() -> SchemaRef {
        schema([
            ("name", DataType::Utf8, false),
            ("amount", money(), false),
            ("tags", tags(), false),
            ("address", DataType::Struct(address()), false),
        ])
    }

    fn batch(rows: &[Self]) -> RecordBatch {
        let amount = Decimal128Array::from_iter_values(rows.iter().map(|row| row.1));
        batch(
            Self::schema(),
            vec![
                Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0))),
                Arc::new(amount.with_precision_and_scale(12, 2).unwrap()),
                Arc::new(list(rows.iter().map(|row| &row.2))),
                Arc::new(structs(rows.iter().map(|row| &row.3))),
            ],
        )
    }

    fn rows(batch: &RecordBatch) -> Vec<Self> {
        let amount = batch.column(1).as_primitive::<Decimal128Type>();
        let row = |row: usize| {
            let (name, tags) = (text(batch.column(0), row).unwrap(), of_list(batch.column(2), row));
            (name, amount.value(row), tags, of_struct(batch.column(3), row))
        };
        (0..batch.num_rows()).map(row).collect()
    }
}

/// Aggregates of a user: number of orders, their sum, first time, greatest note, least tags.
pub(crate) type Total = (Option<i64>, i64, i128, i64, Option<String>, Vec<i32>);

impl Record for Total {
    fn schema() -> SchemaRef {
        schema([
            ("user", DataType::Int64, true),
            ("count", DataType::Int64, false),
            ("sum(amount)", DataType::Decimal128(38, 2), false),
            ("first", moment(), false),
            ("max(note)", DataType::Utf8, true),
            ("min(tags)", tags(), false),
        ])
    }

    fn batch(_rows: &[Self]) -> RecordBatch {
        unreachable!("totals only come out")
    }

    fn rows(batch: &RecordBatch) -> Vec<Self> {
        let user = batch.column(0).as_primitive::<Int64Type>();
        let count = batch.column(1).as_primitive::<Int64Type>();
        let sum = batch.column(2).as_primitive::<Decimal128Type>();
        let first = batch.column(3).as_primitive::<TimestampMicrosecondType>();
        let row = |row: usize| {
            let user = user.is_valid(row).then(|| user.value(row));
            let (note, tags) = (text(batch.column(4), row), of_list(batch.column(5), row));
            (user, count.value(row), sum.value(row), first.value(row), note, tags)
        };
        (0..batch.num_rows()).map(row).collect()
    }
}

/// A city, and a measured temperature in quarters of a degree, or null.
pub(crate) type Measured = (String, Option<i64>);

impl Record for Measured {
    fn schema() -> SchemaRef {
        schema([("city", DataType::Utf8, false), ("degrees", DataType::Float64, true)])
    }

    fn batch(rows: &[Self]) -> RecordBatch {
        let degrees = rows.iter().map(|row| row.1.map(|quarters| quarters as f64 / 4.0));
        let cities = StringArray::from_iter_values(rows.iter().map(|row| &row.0));
        let degrees: Float64Array = degrees.collect();
        batch(Self::schema(), vec![Arc::new(cities), Arc::new(degrees)])
    }

    fn rows(batch: &RecordBatch) -> Vec<Self> {
        let degrees = batch.column(1).as_primitive::<Float64Type>();
        let row = |row: usize| {
            let quarters = degrees.is_valid(row).then(|| (degrees.value(row) * 4.0) as i64);
            (text(batch.column(0), row).unwrap(), quarters)
        };
        (0..batch.num_rows()).map(row).collect()
    }
}
