//! Selection of rows: without duplicates, the first ones, and by condition; and columns named by
//! paths into structs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

use crate::common::{self, Work, read_parquet, write_log, write_parquet};

/// Runs `line` with `-o out/o.csv` and compares the output.
#[track_caller]
fn gives(work: &Work, line: &str, expected: &str) {
    work.run(&format!("{line} -o out/o.csv")).succeeds();
    assert_eq!(work.text("out/o.csv"), expected, "{line}");
}

const ROWS: &str = "id,v,w\n3,a,1\n1,b,2\n3,a,1\n2,c,3\n1,b,4\n,d,5\n,e,6\n4,f,7\n";

#[test]
fn one_row_of_each_key_stays() {
    let work = Work::new();
    work.put("in/a.csv", ROWS);
    work.put("in/b.csv", "id,v,w\n2,z,9\n3,a,1\n");
    work.put("in/none.csv", "id,v,w\n");
    for (line, expected) in [
        ("in/a.csv", "1,b,2\n1,b,4\n2,c,3\n3,a,1\n4,f,7\n,d,5\n,e,6\n"),
        ("in/a.csv --keep last", "1,b,2\n1,b,4\n2,c,3\n3,a,1\n4,f,7\n,d,5\n,e,6\n"),
        ("in/a.csv --keep none", "1,b,2\n1,b,4\n2,c,3\n4,f,7\n,d,5\n,e,6\n"),
        ("in/a.csv --key id", "1,b,2\n2,c,3\n3,a,1\n4,f,7\n,d,5\n"),
        ("in/a.csv --key id --keep last", "1,b,4\n2,c,3\n3,a,1\n4,f,7\n,e,6\n"),
        ("in/a.csv --key id --keep none", "2,c,3\n4,f,7\n"),
        ("in/a.csv --key id:desc", "4,f,7\n3,a,1\n2,c,3\n1,b,2\n,d,5\n"),
        ("in/a.csv --key id:nulls-first", ",d,5\n1,b,2\n2,c,3\n3,a,1\n4,f,7\n"),
        ("in/a.csv --key id,v", "1,b,2\n2,c,3\n3,a,1\n4,f,7\n,d,5\n,e,6\n"),
        ("in/a.csv --key v,id --keep none", "2,c,3\n,d,5\n,e,6\n4,f,7\n"),
        ("in/a.csv in/b.csv --key id", "1,b,2\n2,c,3\n3,a,1\n4,f,7\n,d,5\n"),
        ("in/a.csv in/b.csv --key id --keep last", "1,b,4\n2,z,9\n3,a,1\n4,f,7\n,e,6\n"),
        ("in/b.csv in/a.csv --key id", "1,b,2\n2,z,9\n3,a,1\n4,f,7\n,d,5\n"),
        ("in/a.csv in/b.csv --key id --keep none", "4,f,7\n"),
        ("in/a.csv in/a.csv --keep none", ""),
        ("in/none.csv", ""),
        ("in/none.csv --keep none --key id", ""),
        ("in/a.csv --key id --where w>1", "1,b,2\n2,c,3\n3,a,1\n4,f,7\n,d,5\n"),
    ] {
        let expected = match line.contains("w>1") {
            true => "1,b,2\n2,c,3\n4,f,7\n,d,5\n",
            false => expected,
        };
        gives(&work, &format!("dedupe {line}"), &format!("id,v,w\n{expected}"));
    }
    gives(&work, "dedupe in/a.csv --key id --select w", "w\n2\n3\n1\n7\n5\n");
    gives(&work, "dedupe in/a.csv --key id --keep none --select w", "w\n3\n7\n");
    work.run("dedupe in/a.csv --key nope -o out/p.csv").says(2, &["no column named"]);
    work.run("dedupe in/a.csv --keep some -o out/p.csv").says(2, &["first", "last", "none"]);
    work.holds_only(&["o.csv"]);
}

