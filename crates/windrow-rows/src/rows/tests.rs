//! Rows against the model, for every type and every option; and bytes that no encoder wrote.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, DictionaryArray, Int64Array, LargeBinaryArray,
    ListArray, RecordBatch, StringArray, StringViewArray, StructArray, make_array,
};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;

use super::{Decoder, Encoder, RowEncoder, key_len};
use crate::error::{Error, Result};
use crate::order::{Layout, Order, SortColumn, asc, desc};
use arrays::Rng;
use model::By;

#[path = "../../tests/common/arrays.rs"]
pub(crate) mod arrays;
#[path = "../../tests/common/model.rs"]
#[allow(dead_code, reason = "shared with the tests of the whole engine")]
pub(crate) mod model;
#[path = "../../tests/common/tables.rs"]
#[allow(dead_code, reason = "shared with the tests of the whole engine")]
pub(crate) mod tables;

/// Encodes rows whose numbers cross all changes of the sequence's length.
fn encode(layout: &Layout, batch: &RecordBatch) -> Vec<Vec<u8>> {
    encode_from(layout, batch, (1 << 40) - 12)
}

pub(super) fn encode_from(layout: &Layout, batch: &RecordBatch, sequence: u64) -> Vec<Vec<u8>> {
    let encoder = Encoder::new(layout);
    let prepared = encoder.prepare(batch, sequence).unwrap();
    let lengths: Vec<usize> = (0..prepared.len()).map(|row| prepared.row_len(row)).collect();
    // In two calls: encoding can start at any row.
    let middle = lengths.len() / 3;
    let mut bytes = vec![0xaa; lengths.iter().sum()];
    let (front, back) = bytes.split_at_mut(lengths[..middle].iter().sum());
    encoder.encode(&prepared, 0..middle, front);
    encoder.encode(&prepared, middle..lengths.len(), back);
    let mut rest = &bytes[..];
    lengths
        .iter()
        .map(|&length| {
            let (row, behind) = rest.split_at(length);
            rest = behind;
            row.to_vec()
        })
        .collect()
}

fn decode(decoder: Result<Decoder>, rows: &[Vec<u8>]) -> Result<RecordBatch> {
    let rows: Vec<&[u8]> = rows.iter().map(|row| &row[..]).collect();
    decoder?.decode(&rows)
}

/// Checks that `back` is valid and equals `batch`.
fn assert_back(back: &RecordBatch, batch: &RecordBatch) {
    back.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    model::assert_same(&model::rows([back]), &model::rows([batch]), &batch.schema());
}

fn encoder(order: Order, batch: &RecordBatch) -> RowEncoder {
    RowEncoder::new(&order.bind(&batch.schema()).unwrap())
}

/// Draws a layout for `batch`, whose first `keys` columns are ordered; also returns the model's
/// order.
fn layout(rng: &mut Rng, batch: &RecordBatch, keys: usize) -> (Layout, Vec<By>) {
    let by: Vec<By> = (0..keys)
        .map(|column| By { column, descending: rng.flip(), nulls_first: rng.flip() })
        .collect();
    let column = |by: &By| SortColumn {
        name: format!("k{}", by.column),
        descending: by.descending,
        nulls_first: by.nulls_first,
    };
    let columns: Vec<SortColumn> = by.iter().map(column).collect();
    let order = match rng.below(3) {
        0 => Order::by(columns),
        1 => Order::by(columns).first(),
        _ => Order::by(columns).last(),
    };
    (order.bind(&batch.schema()).unwrap(), by)
}

