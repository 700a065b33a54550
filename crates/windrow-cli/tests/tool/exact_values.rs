//! Values of text are preserved exactly, or refused with their line and column.

use crate::common::Work;

#[test]
fn digits_that_a_decimal_would_lose() {
    let work = Work::new();
    work.put("in/a.csv", "id,v\n3,1.250\n2,-.5\n1,1e2\n");
    let sort = "--by id --schema v:decimal128(5,2) -o out/o.csv";
    work.run(&format!("sort in/a.csv {sort}")).succeeds();
    assert_eq!(work.read("out/o.csv"), b"id,v\n1,100.00\n2,-0.50\n3,1.25\n");
    let rows: String = (0..20_000).map(|i| format!("{i},1.25\n")).collect();
    work.put("in/a.csv", format!("id,v\n{rows}1,1.255\n"));
    work.run(&format!("sort in/a.csv {sort}")).says(3, &["line 20002", "'v'", "\"1.255\""]);
    work.put("in/a.csv", "id,v\n1,1000\n");
    work.run(&format!("sort in/a.csv {sort}")).says(3, &["line 2", "'v'", "more digits"]);
    for bad in ["1.255", "\"1.255\"", "12345678901234567890.125"] {
        work.put("in/a.ndjson", format!("{{\"id\":1,\"v\":1.25}}\n{{\"id\":2,\"v\":{bad}}}\n"));
        work.run(&format!("sort in/a.ndjson {sort}")).says(3, &["line 2", "'v'"]);
    }
}

#[test]
fn offsets_of_timestamps() {
    let work = Work::new();
    work.put("in/a.csv", "id,t\n1,2026-01-31T12:00:00+02:00\n2,2026-01-31 09:59:59.5Z\n3,\n");
    let sort = "sort in/a.csv --by t -o out/o.csv";
    work.run(sort).succeeds();
    let expected = "id,t\n2,2026-01-31T09:59:59.500Z\n1,2026-01-31T10:00:00Z\n3,\n";
    assert_eq!(String::from_utf8_lossy(&work.read("out/o.csv")), expected);
    // Timestamps of which only some have an offset are no points in time.
    work.put("in/a.csv", "id,t\n1,2026-01-31T12:00:00+02:00\n2,2026-01-31T12:00:00\n");
    work.run(sort).succeeds();
    let expected = "id,t\n2,2026-01-31T12:00:00\n1,2026-01-31T12:00:00+02:00\n";
    assert_eq!(String::from_utf8_lossy(&work.read("out/o.csv")), expected);
    let schema = format!("{sort} --schema t:timestamp_us");
    work.run(&schema).says(3, &["a.csv", "line 2", "'t'", "offset", "timestamp_us(UTC)"]);
    // After the sample.
    let rows = "1,2026-01-31T12:00:00\n".repeat(60_000);
    assert!(rows.len() > 1 << 20, "longer than the sample");
    work.put("in/a.csv", format!("id,t\n{rows}2,2026-01-31T12:00:00Z\n"));
    work.run(sort).says(3, &["line 60002", "'t'", "offset"]);
    work.put("in/a.csv", format!("id,t\n{rows}2,2026-01-31T12:00:00.1234567\n"));
    work.run(sort).says(3, &["line 60002", "'t'", "7 digits"]);
}

