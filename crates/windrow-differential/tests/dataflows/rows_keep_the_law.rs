//! The law of `Row`: values and bytes have the same order, decoding inverts encoding, and the
//! engine encodes columns of the same values to the same bytes.

use std::fmt::Debug;
use std::sync::Arc;

use proptest::prelude::*;
use windrow::arrow_array::builder::{ListBuilder, UInt16Builder};
use windrow::arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, RecordBatch, StringArray,
};
use windrow::arrow_schema::{DataType, Field, Schema};
use windrow::{Batcher, Order, Pool, RowEncoder, key_len};
use windrow_differential::Row;

/// A struct with fields of every kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Row)]
struct Item {
    user: u64,
    name: String,
    place: (i32, Option<u8>),
    tags: Vec<Tag>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Row)]
enum Tag {
    None,
    Word(String),
    At { line: i64, column: Point<u16> },
    Empty(),
    Raw(Box<[u8]>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Row)]
struct Point<N>(N, bool);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Row)]
struct Nothing;

fn numbers() -> impl Strategy<Value = i64> {
    prop_oneof![Just(i64::MIN), Just(-1), Just(0), Just(1), Just(i64::MAX), any::<i64>()]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[a\u{0}\u{1}\u{2}\u{7f}]{0,3}", "\\PC{0,4}"]
}

fn bytes() -> impl Strategy<Value = Box<[u8]>> {
    let byte = prop_oneof![0..4u8, Just(255), any::<u8>()];
    prop::collection::vec(byte, 0..5).prop_map(Vec::into_boxed_slice)
}

fn tags() -> impl Strategy<Value = Tag> {
    prop_oneof![
        Just(Tag::None),
        words().prop_map(Tag::Word),
        (numbers(), any::<u16>(), any::<bool>())
            .prop_map(|(line, at, end)| Tag::At { line, column: Point(at, end) }),
        Just(Tag::Empty()),
        bytes().prop_map(Tag::Raw),
    ]
}

fn items() -> impl Strategy<Value = Item> {
    (0..3u64, words(), (-1..2i32, prop::option::of(0..2u8)), prop::collection::vec(tags(), 0..3))
        .prop_map(|(user, name, place, tags)| Item { user, name, place, tags })
}

/// Checks the law for two values.
fn holds<V: Row + Debug>(a: &V, b: &V) {
    let (bytes_a, bytes_b) = (a.to_bytes(), b.to_bytes());
    assert_eq!(a.cmp(b), bytes_a.cmp(&bytes_b), "{a:?} {b:?}: {bytes_a:?} {bytes_b:?}");
    assert_eq!(&V::from_bytes(&bytes_a), a);
    assert!(a == b || !bytes_a.starts_with(&bytes_b), "{b:?} begins {a:?}");
    if let Some(width) = V::WIDTH {
        assert_eq!(bytes_a.len(), width);
    }
}

/// Compares encoded values with the engine's rows of equal columns.
#[test]
fn bytes_are_those_of_columns() {
    let columns: [(&str, ArrayRef); 5] = [
        ("a", Arc::new(Int32Array::from(vec![-3, 0, 7]))),
        ("b", Arc::new(StringArray::from(vec!["", "caf\u{e9}", "\0\u{1}"]))),
        ("c", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("d", Arc::new(BinaryArray::from(vec![&[0u8, 1, 2, 255][..], b"", b"x"]))),
        ("e", {
            let item = Arc::new(Field::new("item", DataType::UInt16, false));
            let mut lists = ListBuilder::new(UInt16Builder::new()).with_field(item);
            lists.append_value([Some(5), Some(6)]);
            lists.append_value([]);
            lists.append_value([Some(9)]);
            Arc::new(lists.finish())
        }),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), false))
        .collect();
    let arrays = columns.iter().map(|(_, column)| Arc::clone(column)).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    let layout = Order::by(["a", "b", "c", "d", "e"]).bind(&batch.schema()).unwrap();
    let rows = RowEncoder::new(&layout).encode(&batch).unwrap();
    type Values = (i32, String, bool, Box<[u8]>, Vec<u16>);
    let values: [Values; 3] = [
        (-3, "".into(), true, [0, 1, 2, 255].into(), vec![5, 6]),
        (0, "caf\u{e9}".into(), false, [].into(), vec![]),
        (7, "\0\u{1}".into(), true, (*b"x").into(), vec![9]),
    ];
    for (number, value) in values.iter().enumerate() {
        assert_eq!(value.to_bytes(), rows.row(number));
    }
    let mut types = Vec::new();
    Values::columns(&mut types);
    let columns: Vec<DataType> =
        batch.columns().iter().map(|column| column.data_type().clone()).collect();
    assert_eq!(types, columns);
}

/// Checks that the engine finds the end of a value of any type.
fn walks<V: Row>(value: &V) {
    let mut types = Vec::new();
    V::columns(&mut types);
    types.push(DataType::Int64);
    let field = |(at, data_type): (usize, DataType)| {
        let nullable = data_type == DataType::Null;
        Field::new(at.to_string(), data_type, nullable)
    };
    let fields: Vec<Field> = types.into_iter().enumerate().map(field).collect();
    let (diff, key) = fields.split_last().unwrap();
    let order = Order::by(key.iter().map(|field| field.name().clone()).collect::<Vec<_>>());
    let layout = order.diff(diff.name()).bind(&Arc::new(Schema::new(fields.clone()))).unwrap();
    let mut row = value.to_bytes();
    let key = row.len();
    row.extend([9; 8]);
    assert_eq!(key_len(&layout, &row), key, "{value:?}");
    // The engine also accepts the row.
    let mut batcher = Batcher::new(&layout, &Pool::unlimited());
    batcher.push_rows(&row, &[row.len() as u32]).unwrap();
    assert_eq!(batcher.finish().unwrap().settle().unwrap().rows(), Some(1));
}

proptest! {
    #[test]
    fn as_the_engine_sees_them(item in items(), tag in tags(), number in numbers()) {
        walks(&(item.clone(), number));
        walks(&(Some(item), Nothing));
        walks(&tag);
        walks(&(number as u32, tag, vec![Point(number, true)]));
    }

    #[test]
    fn of_items(a in items(), b in items()) {
        holds(&a, &b);
        holds(&(a.tags.clone(), a.user), &(b.tags.clone(), b.user));
        holds(&Some(a.clone()), &Some(b));
        holds(&None, &Some(a));
    }

    #[test]
    fn of_tags(a in tags(), b in tags()) {
        holds(&a, &b);
        holds(&(a, Nothing, ()), &(b, Nothing, ()));
    }

    #[test]
    fn of_numbers(a in numbers(), b in numbers()) {
        holds(&a, &b);
        holds(&(a as u64), &(b as u64));
        holds(&(a as i32, b as u8), &(b as i32, a as u8));
        holds(&(a as i8, b as i16), &(b as i8, a as i16));
        holds(&(a as isize, b as usize, a as u16), &(b as isize, a as usize, b as u16));
        let wide = |high: i64, low: i64| i128::from(high) << 64 | i128::from(low);
        holds(&wide(a, b), &wide(b, a));
        holds(&(wide(a, b) as u128, a as u32), &(wide(b, a) as u128, b as u32));
    }

    #[test]
    fn of_text_and_bytes(a in (words(), bytes()), b in (words(), bytes()), c: char, d: char) {
        holds(&a, &b);
        holds(&(a.1, a.0), &(b.1, b.0));
        holds(&vec![Some(c)], &vec![Some(d), None]);
    }
}
