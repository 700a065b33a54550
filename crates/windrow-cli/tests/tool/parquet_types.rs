//! Arrow types without a counterpart in Parquet: written columns are read back by all readers.

use std::fs::File;
use std::sync::Arc;

use crate::common::{Work, read_parquet, write_arrow, write_parquet};
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date64Array, Decimal128Array, Decimal256Array,
    DictionaryArray, DurationNanosecondArray, FixedSizeBinaryArray, FixedSizeListArray,
    Float32Array, Int8Array, Int32Array, Int64Array, IntervalDayTimeArray, ListArray, MapArray,
    NullArray, RecordBatch, RunArray, StringArray, StringViewArray, StructArray, Time32SecondArray,
    TimestampMicrosecondArray, TimestampSecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_buffer::i256;
use arrow_cast::cast;
use arrow_ipc::reader::FileReader;
use arrow_schema::{DataType, Field, TimeUnit};
use arrow_select::take::take;
use parquet::basic::Encoding;
use parquet::file::metadata::ParquetMetaDataReader;

/// Returns rows in descending order.
fn rows(column: ArrayRef) -> RecordBatch {
    let ids = Int64Array::from_iter_values((0..column.len() as i64).rev());
    let columns = [("id", Arc::new(ids) as ArrayRef, false), ("v", column, true)];
    RecordBatch::try_from_iter_with_nullable(columns).expect("equal lengths")
}

/// Returns four rows of a dictionary of two values.
fn dictionary(values: &ArrayRef) -> ArrayRef {
    let keys = Int8Array::from(vec![Some(0), Some(1), None, Some(1)]);
    Arc::new(DictionaryArray::try_new(keys, Arc::clone(values)).expect("a dictionary"))
}

/// Returns four rows of two runs.
fn runs(values: &ArrayRef) -> ArrayRef {
    let ends = Int32Array::from(vec![1, 4]);
    Arc::new(RunArray::<Int32Type>::try_new(&ends, values).expect("runs"))
}

fn reversed(column: &ArrayRef) -> ArrayRef {
    let rows = Int64Array::from_iter_values((0..column.len() as i64).rev());
    take(column, &rows, None).expect("taken")
}

/// Returns two values of each type, and the type stored in Parquet.
fn values() -> Vec<(ArrayRef, DataType)> {
    use DataType as D;
    let utc = Some(Arc::from("UTC"));
    let fixed = FixedSizeBinaryArray::try_from_iter([*b"ab", *b"cd"].iter()).expect("two bytes");
    let narrow = Decimal128Array::from(vec![1, -2]).with_precision_and_scale(9, 2);
    let wide = Decimal128Array::from(vec![1, -2]).with_precision_and_scale(30, 2);
    let wider = Decimal256Array::from(vec![i256::from(1), i256::from(-2)]);
    let zoned = TimestampMicrosecondArray::from(vec![1, 2]).with_timezone("Asia/Kolkata");
    let halves: ArrayRef = Arc::new(Float32Array::from(vec![1.5, -2.0]));
    let same: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from(vec![true, false])),
        Arc::new(fixed),
        Arc::new(narrow.expect("fits")),
        Arc::new(wide.expect("fits")),
        Arc::new(wider.with_precision_and_scale(60, 2).expect("fits")),
        cast(&halves, &D::Float16).expect("halves"),
        Arc::new(NullArray::new(2)),
        Arc::new(DurationNanosecondArray::from(vec![1, 2])),
        Arc::new(zoned),
        Arc::new(IntervalDayTimeArray::from(vec![Some(Default::default()); 2])),
        Arc::new(Int64Array::from(vec![7, 8])),
        Arc::new(StringArray::from(vec!["a", "b"])),
        Arc::new(StringViewArray::from(vec!["a", "a view of more than twelve bytes"])),
        Arc::new(BinaryViewArray::from_iter_values([b"a", b"b"])),
        lists(),
        structs(),
    ];
    let mut all: Vec<_> =
        same.into_iter().map(|array| (Arc::clone(&array), array.data_type().clone())).collect();
    let seconds = TimestampSecondArray::from(vec![1, 2]).with_timezone("UTC");
    all.push((Arc::new(seconds), D::Timestamp(TimeUnit::Millisecond, utc)));
    all.push((Arc::new(Time32SecondArray::from(vec![1, 2])), D::Time32(TimeUnit::Millisecond)));
    all.push((Arc::new(Date64Array::from(vec![86_400_000, 0])), D::Date32));
    all
}

