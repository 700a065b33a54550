//! Golden bytes, written down by hand from the specification, and one page that Presto sent.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Int16Array, Int32Array,
    Int64Array, ListArray, NullArray, RecordBatch, RunArray, StringArray, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};

use super::*;

/// Of ten rows, 1, 4, 6, 7 and 9 are null: the example of the specification.
const VALID: [bool; 10] = [true, false, true, true, false, true, false, false, true, false];
/// Their flags: 01001011 01......
const FLAGS: [u8; 3] = [1, 0b0100_1011, 0b0100_0000];

fn n(int: i32) -> Vec<u8> {
    int.to_le_bytes().to_vec()
}

fn named(name: &str) -> Vec<u8> {
    [n(name.len() as i32), name.as_bytes().to_vec()].concat()
}

fn ints(ints: &[i32]) -> Vec<u8> {
    ints.iter().flat_map(|int| int.to_le_bytes()).collect()
}

fn batch(column: ArrayRef) -> RecordBatch {
    let field = Field::new("c", column.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]).expect("a column")
}

/// Checks that the page of one column has exactly these bytes after the number of columns, and is
/// read back.
#[track_caller]
fn golden(column: ArrayRef, block: &[Vec<u8>]) {
    let block = block.concat();
    let batch = batch(column);
    let pages = PrestoPages::new(&batch.schema()).expect("supported");
    let mut page = Vec::new();
    assert_eq!(pages.write(&batch, &mut page).expect("written"), page.len());
    assert_eq!(pages.bytes(&batch).expect("measured"), page.len());
    let payload = 4 + block.len() as i32;
    let header = [n(batch.num_rows() as i32), vec![0], n(payload), n(payload), vec![0; 8], n(1)];
    assert_eq!(page, [header.concat(), block].concat());
    assert_eq!(pages.read(&page).expect("read"), (batch, page.len()));
}

#[test]
fn a_page_that_presto_sent() {
    // SELECT s FROM (VALUES 'cat', 'bird') AS t(s): github.com/prestodb/presto/issues/22601
    let sent = [
        &[2, 0, 0, 0, 4, 46, 0, 0, 0, 46, 0, 0, 0, 0x99, 0x22, 0xd5, 0x70, 0, 0, 0, 0][..],
        &[1, 0, 0, 0, 14, 0, 0, 0],
        b"VARIABLE_WIDTH",
        &[2, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 7, 0, 0, 0],
        b"catbird",
    ]
    .concat();
    let batch = batch(Arc::new(StringArray::from(vec!["cat", "bird"])));
    let pages = PrestoPages::new(&batch.schema()).expect("supported").checksum(true);
    let mut page = Vec::new();
    pages.write(&batch, &mut page).expect("written");
    assert_eq!(page, sent);
    assert_eq!(pages.read(&sent).expect("read"), (batch, sent.len()));
}

#[test]
fn numbers() {
    let ints_ = [10, 0, 12, 13, 0, 15, 0, 0, 18, 0];
    let nulls = || Some(NullBuffer::from(VALID.to_vec()));
    golden(
        Arc::new(Int32Array::new(ints_.to_vec().into(), nulls())),
        &[named("INT_ARRAY"), n(10), FLAGS.to_vec(), ints(&[10, 12, 13, 15, 18])],
    );
    golden(
        Arc::new(Int16Array::from(vec![-2, 258])),
        &[named("SHORT_ARRAY"), n(2), vec![0, 0xfe, 0xff, 2, 1]],
    );
    golden(
        Arc::new(Int64Array::from(vec![Some(1), None])),
        &[named("LONG_ARRAY"), n(2), vec![1, 0x40, 1, 0, 0, 0, 0, 0, 0, 0]],
    );
    golden(
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
        &[named("BYTE_ARRAY"), n(3), vec![1, 0b0010_0000, 1, 0]],
    );
    golden(Arc::new(NullArray::new(9)), &[named("BYTE_ARRAY"), n(9), vec![1, 0xff, 0x80]]);
    let decimals = Decimal128Array::from(vec![5, -5]).with_precision_and_scale(38, 2);
    let five = [vec![5], vec![0; 15]].concat();
    let minus_five = [vec![5], vec![0; 14], vec![0x80]].concat();
    golden(
        Arc::new(decimals.expect("decimals")),
        &[named("INT128_ARRAY"), n(2), vec![0], five, minus_five],
    );
}

#[test]
fn texts() {
    let names = ["Denali", "", "Reinier", "Whitney", "", "Bona", "", "", "Bear", ""];
    let names = names.iter().zip(VALID).map(|(name, valid)| valid.then_some(*name));
    golden(
        Arc::new(names.collect::<StringArray>()),
        &[
            named("VARIABLE_WIDTH"),
            n(10),
            ints(&[6, 6, 13, 20, 20, 24, 24, 24, 28, 28]),
            FLAGS.to_vec(),
            n(28),
            b"DenaliReinierWhitneyBonaBear".to_vec(),
        ],
    );
}

