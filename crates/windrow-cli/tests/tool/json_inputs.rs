//! JSON other than one object a line: arrays, objects over several lines, objects without line
//! breaks.

use std::fmt::Write;

use crate::common::Work;

/// Texts with the rows (2, b), (1, null).
const ALIKE: &[&str] = &[
    "{\"id\":2,\"v\":\"b\"}\n{\"id\":1,\"v\":null}\n",
    "{\"id\":2,\"v\":\"b\"}{\"id\":1,\"v\":null}",
    "{\"id\":2,\"v\":\"b\"} {\"id\":1}",
    "{\n  \"id\": 2,\n  \"v\": \"b\"\n}\n{\n  \"id\": 1\n}\n",
    "[{\"id\":2,\"v\":\"b\"},{\"id\":1,\"v\":null}]",
    "[{\"id\":2,\"v\":\"b\"},{\"id\":1}]\n",
    "[\n  {\"id\":2,\"v\":\"b\"},\n  {\"id\":1}\n]\n",
    "[\n  {\n    \"id\": 2,\n    \"v\": \"b\"\n  },\n  {\n    \"id\": 1\n  }\n]\n",
    "[{\"id\":2,\"v\":\"b\"}\n,{\"id\":1}\n]",
    "[{\"id\":2,\"v\":\"b\"}]\n[{\"id\":1}]\n",
    "[]\n[{\"id\":2,\"v\":\"b\"},{\"id\":1}]",
    "[null,{\"id\":2,\"v\":\"b\"},null,{\"id\":1}]",
    "[\n  null,\n  {\"id\":2,\"v\":\"b\"},\n  {\"id\":1}\n]",
    "\u{feff}[{\"id\":2,\"v\":\"b\"},{\"id\":1}]",
    " \r\n [ {\"v\":\"b\",\"id\":2} , {\"id\":1} ] \r\n",
];

#[test]
fn arrays_and_objects_however_they_stand() {
    let work = Work::new();
    for text in ALIKE {
        work.put("in/a.json", text);
        for sort in
            ["{} sort in/a.json", "cat in/a.json | {} sort -", "gzip -c in/a.json | {} sort -"]
        {
            work.shell(&format!("{sort} --by id --select id,v -o out/o.csv")).succeeds();
            assert_eq!(work.text("out/o.csv"), "id,v\n1,\n2,b\n", "{sort} {text:?}");
        }
    }
}

#[test]
fn long_arrays_keep_the_limit() {
    let work = Work::new();
    let mut text = String::from("[");
    for id in 0..400_000_u64 {
        let comma = if id == 0 { "" } else { "," };
        let id = id * 7919 % 400_000;
        write!(text, "{comma}{{\"id\":{id},\"v\":[{id},\"],[{{\"],\"o\":{{\"x\":{id}}}}}")
            .expect("text");
    }
    text.push(']');
    work.put("in/a.json", text);
    let ran =
        work.run("sort in/a.json --by id -o out/o.parquet --memory-limit 64MiB --threads 1 --stats out/s.json");
    ran.succeeds();
    let stats = work.text("out/s.json");
    assert!(
        stats.contains("\"rows_out\":400000") || stats.contains("\"rows_out\": 400000"),
        "{stats}"
    );
}

#[test]
fn arrays_that_are_none() {
    let work = Work::new();
    for (text, parts) in [
        ("[{\"id\":1},\n{\"id\":2}", &["line 2", "never closed"][..]),
        ("[{\"id\":1},\n", &["line 2", "never closed"]),
        ("[{\"id\":1}\n{\"id\":2}]", &["line 2", "no comma"]),
        ("[{\"id\":1},\n]", &["line 2", "no value"]),
        ("[{\"id\":1}]\n{\"id\":2}", &["line 2", "behind the JSON array"]),
        ("[{\"id\":1},\n[{\"id\":2}]]", &["behind the JSON array"]),
        ("[1,2]", &["not an object"]),
        ("[]", &["--schema"]),
    ] {
        work.put("in/a.json", text);
        work.run("sort in/a.json --by id -o out/o.csv").says(3, parts);
        work.holds_only(&[]);
    }
    // After the sample.
    let rows = "{\"id\":1},\n".repeat(200_000);
    work.put("in/a.json", format!("[\n{rows}{{\"id\":\"x\"}}\n]"));
    work.run("sort in/a.json --by id -o out/o.csv").says(3, &["line 200002", "'id'"]);
    work.put("in/a.json", format!("[\n{rows}{{\"id\":2}}\n"));
    work.run("sort in/a.json --by id -o out/o.csv").says(3, &["line 200003", "never closed"]);
    work.holds_only(&[]);
}

