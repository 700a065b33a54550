//! Every Arrow type on every path through the engine: as a key and as a payload, in headers, in the
//! engine's rows and in rows of arrow-row, sorted without rows, and split.

use std::sync::Arc;

use crate::common::arrays::{Rng, array_of};
use crate::common::model::{self, Value};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow_schema::{
    DataType, Field, Fields, IntervalUnit, Schema, SortOptions, TimeUnit, UnionFields, UnionMode,
};
use windrow::compat::{Converter, SortField};
use windrow::{
    Layout, Order, Partitioner, Pool, RowEncoder, SortColumn, Table, argsort, consolidate,
};

/// Returns the number of a type's variant. A new variant does not compile until it is listed here,
/// and then fails `every_variant_is_here` until it has an example.
fn variant(data_type: &DataType) -> usize {
    use DataType::*;
    match data_type {
        Null => 0,
        Boolean => 1,
        Int8 => 2,
        Int16 => 3,
        Int32 => 4,
        Int64 => 5,
        UInt8 => 6,
        UInt16 => 7,
        UInt32 => 8,
        UInt64 => 9,
        Float16 => 10,
        Float32 => 11,
        Float64 => 12,
        Timestamp(..) => 13,
        Date32 => 14,
        Date64 => 15,
        Time32(_) => 16,
        Time64(_) => 17,
        Duration(_) => 18,
        Interval(IntervalUnit::YearMonth) => 19,
        Interval(IntervalUnit::DayTime) => 20,
        Interval(IntervalUnit::MonthDayNano) => 21,
        Binary => 22,
        FixedSizeBinary(_) => 23,
        LargeBinary => 24,
        BinaryView => 25,
        Utf8 => 26,
        LargeUtf8 => 27,
        Utf8View => 28,
        List(_) => 29,
        ListView(_) => 30,
        FixedSizeList(..) => 31,
        LargeList(_) => 32,
        LargeListView(_) => 33,
        Struct(_) => 34,
        Union(_, UnionMode::Sparse) => 35,
        Union(_, UnionMode::Dense) => 36,
        Dictionary(..) => 37,
        Decimal32(..) => 38,
        Decimal64(..) => 39,
        Decimal128(..) => 40,
        Decimal256(..) => 41,
        Map(..) => 42,
        RunEndEncoded(..) => 43,
    }
}
const VARIANTS: usize = 44;

fn field(name: &str, data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new(name, data_type, true))
}

/// An example of each variant, and nested types.
fn every_type() -> Vec<DataType> {
    use DataType::*;
    let mut types = vec![Null, Boolean, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64];
    types.extend([Float16, Float32, Float64, Date32, Date64, Duration(TimeUnit::Second)]);
    types.extend([Timestamp(TimeUnit::Millisecond, None), Time32(TimeUnit::Second)]);
    types.extend([Time64(TimeUnit::Nanosecond), Decimal32(7, 2), Decimal64(12, -3)]);
    types.extend([Decimal128(30, 5), Decimal256(70, 9), FixedSizeBinary(3)]);
    use IntervalUnit::{DayTime, MonthDayNano, YearMonth};
    types.extend([YearMonth, DayTime, MonthDayNano].map(Interval));
    types.extend([Binary, LargeBinary, BinaryView, Utf8, LargeUtf8, Utf8View]);
    let of = |element: &DataType| {
        let item = field("item", element.clone());
        let key = Arc::new(Field::new("key", Utf8, false));
        let entries = Struct(Fields::from(vec![key, item.clone()]));
        let fields = || UnionFields::try_new([4, 9], [item.clone(), field("n", Int8)]).unwrap();
        vec![
            List(item.clone()),
            LargeList(item.clone()),
            ListView(item.clone()),
            LargeListView(item.clone()),
            FixedSizeList(item.clone(), 2),
            Struct(Fields::from(vec![item.clone(), field("n", Int8)])),
            Map(Arc::new(Field::new("entries", entries, false)), false),
            Union(fields(), UnionMode::Sparse),
            Union(fields(), UnionMode::Dense),
            Dictionary(Box::new(Int32), Box::new(element.clone())),
            RunEndEncoded(Arc::new(Field::new("ends", Int32, false)), item),
        ]
    };
    let flat = types.clone();
    let nested: Vec<DataType> = flat.iter().flat_map(of).collect();
    types.extend(nested.iter().cloned());
    types.extend(nested.iter().step_by(7).flat_map(of));
    types
}

