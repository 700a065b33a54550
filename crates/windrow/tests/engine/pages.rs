//! Pages of every type, of slices and partitions: reading restores the written rows, sizes are
//! never underestimated, and damaged bytes are errors.
#![cfg(all(feature = "ipc", feature = "presto"))]

use std::sync::Arc;

use windrow::arrow_array::builder::{FixedSizeListBuilder, Int64Builder, ListBuilder, MapBuilder};
use windrow::arrow_array::builder::{StringBuilder, StringDictionaryBuilder};
use windrow::arrow_array::types::{Int8Type, Int32Type};
use windrow::arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float64Array, Int16Array, Int32Array, Int64Array, LargeStringArray, NullArray, RecordBatch,
    RunArray, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray, UInt8Array,
    new_null_array,
};
use windrow::arrow_schema::{DataType, Field, Fields, Schema};
use windrow::{
    Error, IpcPages, Order, PageCodec, PageFormat, PartitionBuilder, PartitionPages, Partitioner,
    Pool, PrestoPages, Result,
};

/// Columns of many types, a fifth of their values null.
fn rows(count: usize) -> RecordBatch {
    let some = |row: usize| !(row * 7919).is_multiple_of(5);
    let all = || 0..count;
    let text = |row: usize| some(row).then(|| "page ".repeat(row % 7) + &row.to_string());
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut pairs = FixedSizeListBuilder::new(Int64Builder::new(), 2);
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    let mut keys = StringDictionaryBuilder::<Int8Type>::new();
    for row in all() {
        for item in 0..row % 4 {
            lists.values().append_option(text(row + item));
            maps.keys().append_value(format!("{item}"));
            maps.values().append_option(some(item).then_some(row as i64));
        }
        lists.append(some(row));
        maps.append(some(row + 1)).expect("as many keys as values");
        pairs.values().append_option(some(row + 2).then_some(row as i64));
        pairs.values().append_value(2);
        pairs.append(some(row));
        keys.append_option(some(row).then(|| format!("key {}", row % 11)));
    }
    let numbers: ArrayRef =
        Arc::new(Int32Array::from_iter(all().map(|r| some(r).then_some(r as i32))));
    let texts: ArrayRef = Arc::new(StringArray::from_iter(all().map(text)));
    let inner = Fields::from(vec![
        Field::new("n", DataType::Int32, true),
        Field::new("t", DataType::Utf8, true),
    ]);
    let present = all().map(|row| some(row + 3)).collect::<Vec<_>>().into();
    let children = vec![numbers.clone(), texts.clone()];
    let structs = StructArray::new(inner, children, Some(present));
    let ends =
        Int32Array::from_iter_values((1..=count.div_ceil(10)).map(|e| (10 * e).min(count) as i32));
    let values = Int64Array::from_iter((0..ends.len()).map(|run| some(run).then_some(run as i64)));
    let runs = RunArray::<Int32Type>::try_new(&ends, &values).expect("runs");
    let fixed = all().map(|row| some(row).then(|| (row as u32).to_be_bytes()));
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 4).expect("4 bytes");
    let decimals = all().map(|row| some(row).then_some(row as i128 * -1_000_000_007));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("numbers", numbers),
        ("texts", texts),
        ("bytes", Arc::new(BinaryArray::from_iter(all().map(|r| text(r).map(String::into_bytes))))),
        ("large", Arc::new(LargeStringArray::from_iter(all().map(text)))),
        ("views", Arc::new(StringViewArray::from_iter(all().map(text)))),
        ("flags", Arc::new(BooleanArray::from_iter(all().map(|r| some(r).then_some(r % 3 == 0))))),
        ("tiny", Arc::new(UInt8Array::from_iter(all().map(|r| some(r).then_some(r as u8))))),
        ("short", Arc::new(Int16Array::from_iter_values(all().map(|r| r as i16 - 9)))),
        (
            "floats",
            Arc::new(Float64Array::from_iter(all().map(|r| some(r).then_some(r as f64 / 3.0)))),
        ),
        ("days", Arc::new(Date32Array::from_iter_values(all().map(|r| r as i32)))),
        (
            "times",
            Arc::new(
                TimestampMicrosecondArray::from_iter_values(all().map(|r| r as i64))
                    .with_timezone("UTC"),
            ),
        ),
        ("decimals", Arc::new(Decimal128Array::from_iter(decimals))),
        ("fixed", Arc::new(fixed)),
        ("nothing", Arc::new(NullArray::new(count))),
        ("lists", Arc::new(lists.finish())),
        ("pairs", Arc::new(pairs.finish())),
        ("maps", Arc::new(maps.finish())),
        ("structs", Arc::new(structs)),
        ("keys", Arc::new(keys.finish())),
        ("runs", Arc::new(runs)),
    ];
    let field =
        |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(schema), columns).expect("columns of one length")
}

