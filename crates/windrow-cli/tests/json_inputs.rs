//! JSON as people have it beside a line an object: arrays, objects over several lines, objects without lines.

mod common;

use std::fmt::Write;

use common::Work;

/// All of these are the rows (2, b), (1, null).
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
    work.put("in/a.json", text.replace(&"\"],[{\"", "8"));
    let ran =
        work.run("sort in/a.json --by id -o out/o.parquet --memory-limit 48MiB --stats out/s.json");
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
    // Behind the sample.
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