#[test]
fn every_variant_is_here() {
    let mut found: Vec<usize> = every_type().iter().map(variant).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, (0..VARIANTS).collect::<Vec<_>>());
}

fn same(got: &[&ArrayRef], expected: &[&ArrayRef], what: &DataType) {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        assert_eq!((got.data_type(), got.len()), (expected.data_type(), expected.len()));
        for row in 0..expected.len() {
            assert_eq!(model::value(got, row), model::value(expected, row), "{what}, row {row}");
        }
    }
}

fn batch(column: &ArrayRef, rows: usize) -> RecordBatch {
    let fields = vec![
        Field::new("value", column.data_type().clone(), true),
        Field::new("place", DataType::Int64, false),
    ];
    let places: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::clone(column), places]).unwrap()
}

/// Checks the header, rows and their order, and the permutation that sorts the rows.
fn as_key(batch: &RecordBatch, options: SortOptions) {
    let what = batch.column(0).data_type();
    let SortOptions { descending, nulls_first } = options;
    let by = SortColumn { name: "value".into(), descending, nulls_first };
    let layout = Order::by(by).bind(batch.schema_ref()).unwrap();
    let read = Layout::from_bytes(&layout.to_bytes()).unwrap();
    assert_eq!(read.to_bytes(), layout.to_bytes(), "{what}");

    let encoder = RowEncoder::new(&layout);
    let rows = encoder.encode(batch).unwrap();
    let back = encoder.decode(&rows, 0..rows.len()).unwrap();
    same(
        &back.columns().iter().collect::<Vec<_>>(),
        &batch.columns().iter().collect::<Vec<_>>(),
        what,
    );

    let by = [model::By { column: 0, descending, nulls_first }];
    let values = model::rows([batch]);
    let mut expected: Vec<u32> = (0..values.len() as u32).collect();
    expected.sort_by(|&a, &b| model::compare(&by, &values[a as usize], &values[b as usize]));
    assert_eq!(argsort(&layout, batch).unwrap(), UInt32Array::from(expected.clone()), "{what}");
    // Rows of equal keys are ordered by their second column, whose bytes are unordered.
    for pair in expected.windows(2) {
        let [a, b] = [pair[0] as usize, pair[1] as usize];
        if model::compare(&by, &values[a], &values[b]).is_lt() {
            assert!(rows.row(a) < rows.row(b), "{what}, rows {a} and {b}");
        }
    }
}

fn as_payload(batch: &RecordBatch) {
    let layout = Order::by("place").bind(batch.schema_ref()).unwrap();
    let encoder = RowEncoder::new(&layout);
    let rows = encoder.encode(batch).unwrap();
    let back = encoder.decode(&rows, 0..rows.len()).unwrap();
    same(&[back.column(0)], &[batch.column(0)], batch.column(0).data_type());
}

/// Returns a value as rows of arrow-row represent it. They have no null for a dictionary of unions:
/// the null of the union's first field replaces it.
fn of_arrow_row(value: Value, data_type: &DataType) -> Value {
    use DataType::*;
    let parts = |value, of: &dyn Fn(usize) -> DataType| match value {
        Value::Parts(parts) => Value::Parts(
            parts.into_iter().enumerate().map(|(at, part)| of_arrow_row(part, &of(at))).collect(),
        ),
        other => other,
    };
    match data_type {
        Dictionary(_, values) => of_arrow_row(value, values),
        RunEndEncoded(_, values) => of_arrow_row(value, values.data_type()),
        Union(fields, _) => match (value, fields.iter().next()) {
            (Value::Null, Some((id, first))) => {
                Value::Choice(id, Box::new(of_arrow_row(Value::Null, first.data_type())))
            }
            (Value::Choice(id, value), _) => {
                let field = fields.iter().find(|(own, _)| *own == id).unwrap().1;
                Value::Choice(id, Box::new(of_arrow_row(*value, field.data_type())))
            }
            (other, _) => other,
        },
        Struct(fields) => parts(value, &|at| fields[at].data_type().clone()),
        List(field) | LargeList(field) | ListView(field) | LargeListView(field) => {
            parts(value, &|_| field.data_type().clone())
        }
        FixedSizeList(field, _) | Map(field, _) => parts(value, &|_| field.data_type().clone()),
        _ => value,
    }
}