#[test]
fn values_that_are_there_last() {
    let work = Work::new();
    work.put("in/a.csv", "id,name,n\n2,b,\n1,a,1\n2,,7\n1,,\n2,c,\n3,,\n");
    work.put("in/a.ndjson", "{\"k\":{\"id\":1},\"v\":[1]}\n{\"k\":{\"id\":1},\"v\":null}\n");
    let known = "--keep last-known";
    for (line, expected) in [
        (format!("dedupe in/a.csv --key id {known}"), "id,name,n\n1,a,1\n2,c,7\n3,,\n"),
        (format!("dedupe in/a.csv --key id --select n,id {known}"), "n,id\n1,1\n7,2\n,3\n"),
        (format!("dedupe in/a.csv --key id:desc --select id {known}"), "id\n3\n2\n1\n"),
        (format!("dedupe in/a.csv in/a.csv --key id {known}"), "id,name,n\n1,a,1\n2,c,7\n3,,\n"),
    ] {
        gives(&work, &line, expected);
    }
    let line = "dedupe in/a.ndjson --key k.id --keep last-known -o out/o.ndjson";
    work.run(line).succeeds();
    assert_eq!(work.text("out/o.ndjson"), "{\"k\":{\"id\":1},\"v\":[1]}\n");
    // A log whose rows each have one of two columns, spilled and merged under a small limit.
    let (keys, mut log) = (5000_u64, String::from("id,a,b\n"));
    let mut rows: BTreeMap<u64, [Option<u64>; 2]> = BTreeMap::new();
    for n in 0..300_000_u64 {
        let hash = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let (id, place) = (hash % keys, (hash / keys % 2) as usize);
        rows.entry(id).or_default()[place] = Some(n);
        let values = if place == 0 { format!("{n},") } else { format!(",{n}") };
        log += &format!("{id},{values}\n");
    }
    work.put("in/log.csv", log);
    let text = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let rows = rows.iter().map(|(id, [a, b])| format!("{id},{},{}\n", text(*a), text(*b)));
    let expected = format!("id,a,b\n{}", rows.collect::<String>());
    for limits in ["--threads 1", "--threads 2 --memory-limit 48MiB --temp-dir temp"] {
        let types = "--schema id:int64,a:int64,b:int64";
        gives(
            &work,
            &format!("dedupe in/log.csv --key id --keep last-known {types} {limits}"),
            &expected,
        );
    }
}

#[test]
fn zeros_and_nans_are_one_key() {
    let work = Work::new();
    work.put("in/a.csv", "k,v\n0.0,1\n-0.0,2\nNaN,3\n-NaN,4\n1.5,5\n-1.5,6\nNaN,7\n");
    for (keep, expected) in [
        ("first", "-1.5,6\n0.0,1\n1.5,5\nNaN,3\n"),
        ("last", "-1.5,6\n0.0,2\n1.5,5\nNaN,7\n"),
        ("none", "-1.5,6\n1.5,5\n"),
    ] {
        let line = format!("dedupe in/a.csv --schema k:float64 --key k --keep {keep}");
        gives(&work, &line, &format!("k,v\n{expected}"));
    }
    work.put("in/b.ndjson", "{\"s\":{\"k\":-0.0},\"v\":1}\n{\"s\":{\"k\":0.0},\"v\":2}\n");
    work.run("dedupe in/b.ndjson --key s.k -o out/o.ndjson").succeeds();
    assert_eq!(work.text("out/o.ndjson"), "{\"s\":{\"k\":-0.0},\"v\":1}\n");
}

