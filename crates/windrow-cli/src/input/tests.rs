//! Whole files, good and bad, of each format.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::metadata::SortingColumn;
use ::parquet::file::properties::WriterProperties;
use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int64Array, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, TimeUnit};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use tempfile::TempDir;

use super::*;

/// Rows `from..to`: a number, its text with nulls, its last digit as a dictionary.
fn rows(from: i64, to: i64) -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
    let name: ArrayRef = Arc::new(StringArray::from_iter(
        (from..to).map(|i| (i % 7 != 0).then(|| format!("name {i}"))),
    ));
    let digits: Vec<String> = (from..to).map(|i| (i % 10).to_string()).collect();
    let digit: DictionaryArray<Int32Type> = digits.iter().map(String::as_str).collect();
    RecordBatch::try_from_iter([("id", id), ("name", name), ("digit", Arc::new(digit) as _)])
        .unwrap()
}

fn write_parquet(path: &Path, batch: &RecordBatch, group: usize) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_sorting_columns(Some(vec![SortingColumn {
            column_idx: 0,
            descending: false,
            nulls_first: true,
        }]))
        .build();
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn write_arrow(path: &Path, batches: &[RecordBatch], codec: Option<CompressionType>) {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = FileWriter::try_new_with_options(file, &batches[0].schema(), options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
}

fn stream_bytes(batches: &[RecordBatch], codec: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

fn options(batch_rows: usize) -> InputOptions {
    InputOptions { batch_rows, ..InputOptions::default() }
}

fn open(dir: &TempDir, names: &[&str], options: &InputOptions) -> Result<Inputs> {
    let sources: Vec<Source> =
        names.iter().map(|name| Source::File(dir.path().join(name))).collect();
    Inputs::open(&sources, options)
}

fn open_stdin(bytes: Vec<u8>, options: &InputOptions) -> Result<Inputs> {
    Inputs::open_with(&[Source::Stdin], options, Box::new(Cursor::new(bytes)))
}

/// All batches of all units, checked against what the units promise.
fn read(inputs: &Inputs, batch_rows: usize) -> Result<RecordBatch> {
    let mut batches = Vec::new();
    for unit in inputs.units() {
        for batch in unit.read()? {
            let batch = batch?;
            assert!(batch.num_rows() > 0 && batch.num_rows() <= batch_rows);
            assert_eq!(batch.schema_ref(), inputs.schema());
            batches.push(batch);
        }
    }
    Ok(concat_batches(inputs.schema(), &batches).unwrap())
}

/// The message of the error that opening or reading gives.
fn fault(dir: &TempDir, names: &[&str], options: &InputOptions) -> String {
    let result = open(dir, names, options).and_then(|inputs| read(&inputs, options.batch_rows));
    match result {
        Err(CliError::Data(message)) => message,
        other => panic!("expected an error of the data, got {other:?}"),
    }
}

fn expect(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no '{part}' in: {message}");
    }
}

#[test]
fn parquet_is_read_by_row_group() {
    let dir = tempfile::tempdir().unwrap();
    write_parquet(&dir.path().join("a.parquet"), &rows(0, 1000), 300);
    write_parquet(&dir.path().join("b.parquet"), &rows(1000, 1100), 300);
    let inputs = open(&dir, &["a.parquet", "b.parquet"], &options(128)).unwrap();
    let places: Vec<_> =
        inputs.units().iter().map(|unit| (unit.file, unit.first_row, unit.rows)).collect();
    let expected = [
        (0, 0, Some(300)),
        (0, 300, Some(300)),
        (0, 600, Some(300)),
        (0, 900, Some(100)),
        (1, 0, Some(100)),
    ];
    assert_eq!(places, expected);
    assert_eq!(inputs.files()[1].units, 4..5);
    assert_eq!(inputs.rows(), Some(1100));
    assert!(inputs.bytes().unwrap() > 1000);
    assert!((1 << 16..16 << 20).contains(&inputs.reader_bytes()));
    assert_eq!(inputs.files()[0].sorted_by[0].name, "id");
    assert_eq!(read(&inputs, 128).unwrap().columns(), rows(0, 1100).columns());
}

#[test]
fn units_are_read_in_any_order_and_again_on_any_thread() {
    let dir = tempfile::tempdir().unwrap();
    write_parquet(&dir.path().join("a.parquet"), &rows(0, 5000), 100);
    let inputs = open(&dir, &["a.parquet"], &options(64)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let units = inputs.units();
            scope.spawn(move || {
                for unit in units.iter().rev().skip(thread) {
                    let mut row = unit.first_row as i64;
                    for batch in unit.read().unwrap() {
                        let batch = batch.unwrap();
                        let ids = batch.column(0).as_primitive::<Int64Type>();
                        assert_eq!(ids.value(0), row);
                        row += batch.num_rows() as i64;
                    }
                }
            });
        }
    });
}