fn in_rows_of_arrow_row(column: &ArrayRef, options: SortOptions) {
    let data_type = column.data_type().clone();
    let field = SortField::new_with_options(data_type.clone(), options);
    let converter = Converter::new(vec![field]).unwrap();
    let columns = [Arc::clone(column)];
    let rows = converter.encode(&columns).unwrap();
    let back = converter.decode(&rows, 0..rows.len()).unwrap();
    assert_eq!((back[0].data_type(), back[0].len()), (&data_type, column.len()));
    for row in 0..column.len() {
        let expected = of_arrow_row(model::value(column, row), &data_type);
        assert_eq!(model::value(&back[0], row), expected, "{data_type}, row {row}");
    }
    let field = arrow_row::SortField::new_with_options(data_type.clone(), options);
    // Arrow-row has no rows for some nested types.
    if let Ok(theirs) = arrow_row::RowConverter::new(vec![field]) {
        let theirs = theirs.convert_columns(&columns).unwrap();
        assert!(rows.iter().eq(theirs.iter().map(|row| row.data())), "{data_type}");
    }
}

/// Rows of few keys become one row of each key, with the last non-null values.
fn as_last_known(column: &ArrayRef, rows: usize) {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|at| at % 20)));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("key", keys, false),
        ("value", Arc::clone(column), true),
        ("other", Arc::clone(column), true),
    ]);
    let batch = batch.unwrap();
    let layout = Order::by("key").last_known().bind(batch.schema_ref()).unwrap();
    let found = consolidate(&layout, &batch).unwrap();
    let by = [model::By::ascending(0)];
    let expected = model::last_known(&by, &[], None, model::rows([&batch]));
    model::assert_same(&model::rows([&found]), &expected, column.data_type());
}

fn split(batch: &RecordBatch) {
    let layout = Order::by("place").bind(batch.schema_ref()).unwrap();
    let parts = Partitioner::hash(&layout, 3).split(batch).unwrap();
    let mut places: Vec<(i64, Value)> = Vec::new();
    for part in &parts {
        let place: &Int64Array = part.column(1).as_any().downcast_ref().unwrap();
        let rows = 0..part.num_rows();
        places.extend(rows.map(|row| (place.value(row), model::value(part.column(0), row))));
    }
    places.sort_by_key(|(place, _)| *place);
    let column = batch.column(0);
    let values: Vec<Value> = places.into_iter().map(|(_, value)| value).collect();
    let expected: Vec<_> = (0..batch.num_rows()).map(|row| model::value(column, row)).collect();
    assert_eq!(values, expected, "{}", column.data_type());
}

/// Deleted keys have blanks of the type, which are merged and decoded like values.
fn in_a_table(column: &ArrayRef, nullable: bool) {
    let rows = column.len();
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("value", Arc::clone(column), nullable),
        ("key", keys, false),
    ]);
    let batch = batch.unwrap();
    let mut table = Table::new(batch.schema_ref(), "key", &Pool::unlimited()).unwrap();
    table.upsert(&batch).unwrap();
    table.delete(&batch.slice(0, rows / 2).project(&[1]).unwrap()).unwrap();
    table.delete(&batch.slice(0, 0).project(&[1]).unwrap()).unwrap();
    let left = batch.slice(rows / 2, rows - rows / 2);
    let found = table.get(&batch.project(&[1]).unwrap()).unwrap();
    same(&[found.column(0)], &[left.column(0)], column.data_type());
    let mut changes = 0;
    for batch in table.spine().batches() {
        let batch = batch.try_clone().unwrap().record_batches(100).unwrap();
        changes += batch.map(|batch| batch.unwrap().num_rows()).sum::<usize>();
    }
    assert_eq!(changes, rows + rows / 2, "{}", column.data_type());
}

#[test]
fn every_type_goes_every_way() {
    let rng = &mut Rng::new(38);
    for data_type in every_type() {
        let (rows, front) = (60 + rng.below(10), rng.below(5));
        let column = array_of(rng, &data_type, true, front + rows).slice(front, rows);
        let batch = batch(&column, rows);
        let options = SortOptions { descending: rng.flip(), nulls_first: rng.flip() };
        as_key(&batch, options);
        as_payload(&batch);
        as_last_known(&column, rows);
        in_rows_of_arrow_row(&column, options);
        in_a_table(&column, true);
        // Dictionaries, runs and unions may have nulls in their values.
        let column = array_of(rng, &data_type, false, rows);
        in_a_table(&column, column.logical_null_count() > 0);
        split(&batch);
    }
}