/// Compares row by row, whatever the dictionaries and runs.
fn same(got: &RecordBatch, expected: &RecordBatch) {
    assert_eq!(got.schema(), expected.schema());
    assert_eq!(got.num_rows(), expected.num_rows());
    for (got, expected) in got.columns().iter().zip(expected.columns()) {
        match expected.data_type() {
            DataType::Dictionary(..) | DataType::RunEndEncoded(..) => {
                let text = |array: &ArrayRef| -> Vec<String> {
                    (0..array.len()).map(|row| value(array, row)).collect()
                };
                assert_eq!(text(got), text(expected));
            }
            _ => assert_eq!(got, expected),
        }
    }
}

/// Returns a value of a dictionary or of runs.
fn value(array: &ArrayRef, row: usize) -> String {
    use windrow::arrow_array::cast::AsArray;
    if array.logical_nulls().is_some_and(|nulls| nulls.is_null(row)) {
        return "null".to_owned();
    }
    match array.as_any_dictionary_opt() {
        Some(dictionary) => {
            let key = dictionary.normalized_keys()[row];
            dictionary.values().as_string::<i32>().value(key).to_owned()
        }
        None => {
            let runs = array.as_any().downcast_ref::<RunArray<Int32Type>>().expect("runs");
            format!("{:?}", runs.values().slice(runs.get_physical_index(row), 1))
        }
    }
}

type Write = Box<dyn Fn(&RecordBatch, &mut Vec<u8>) -> Result<usize>>;
type Read = Box<dyn Fn(&[u8]) -> Result<(RecordBatch, usize)>>;
type Bytes = Box<dyn Fn(&RecordBatch) -> Result<usize>>;

/// Returns every format and codec, with and without a checksum.
fn formats(schema: &Arc<Schema>) -> Vec<(String, Bytes, Write, Read)> {
    let mut formats: Vec<(String, Bytes, Write, Read)> = Vec::new();
    for codec in [PageCodec::None, PageCodec::Lz4, PageCodec::Zstd] {
        for checksum in [false, true] {
            let name = |format: &str| format!("{format} {codec:?} {checksum}");
            let pages =
                PrestoPages::new(schema).expect("supported").codec(codec).checksum(checksum);
            let pages = Arc::new(pages.most_bytes(64 << 20));
            let (a, b, c) = (pages.clone(), pages.clone(), pages);
            formats.push((
                name("presto"),
                Box::new(move |batch| a.bytes(batch)),
                Box::new(move |batch, out| b.write(batch, out)),
                Box::new(move |bytes| c.read(bytes)),
            ));
            let pages = IpcPages::new(schema).codec(codec).checksum(checksum);
            let pages = Arc::new(pages.most_bytes(64 << 20));
            let (a, b, c) = (pages.clone(), pages.clone(), pages);
            formats.push((
                name("ipc"),
                Box::new(move |batch| a.bytes(batch)),
                Box::new(move |batch, out| b.write(batch, out)),
                Box::new(move |bytes| c.read(bytes)),
            ));
        }
    }
    formats
}

#[test]
fn pages_of_slices_read_back() {
    let all = rows(1000);
    for (name, bytes, write, read) in formats(&all.schema()) {
        let mut wire = vec![1, 2, 3];
        let mut batches = Vec::new();
        for (start, count) in [(0, 1000), (0, 0), (3, 1), (17, 300), (999, 1), (8, 8)] {
            let batch = all.slice(start, count);
            let most = bytes(&batch).expect("measured");
            let before = wire.len();
            let written = write(&batch, &mut wire).expect("written");
            assert_eq!(written, wire.len() - before, "{name}");
            assert!(written <= most, "{name}: {written} of {most}");
            assert!(!name.contains("presto None") || written == most, "{name}");
            batches.push(batch);
        }
        let mut wire = &wire[3..];
        for expected in batches {
            let (got, bytes) = read(wire).unwrap_or_else(|error| panic!("{name}: {error}"));
            wire = &wire[bytes..];
            same(&got, &expected);
        }
        assert!(wire.is_empty(), "{name}");
    }
}