#[test]
fn many_files_are_not_held_open() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..200).map(|i| format!("{i:03}.parquet")).collect();
    for (i, name) in names.iter().enumerate() {
        write_parquet(&dir.path().join(name), &rows(i as i64, i as i64 + 2), 1);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let inputs = open(&dir, &names, &options(64)).unwrap();
    assert_eq!(inputs.units().len(), 400);
    #[cfg(target_os = "linux")]
    {
        let held = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let held = held.filter_map(|fd| fs::read_link(fd.path()).ok());
        assert_eq!(held.filter(|file| file.starts_with(dir.path())).count(), 0);
    }
    assert_eq!(read(&inputs, 64).unwrap().num_rows(), 400);
}

#[test]
fn arrow_files_are_read_by_ranges_of_batches() {
    let dir = tempfile::tempdir().unwrap();
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let batches: Vec<_> = (0..4).map(|i| rows(i * 500, i * 500 + 500)).collect();
        write_arrow(&dir.path().join("a.arrow"), &batches, codec);
        let inputs = open(&dir, &["a.arrow"], &options(64)).unwrap();
        assert_eq!(inputs.rows(), Some(2000));
        assert_eq!(inputs.units().len(), 1, "dictionaries are read once");
        let read = read(&inputs, 64).unwrap();
        assert_eq!(read.columns(), rows(0, 2000).columns());
    }
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1 << 20));
    let large = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let batches = [large.clone(), large.clone(), large.clone()];
    write_arrow(&dir.path().join("b.arrow"), &batches, None);
    let inputs = open(&dir, &["b.arrow"], &options(8192)).unwrap();
    let first_rows: Vec<_> = inputs.units().iter().map(|unit| unit.first_row).collect();
    assert_eq!(first_rows, [0, 2 << 20]);
    assert!(inputs.reader_bytes() >= 8 << 20);
    assert_eq!(read(&inputs, 8192).unwrap().num_rows(), 3 << 20);
}

#[test]
fn arrow_streams_are_read_from_files_and_from_stdin() {
    let dir = tempfile::tempdir().unwrap();
    for codec in [None, Some(CompressionType::ZSTD)] {
        let bytes = stream_bytes(&[rows(0, 300), rows(300, 600)], codec);
        // The extension of a file does not say which of the two formats it is.
        fs::write(dir.path().join("a.arrow"), &bytes).unwrap();
        let inputs = open(&dir, &["a.arrow"], &options(100)).unwrap();
        assert_eq!(inputs.files()[0].format, Format::ArrowStream);
        assert_eq!(inputs.rows(), Some(600));
        let expected = rows(0, 600);
        assert_eq!(read(&inputs, 100).unwrap().columns(), expected.columns());
        let inputs = open_stdin(bytes, &options(100)).unwrap();
        assert_eq!((inputs.rows(), inputs.bytes()), (None, None));
        assert_eq!(read(&inputs, 100).unwrap().columns(), expected.columns());
        assert!(inputs.units()[0].read().is_err(), "stdin passes once");
    }
}

#[test]
fn an_empty_stream_has_its_schema() {
    let bytes = stream_bytes(&[rows(0, 0)], None);
    let inputs = open_stdin(bytes, &options(100)).unwrap();
    assert_eq!(inputs.schema(), &rows(0, 0).schema());
    assert_eq!(read(&inputs, 100).unwrap().num_rows(), 0);
}

