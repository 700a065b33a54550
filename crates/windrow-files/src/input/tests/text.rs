//! Tests of CSV and NDJSON: types, order of columns, and line numbers of errors.

use crate::error::ErrorKind;

use crate::input::source::origin::SAMPLE_BYTES;

use super::*;

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
fn rows_longer_than_the_sample_tell_types_too() {
    let dir = tempfile::tempdir().unwrap();
    let body = "x".repeat(3 * SAMPLE_BYTES);
    fs::write(dir.path().join("a.csv"), format!("id,b\n12,{body}\n9,{body}\n")).unwrap();
    let object = |id: u8| format!("{{\"id\":{id},\"b\":\"{body}\"}}\n");
    fs::write(dir.path().join("a.ndjson"), object(12) + &object(9)).unwrap();
    for name in ["a.csv", "a.ndjson"] {
        let inputs = open(&dir, &[name], &options(100)).unwrap();
        assert_eq!(inputs.schema().field(0).data_type(), &DataType::Int64, "{name}");
        assert!(inputs.needs.row_bytes >= body.len(), "{name}");
        assert_eq!(read(&inputs, 100).unwrap().num_rows(), 2);
    }
}

#[test]
fn csv_takes_types_from_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.csv"), "id,d,n\n1,2.50,7\n").unwrap();
    let mut with = ReadOptions {
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
    assert!(open(&dir, &["a.csv"], &with).is_err_and(|error| error.kind() == ErrorKind::Usage));
    fs::write(dir.path().join("b.csv"), "1;x\n2;y\n").unwrap();
    with.schema = Some(parse_schema("id:int32,name:utf8").unwrap());
    with.csv = CsvOptions::default().delimiter(';').unwrap().has_header(false);
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
        ("\r\n7.5,x\r\n", &["line 11", "'7.5'", "'id'", "`schema`"]),
        ("7,x\ny,x", &["line 11", "'y'", "'id'"]),
    ] {
        fs::write(&path, format!("{good}{bad}")).unwrap();
        // The sample must not contain the bad row, or the type would be text.
        for batch_rows in [1, 2, 3, 100] {
            let with = ReadOptions {
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
    // Malformed text after the sample.
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
    assert_eq!(fields[3].data_type(), &DataType::Null);
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
fn ndjson_columns_that_begin_with_nulls_get_the_type_of_what_follows() {
    let dir = tempfile::tempdir().unwrap();
    let nulls: String = (0..25_000).map(|i| format!("{{\"a\":{i},\"b\":null}}\n")).collect();
    let text = format!("{nulls}{{\"a\":1,\"b\":{{\"c\":[7]}}}}\n");
    fs::write(dir.path().join("a.ndjson"), &text).unwrap();
    let inputs = open(&dir, &["a.ndjson"], &options(1000)).unwrap();
    let list = DataType::new_list(DataType::Int64, true);
    let object = DataType::Struct(vec![Field::new("c", list, true)].into());
    assert_eq!(inputs.schema().field(1).data_type(), &object);
    assert_eq!(read(&inputs, 1000).unwrap().num_rows(), 25_001);

    let inputs = open_stdin(text.into_bytes(), &options(1000)).unwrap();
    assert_eq!(inputs.schema().field(1).data_type(), &DataType::Null);
    expect(&read(&inputs, 1000).unwrap_err().to_string(), &["stdin", "`schema`"]);
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
    fs::write(&path, "{\"a\":1}\n{\"b\":{\"c\":1,\"a\":2,\"\\u0063\":3}}\n").unwrap();
    expect(&fault(&dir, &["a.ndjson"], &options(10)), &["line 2", "\"c\" is there twice"]);
    fs::write(&path, "[{\"a\":1}").unwrap();
    expect(&fault(&dir, &["a.ndjson"], &options(10)), &["array", "never closed"]);
    fs::write(&path, "").unwrap();
    expect(&fault(&dir, &["a.ndjson"], &options(10)), &["`schema`"]);
}

#[test]
fn a_fault_in_a_stream_says_where_to_look() {
    let many: String = (0..12_000).map(|i| format!("{{\"a\":{i}}}\n")).collect();
    let bytes = format!("{many}{{\"a\":true}}\n").into_bytes();
    let inputs = open_stdin(bytes, &options(1000)).unwrap();
    let message = read(&inputs, 1000).unwrap_err().to_string();
    expect(&message, &["stdin", "line 12001: "]);
    // A record longer than the decoder's buffer starts in discarded text.
    let long = "x".repeat(1 << 20);
    let bytes = format!("{many}{{\"a\":1,\"{long}\":1}}\n").into_bytes();
    let inputs = open_stdin(bytes, &options(1000)).unwrap();
    let message = read(&inputs, 1000).unwrap_err().to_string();
    expect(&message, &["stdin", "line 12001 or later"]);
}