#[test]
fn change_logs_in_arrays() {
    let work = Work::new();
    let column = |name: &str, value: &str| format!("{{\"name\":\"{name}\",\"value\":{value}}}");
    let change = |action: &str, id: u8, v: &str| {
        format!(
            "{{\"action\":\"{action}\",\"lsn\":\"0/{id}\",\"schema\":\"public\",\"table\":\"t\",\"columns\":[{},{}]}}",
            column("id", &id.to_string()),
            column("v", v),
        )
    };
    let events = [change("I", 1, "\"a\""), change("U", 1, "\"b\""), change("I", 2, "\"c\"")];
    for text in [format!("[{}]", events.join(",")), format!("[\n{}\n]\n", events.join(",\n"))] {
        work.put("in/a.json", text);
        work.run("compact in/a.json --op-preset wal2json --key id --select id,v -o out/o.csv")
            .succeeds();
        assert_eq!(work.text("out/o.csv"), "id,v\n1,b\n2,c\n");
    }
}

#[test]
fn types_of_lists_and_objects_are_named() {
    let work = Work::new();
    // The second file has members missing from the first, whose values have no types.
    work.put("in/a.json", "{\"id\":1,\"o\":{\"k\":null},\"l\":[]}\n");
    work.put("in/b.json", "{\"id\":2,\"o\":{\"k\":1.50,\"m\":{\"t\":[\"x\"]}},\"l\":[1,null]}\n");
    let schema = "o:struct(k:decimal128(9,2),m:struct(t:list(utf8))),l:list(int32)";
    let sort = "sort in/a.json in/b.json --by id -o out/o.ndjson";
    work.run(&format!("{sort} --schema {schema}")).succeeds();
    let expected = "{\"id\":1,\"o\":{\"k\":null,\"m\":null},\"l\":[]}\n\
                    {\"id\":2,\"o\":{\"k\":1.50,\"m\":{\"t\":[\"x\"]}},\"l\":[1,null]}\n";
    assert_eq!(work.text("out/o.ndjson"), expected);
    let narrow = "o:struct(k:decimal128(9,1),m:struct(t:list(utf8))),l:list(int8)";
    work.run(&format!("{sort} --schema {narrow}")).succeeds();
    assert_eq!(work.text("out/o.ndjson"), expected.replace("1.50", "1.5"));
    work.put("in/b.json", "{\"id\":2,\"o\":{\"k\":1.55},\"l\":[1]}\n");
    work.run(&format!("{sort} --schema o:struct(k:decimal128(9,1)),l:list(int8)"))
        .says(3, &["b.json", "line 1", "'o.k'", "1.55"]);
    for (schema, parts) in [
        ("o:struct()", &["struct(...)"][..]),
        ("o:list", &["list(...)"]),
        ("o:struct(k:int64,k:int8)", &["there twice"]),
        ("o:list(klingon)", &["unknown type", "struct(name:type,...)"]),
        ("o:struct(k)", &["name:type"]),
    ] {
        work.run(&format!("{sort} --schema {schema}")).says(2, parts);
    }
    work.run(&format!("{sort} --schema o:{}int8{}", "list(".repeat(100), ")".repeat(100)))
        .says(2, &["64 deep"]);
    work.put("in/a.csv", "id,o\n1,2\n");
    work.run("sort in/a.csv --by id -o out/o.csv --schema o:list(int8)").says(2, &["'o'", "CSV"]);
}
