//! Rows for tests of writers: a column of each type. Every value is a function of its row's number.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::*;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::*;

fn some<T>(i: usize, value: T) -> Option<T> {
    (i % 7 != 3).then_some(value)
}

/// Returns the rows `start..start + rows` of a table with a column of each flat type.
pub(super) fn flat(start: usize, rows: usize) -> RecordBatch {
    macro_rules! numbers {
        ($array:ty, $native:ty) => {
            Arc::new(
                (start..start + rows)
                    .map(|i| some(i, (i * 37 % 101) as $native))
                    .collect::<$array>(),
            ) as ArrayRef
        };
    }
    let decimals = (start..start + rows).map(|i| some(i, i as i128 * 1001));
    let decimals: Decimal128Array = decimals.collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values((start..start + rows).map(|i| i as i64)))),
        (
            "bool",
            Arc::new((start..start + rows).map(|i| some(i, i % 3 == 0)).collect::<BooleanArray>()),
        ),
        ("i8", numbers!(Int8Array, i8)),
        ("i16", numbers!(Int16Array, i16)),
        ("i32", numbers!(Int32Array, i32)),
        ("u8", numbers!(UInt8Array, u8)),
        ("u16", numbers!(UInt16Array, u16)),
        ("u32", numbers!(UInt32Array, u32)),
        ("u64", numbers!(UInt64Array, u64)),
        ("f32", numbers!(Float32Array, f32)),
        ("f64", numbers!(Float64Array, f64)),
        ("date32", numbers!(Date32Array, i32)),
        (
            "date64",
            Arc::new(
                (start..start + rows)
                    .map(|i| some(i, i as i64 * 86_400_000))
                    .collect::<Date64Array>(),
            ),
        ),
        ("time32", numbers!(Time32MillisecondArray, i32)),
        ("time64", numbers!(Time64NanosecondArray, i64)),
        ("ts_s", numbers!(TimestampSecondArray, i64)),
        ("ts_ms", numbers!(TimestampMillisecondArray, i64)),
        (
            "ts_us",
            Arc::new(
                (start..start + rows)
                    .map(|i| some(i, i as i64))
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("+02:00"),
            ),
        ),
        ("ts_ns", numbers!(TimestampNanosecondArray, i64)),
        ("duration", numbers!(DurationMicrosecondArray, i64)),
        ("d9", Arc::new(decimals.clone().with_precision_and_scale(9, 2).expect("fits"))),
        ("d18", Arc::new(decimals.clone().with_precision_and_scale(18, 2).expect("fits"))),
        ("d38", Arc::new(decimals.with_precision_and_scale(38, 5).expect("fits"))),
    ];
    columns.extend(texts(start, rows));
    columns.push(("nothing", Arc::new(NullArray::new(rows))));
    let nullable =
        columns.into_iter().map(|(name, array)| (name, array, name != "id" && name != "few"));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable).expect("equal lengths");
    // Several keys, which a hash map would put in a random order.
    let metadata = (0..8).map(|i| (format!("key{i}"), format!("value{i}"))).collect();
    let schema = batch.schema().as_ref().clone().with_metadata(metadata);
    batch.with_schema(Arc::new(schema)).expect("the same fields")
}

/// Columns of [`flat`] with strings or bytes.
fn texts(start: usize, rows: usize) -> Vec<(&'static str, ArrayRef)> {
    let text = |width: usize| (start..start + rows).map(move |i| some(i, format!("{i:0width$}")));
    let bytes = || (start..start + rows).map(|i| some(i, vec![i as u8; i % 9]));
    vec![
        ("utf8", Arc::new(text(12).collect::<StringArray>())),
        ("large_utf8", Arc::new(text(5).collect::<LargeStringArray>())),
        ("view", Arc::new(text(20).collect::<StringViewArray>())),
        ("binary", Arc::new(bytes().collect::<BinaryArray>())),
        ("large_binary", Arc::new(bytes().collect::<LargeBinaryArray>())),
        (
            "fixed",
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                    (start..start + rows).map(|i| some(i, [i as u8; 3])),
                    3,
                )
                .expect("of 3 bytes"),
            ),
        ),
        (
            "few",
            Arc::new(StringArray::from_iter_values(
                (start..start + rows).map(|i| ["insert", "update", "delete"][i % 3]),
            )),
        ),
        (
            "dictionary",
            Arc::new(
                (start..start + rows)
                    .map(|i| some(i, ["red", "green", "blue"][(i / 5) % 3]))
                    .collect::<DictionaryArray<Int8Type>>(),
            ),
        ),
    ]
}

/// Nested columns. The first has two leaves, before `id`.
pub(super) fn nested(start: usize, rows: usize) -> RecordBatch {
    let range = start..start + rows;
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(range.clone().map(|i| i as i64)));
    let text: ArrayRef =
        Arc::new(StringArray::from_iter(range.clone().map(|i| some(i, i.to_string()))));
    let structs = StructArray::from(vec![
        (Arc::new(Field::new("x", DataType::Int64, true)), Arc::clone(&ids)),
        (Arc::new(Field::new("y", DataType::Utf8, true)), text),
    ]);
    let mut lists = ListBuilder::new(StringDictionaryBuilder::<Int32Type>::new());
    let mut views = ListBuilder::new(StringViewBuilder::new());
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for i in range {
        for j in 0..i % 4 {
            lists.values().append_value(format!("tag{}", (i + j) % 11));
            views.values().append_value(format!("a view of more than twelve bytes {i} {j}"));
            maps.keys().append_value(format!("key{j}"));
            maps.values().append_option(some(i + j, i as i32));
        }
        lists.append(i % 9 != 5);
        views.append(i % 5 != 2);
        maps.append(true).expect("as many keys as values");
    }
    RecordBatch::try_from_iter_with_nullable([
        ("struct", Arc::new(structs) as ArrayRef, true),
        ("id", ids, false),
        ("list", Arc::new(lists.finish()), true),
        ("views", Arc::new(views.finish()), true),
        ("map", Arc::new(maps.finish()), true),
    ])
    .expect("equal lengths")
}

/// Columns whose text the crate's readers understand.
pub(super) fn textual(start: usize, rows: usize) -> RecordBatch {
    let batch = flat(start, rows);
    let names = ["id", "bool", "i8", "i32", "u64", "f64", "date32", "ts_ms", "utf8", "few", "d18"];
    let columns = names.map(|name| batch.schema().index_of(name).expect("a column"));
    batch.project(&columns).expect("its columns")
}