#[test]
fn stdin_tells_its_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let in_dir = InputOptions { temp_dir: Some(dir.path().to_owned()), ..options(100) };
    write_parquet(&path, &rows(0, 250), 100);
    let inputs = open_stdin(fs::read(&path).unwrap(), &in_dir).unwrap();
    assert_eq!(inputs.units().len(), 3);
    assert_eq!(read(&inputs, 100).unwrap().num_rows(), 250);
    write_arrow(&path, &[rows(0, 250)], None);
    let inputs = open_stdin(fs::read(&path).unwrap(), &in_dir).unwrap();
    assert_eq!(inputs.files()[0].format, Format::ArrowFile);
    assert_eq!(read(&inputs, 100).unwrap().num_rows(), 250);
    let inputs = open_stdin(b"a,b\n1,x\n2,y\n".to_vec(), &in_dir).unwrap();
    assert_eq!(inputs.files()[0].format, Format::Csv);
    assert_eq!(read(&inputs, 100).unwrap().num_rows(), 2);
    let inputs = open_stdin(b"{\"a\":1}\n{\"a\":2}".to_vec(), &in_dir).unwrap();
    assert_eq!(inputs.files()[0].format, Format::Ndjson);
    assert_eq!(read(&inputs, 100).unwrap().num_rows(), 2);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no copy is left");
}

#[test]
fn csv_types_are_inferred_without_losing_anything() {
    let dir = tempfile::tempdir().unwrap();
    let text = "i,f,t,at,day,flag,none,zip\n\
                1,1.5,x,2020-01-02T03:04:05,2020-01-02,true,,007\n\
                ,,,,,,,\n\
                3,2,\"a \"\"b\"\"\nc\",2020-01-02 03:04:05,2020-01-03,false,,123\n";
    fs::write(dir.path().join("a.csv"), text).unwrap();
    let inputs = open(&dir, &["a.csv"], &options(2)).unwrap();
    let kinds: Vec<_> =
        inputs.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let expected = [
        DataType::Int64,
        DataType::Float64,
        DataType::Utf8,
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Date32,
        DataType::Boolean,
        DataType::Utf8,
        DataType::Utf8,
    ];
    assert_eq!(kinds, expected);
    let batch = read(&inputs, 2).unwrap();
    assert_eq!(batch.num_rows(), 3);
    assert!(batch.columns().iter().all(|column| column.is_null(1)));
    assert_eq!(batch.column(2).as_string::<i32>().value(2), "a \"b\"\nc");
    assert_eq!(batch.column(7).as_string::<i32>().value(0), "007");
}

#[test]
fn csv_takes_types_from_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.csv"), "id,d,n\n1,2.50,7\n").unwrap();
    let mut with = InputOptions {
        schema: Some(parse_schema("d:decimal128(9,2),id:utf8").unwrap()),
        ..options(10)
    };
    let inputs = open(&dir, &["a.csv"], &with).unwrap();
    let schema = inputs.schema();
    assert_eq!(schema.field(0).data_type(), &DataType::Utf8);
    assert_eq!(schema.field(1).data_type(), &DataType::Decimal128(9, 2));
    assert_eq!(schema.field(2).data_type(), &DataType::Int64);
    assert_eq!(read(&inputs, 10).unwrap().num_rows(), 1);
    with.schema = Some(parse_schema("nope:utf8").unwrap());
    assert!(matches!(open(&dir, &["a.csv"], &with), Err(CliError::Usage(_))));
    fs::write(dir.path().join("b.csv"), "1;x\n2;y\n").unwrap();
    with.schema = Some(parse_schema("id:int32,name:utf8").unwrap());
    with.csv = CsvOptions { delimiter: b';', has_header: false };
    let inputs = open(&dir, &["b.csv"], &with).unwrap();
    assert_eq!(inputs.schema().field(0).name(), "id");
    assert_eq!(read(&inputs, 10).unwrap().num_rows(), 2);
    fs::write(dir.path().join("c.tsv"), "a\tb\n1\t2\n").unwrap();
    let inputs = open(&dir, &["c.tsv"], &options(10)).unwrap();
    assert_eq!(inputs.schema().fields().len(), 2);
}