#[test]
fn duplicates_of_a_log_that_spills_are_those_of_a_map() {
    let work = Work::new();
    write_log(&work.path("in/log.parquet"), 400_000);
    let rows = read_parquet(&work.path("in/log.parquet"));
    let (mut first, mut last, mut count) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let ids = rows.column(0).as_primitive::<Int64Type>().values();
    let lsns = rows.column(1).as_primitive::<Int64Type>().values();
    for (&id, &lsn) in ids.iter().zip(lsns) {
        first.entry(id).or_insert(lsn);
        last.insert(id, lsn);
        *count.entry(id).or_insert(0) += 1;
    }
    let mut alone = first.clone();
    alone.retain(|id, _| count[id] == 1);
    for (keep, expected) in [("first", first), ("last", last), ("none", alone)] {
        let line = format!(
            "dedupe in/log.parquet --key id --keep {keep} -o out/o.parquet --memory-limit 80MiB \
             --threads 2 --temp-dir temp"
        );
        work.run(&line).succeeds();
        let found = read_parquet(&work.path("out/o.parquet"));
        let ids = found.column(0).as_primitive::<Int64Type>().values();
        let lsns = found.column(1).as_primitive::<Int64Type>().values();
        let found: Vec<(i64, i64)> = ids.iter().copied().zip(lsns.iter().copied()).collect();
        assert!(found == expected.into_iter().collect::<Vec<_>>(), "{keep}");
    }
    // A sort in the order of the key, with a limit on rows.
    work.run("sort in/log.parquet --by lsn:desc --limit 1000 -o out/o.parquet --stats out/s.json")
        .succeeds();
    let found = read_parquet(&work.path("out/o.parquet"));
    let lsns = found.column(1).as_primitive::<Int64Type>().values();
    assert!(lsns.iter().copied().eq((399_000..400_000).rev()));
    assert!(work.text("out/s.json").contains("\"spilled_bytes\":0"));
}

#[test]
fn the_first_rows_in_the_order() {
    let work = Work::new();
    work.put("in/a.csv", ROWS);
    let sorted = "1,b,2\n1,b,4\n2,c,3\n3,a,1\n3,a,1\n4,f,7\n,d,5\n,e,6\n";
    for limit in 0..10 {
        let expected: String = sorted.split_inclusive('\n').take(limit).collect();
        let expected = format!("id,v,w\n{expected}");
        gives(&work, &format!("sort in/a.csv --by id --limit {limit}"), &expected);
        let threads = format!("sort in/a.csv --by id --limit {limit} --threads 1");
        gives(&work, &threads, &expected);
    }
    gives(&work, "sort in/a.csv --by id:desc --limit 2", "id,v,w\n4,f,7\n3,a,1\n");
    gives(&work, "sort in/a.csv --by id:nulls-first --limit 2", "id,v,w\n,d,5\n,e,6\n");
    gives(&work, "sort in/a.csv --by w:desc --limit 2 --select v", "v\nf\ne\n");
    gives(&work, "sort in/a.csv in/a.csv --by v --limit 3 --select v,w", "v,w\na,1\na,1\na,1\n");
    gives(&work, "sort in/a.csv --by w --limit 2 --where w>3", "id,v,w\n1,b,4\n,d,5\n");
    work.run("sort in/a.csv --by id --limit few -o out/p.csv").says(2, &["--limit"]);
}

#[test]
fn the_first_rows_as_they_come() {
    let work = Work::new();
    work.put("in/a.csv", ROWS);
    work.put("in/b.csv", "id,v,w\n9,y,9\n8,z,9\n");
    let all: Vec<&str> = ROWS.split_inclusive('\n').collect();
    for rows in 0..10 {
        let expected: String = all.iter().take(rows + 1).copied().collect();
        gives(&work, &format!("head in/a.csv -n {rows}"), &expected);
    }
    gives(&work, "head in/a.csv", ROWS);
    gives(&work, "head in/b.csv in/a.csv -n 3", "id,v,w\n9,y,9\n8,z,9\n3,a,1\n");
    gives(&work, "head in/a.csv in/b.csv -n 2 --where v>=y", "id,v,w\n9,y,9\n8,z,9\n");
    gives(&work, "head in/a.csv -n 2 --select w,id", "w,id\n1,3\n2,1\n");
    // Rows after the limit are not parsed.
    let mut long = "id\n".to_owned() + &"1\n".repeat(1_000_000);
    long.push_str("x\n");
    work.put("in/long.csv", long);
    gives(&work, "head in/long.csv -n 2", "id\n1\n1\n");
    work.run("sort in/long.csv --by id -o out/p.csv").says(3, &["line 1000002"]);
}