#[test]
fn times_out_of_range_and_times_of_day() {
    let work = Work::new();
    work.put("in/a.csv", "id,t\n1,2026-01-31T12:00:00.123456789\n2,1600-01-31T12:00:00\n");
    let sort = "sort in/a.csv --by id -o out/o.arrow";
    work.run(sort).says(3, &["a.csv", "line 3", "'t'", "1600-01-31", "range of nanoseconds"]);
    // As a key, too; text in other columns is not parsed.
    let keyed = work.run("sort in/a.csv --by t -o out/o.csv");
    keyed.says(3, &["a.csv", "line 3", "'t'", "1600-01-31", "range of nanoseconds"]);
    let rows = "1,2026-01-31\n".repeat(20_000);
    work.put("in/a.csv", format!("id,t\n{rows}2,2026-01-31 12:00:00\n"));
    work.run(sort).says(3, &["line 20002", "'t'", "time of day"]);
    work.put("in/a.csv", "id,t\n1,12:00:00.5\n");
    work.run(&format!("{sort} --schema t:time32_s")).says(3, &["line 2", "'t'", "1 digits"]);
    work.put("in/a.ndjson", "{\"t\":\"2026-01-31T12:00:00Z\"}\n");
    let sort = "sort in/a.ndjson --by t -o out/o.csv";
    work.run(&format!("{sort} --schema t:timestamp_us")).says(3, &["line 1", "'t'", "offset"]);
    work.run(&format!("{sort} --schema t:timestamp_us(UTC)")).succeeds();
    assert_eq!(work.read("out/o.csv"), b"t\n2026-01-31T12:00:00Z\n");
}

#[test]
fn text_that_is_none() {
    let work = Work::new();
    for (bytes, parts) in [
        (&b"id,name\n1,ok\n2,b\xffd\n"[..], ["line 3", "'name'", "UTF-8"]),
        (b"id,name,x\n1,\"a,\nb\",\"\xff\"\n", ["line 3", "'x'", "UTF-8"]),
        (b"id,n\xffme\n1,ok\n", ["line 1", "field 2", "UTF-8"]),
    ] {
        work.put("in/a.csv", bytes);
        work.run("sort in/a.csv --by id -o out/o.csv").says(3, &parts);
    }
    let mut late = b"id,name\n".to_vec();
    late.extend(b"1,some name\n".repeat(100_000));
    late.extend(b"2,b\xffd\n");
    work.put("in/a.csv", late);
    let ran = work.run("sort in/a.csv --by id -o out/o.csv");
    ran.says(3, &["a.csv", "line 100002", "'name'", "UTF-8"]);
    work.holds_only(&[]);
}

#[test]
fn integers_beyond_64_bits_are_ordered_as_numbers() {
    let work = Work::new();
    for (values, sorted) in [
        ("10\n9\n18446744073709551615", "9\n10\n18446744073709551615"),
        ("10\n-9\n9223372036854775808\n9", "-9\n9\n10\n9223372036854775808"),
        ("10\n9\n100000000000000000000", "9\n10\n100000000000000000000"),
        // Postal codes are names.
        ("100000000000000000000\n007", "007\n100000000000000000000"),
    ] {
        work.put("in/a.csv", format!("id\n{values}\n"));
        work.run("sort in/a.csv --by id -o out/o.csv").succeeds();
        assert_eq!(String::from_utf8_lossy(&work.read("out/o.csv")), format!("id\n{sorted}\n"));
    }
}

/// More rows than the sample holds.
const MANY: usize = 150_000;