#[test]
fn faults_in_csv_are_told_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    // A quoted line break and an empty line: the seventh record is on line 10.
    let good = "id,name\n1,x\n2,\"y\ny\"\n\n3,z\n4,z\n5,z\n6,z\n";
    for (bad, parts) in [
        ("7\n", &["line 10", "expected 2 got 1"][..]),
        ("7,x,y\n", &["line 10", "expected 2"]),
        ("\r\n7.5,x\r\n", &["line 11", "'7.5'", "'id'", "--schema"]),
        ("7,x\ny,x", &["line 11", "'y'", "'id'"]),
    ] {
        fs::write(&path, format!("{good}{bad}")).unwrap();
        // The sample must not see the bad row, or it would be text.
        for batch_rows in [1, 2, 3, 100] {
            let with = InputOptions {
                schema: Some(parse_schema("id:int64").unwrap()),
                ..options(batch_rows)
            };
            let message = fault(&dir, &["a.csv"], &with);
            expect(&message, &["a.csv"]);
            expect(&message, parts);
        }
    }
}

#[test]
fn text_that_is_not_utf8_is_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = b"id,name\n1,x\n".to_vec();
    fs::write(dir.path().join("a.csv"), [&bytes[..], b"2,\xFF\xFE\n"].concat()).unwrap();
    expect(&fault(&dir, &["a.csv"], &options(10)), &["a.csv", "UTF-8"]);
    // Beyond the sample, too.
    bytes.extend((0..200_000).flat_map(|i| format!("{i},name\n").into_bytes()));
    bytes.extend(b"3,\xFF\n");
    fs::write(dir.path().join("b.csv"), bytes).unwrap();
    let message = fault(&dir, &["b.csv"], &options(8192));
    expect(&message, &["b.csv", "line 200003", "UTF-8", "'name'"]);
    fs::write(dir.path().join("c.ndjson"), b"{\"a\":\"\xFF\"}\n").unwrap();
    expect(&fault(&dir, &["c.ndjson"], &options(10)), &["c.ndjson", "line 1"]);
}

#[test]
fn ndjson_columns_keep_the_order_of_their_keys() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"z\":1,\"big\":18446744073709551615,\"o\":{\"b\":1,\"a\":[1.5,2]}}\n\
                {\"z\":-2,\"y\":null,\"big\":1,\"s\":1}\n\
                {\"new\":true,\"s\":\"x\"}\n";
    fs::write(dir.path().join("a.ndjson"), text).unwrap();
    let inputs = open(&dir, &["a.ndjson"], &options(2)).unwrap();
    let fields = inputs.schema().fields();
    let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["z", "big", "o", "y", "s", "new"]);
    assert_eq!(fields[1].data_type(), &DataType::UInt64);
    assert_eq!(fields[3].data_type(), &DataType::Utf8);
    assert_eq!(fields[4].data_type(), &DataType::Utf8);
    let DataType::Struct(inner) = fields[2].data_type() else {
        panic!("{:?}", fields[2]);
    };
    assert_eq!(inner[0].name(), "b");
    let batch = read(&inputs, 2).unwrap();
    assert_eq!(batch.num_rows(), 3);
    assert_eq!(batch.column(4).as_string::<i32>().value(1), "1");
}

#[test]
fn faults_in_ndjson_are_told_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.ndjson");
    let many: String = (0..12_000).map(|i| format!("{{\"a\":{i}}}\n")).collect();
    for (bad, parts) in [
        ("{\"a\":1.5}\n", &["line 12001", "1.5", "'a'"][..]),
        ("\n{\"a\":\"x\"}\n", &["line 12002", "x", "'a'"]),
        ("{\"a\":1,\"b\":2}\n", &["line 12001", "b"]),
        ("{\"a\":1}\n{\"a\" 1}\n", &["line 12002"]),
        ("{\"a\":", &["line 12001"]),
        ("[1]\n", &["line 12001"]),
    ] {
        fs::write(&path, format!("{many}{bad}{{\"a\":5}}\n")).unwrap();
        if bad.ends_with(':') {
            fs::write(&path, format!("{many}{bad}")).unwrap();
        }
        let message = fault(&dir, &["a.ndjson"], &options(1000));
        expect(&message, &["a.ndjson"]);
        expect(&message, parts);
    }
    fs::write(&path, "{\"a\":1}\n{\"a\":[1]}\n").unwrap();
    expect(&fault(&dir, &["a.ndjson"], &options(10)), &["'a'"]);
    fs::write(&path, "[{\"a\":1}]").unwrap();
    expect(&fault(&dir, &["a.ndjson"], &options(10)), &["array"]);
    fs::write(&path, "").unwrap();
    expect(&fault(&dir, &["a.ndjson"], &options(10)), &["--schema"]);
}