#[test]
fn every_verb_takes_a_condition() {
    let work = Work::new();
    work.put("in/a.csv", ROWS);
    work.put("in/log.csv", "id,lsn,op\n1,1,I\n1,2,D\n2,1,I\n2,3,U\n");
    work.put("in/s.csv", "id\n1\n9\n2\n3\n");
    let run = |args: &[&str]| {
        let mut command = work.command("");
        command.args(args);
        common::ran(command.spawn().expect("started"))
    };
    run(&["sort", "in/a.csv", "--by", "w", "--where", "id = 1 and w > 2", "-o", "out/o.csv"])
        .succeeds();
    assert_eq!(work.text("out/o.csv"), "id,v,w\n1,b,4\n");
    gives(
        &work,
        "compact in/log.csv --key id --order-by lsn --op-column op --where lsn<2",
        "id,lsn\n1,1\n2,1\n",
    );
    gives(&work, "merge in/s.csv in/s.csv --by id --where id<9", "id\n1\n1\n2\n2\n3\n3\n");
    run(&["head", "in/s.csv", "--where", "id = 1 or not id < 3", "-o", "out/h.csv"]).succeeds();
    assert_eq!(work.text("out/h.csv"), "id\n1\n9\n3\n");
    work.run("check in/s.csv --by id").says(1, &["row 2 sorts before"]);
    work.run("check in/s.csv --by id --where id<9").succeeds();
    work.run("check in/s.csv --by id --where id!=1").says(1, &["row 2 sorts before"]);
    let hive = "partition in/a.csv --by v --hive --where v<c -o out/d --output-format csv";
    work.run(hive).succeeds();
    assert_eq!(work.names("out/d"), ["v=a", "v=b"]);
    for (condition, part) in [
        ("nope=1", "no column named"),
        ("id=x", "no value of column"),
        ("id", "nothing behind id"),
        ("id=1 id=2", "`and` or `or` is expected"),
    ] {
        run(&["sort", "in/a.csv", "--by", "id", "--where", condition, "-o", "out/p.csv"])
            .says(2, &["--where", part]);
    }
}