fn lists() -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("x"), None]);
    lists.append(false);
    Arc::new(lists.finish())
}

fn structs() -> ArrayRef {
    let of = |name| Arc::new(Field::new(name, DataType::Int64, true));
    let column = |values: [i64; 2]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    Arc::new(StructArray::from(vec![(of("a"), column([1, 2])), (of("b"), column([3, 4]))]))
}

/// Sorts `column` into Parquet, and the Parquet file into Arrow; returns the column of both files.
fn through_parquet(work: &Work, column: &ArrayRef) -> [ArrayRef; 2] {
    write_arrow(work, "in/a.arrow", &rows(Arc::clone(column)));
    work.run("sort in/a.arrow --by id -o out/o.parquet").succeeds();
    work.run("sort out/o.parquet --by id -o out/o.arrow").succeeds();
    let reader = FileReader::try_new(File::open(work.path("out/o.arrow")).expect("there"), None);
    let back = reader.expect("Arrow").next().expect("rows").expect("a record batch");
    let written = read_parquet(&work.path("out/o.parquet"));
    [Arc::clone(written.column(1)), Arc::clone(back.column(1))]
}

/// Returns plain values, for a comparison.
fn plain(column: &ArrayRef, of: &DataType) -> ArrayRef {
    match column.data_type() {
        DataType::Dictionary(..) => {
            let column = column.as_any_dictionary();
            plain(&take(column.values(), column.keys(), None).expect("taken"), of)
        }
        _ => cast(column, of).expect("cast"),
    }
}

#[test]
fn dictionaries_and_runs_of_any_values_are_read_back() {
    let work = Work::new();
    for (values, stored) in values() {
        let inner = Int8Array::from(vec![0, 1]);
        let inner = DictionaryArray::try_new(inner, Arc::clone(&values)).expect("a dictionary");
        for column in [dictionary(&values), runs(&values), runs(&(Arc::new(inner) as ArrayRef))] {
            for back in through_parquet(&work, &column) {
                let expected = plain(&reversed(&column_of(&column)), &stored);
                assert_eq!(&plain(&back, &stored), &expected, "{}", column.data_type());
                match back.data_type() {
                    DataType::Dictionary(_, of) => {
                        let kinds = [DataType::Utf8, DataType::Binary, DataType::Int64];
                        assert!(kinds.contains(of), "{}", column.data_type());
                    }
                    plain => assert_eq!(plain, &stored),
                }
            }
        }
    }
}

/// Expands runs to single values.
fn column_of(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::RunEndEncoded(_, values) => cast(column, values.data_type()).expect("cast"),
        _ => Arc::clone(column),
    }
}

#[test]
fn so_are_they_within_other_columns() {
    let work = Work::new();
    for (values, stored) in values() {
        let member = dictionary(&values);
        let item = |data_type: &DataType| Arc::new(Field::new("item", data_type.clone(), true));
        let offsets = || OffsetBuffer::new(vec![0, 1, 1, 3, 4].into());
        let nested = |member: &ArrayRef| -> [ArrayRef; 4] {
            let of = item(member.data_type());
            let list = ListArray::new(Arc::clone(&of), offsets(), Arc::clone(member), None);
            let fixed = FixedSizeListArray::new(Arc::clone(&of), 1, Arc::clone(member), None);
            let names = Arc::new(StringArray::from(vec!["w", "x", "y", "z"])) as ArrayRef;
            let name = Arc::new(Field::new("keys", DataType::Utf8, false));
            let value = Arc::new(Field::new("values", member.data_type().clone(), true));
            let pairs = StructArray::from(vec![(name, names), (value, Arc::clone(member))]);
            let entries = Arc::new(Field::new("entries", pairs.data_type().clone(), false));
            let map = MapArray::new(entries, offsets(), pairs, None, false);
            let structs = StructArray::from(vec![(of, Arc::clone(member))]);
            [Arc::new(list), Arc::new(fixed), Arc::new(map), Arc::new(structs)]
        };
        let expected = nested(&plain(&member, &stored));
        for (column, expected) in nested(&member).iter().zip(expected) {
            let [written, back] = through_parquet(&work, column);
            assert_eq!(written.data_type(), back.data_type());
            for array in [written, back] {
                let array = cast(&array, expected.data_type()).expect("cast");
                assert_eq!(&array, &reversed(&expected), "{}", column.data_type());
            }
        }
    }
}