#[test]
fn partitions_are_pages() {
    let all = rows(2000);
    let layout = Order::by(["numbers"]).bind(&all.schema()).expect("bound");
    let parts = Partitioner::hash(&layout, 64).split(&all).expect("split");
    for (name, bytes, write, read) in formats(&all.schema()) {
        for (_, rows) in parts.occupied() {
            let mut page = Vec::new();
            write(&rows, &mut page).expect("written");
            assert!(page.len() <= bytes(&rows).expect("measured"), "{name}");
            same(&read(&page).expect("read").0, &rows);
        }
    }
}

/// Appends rows to pages of 16 partitions, and checks that they come out in order.
fn check_partition_pages<F: PageFormat>(
    format: F,
    read: impl Fn(&[u8]) -> Result<(RecordBatch, usize)>,
) -> Result<()> {
    let all = rows(5000);
    let layout = Order::by(["numbers"]).bind(&all.schema())?;
    let mut partitioner = Partitioner::hash(&layout, 16);
    let parts = partitioner.split(&all)?;
    let builder = PartitionBuilder::new(partitioner, &all.schema(), &Pool::unlimited())?;
    let mut pages = PartitionPages::new(builder.chunk_bytes(20_000), format);
    let mut seen = [0; 16];
    let mut send = |partition: usize, page: Vec<u8>| {
        let (got, bytes) = read(&page)?;
        assert_eq!(bytes, page.len());
        same(&got, &parts.partition(partition).slice(seen[partition], got.num_rows()));
        seen[partition] += got.num_rows();
        Ok(())
    };
    for start in (0..5000).step_by(500) {
        pages.append(&all.slice(start, 500))?;
        pages.flush_from(30_000, &mut send)?;
    }
    pages.finish(&mut send)?;
    for (partition, seen) in seen.into_iter().enumerate() {
        assert_eq!(seen, parts.rows(partition).len());
    }
    Ok(())
}

#[test]
fn one_call_from_rows_to_pages() -> Result<()> {
    let schema = rows(1).schema();
    for codec in [PageCodec::None, PageCodec::Zstd] {
        let presto = PrestoPages::new(&schema)?.codec(codec).checksum(true);
        check_partition_pages(presto.clone(), |page| presto.read(page))?;
        let ipc = IpcPages::new(&schema).codec(codec);
        check_partition_pages(ipc.clone(), |page| ipc.read(page))?;
    }
    Ok(())
}

#[test]
fn pages_that_were_not_sent_are_lost() -> Result<()> {
    let all = rows(100);
    let builder = PartitionBuilder::new(Partitioner::ids(2), &all.schema(), &Pool::unlimited())?;
    let mut pages = PartitionPages::new(builder, IpcPages::new(&all.schema()));
    pages.append_by_ids(&all, &[1; 100])?;
    // Rows that are only staged are not flushed.
    pages.flush_from(0, |_, _| Err(Error::Lost))?;
    let more = rows(10_000);
    for _ in 0..20 {
        pages.append_by_ids(&more, &[0; 10_000])?;
    }
    let refused = pages.flush_from(1, |_, _| Err(Error::InvalidOrder("refused".to_owned())));
    assert!(matches!(refused, Err(Error::InvalidOrder(_))), "{refused:?}");
    assert!(matches!(pages.finish(|_, _| Ok(())), Err(Error::Lost)));
    Ok(())
}