#[test]
fn members_of_structs_are_columns() {
    let work = Work::new();
    let rows = "{\"user\":{\"id\":2,\"n\":\"b\"},\"a.b\":{\"c\":1},\"op\":\"I\",\"v\":1}\n\
                {\"user\":{\"id\":1,\"n\":\"a\"},\"a.b\":{\"c\":2},\"op\":\"I\",\"v\":2}\n\
                {\"user\":{\"id\":2,\"n\":\"z\"},\"a.b\":{\"c\":0},\"op\":\"U\",\"v\":3}\n\
                {\"user\":null,\"a.b\":{\"c\":9},\"op\":\"I\",\"v\":4}\n";
    work.put("in/a.ndjson", rows);
    for (line, expected) in [
        ("sort in/a.ndjson --by user.id --select v", "v\n2\n1\n3\n4\n"),
        ("sort in/a.ndjson --by user.id:desc,v:desc --select v", "v\n3\n1\n2\n4\n"),
        ("sort in/a.ndjson --by user.id:nulls-first --select v", "v\n4\n2\n1\n3\n"),
        ("sort in/a.ndjson --by v --select user.n,v", "user.n,v\nb,1\na,2\nz,3\n,4\n"),
        ("sort in/a.ndjson --by a.b.c --select v", "v\n3\n1\n2\n4\n"),
        ("sort in/a.ndjson --by user.id,v --limit 2 --select v", "v\n2\n1\n"),
        ("dedupe in/a.ndjson --key user.id --select v", "v\n2\n1\n4\n"),
        ("dedupe in/a.ndjson --key user.id --keep none --select v", "v\n2\n4\n"),
        ("compact in/a.ndjson --key user.id --select v", "v\n2\n3\n4\n"),
        ("compact in/a.ndjson --key user.id --order-by a.b.c --select v", "v\n2\n1\n4\n"),
        ("compact in/a.ndjson --key user.id --op-column op --select v", "v\n2\n3\n4\n"),
        ("head in/a.ndjson -n 1 --select user.n", "user.n\nb\n"),
        ("sort in/a.ndjson --by v --where user.id=2 --select v", "v\n1\n3\n"),
    ] {
        gives(&work, line, expected);
    }
    // A struct is written unchanged, without the columns derived from it.
    work.run("sort in/a.ndjson --by user.id -o out/o.ndjson").succeeds();
    let lines: Vec<&str> = rows.split_inclusive('\n').collect();
    assert_eq!(work.text("out/o.ndjson"), [lines[1], lines[0], lines[2], lines[3]].concat());
    work.run("compact in/a.ndjson --key user.id --order-by v -o out/c.ndjson").succeeds();
    assert_eq!(work.text("out/c.ndjson"), [lines[1], lines[2], lines[3]].concat());
    work.run("check out/o.ndjson --by user.id").succeeds();
    work.run("check in/a.ndjson --by user.id").says(1, &["row 1 sorts before"]);
    work.run("merge out/o.ndjson out/o.ndjson --by user.id -o out/m.ndjson").succeeds();
    assert_eq!(work.text("out/m.ndjson").lines().count(), 8);
    work.run("check out/m.ndjson --by user.id").succeeds();
    for line in ["--by user.id --into 3", "--by user.id --range --into 2", "--by v --range-at 3"] {
        let line = format!("partition in/a.ndjson {line} --sort user.n -o out/d");
        work.run(&format!("{line} --output-format ndjson")).succeeds();
        let files = work.names("out/d");
        let text: String = files.iter().map(|file| work.text(&format!("out/d/{file}"))).collect();
        let mut found: Vec<&str> = text.split_inclusive('\n').collect();
        found.sort_unstable_by_key(|line| line.split("\"v\":").nth(1));
        assert_eq!(found, lines, "{line}");
        std::fs::remove_dir_all(work.path("out/d")).expect("removed");
    }
    work.run("partition in/a.ndjson --by user.id --hive -o out/d").succeeds();
    let null = "user.id=__HIVE_DEFAULT_PARTITION__";
    assert_eq!(work.names("out/d"), ["user.id=1", "user.id=2", null]);
    for name in ["user.nope", "user.", "user.id.x", "\"user.id\"", "nope.id"] {
        let line = format!("sort in/a.ndjson --by {name} -o out/p.csv");
        assert_eq!(work.run(&line).code, Some(2), "{name}");
    }
}

#[test]
fn row_groups_that_a_condition_rules_out_are_not_read() {
    let work = Work::new();
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(0..300_000));
    let text = (0..300_000).map(|n| format!("word {n}"));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(text));
    let rows = RecordBatch::try_from_iter([("n", n), ("text", text)]).expect("rows");
    write_parquet(&work.path("in/a.parquet"), &rows);
    work.run("sort in/a.parquet --by n -o in/b.parquet --row-group-size 1MiB").succeeds();
    let line = "sort in/b.parquet --by n --where n>=299990 -o out/o.csv --stats out/s.json";
    work.run(line).succeeds();
    assert_eq!(work.text("out/o.csv").lines().count(), 11);
    let stats = work.text("out/s.json");
    let read = stats.split("\"rows_in\":").nth(1).and_then(|rest| rest.split(',').next());
    let read: u64 = read.and_then(|rows| rows.trim().parse().ok()).expect("a number");
    assert!(read < 100_000, "{read}");
}