fn check(rng: &mut Rng, batch: &RecordBatch, keys: usize) {
    let (layout, by) = layout(rng, batch, keys);
    let rows = encode(&layout, batch);
    let values = model::rows([batch]);
    let back = decode(Decoder::of_all(&layout), &rows).unwrap();
    assert_eq!(back.schema(), batch.schema());
    assert_back(&back, batch);
    assert_eq!(encode(&layout, &back), rows);
    if let Some(stride) = layout.stride() {
        assert!(rows.iter().all(|row| row.len() == stride), "{stride}");
    }
    for (i, left) in rows.iter().enumerate() {
        for (j, right) in rows.iter().enumerate() {
            let order = model::compare(&by, &values[i], &values[j]);
            let (left_key, right_key) = (key_len(&layout, left), key_len(&layout, right));
            let what = (&values[i], &values[j], &by);
            assert_eq!(left[..left_key].cmp(&right[..right_key]), order, "{what:?}");
            let placed = if layout.sequence_descends() { j.cmp(&i) } else { i.cmp(&j) };
            assert_eq!(left.cmp(right), order.then(placed), "{what:?}");
            assert_eq!(order == Ordering::Equal, right.starts_with(&left[..left_key]));
        }
    }
}

#[test]
fn every_type_in_every_direction() {
    let rng = &mut Rng::new(1);
    let mut types = tables::plain_types();
    for plain in tables::plain_types() {
        types.push(DataType::Dictionary(Box::new(DataType::Int32), Box::new(plain.clone())));
        let ends = Field::new("run_ends", DataType::Int32, false);
        let values = Field::new("values", plain, true);
        types.push(DataType::RunEndEncoded(ends.into(), values.into()));
    }
    for data_type in types {
        // Directions and positions of nulls are random: 24 draws cover all combinations.
        for _ in 0..24 {
            let array = tables::key_array(rng, &data_type, true, 40, 30);
            let array = array.slice(rng.below(5), 33);
            let nullable = rng.flip() || array.logical_null_count() > 0;
            let batch =
                RecordBatch::try_from_iter_with_nullable([("k0", array, nullable)]).unwrap();
            check(rng, &batch, 1);
        }
    }
}

/// Draws a layout, with times and diffs, or with tombstones.
fn any_layout(rng: &mut Rng, batch: &RecordBatch, keys: usize) -> Layout {
    let sums = Order::by((0..keys).map(|k| format!("k{k}")).collect::<Vec<_>>()).diff("diff");
    match rng.below(3) {
        0 => sums.bind(&batch.schema()).unwrap(),
        1 => sums.time("time").bind(&batch.schema()).unwrap(),
        _ => layout(rng, batch, keys).0,
    }
}

