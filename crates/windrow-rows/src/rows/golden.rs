//! The bytes of docs/row-format.md.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array,
};

use super::tests::encode_from;
use super::{RowEncoder, key_len};
use crate::order::{Order, asc, desc};

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_first_example() {
    let columns: [(&str, ArrayRef, bool); 5] = [
        ("id", Arc::new(Int32Array::from(vec![-1])), false),
        ("name", Arc::new(StringArray::from(vec!["ab"])), true),
        ("amount", Arc::new(Int64Array::from(vec![258])), true),
        ("note", Arc::new(StringArray::from(vec![None::<&str>])), true),
        ("flag", Arc::new(BooleanArray::from(vec![true])), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let layout = Order::by("id").then(desc("name")).bind(&batch.schema()).unwrap();
    let expected = hex("7f ff ff ff 01 9c 9b fe 01 05 01 02 01 00 00 00 00 00 00 01 00");
    assert_eq!(encode_from(&layout, &batch, 5), [expected]);
    assert_eq!(layout.stride(), None);
}

#[test]
fn the_second_example() {
    let columns: [(&str, ArrayRef, bool); 4] = [
        ("id", Arc::new(Int64Array::from(vec![7])), false),
        ("lsn", Arc::new(Int64Array::from(vec![258])), false),
        ("text", Arc::new(StringArray::from(vec!["hi"])), true),
        ("gone", Arc::new(BooleanArray::from(vec![false])), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let order = Order::by("id").then("lsn").last().tombstone("gone");
    let layout = order.bind(&batch.schema()).unwrap();
    let expected = hex("80 00 00 00 00 00 00 07 7f ff ff ff ff ff fe fd fe fc 01 02 68 69 00");
    assert_eq!(encode_from(&layout, &batch, 3), [expected]);
}

#[test]
fn rows_of_one_length_carry_the_whole_sequence() {
    let column = |value| Arc::new(Int32Array::from(vec![value])) as ArrayRef;
    let columns = [("id", column(1), false), ("n", column(2), true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let layout = Order::by("id").bind(&batch.schema()).unwrap();
    let expected = hex("80 00 00 01 00 00 01 00 00 00 00 09 01 02 00 00 00");
    assert_eq!(layout.stride(), Some(expected.len()));
    assert_eq!(encode_from(&layout, &batch, (1 << 40) + 9), [expected]);
}

#[test]
fn wide_payload_comes_first() {
    let columns: [(&str, ArrayRef, bool); 6] = [
        ("id", Arc::new(Int32Array::from(vec![-1])), false),
        ("flag", Arc::new(BooleanArray::from(vec![true])), true),
        ("text", Arc::new(StringArray::from(vec!["hi"])), true),
        ("a", Arc::new(Int32Array::from(vec![1])), false),
        ("wide", Arc::new(Int64Array::from(vec![None])), true),
        ("b", Arc::new(Int32Array::from(vec![2])), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let layout = Order::by("id").bind(&batch.schema()).unwrap();
    // Null bits, also in this order: wide, b, flag, text.
    let expected =
        hex("7f ff ff ff 00 0e 00 00 00 00 00 00 00 00 01 00 00 00 02 00 00 00 01 02 68 69");
    assert_eq!(encode_from(&layout, &batch, 0), [expected]);
}

#[test]
fn rows_that_stand_alone() {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![-1; 4]));
    let x = Int32Array::from(vec![Some(5), None, Some(i32::MAX), Some(i32::MIN)]);
    let columns = [("id", ids, false), ("x", Arc::new(x) as _, true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let layout = Order::by(["id", "x"]).bind(&batch.schema()).unwrap();
    let rows = RowEncoder::new(&layout).encode(&batch).unwrap();
    let expected = ["80 00 00 05", "ff ff ff ff", "ff ff ff fe 01", "00 00 00 00"];
    for (row, x) in rows.iter().zip(expected) {
        assert_eq!(row, hex(&format!("7f ff ff ff ff ff ff ff {x}")));
    }
}

#[test]
fn nulls_among_the_codes_of_numbers() {
    let values = [None, Some(0), Some(1), Some(u32::MAX - 1), Some(u32::MAX)];
    let x: ArrayRef = Arc::new(UInt32Array::from(values.to_vec()));
    let batch = RecordBatch::try_from_iter_with_nullable([("x", x, true)]).unwrap();
    let columns = [
        (
            asc("x").nulls_first(),
            "00 00 00 00, 00 00 00 01, 00 00 00 02, ff ff ff ff 00, ff ff ff ff 01",
        ),
        (asc("x"), "ff ff ff ff, 00 00 00 00, 00 00 00 01, ff ff ff fe 00, ff ff ff fe 01"),
        (
            desc("x").nulls_first(),
            "00 00 00 00, ff ff ff ff, ff ff ff fe, 00 00 00 01 ff, 00 00 00 01 fe",
        ),
        (desc("x"), "ff ff ff ff, ff ff ff fe, ff ff ff fd, 00 00 00 00 ff, 00 00 00 00 fe"),
    ];
    for (by, expected) in columns {
        let encoder = RowEncoder::new(&Order::by(by).bind(&batch.schema()).unwrap());
        let rows = encoder.encode(&batch).unwrap();
        let expected: Vec<Vec<u8>> = expected.split(',').map(hex).collect();
        assert!(rows.iter().eq(expected.iter().map(|row| &row[..])), "{expected:x?}");
        assert_eq!(encoder.decode(&rows, 0..rows.len()).unwrap(), batch);
    }
}

#[test]
fn keys_follow_from_their_own_columns_alone() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(i64::MAX)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "bc", ""]));
    let alone = RecordBatch::try_from_iter_with_nullable([("n", numbers.clone(), true)]).unwrap();
    let columns = [("t", texts, true), ("key", numbers, true)];
    let beside = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let layouts = [
        Order::by(desc("n")).bind(&alone.schema()).unwrap(),
        Order::by(desc("key")).bind(&beside.schema()).unwrap(),
        Order::by(desc("key")).then("t").last().bind(&beside.schema()).unwrap(),
    ];
    let keys = layouts.iter().zip([&alone, &beside, &beside]).map(|(layout, batch)| {
        let rows = encode_from(layout, batch, 0);
        rows.iter().map(|row| row[..key_len(layout, row)].to_vec()).collect::<Vec<_>>()
    });
    let keys: Vec<Vec<Vec<u8>>> = keys.collect();
    assert!(keys.iter().all(|other| *other == keys[0]), "{keys:x?}");
    assert_eq!(keys[0][1], hex("02 00 00 00 00 00 00 00 00"));
    assert!(layouts.iter().all(|layout| layout.same_key(&layouts[0])));
    let other = Order::by("key").bind(&beside.schema()).unwrap();
    assert!(!layouts[0].same_key(&other) && !other.same_key(&layouts[1]));
}