#[test]
fn a_dictionary_of_views_is_one_of_text_on_pages_that_all_readers_take() {
    let work = Work::new();
    let values = StringViewArray::from_iter_values((0..3000).map(|i| format!("category {i:05}")));
    let keys = Int64Array::from_iter_values((0..20_000).map(|i| i * 7 % 3000));
    let column = DictionaryArray::<Int64Type>::try_new(keys, Arc::new(values)).expect("a column");
    let column: ArrayRef = Arc::new(column);
    let [written, back] = through_parquet(&work, &column);
    for column in [&written, &back] {
        assert_eq!(column.data_type().to_string(), "Dictionary(Int64, Utf8)");
    }
    let text = |column: &ArrayRef| cast(column, &DataType::Utf8).expect("text");
    assert_eq!(&text(&written), &text(&reversed(&column)));
    let file = File::open(work.path("out/o.parquet")).expect("a file");
    let footer = ParquetMetaDataReader::new().parse_and_finish(&file).expect("a footer");
    let used: Vec<Encoding> = footer.row_group(0).column(1).encodings().collect();
    let known = [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY];
    assert!(used.iter().all(|encoding| known.contains(encoding)), "{used:?}");
}

#[test]
fn values_that_are_in_no_row_need_not_fit() {
    let work = Work::new();
    let values: ArrayRef = Arc::new(TimestampSecondArray::from(vec![0, i64::MAX]));
    let keys = Int8Array::from(vec![Some(0), None]);
    let fits: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::clone(&values)));
    assert_eq!(through_parquet(&work, &fits)[0].null_count(), 1);
    write_arrow(&work, "in/a.arrow", &rows(dictionary(&values)));
    let ran = work.run("sort in/a.arrow --by id -o out/p.parquet");
    ran.says(3, &["\"v\"", "Timestamp(s)", "--select"]);
}

#[test]
fn dictionaries_that_others_declare_are_read_as_plain_values() {
    let work = Work::new();
    for (values, stored) in values() {
        // The parquet crate cannot write dictionaries of some of these types.
        let is_written = matches!(
            stored,
            DataType::Boolean
                | DataType::Float16
                | DataType::Decimal128(..)
                | DataType::Decimal256(..)
                | DataType::Date32
        );
        if !is_written {
            continue;
        }
        let column = dictionary(&values);
        write_parquet(&work.path("in/a.parquet"), &rows(Arc::clone(&column)));
        work.run("check in/a.parquet --by id:desc").succeeds();
        work.run("sort in/a.parquet --by id -o out/o.parquet").succeeds();
        let back = read_parquet(&work.path("out/o.parquet"));
        let expected = plain(&reversed(&column), &stored);
        assert_eq!(&plain(back.column(1), &stored), &expected, "{}", column.data_type());
    }
}

#[test]
fn binary_of_no_bytes_is_refused_where_it_cannot_be() {
    let work = Work::new();
    let bare: ArrayRef = Arc::new(FixedSizeBinaryArray::new_null(0, 4));
    let values: ArrayRef = Arc::new(FixedSizeBinaryArray::new_null(0, 2));
    for column in [&bare, &dictionary(&values)] {
        write_arrow(&work, "in/a.arrow", &rows(Arc::clone(column)));
        let ran = work.run("sort in/a.arrow --by id -o out/o.parquet");
        ran.says(2, &["\"v\"", "FixedSizeBinary(0)", "--select"]);
    }
    work.run("sort in/a.arrow --by id -o out/o.arrow").says(2, &["\"v\"", "no bytes", "--select"]);
    work.holds_only(&[]);
}