fn table(rng: &mut Rng, keys: usize, payload: usize, rows: usize) -> RecordBatch {
    let table = tables::table(rng, keys, payload, rows, 12);
    let fields = table.schema();
    let names = fields.fields().iter().map(|field| (field.name().clone(), field.is_nullable()));
    let mut columns: Vec<_> = names
        .zip(table.columns())
        .map(|((name, nullable), array)| (name, array.clone(), nullable))
        .collect();
    for name in ["time", "diff"] {
        let numbers = tables::key_array(rng, &DataType::Int16, false, rows, 4);
        columns.push((name.to_owned(), numbers, rng.flip()));
    }
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rows_have_the_order_of_their_values(
        seed: u64,
        keys in 1usize..5,
        payload in 0usize..4,
        rows in 0usize..40,
        distinct in 1usize..30,
    ) {
        let rng = &mut Rng::new(seed);
        let batch = tables::table(rng, keys, payload, rows, distinct);
        check(rng, &batch, keys);
    }

    #[test]
    fn more_rows_than_a_tile(seed: u64, keys in 1usize..4, payload in 0usize..4, rows in 100usize..500) {
        let rng = &mut Rng::new(seed);
        let batch = table(rng, keys, payload, rows);
        let layout = any_layout(rng, &batch, keys);
        let rows = encode(&layout, &batch);
        assert_back(&decode(Decoder::of_all(&layout), &rows).unwrap(), &batch);
        let columns = batch.num_columns();
        let projection: Vec<usize> = (0..rng.below(5)).map(|_| rng.below(columns)).collect();
        let part = decode(Decoder::new(&layout, &projection), &rows).unwrap();
        assert_back(&part, &batch.project(&projection).unwrap());
    }

    #[test]
    fn numbers_that_are_longer_among_others(seed: u64, keys in 1usize..4, payload in 0usize..4, rows in 1usize..150) {
        // All of one width, so that kernels read them together; every second number is at an end of
        // its range.
        let types = match seed % 3 {
            0 => [DataType::UInt32, DataType::Date32, DataType::FixedSizeBinary(4)],
            1 => [DataType::UInt64, DataType::Int64, DataType::FixedSizeBinary(8)],
            _ => [DataType::UInt64, DataType::Decimal128(38, 0), DataType::FixedSizeBinary(16)],
        };
        let rng = &mut Rng::new(seed);
        let names = (0..keys).map(|key| format!("k{key}")).chain((0..payload).map(|at| format!("p{at}")));
        let names: Vec<String> = names.collect();
        let mut column = |name| {
            let data_type = &types[rng.below(types.len())];
            let width = data_type.primitive_width().unwrap_or(4 << (seed % 3));
            let nullable = rng.below(4) > 0;
            let mut values = vec![0u8; rows * width];
            for value in values.chunks_mut(width) {
                value.fill([0, 0xff, rng.next() as u8][rng.below(3)]);
                let ends = [value[0], value[0] ^ 0x80, value[0] ^ 0xfe, rng.next() as u8];
                *value.last_mut().unwrap() = ends[rng.below(ends.len())];
                value[0] = [value[0], rng.next() as u8][rng.below(2)];
            }
            let nulls = nullable.then(|| (0..rows).map(|_| rng.below(3) > 0).collect::<Vec<_>>().into());
            let data = ArrayData::builder(data_type.clone()).len(rows).nulls(nulls).add_buffer(values.into());
            (name, make_array(data.align_buffers(true).build().unwrap()), nullable)
        };
        let columns: Vec<_> = names.into_iter().map(&mut column).collect();
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let (layout, _) = layout(rng, &batch, keys);
        let back = decode(Decoder::of_all(&layout), &encode(&layout, &batch)).unwrap();
        assert_back(&back, &batch);
        let encoder = RowEncoder::new(&layout);
        let rows = encoder.encode(&batch).unwrap();
        prop_assert_eq!(encoder.decode(&rows, 0..rows.len()).unwrap(), batch.clone());
        prop_assert_eq!(encoder.decode_rows(rows.iter()).unwrap(), batch);
    }

    #[test]
    fn equal_changes_are_equal_bytes(seed: u64, keys in 1usize..3, payload in 0usize..3) {
        let rng = &mut Rng::new(seed);
        let batch = table(rng, keys, payload, 40);
        let names: Vec<String> = (0..keys).map(|k| format!("k{k}")).collect();
        let layout = Order::by(names).time("time").diff("diff").bind(&batch.schema()).unwrap();
        let rows = encode(&layout, &batch);
        let mut values = model::rows([&batch]);
        values.iter_mut().for_each(|row| row.truncate(batch.num_columns() - 1));
        for (left, a) in rows.iter().zip(&values) {
            for (right, b) in rows.iter().zip(&values) {
                let (left, right) = (&left[..left.len() - 8], &right[..right.len() - 8]);
                prop_assert_eq!(left == right, a == b);
                prop_assert!(left == right || !right.starts_with(left), "not free of prefixes");
            }
        }
    }

    #[test]
    fn damaged_rows_do_not_panic(seed: u64, keys in 1usize..4, payload in 0usize..4) {
        let rng = &mut Rng::new(seed);
        let batch = table(rng, keys, payload, 8);
        let layout = any_layout(rng, &batch, keys);
        let whole = encode(&layout, &batch);
        for _ in 0..60 {
            let mut rows = whole.clone();
            let victim = rng.below(rows.len());
            let row = &mut rows[victim];
            match rng.below(3) {
                0 => row.truncate(rng.below(row.len() + 1)),
                1 => row.extend([0, 1, 0xff]),
                _ => {
                    for _ in 0..1 + rng.below(3) {
                        if !row.is_empty() {
                            let at = rng.below(row.len());
                            row[at] = [0, 1, 2, 3, 0xff, rng.next() as u8][rng.below(6)];
                        }
                    }
                }
            }
            let columns = batch.num_columns();
            let all: Vec<usize> = (0..columns).collect();
            let some: Vec<usize> = all.iter().copied().filter(|_| rng.flip()).collect();
            let _walked = key_len(&layout, &rows[victim]);
            for projection in [&all, &some] {
                match decode(Decoder::new(&layout, projection), &rows) {
                    Ok(batch) => {
                        batch.columns().iter().for_each(|c| c.to_data().validate_full().unwrap());
                    }
                    Err(Error::Corrupt { .. } | Error::Arrow(_) | Error::Value { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
}

/// Columns with kernels of their own, of more rows than a tile.
fn varied(rows: usize, every: usize) -> RecordBatch {
    // 0 to 40 letters: within a view, beyond a view, and more than a step.
    let word = |row: usize| {
        let letters = if row % 97 == 5 { "éa€" } else { "abc" };
        letters.chars().cycle().skip(row % 3).take(row * 7 % 41).collect::<String>()
    };
    let text = |row: usize| (!row.is_multiple_of(every)).then(|| word(row));
    let bytes = |row: usize| {
        let own = (0..row % 30).map(|at| (at * row % 5) as u8).collect::<Vec<u8>>();
        text(row).map(|_| own)
    };
    let list = |row: usize| {
        let value = |at: usize| (!(at + row).is_multiple_of(every * 3)).then_some(row as i32 - 700);
        Some((0..row * 3 % 25).map(value).collect::<Vec<_>>())
    };
    let doubles =
        |row: usize| Some((0..row % 12).map(|at| Some(at as f64 - row as f64)).collect::<Vec<_>>());
    let words: Vec<Option<String>> = (0..rows).map(|row| text(row % 90)).collect();
    let keys = words.iter().map(|word| word.as_deref()).collect::<DictionaryArray<Int32Type>>();
    let field = |name: &str, array: ArrayRef| {
        (Arc::new(Field::new(name, array.data_type().clone(), true)), array)
    };
    let numbers = Int64Array::from_iter_values(0..rows as i64);
    let texts: StringArray = (0..rows).map(text).collect();
    let both = vec![field("number", Arc::new(numbers)), field("text", Arc::new(texts))];
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>((0..rows).map(list));
    let doubles = ListArray::from_iter_primitive::<Float64Type, _, _>((0..rows).map(doubles));
    let columns: [(&str, ArrayRef); 6] = [
        ("views", Arc::new((0..rows).map(text).collect::<StringViewArray>())),
        ("bytes", Arc::new((0..rows).map(bytes).collect::<BinaryViewArray>())),
        ("keys", Arc::new(keys)),
        ("lists", Arc::new(lists)),
        ("doubles", Arc::new(doubles)),
        ("both", Arc::new(StructArray::from(both))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
        .unwrap()
}

#[test]
fn tiles_of_views_and_of_nested_values() {
    for (rows, every) in [(2600, 10), (2600, 2000), (100, 3)] {
        let batch = varied(rows, every);
        for descending in [false, true] {
            let schema = batch.schema();
            let names = schema.fields().iter().map(|field| field.name());
            let by = names.map(|name| if descending { desc(name) } else { asc(name) });
            let by: Vec<_> = by.collect();
            let encoder = encoder(Order::by(by), &batch);
            let encoded = encoder.encode(&batch).unwrap();
            for range in [0..rows, 7..rows - 5, 64..65, 9..9] {
                let back = encoder.decode(&encoded, range.clone()).unwrap();
                assert_back(&back, &batch.slice(range.start, range.len()));
            }
        }
    }
}

#[test]
fn views_of_what_is_not_utf8_are_refused() {
    let batch = |text: &'static str| {
        let columns: [(&str, ArrayRef); 2] = [
            ("n", Arc::new(Int64Array::from(vec![7; 70]))),
            ("t", Arc::new(StringViewArray::from(vec![text; 70]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    for text in ["short é", "longer than a view holds: é", ""] {
        for payload in [false, true] {
            let batch = batch(text);
            let order = Order::by(if payload { ["n"].as_slice() } else { &["n", "t"] });
            let encoder = encoder(order, &batch);
            let mut rows: Vec<Vec<u8>> =
                encoder.encode(&batch).unwrap().iter().map(<[u8]>::to_vec).collect();
            let decode = |rows: &[Vec<u8>]| encoder.decode_rows(rows.iter().map(|row| &row[..]));
            assert_eq!(decode(&rows).unwrap(), batch);
            // The letter's second byte becomes a first byte.
            let at = rows[3].iter().rposition(|&byte| byte > 0x80);
            if let Some(at) = at {
                rows[3][at] = 0xd0;
                assert!(matches!(decode(&rows), Err(Error::Corrupt { .. })), "{text}");
            }
        }
    }
}

#[test]
fn an_encoder_forgets_the_nulls_of_the_batch_before() {
    for count in [1, 4, 10, 19] {
        let field = |column| Field::new(format!("c{column}"), DataType::Int64, true);
        let schema = Arc::new(Schema::new((0..count).map(field).collect::<Vec<_>>()));
        let batch = |null: Option<usize>| {
            let column = |column: usize| {
                let value = |row: usize| {
                    (null != Some(column) || !row.is_multiple_of(3))
                        .then_some((row * 31 % 17) as i64 - 8)
                };
                Arc::new((0..77).map(value).collect::<Int64Array>()) as ArrayRef
            };
            RecordBatch::try_new(Arc::clone(&schema), (0..count).map(column).collect()).unwrap()
        };
        let names: Vec<String> = (0..count).map(|column| format!("c{column}")).collect();
        let layout = Order::by(names).bind(&schema).unwrap();
        let encoder = RowEncoder::new(&layout);
        for null in [None, Some(count - 1), None, Some(0), None] {
            let rows = encoder.encode(&batch(null)).unwrap();
            assert_eq!(
                rows.bytes(),
                RowEncoder::new(&layout).encode(&batch(null)).unwrap().bytes()
            );
            assert_eq!(encoder.decode(&rows, 0..rows.len()).unwrap(), batch(null));
        }
    }
}

#[test]
fn byte_strings_have_one_code_however_many_there_are() {
    // More than are escaped at once, and parts with fewer.
    let value = |row: usize| {
        let byte =
            |at: usize| (row * 31 + at * at) as u8 % if row.is_multiple_of(2) { 4 } else { 251 };
        (!row.is_multiple_of(7)).then(|| (0..row % 300).map(byte).collect::<Vec<u8>>())
    };
    let values = || (0..9000).map(value);
    let columns: [ArrayRef; 3] = [
        Arc::new(values().collect::<BinaryArray>()),
        Arc::new(values().collect::<LargeBinaryArray>()),
        Arc::new(values().collect::<BinaryViewArray>()),
    ];
    let mut expected: Option<Vec<u8>> = None;
    for column in columns {
        let batch = RecordBatch::try_from_iter_with_nullable([("a", column, true)]).unwrap();
        let encoder = encoder(Order::by(["a"]), &batch);
        let whole = encoder.encode(&batch).unwrap();
        let parts = (0..9000).step_by(1000);
        let parts = parts
            .flat_map(|first| encoder.encode(&batch.slice(first, 1000)).unwrap().bytes().to_vec());
        assert_eq!(whole.bytes(), parts.collect::<Vec<u8>>());
        assert_eq!(encoder.decode(&whole, 0..whole.len()).unwrap(), batch);
        assert_eq!(expected.get_or_insert_with(|| whole.bytes().to_vec()), whole.bytes());
    }
}
