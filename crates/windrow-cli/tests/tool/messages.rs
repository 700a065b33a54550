//! Messages name the problem and the remedy.

use std::fs::File;
use std::sync::Arc;

use crate::common::{Work, read_parquet, write_parquet};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

#[test]
fn text_that_is_no_ndjson() {
    let work = Work::new();
    let good = "{\"a\":1}\n";
    for (text, parts) in [
        ("{\"a\":NaN}\n", &["line 1", "NaN is no JSON value"][..]),
        ("{\"a\":1}\n{\"a\":-Infinity}\n", &["line 2", "-Infinity"]),
        ("\u{1e}{\"a\":1}\n\u{1e}{\"a\":2}\n", &["line 1", "record separator"]),
        ("k1\t{\"a\":1}\n", &["line 1", "\"k1\\t\"", "in front of its object"]),
        ("\"k1\"\t{\"a\":1}\n", &["a key and a value with a tab"]),
        ("{\"k\":1}\t{\"a\":1}\n{\"k\":1}\tnull\n", &["line 2", "a key and a value with a tab"]),
    ] {
        work.put("in/a.ndjson", text);
        let ran = work.run("sort in/a.ndjson --by a -o out/o.csv");
        ran.says(3, parts);
        assert!(!ran.err.contains("expected value"), "{}", ran.err);
    }
    // After the sample, too, and in a later file.
    let late = format!("{}{{\"a\":NaN}}\n", good.repeat(200_000));
    work.put("in/b.ndjson", good);
    work.put("in/a.ndjson", late);
    for line in ["sort in/a.ndjson", "sort in/b.ndjson in/a.ndjson"] {
        let line = format!("{line} --by a -o out/o.csv");
        work.run(&line).says(3, &["line 200001", "NaN is no JSON value"]);
    }
    // A byte order mark of UTF-16, and half of a character at the end.
    let mut utf16: Vec<u8> =
        format!("\u{feff}{good}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    utf16.push(b'x');
    for name in ["a.ndjson", "a.csv"] {
        work.put(&format!("in/{name}"), &utf16);
        work.run(&format!("sort in/{name} --by a -o out/o.csv")).says(3, &["line 2", "UTF-16LE"]);
    }
    work.shell("cat in/a.csv | {} sort - --by a -o out/o.csv").says(3, &["line 2", "UTF-16LE"]);
    work.holds_only(&[]);
}

#[test]
fn rows_of_another_length() {
    let work = Work::new();
    for text in ["a,b\n1,2\n1,2,3\n", "a,b\n1,2\n1\n"] {
        work.put("in/a.csv", text);
        let ran = work.run("sort in/a.csv --by a -o out/o.csv");
        ran.says(3, &["line 3", "number of fields", "in quotes"]);
        assert!(!ran.err.contains("--schema"), "{}", ran.err);
    }
}

#[test]
fn addresses() {
    let work = Work::new();
    work.put("in/a.csv", "a\n1\n");
    for name in ["ftp://b/a.csv", "hdfs://host/a.csv", "wasb://b/a.csv"] {
        work.run(&format!("sort {name} --by a -o out/o.csv"))
            .says(2, &[name, "no store that is known"]);
        let written = work.run(&format!("sort in/a.csv --by a -o {name}"));
        written.says(2, &[name, "no store that is known"]);
    }
    let line = "sort file:///data/a.csv --by a -o out/o.csv";
    work.run(line).says(2, &["is an address", "its path, /data/a.csv"]);
    if cfg!(feature = "cloud") {
        let line = "sort https://host/*.csv --by a -o out/o.csv";
        work.run(line).says(2, &["https://host/", "does not list"]);
    }
    let parts = "partition in/a.csv --by a --into 2 -o ftp://b/parts";
    work.run(parts).says(2, &["ftp://b/parts", "no store that is known"]);
    work.holds_only(&[]);
}

#[cfg(not(feature = "cloud"))]
#[test]
fn a_build_without_object_stores_says_how_to_get_them() {
    let work = Work::new();
    work.put("in/a.csv", "a\n1\n");
    let says = |line: &str, address: &str| {
        let how = ["cargo install --path crates/windrow-cli --features cloud", "windrow-arrow"];
        work.run(line).says(2, &[address, "no object stores", how[0], how[1]]);
    };
    for address in ["s3://b/a.csv", "gs://b/*.csv", "az://b/day/", "https://host/a.csv"] {
        let named = address.trim_end_matches("*.csv");
        says(&format!("sort {address} --by a --input-format csv -o out/o.csv"), named);
        says(&format!("inspect {address} --input-format csv"), named);
    }
    for store in ["s3", "gs", "az", "abfss", "https"] {
        let address = format!("{store}://b/o.csv");
        says(&format!("sort in/a.csv --by a -o {address}"), &address);
        let address = format!("{store}://b/parts");
        says(&format!("partition in/a.csv --by a --into 2 -o {address}"), &address);
    }
    says("sort in/a.csv --by a -o out/o.csv --store-option region=nl", "--store-option");
    work.holds_only(&[]);
}

#[test]
fn encrypted_columns() {
    let work = Work::new();
    let id: ArrayRef = Arc::new(Int64Array::from(vec![2, 1]));
    write_parquet(
        &work.path("in/a.parquet"),
        &RecordBatch::try_from_iter([("id", id)]).expect("rows"),
    );
    // The footer is plain, the columns are encrypted: only the footer mentions the cipher.
    let mut bytes = work.read("in/a.parquet");
    let tail = bytes.split_off(bytes.len() - 8);
    let length = u32::from_le_bytes(tail[..4].try_into().expect("four"));
    assert_eq!(bytes.pop(), Some(0), "the end of the footer's fields, of which the last is 7");
    bytes.extend([0x1c, 0x1c, 0, 0, 0]);
    bytes.extend((length + 4).to_le_bytes());
    bytes.extend(b"PAR1");
    work.put("in/a.parquet", bytes);
    for line in [
        "sort in/a.parquet --by id -o out/o.csv",
        "sort in/a.parquet --by id --select id -o out/o.csv",
        "merge in/a.parquet --by id -o out/o.csv",
    ] {
        work.run(line).says(3, &["in/a.parquet", "encrypted", "decrypt it first"]);
    }
    work.run("inspect in/a.parquet").succeeds();
    work.holds_only(&[]);
}

#[test]
fn orders_with_nulls_at_the_other_end() {
    let work = Work::new();
    work.put("in/a.csv", "a,b\n,1\n1,2\n2,3\n");
    let ran = work.run("check in/a.csv --by a");
    ran.says(1, &["row 1 sorts before", "sorted --by a:nulls-first"]);
    work.run("check in/a.csv --by a:nulls-first").succeeds();
    work.put("in/a.csv", "a,b\n,1\n2,2\n1,3\n");
    let ran = work.run("check in/a.csv --by a");
    ran.says(1, &["row 1 sorts before"]);
    assert!(!ran.err.contains("sorted --by"), "{}", ran.err);
    let ran = work.shell("{} check - --by a --input-format csv < in/a.csv");
    ran.says(1, &["row 1 sorts before"]);
}

#[test]
fn names_of_a_schema_that_no_input_has() {
    let work = Work::new();
    work.put("in/a.ndjson", "{\"a\":1,\"s\":{\"n\":\"2\"}}\n");
    work.put("in/b.ndjson", "{\"a\":1,\"b\":2}\n");
    work.put("in/c.csv", "a,b\n1,2\n");
    write_parquet(
        &work.path("in/d.parquet"),
        &RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(vec![1])) as ArrayRef)])
            .expect("rows"),
    );
    let sort = |input: &str, schema: &str| {
        work.run(&format!("sort {input} --by a --schema {schema} -o out/o.parquet"))
    };
    for input in ["in/a.ndjson", "in/c.csv", "in/d.parquet"] {
        sort(input, "x:int64").says(2, &["--schema", "'x'"]);
    }
    sort("in/a.ndjson", "s.n:int64").says(2, &["--schema", "'s.n'", "within 's'"]);
    work.holds_only(&[]);
    // Any file may have the column, however late.
    work.put("in/a.ndjson", "{\"a\":1}\n");
    sort("in/a.ndjson in/b.ndjson", "b:int32").succeeds();
    let rows = read_parquet(&work.path("out/o.parquet"));
    assert_eq!((rows.num_rows(), rows.num_columns(), rows.column(1).null_count()), (2, 2, 1));
    work.put("in/a.ndjson", "{\"a\":1}\n".repeat(200_000) + "{\"a\":2,\"b\":3}\n");
    sort("in/a.ndjson", "b:int32").succeeds();
    sort("in/a.ndjson", "c:int32").says(2, &["--schema", "'c'"]);
    let stream = "cat in/a.ndjson | {} sort - --by a --input-format ndjson --schema b:int32";
    work.shell(&format!("{stream} -o out/o.parquet")).succeeds();
    work.put("in/a.ndjson", "");
    sort("in/a.ndjson", "a:int32,b:int32").succeeds();
}

#[test]
fn bloom_filters_that_are_not_kept() {
    let work = Work::new();
    let id: ArrayRef = Arc::new(Int64Array::from(vec![2, 1]));
    let batch = RecordBatch::try_from_iter([("id", id)]).expect("rows");
    let properties = WriterProperties::builder().set_bloom_filter_enabled(true).build();
    let file = File::create(work.path("in/a.parquet")).expect("created");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
    let sort = "sort in/a.parquet --by id -o out/o.parquet";
    work.run(sort).says(0, &["Bloom filters of the inputs are not in the output"]);
    let explained = work.run(&format!("{sort} --explain")).out;
    assert!(String::from_utf8_lossy(&explained).contains("Bloom filters"), "{explained:?}");
    let ran = work.run("sort out/o.parquet --by id -o out/p.parquet");
    assert!(!ran.err.contains("Bloom"), "{}", ran.err);
    let ran = work.run("sort in/a.parquet --by id -o out/p.csv");
    assert!(!ran.err.contains("Bloom"), "{}", ran.err);
}