#[test]
fn values_behind_the_sample_that_would_have_made_their_column_another() {
    let work = Work::new();
    for (usual, strange, why) in [
        ("90210", "02139", "leading zeros"),
        ("5", "+5", "not written as"),
        ("18446744073709551615", "007", "leading zeros"),
        ("100000000000000000000", "1.0", "not written as"),
        ("1.5", "00.5", "leading zeros"),
        ("1.5", "1e400", "larger"),
        ("1.5", "Infinity", "not written as"),
        ("2026-01-31", "20260131", "not written as"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "no offset"),
    ] {
        let rows: String = (0..MANY).map(|i| format!("{i},{usual}\n")).collect();
        let last = format!("{MANY},{strange}\n");
        let sort = "--by id -o out/o.arrow";
        work.put("in/a.csv", format!("id,v\n{rows}{last}"));
        let line = format!("line {}", MANY + 2);
        work.run(&format!("sort in/a.csv {sort}")).says(3, &["a.csv", &line, "'v'", strange, why]);
        // The sample comes from the first file.
        work.put("in/a.csv", format!("id,v\n1,{usual}\n"));
        work.put("in/b.csv", format!("id,v\n{last}"));
        let two = format!("sort in/a.csv in/b.csv {sort}");
        work.run(&two).says(3, &["b.csv", "line 2", "'v'", strange, why, "--schema"]);
        // The column stays text if declared so, and if the output is text anyway.
        for text in ["--schema v:utf8", ""] {
            work.run(&format!("sort in/b.csv in/a.csv --by id -o out/o.csv {text}")).succeeds();
            assert_eq!(work.text("out/o.csv"), format!("id,v\n1,{usual}\n{last}"));
        }
    }
    work.put("in/a.csv", "id,v\n1,90210\n");
    work.put("in/b.csv", "id,v\n2,02139\n");
    work.run("sort in/a.csv in/b.csv --by id -o out/o.csv --schema v:int64").succeeds();
    assert_eq!(work.text("out/o.csv"), "id,v\n1,90210\n2,2139\n", "as it is asked for");
    work.put("in/a.csv", "id,v\n1,1.5\n2,02139\n");
    work.run("sort in/a.csv --by id -o out/o.csv").succeeds();
    assert_eq!(work.text("out/o.csv"), "id,v\n1,1.5\n2,02139\n");
}

#[test]
fn strings_of_json_are_no_numbers() {
    let work = Work::new();
    for (usual, strange) in [
        ("90210", "\"02139\""),
        ("90210", "\"2139\""),
        ("1.5", "\"1.10\""),
        ("18446744073709551615", "\"1\""),
        ("true", "\"true\""),
    ] {
        let rows: String = (0..MANY).map(|i| format!("{{\"id\":{i},\"v\":{usual}}}\n")).collect();
        let last = format!("{{\"id\":{MANY},\"v\":{strange}}}\n");
        work.put("in/a.ndjson", format!("{rows}{last}"));
        let line = format!("line {}", MANY + 1);
        let sort = "sort in/a.ndjson --by id -o out/o.ndjson";
        work.run(sort).says(3, &["a.ndjson", &line, "--schema"]);
        work.put("in/b.ndjson", &last);
        let usual = format!("{{\"id\":1,\"v\":{usual}}}\n");
        work.put("in/a.ndjson", &usual);
        let two = "sort in/a.ndjson in/b.ndjson --by id -o out/o.ndjson";
        work.run(two).says(3, &["b.ndjson", "line 1", "--schema"]);
    }
    work.put("in/a.ndjson", "{\"id\":1,\"v\":{\"w\":1}}\n");
    work.put("in/b.ndjson", "{\"id\":2,\"v\":{\"w\":\"1\"}}\n");
    let two = "sort in/a.ndjson in/b.ndjson --by id -o out/o.ndjson";
    work.run(two).says(3, &["b.ndjson", "line 1", "'v.w'", "a string", "among the first"]);
    work.put("in/a.ndjson", "{\"id\":1,\"v\":90210}\n{\"id\":2,\"v\":\"02139\"}\n");
    work.run("sort in/a.ndjson --by id -o out/o.ndjson --schema v:int64").succeeds();
    assert_eq!(
        work.text("out/o.ndjson"),
        "{\"id\":1,\"v\":90210}\n{\"id\":2,\"v\":2139}\n",
        "as it is asked for"
    );
}

#[test]
fn json_that_is_too_deep() {
    let work = Work::new();
    let rows: String = (0..MANY).map(|i| format!("{{\"id\":{i},\"a\":1}}\n")).collect();
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    // On one line, and on many.
    for deep in [deep.clone(), deep.replace('[', "[\n")] {
        work.put("in/a.ndjson", format!("{rows}{{\"id\":1,\"a\":{deep}}}\n"));
        let line = format!("line {}", MANY + 1);
        let ran = work.run("sort in/a.ndjson --by id -o out/o.ndjson");
        ran.says(3, &["a.ndjson", &line, "127 deep"]);
    }
}