#[test]
fn a_fault_in_a_stream_says_where_to_look() {
    let many: String = (0..12_000).map(|i| format!("{{\"a\":{i}}}\n")).collect();
    let bytes = format!("{many}{{\"a\":true}}\n").into_bytes();
    let inputs = open_stdin(bytes, &options(1000)).unwrap();
    let message = read(&inputs, 1000).unwrap_err().to_string();
    expect(&message, &["stdin", "line 12001 or later"]);
}

#[test]
fn columns_in_another_order_are_put_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let batch = rows(0, 20);
    write_parquet(&dir.path().join("a.parquet"), &batch, 10);
    let turned = batch.project(&[2, 0, 1]).unwrap();
    write_parquet(&dir.path().join("b.parquet"), &turned, 10);
    let inputs = open(&dir, &["a.parquet", "b.parquet"], &options(100)).unwrap();
    let read = read(&inputs, 100).unwrap();
    assert_eq!(read.slice(20, 20).columns(), batch.columns());
    fs::write(dir.path().join("c.csv"), "a,b\n1,x\n").unwrap();
    fs::write(dir.path().join("d.csv"), "b,a\n5,2\n").unwrap();
    let inputs = open(&dir, &["c.csv", "d.csv"], &options(100)).unwrap();
    let read = super::tests::read(&inputs, 100).unwrap();
    assert_eq!(read.column(1).as_string::<i32>().value(1), "5");
}

#[test]
fn a_column_is_nullable_if_it_is_so_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    for (name, nullable) in [("a.arrow", false), ("b.arrow", true)] {
        let schema = Schema::new(vec![Field::new("id", DataType::Int64, nullable)]);
        let ids = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_new(Arc::new(schema), vec![ids]).unwrap();
        write_arrow(&dir.path().join(name), &[batch], None);
    }
    let inputs = open(&dir, &["a.arrow", "b.arrow"], &options(10)).unwrap();
    assert!(inputs.schema().field(0).is_nullable());
    assert_eq!(read(&inputs, 10).unwrap().num_rows(), 4);
    let inputs = open(&dir, &["a.arrow"], &options(10)).unwrap();
    assert!(!inputs.schema().field(0).is_nullable());
}

#[test]
fn schemas_that_differ_are_told_with_both_files() {
    let dir = tempfile::tempdir().unwrap();
    write_parquet(&dir.path().join("a.parquet"), &rows(0, 10), 10);
    let batch = rows(0, 10);
    write_parquet(&dir.path().join("fewer.parquet"), &batch.project(&[0, 1]).unwrap(), 10);
    let more: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("id", batch.column(0).clone()),
        ("name", batch.column(1).clone()),
        ("digit", batch.column(2).clone()),
    ];
    columns.push(("more", more.clone()));
    let wider = RecordBatch::try_from_iter(columns.clone()).unwrap();
    write_parquet(&dir.path().join("more.parquet"), &wider, 10);
    columns.pop();
    columns[1].1 = more;
    let other = RecordBatch::try_from_iter(columns).unwrap();
    write_parquet(&dir.path().join("other.parquet"), &other, 10);
    for (name, parts) in [
        ("fewer.parquet", ["'digit'", "missing"]),
        ("more.parquet", ["'more'", "not in"]),
        ("other.parquet", ["'name'", "Int64"]),
    ] {
        let message = fault(&dir, &["a.parquet", name], &options(10));
        expect(&message, &["a.parquet", name]);
        expect(&message, &parts);
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let with = options(10);
    expect(&fault(&dir, &["none.parquet"], &with), &["none.parquet", "no such file"]);
    expect(&fault(&dir, &[""], &with), &["directory"]);
    fs::write(dir.path().join("a.parquet"), "id,name\n1,x\n").unwrap();
    let message = fault(&dir, &["a.parquet"], &with);
    expect(&message, &["a.parquet", "not a Parquet file", "--input-format"]);
    fs::write(dir.path().join("a.arrow"), "id,name\n1,x\n").unwrap();
    expect(&fault(&dir, &["a.arrow"], &with), &["a.arrow", "not an Arrow"]);
    for name in ["e.parquet", "e.arrow", "e.arrows", "e.csv", "e.ndjson"] {
        fs::write(dir.path().join(name), "").unwrap();
        expect(&fault(&dir, &[name], &with), &[name]);
    }
    fs::write(dir.path().join("a.txt"), "id,name\n1,x\n").unwrap();
    assert!(matches!(open(&dir, &["a.txt"], &with), Err(CliError::Usage(_))));
    assert!(matches!(Inputs::open(&[], &with), Err(CliError::Usage(_))));
}