#[test]
fn all_nulls_and_no_rows_are_pages() {
    let schema = rows(1).schema();
    let columns = schema.fields().iter().map(|field| new_null_array(field.data_type(), 19));
    let nulls = RecordBatch::try_new(schema.clone(), columns.collect()).expect("nulls");
    for (name, _, write, read) in formats(&schema) {
        for batch in [&nulls, &nulls.slice(0, 0)] {
            let mut page = Vec::new();
            write(batch, &mut page).unwrap_or_else(|error| panic!("{name}: {error}"));
            let (got, _) = read(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(got.num_rows(), batch.num_rows());
            let present = |array: &ArrayRef| array.len() - array.logical_null_count();
            assert!(got.columns().iter().all(|column| present(column) == 0), "{name}");
        }
    }
}

#[test]
fn damage_is_an_error_or_other_values_and_with_a_checksum_always_an_error() {
    let all = rows(40);
    for (name, _, write, read) in formats(&all.schema()) {
        let mut page = Vec::new();
        write(&all, &mut page).expect("written");
        let step = if cfg!(debug_assertions) { 3 } else { 1 };
        // Every byte of the head, and some of the body.
        let places = || (0..32).chain((32..page.len()).step_by(step));
        for cut in places() {
            let error = read(&page[..cut]).expect_err("cut short");
            assert!(matches!(error, Error::Corrupt { .. }), "{name}: {error}");
        }
        for at in places() {
            for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                let mut damaged = page.clone();
                if damaged[at] == value {
                    continue;
                }
                damaged[at] = value;
                match read(&damaged) {
                    Err(Error::Corrupt { .. }) => {}
                    Err(other) => panic!("{name}, byte {at}: {other}"),
                    Ok(_) => assert!(!name.ends_with("true"), "{name}, byte {at} of {value}"),
                }
            }
        }
    }
}

#[test]
fn what_no_page_holds_is_refused() {
    let schema = Schema::new(vec![Field::new("d", DataType::Decimal256(76, 2), true)]);
    let refused = PrestoPages::new(&Arc::new(schema)).expect_err("refused");
    assert!(matches!(refused, Error::UnsupportedColumn { .. }), "{refused}");
    let (few, other) = (rows(3), rows(3).project(&[0, 1]).expect("two columns"));
    for (name, bytes, write, _) in formats(&few.schema()) {
        assert!(matches!(bytes(&other), Err(Error::SchemaMismatch { .. })), "{name}");
        let refused = write(&other, &mut Vec::new()).expect_err("refused");
        assert!(matches!(refused, Error::SchemaMismatch { .. }), "{name}");
    }
}

#[test]
fn metadata_may_be_others_and_the_readers_is_what_is_read() {
    let batch = RecordBatch::try_from_iter([("a", rows(40).column(0).slice(0, 40))]).unwrap();
    let column = batch.column(0).clone();
    let tagged = |nullable: bool, value: &str| {
        let metadata = || [("tag".to_owned(), value.to_owned())].into();
        let field = Field::new("a", column.data_type().clone(), nullable).with_metadata(metadata());
        Arc::new(Schema::new_with_metadata(vec![field], metadata()))
    };
    let (ours, theirs) = (tagged(true, "ours"), tagged(true, "theirs"));
    let written = RecordBatch::try_new(theirs.clone(), vec![column.clone()]).unwrap();
    let renamed = RecordBatch::try_from_iter([("b", column.clone())]).unwrap();
    let strict = tagged(false, "ours");
    for index in 0..formats(&ours).len() {
        let (name, bytes, write, read) = formats(&ours).swap_remove(index);
        let mut wire = Vec::new();
        let written_bytes = write(&written, &mut wire).expect("written");
        assert!(bytes(&written).expect("written") >= written_bytes, "{name}");
        let (got, _) = read(&wire).expect("read");
        assert_eq!((got.schema(), got.column(0)), (ours.clone(), &column), "{name}");
        // The reader's schema decides, not the writer's.
        let (got, _) = (formats(&theirs).swap_remove(index).3)(&wire).expect("read");
        assert_eq!((got.schema(), got.column(0)), (theirs.clone(), &column), "{name}");
        let refused = write(&renamed, &mut Vec::new()).expect_err("another name");
        assert!(matches!(refused, Error::SchemaMismatch { .. }), "{name}");
        // Writer and reader both detect a null in a column without nulls.
        assert!(column.null_count() > 0);
        let (_, _, write_strict, read_strict) = formats(&strict).swap_remove(index);
        let refused = write_strict(&written, &mut Vec::new()).expect_err("a null");
        assert!(matches!(refused, Error::Value { .. }), "{name}");
        let refused = read_strict(&wire).expect_err("a null");
        assert!(matches!(refused, Error::Corrupt { .. }), "{name}");
    }
}