/// Returns rows with these keys, numbered from 0.
fn floats(keys: &[f64]) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..keys.len() as i64));
    let keys: ArrayRef = Arc::new(Float64Array::from(keys.to_vec()));
    RecordBatch::try_from_iter([("f", keys), ("n", numbers)]).expect("rows")
}

#[test]
fn floats_that_are_equal_in_sql_are_one_key() {
    let work = Work::new();
    let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
    let keys = [0.0, -0.0, f64::NAN, -f64::NAN, 1.0, other_nan, 0.0];
    write_parquet(&work.path("in/a.parquet"), &floats(&keys));
    gives(&work, "dedupe in/a.parquet --key f", "f,n\n0.0,0\n1.0,4\nNaN,2\n");
    gives(&work, "compact in/a.parquet --key f", "f,n\n0.0,6\n1.0,4\nNaN,5\n");
    gives(&work, "compact in/a.parquet --key f --order-by n:desc", "f,n\n0.0,0\n1.0,4\nNaN,2\n");
    // A sort leaves the values unchanged, even if they are equal.
    work.run("sort in/a.parquet --by f --float-order sql -o in/sql.parquet").succeeds();
    gives(&work, "sort in/sql.parquet --by n --select n", "n\n0\n1\n2\n3\n4\n5\n6\n");
    gives(&work, "head in/sql.parquet --select n", "n\n0\n1\n6\n4\n2\n3\n5\n");
    gives(&work, "sort in/a.parquet --by f --select n", "n\n3\n1\n0\n6\n4\n2\n5\n");
    gives(
        &work,
        "sort in/a.parquet --by f:desc --float-order sql --select n",
        "n\n2\n3\n5\n4\n0\n1\n6\n",
    );
    work.run("check in/sql.parquet --by f --float-order sql").succeeds();
    work.run("check in/sql.parquet --by f").says(1, &["row 1 ", "sorted --by f --float-order sql"]);
    work.run("check in/sql.parquet --by f --unique").says(1, &["row 1 has the same key"]);
    work.run("check in/sql.parquet --by f --unique --float-order sql").says(2, &["--float-order"]);
    gives(
        &work,
        "merge in/sql.parquet in/sql.parquet --by f --unique",
        "f,n\n0.0,6\n1.0,4\nNaN,5\n",
    );
    gives(
        &work,
        "merge in/sql.parquet in/sql.parquet --by f --float-order sql --select n",
        "n\n0\n1\n6\n0\n1\n6\n4\n4\n2\n3\n5\n2\n3\n5\n",
    );
    work.run("merge in/sql.parquet --by f -o out/x.csv").says(3, &["row 1 sorts before"]);
    work.run("sort in/a.parquet --by f -o in/total.parquet").succeeds();
    work.run("merge in/total.parquet --by f --unique -o out/x.csv")
        .says(3, &["total.parquet", "--float-order sql"]);
    // Equal floats go to one of the hash partitions, unchanged.
    work.run("partition in/a.parquet --by f --into 97 -o out/p").succeeds();
    let mut homes: BTreeMap<u8, BTreeSet<String>> = BTreeMap::new();
    let (mut rows, mut minus) = (0, 0);
    for name in work.names("out/p") {
        let batch = read_parquet(&work.path(&format!("out/p/{name}")));
        for key in batch.column(0).as_primitive::<Float64Type>().values() {
            rows += 1;
            minus += u32::from(key.to_bits() == (-0.0f64).to_bits());
            let kind = if key.is_nan() { 2 } else { u8::from(*key == 0.0) };
            homes.entry(kind).or_default().insert(name.clone());
        }
    }
    assert_eq!((rows, minus), (7, 1));
    assert!(homes.values().all(|files| files.len() == 1), "{homes:?}");
}