/// Opens and reads `bytes` as a file; whatever comes, it must not be a panic or more than was written.
fn survives(dir: &TempDir, name: &str, bytes: &[u8]) -> Result<RecordBatch> {
    fs::write(dir.path().join(name), bytes).unwrap();
    open(dir, &[name], &options(50)).and_then(|inputs| read(&inputs, 50))
}

#[test]
fn files_cut_short_are_faults_and_never_panics() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("whole");
    for name in ["a.parquet", "a.arrow", "a.arrows"] {
        match name {
            "a.parquet" => write_parquet(&path, &rows(0, 300), 100),
            "a.arrow" => write_arrow(&path, &[rows(0, 300)], Some(CompressionType::LZ4_FRAME)),
            _ => fs::write(&path, stream_bytes(&[rows(0, 300)], None)).unwrap(),
        }
        let whole = fs::read(&path).unwrap();
        assert_eq!(survives(&dir, name, &whole).unwrap().num_rows(), 300);
        for length in (0..whole.len()).step_by(1 + whole.len() / 97) {
            let result = survives(&dir, name, &whole[..length]);
            // A stream may end between two frames.
            if name != "a.arrows" {
                let message = result.unwrap_err().to_string();
                expect(&message, &[name]);
            }
        }
        // Missing bytes in the middle leave the end in place.
        for at in [10, whole.len() / 3, whole.len() / 2] {
            let holed = [&whole[..at], &whole[at + 5..]].concat();
            assert!(survives(&dir, name, &holed).is_err(), "{name} at {at}");
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("whole");
    for name in ["a.parquet", "a.arrow", "b.arrow", "a.arrows"] {
        match name {
            "a.parquet" => write_parquet(&path, &rows(0, 200), 100),
            "a.arrow" => write_arrow(&path, &[rows(0, 200)], Some(CompressionType::ZSTD)),
            "b.arrow" => write_arrow(&path, &[rows(0, 200)], None),
            _ => fs::write(&path, stream_bytes(&[rows(0, 200)], None)).unwrap(),
        }
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(1 + whole.len() / 601) {
            for flip in [0x01, 0x80, 0xFF] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                // Where the bytes are values, they are other values; no more can be asked.
                let _ = survives(&dir, name, &bytes);
            }
        }
    }
}

#[test]
fn invalid_utf8_in_parquet_is_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "needle", "b"]));
    let batch = RecordBatch::try_from_iter([("s", text)]).unwrap();
    let plain = WriterProperties::builder().set_dictionary_enabled(false).build();
    let file = fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(plain)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let mut places = bytes.windows(6).enumerate().filter(|(_, at)| *at == b"needle");
    let place = places.next().unwrap().0;
    assert!(survives(&dir, "b.parquet", &bytes).is_ok());
    bytes[place] = 0xFF;
    let message = survives(&dir, "b.parquet", &bytes).unwrap_err().to_string();
    expect(&message, &["b.parquet", "UTF-8"]);
}