#[test]
fn nested() {
    let lists = vec![Some(vec![Some(1), None]), None, Some(vec![]), Some(vec![Some(3)])];
    golden(
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        &[
            named("ARRAY"),
            [named("INT_ARRAY"), n(3), vec![1, 0b0100_0000], ints(&[1, 3])].concat(),
            n(4),
            ints(&[0, 2, 2, 2, 3]),
            vec![1, 0b0100_0000],
        ],
    );
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("a");
    map.values().append_value(7);
    map.append(true).expect("appended");
    map.append(false).expect("appended");
    golden(
        Arc::new(map.finish()),
        &[
            named("MAP"),
            [named("VARIABLE_WIDTH"), n(1), n(1), vec![0], n(1), b"a".to_vec()].concat(),
            [named("INT_ARRAY"), n(1), vec![0], n(7)].concat(),
            n(-1),
            n(2),
            ints(&[0, 1, 1]),
            vec![1, 0b0100_0000],
        ],
    );
    let fields = Fields::from(vec![Field::new("a", DataType::Int32, true)]);
    let children: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![Some(1), None, None]))];
    let nulls = NullBuffer::from(vec![true, false, true]);
    golden(
        Arc::new(StructArray::new(fields, children, Some(nulls))),
        &[
            named("ROW"),
            n(1),
            [named("INT_ARRAY"), n(2), vec![1, 0b0100_0000], n(1)].concat(),
            n(3),
            ints(&[0, 1, 1, 2]),
            vec![1, 0b0100_0000],
        ],
    );
}

#[test]
fn repeated_values() {
    let keys: DictionaryArray<Int8Type> = vec!["y", "x", "y"].into_iter().collect();
    golden(
        Arc::new(keys),
        &[
            named("DICTIONARY"),
            n(3),
            [named("VARIABLE_WIDTH"), n(2), ints(&[1, 2]), vec![0], n(2), b"yx".to_vec()].concat(),
            ints(&[0, 1, 0]),
            vec![0; 24],
        ],
    );
    let ends = Int32Array::from(vec![4]);
    golden(
        Arc::new(RunArray::<Int32Type>::try_new(&ends, &Int16Array::from(vec![6])).expect("a run")),
        &[named("RLE"), n(4), [named("SHORT_ARRAY"), n(1), vec![0, 6, 0]].concat()],
    );
}

/// Reads a page of one block, without a checksum.
fn read(data_type: DataType, rows: i32, block: &[Vec<u8>]) -> Result<ArrayRef> {
    let block = block.concat();
    let payload = 4 + block.len() as i32;
    let header = [n(rows), vec![0], n(payload), n(payload), vec![0; 8], n(1)].concat();
    let schema = Arc::new(Schema::new(vec![Field::new("c", data_type, true)]));
    let pages = PrestoPages::new(&schema)?.most_bytes(1 << 20);
    pages.read(&[header, block].concat()).map(|(batch, _)| Arc::clone(batch.column(0)))
}

#[test]
fn repeated_values_become_the_columns_that_are_expected() {
    let value = || [named("INT_ARRAY"), n(1), vec![0], n(9)].concat();
    let nines = read(DataType::Int32, 3, &[named("RLE"), n(3), value()]).expect("read");
    assert_eq!(nines.as_ref(), &Int32Array::from(vec![9, 9, 9]) as &dyn Array);
    let values = [named("INT_ARRAY"), n(2), vec![1, 0b0100_0000], n(5)].concat();
    let block = [named("DICTIONARY"), n(3), values, ints(&[1, 0, 0]), vec![7; 24]];
    let found = read(DataType::Int32, 3, &block).expect("read");
    assert_eq!(found.as_ref(), &Int32Array::from(vec![None, Some(5), Some(5)]) as &dyn Array);
    // Zeros for the offsets of null rows, as the specification has them, and a hash table.
    let field = Field::new("a", DataType::Int32, true);
    let block = [named("ROW"), n(1), value(), n(2), ints(&[0, 0, 0]), vec![1, 0b1000_0000]];
    let rows = read(DataType::Struct(vec![field].into()), 2, &block).expect("read");
    assert!(rows.is_null(0) && rows.is_valid(1));
}

#[test]
fn types_that_are_none_are_refused() {
    let field = |data_type| Field::new("a", data_type, true);
    let pairs = |count| Fields::from(vec![field(DataType::Int32); count]);
    for entries in [DataType::Int32, DataType::Struct(pairs(1)), DataType::Struct(pairs(3))] {
        let map = DataType::Map(Arc::new(field(entries)), false);
        let schema = Arc::new(Schema::new(vec![field(map)]));
        let error = PrestoPages::new(&schema).expect_err("refused");
        assert!(matches!(error, Error::UnsupportedColumn { .. }), "{error}");
    }
}

#[test]
fn few_bytes_do_not_take_much_memory() {
    let value = || [named("INT_ARRAY"), n(1), vec![0], n(9)].concat();
    let most = i32::MAX;
    for (data_type, block) in [
        (DataType::Int32, [named("RLE"), n(most), value()].concat()),
        (DataType::Int32, [named("INT_ARRAY"), n(most), vec![0]].concat()),
        (DataType::Int64, [named("LONG_ARRAY"), n(1 << 20), vec![1], vec![255; 1 << 17]].concat()),
        (DataType::Utf8, [named("VARIABLE_WIDTH"), n(most)].concat()),
        (DataType::Int32, named("RLE").repeat(1000)),
    ] {
        let error = read(data_type, most, &[block]).expect_err("refused");
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
}
