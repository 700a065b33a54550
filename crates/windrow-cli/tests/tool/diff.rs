//! `windrow diff`: the changes between two sides, as a log for `compact`, and as figures.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;

use crate::common::{Work, read_parquet, write_log, write_parquet};

/// Returns the changes from `old` to `new`, without the header.
#[track_caller]
fn changes(work: &Work, (old, new): (&str, &str), options: &str) -> String {
    work.put("in/old.csv", old);
    work.put("in/new.csv", new);
    work.run(&format!("diff in/old.csv in/new.csv {options} -o out/d.csv")).succeeds();
    let text = work.text("out/d.csv");
    text.split_once('\n').expect("a header").1.to_owned()
}

#[test]
fn keys_that_differ_are_changes() {
    let work = Work::new();
    let head = "id,v\n";
    for (old, new, expected) in [
        ("", "", ""),
        ("1,a\n", "", "delete,1,a\n"),
        ("", "1,a\n", "insert,1,a\n"),
        ("1,a\n", "1,a\n", ""),
        ("1,a\n", "1,b\n", "update,1,b\n"),
        ("1,b\n", "1,a\n", "update,1,a\n"),
        ("1,a\n", "2,a\n", "delete,1,a\ninsert,2,a\n"),
        ("2,a\n", "1,a\n", "insert,1,a\ndelete,2,a\n"),
        ("2,b\n1,a\n", "1,a\n2,b\n", ""),
        ("2,b\n1,a\n3,c\n", "1,a\n3,x\n", "delete,2,b\nupdate,3,x\n"),
        ("1,a\n2,b\n3,c\n", "4,d\n3,c\n2,b\n1,a\n", "insert,4,d\n"),
        ("1,\n", "1,a\n", "update,1,a\n"),
        ("1,a\n", "1,\n", "update,1,\n"),
        (",a\n", ",a\n", ""),
        (",a\n", ",b\n", "update,,b\n"),
        (",a\n1,b\n", "1,b\n", "delete,,a\n"),
        ("1,a\n", "1,A\n", "update,1,A\n"),
        ("1,a\n", "1,a \n", "update,1,a \n"),
        ("1,\"a,b\"\n", "1,\"a,c\"\n", "update,1,\"a,c\"\n"),
        ("10,a\n9,b\n", "9,b\n10,c\n", "update,10,c\n"),
    ] {
        let sides = (&*format!("{head}{old}"), &*format!("{head}{new}"));
        let found = changes(&work, sides, "--key id --schema id:int64,v:utf8");
        assert_eq!(found, expected, "{old:?} {new:?}");
        // With the sides exchanged, inserts become deletes.
        let back = changes(&work, (sides.1, sides.0), "--key id --schema id:int64,v:utf8");
        assert_eq!(back.lines().count(), expected.lines().count(), "{old:?} {new:?}");
        let words = |text: &str, word: &str| text.matches(word).count();
        assert_eq!(words(&back, "delete"), words(expected, "insert"), "{old:?} {new:?}");
    }
}

#[test]
fn options_say_what_is_compared_and_how() {
    let work = Work::new();
    let old = "id,v,w\n1,a,1\n2,b,2\n3,c,3\n5,e,5\n";
    let new = "id,v,w\n5,e,6\n1,a,1\n2,x,2\n4,d,4\n";
    for (options, expected) in [
        ("--key id", "update,2,x,2\ndelete,3,c,3\ninsert,4,d,4\nupdate,5,e,6\n"),
        ("--key id:desc", "update,5,e,6\ninsert,4,d,4\ndelete,3,c,3\nupdate,2,x,2\n"),
        ("--key id --select id,v", "update,2,x\ndelete,3,c\ninsert,4,d\n"),
        ("--key id --select v", "update,2,x\ndelete,3,c\ninsert,4,d\n"),
        ("--key id --select w,id", "delete,3,3\ninsert,4,4\nupdate,6,5\n"),
        ("--key id --select id", "delete,3\ninsert,4\n"),
        ("--key id,v", "delete,2,b,2\ninsert,2,x,2\ndelete,3,c,3\ninsert,4,d,4\nupdate,5,e,6\n"),
        ("--key w,v --select id", "update,2,x,2\n"),
        ("--key id --where w>=3", "delete,3,c,3\ninsert,4,d,4\nupdate,5,e,6\n"),
        ("--key id --where w<3", "update,2,x,2\n"),
        ("--key id --op-column kind --where w<3", "update,2,x,2\n"),
        (
            "--key id --format summary",
            "insert,,1\nupdate,,2\ndelete,,1\nnone,,1\nupdate,v,1\nupdate,w,1\n",
        ),
        (
            "--key id --format summary --select v",
            "insert,,1\nupdate,,1\ndelete,,1\nnone,,2\nupdate,v,1\n",
        ),
        ("--key id --format summary --where w>100", "insert,,0\nupdate,,0\ndelete,,0\nnone,,0\n"),
    ] {
        let expected = match options {
            "--key w,v --select id" => {
                "delete,2,b,2\ninsert,2,x,2\ndelete,3,c,3\ninsert,4,d,4\ndelete,5,e,5\ninsert,6,e,5\n"
            }
            _ => expected,
        };
        assert_eq!(changes(&work, (old, new), options), expected, "{options}");
    }
    let text = |line: &str| {
        work.run(&format!("diff in/old.csv in/new.csv --key id {line} -o out/d.csv")).succeeds();
        work.text("out/d.csv").lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(text(""), "op,id,v,w");
    assert_eq!(text("--op-column kind"), "kind,id,v,w");
    assert_eq!(text("--select w"), "op,id,w");
    assert_eq!(text("--format summary"), "change,column,rows");
    work.run("diff in/old.csv in/new.csv --key id --op-column v -o out/x.csv")
        .says(2, &["--op-column", "\"v\""]);
    work.run("diff in/old.csv in/new.csv --key nope -o out/x.csv").says(2, &["nope"]);
    work.run("diff in/old.csv --key id -o out/x.csv").says(2, &["OLD", "NEW"]);
    work.run("diff - - --key id -o out/x.csv").says(2, &["only once"]);
    work.put("in/twice.csv", "id,v,w\n7,a,1\n7,a,1\n");
    work.run("diff in/twice.csv in/new.csv --key id -o out/x.csv")
        .says(3, &["old side", "id 7", "--key"]);
    work.run("diff in/new.csv in/twice.csv --key id -o out/x.csv")
        .says(3, &["new side", "id 7", "--key"]);
    work.holds_only(&["d.csv"]);
}

#[test]
fn floats_are_equal_as_in_sql() {
    let work = Work::new();
    let schema = "--key k --schema k:float64,v:float64";
    for (old, new, expected) in [
        ("0.0,1.0\n", "-0.0,1.0\n", ""),
        ("NaN,1.0\n", "-NaN,1.0\n", ""),
        ("-0.0,1.0\n", "0.0,2.0\n", "update,0.0,2.0\n"),
        ("1.0,0.0\n", "1.0,-0.0\n", ""),
        ("1.0,-NaN\n", "1.0,NaN\n", ""),
        (
            "1.0,0.0\n2.0,0.0\n3.0,1\n",
            "1.0,-0.0\n2.0,5.0\n3.0,-0.0\n",
            "update,2.0,5.0\nupdate,3.0,-0.0\n",
        ),
        ("1.0,NaN\n", "1.0,NaN\n", ""),
    ] {
        let sides = (&*format!("k,v\n{old}"), &*format!("k,v\n{new}"));
        assert_eq!(changes(&work, sides, schema), expected, "{old:?} {new:?}");
        let by_name = &format!("{schema} --union-by-name");
        assert_eq!(changes(&work, sides, by_name), expected, "{old:?} {new:?}");
    }
    work.put("in/a.csv", "k,v,w\n1,0.0,a\n2,0.0,a\n");
    work.put("in/b.csv", "k,v,w\n1,-0.0,a\n2,-0.0,b\n");
    let options = "--key k --schema v:float64 --format summary -o out/s.csv";
    work.run(&format!("diff in/a.csv in/b.csv {options}")).succeeds();
    assert_eq!(
        work.text("out/s.csv"),
        "change,column,rows\ninsert,,0\nupdate,,1\ndelete,,0\nnone,,1\nupdate,w,1\n"
    );
}

#[test]
fn members_of_structs_are_keys() {
    let work = Work::new();
    work.put(
        "in/a.ndjson",
        "{\"u\":{\"id\":2,\"n\":\"b\"},\"l\":[1]}\n{\"u\":{\"id\":1,\"n\":\"a\"},\"l\":[1,2]}\n",
    );
    work.put(
        "in/b.ndjson",
        "{\"u\":{\"id\":1,\"n\":\"a\"},\"l\":[1,3]}\n{\"u\":{\"id\":2,\"n\":\"b\"},\"l\":[1]}\n",
    );
    work.run("diff in/a.ndjson in/b.ndjson --key u.id -o out/d.ndjson").succeeds();
    assert_eq!(
        work.text("out/d.ndjson"),
        "{\"op\":\"update\",\"u\":{\"id\":1,\"n\":\"a\"},\"l\":[1,3]}\n"
    );
    work.run("diff in/a.ndjson in/b.ndjson --key u.id --format summary -o out/d.csv").succeeds();
    assert!(work.text("out/d.csv").ends_with("update,l,1\n"));
}

/// Returns a log with its row numbers as keys, and a copy with changed, dropped and new rows, in
/// another order.
fn sides(work: &Work, rows: u64) -> (RecordBatch, RecordBatch) {
    write_log(&work.path("in/old.parquet"), rows);
    let old = read_parquet(&work.path("in/old.parquet"));
    let count = old.num_rows() as i64;
    let kept = BooleanArray::from_iter((0..count).map(|row| Some(row % 97 != 5)));
    let new = filter_record_batch(&old, &kept).expect("rows");
    let lsns = new.column(1).as_primitive::<Int64Type>().values();
    let lsns = lsns.iter().map(|&lsn| if lsn % 53 == 8 { lsn + (1 << 40) } else { lsn });
    let mut columns = new.columns().to_vec();
    columns[1] = std::sync::Arc::new(Int64Array::from_iter_values(lsns)) as ArrayRef;
    let new = RecordBatch::try_new(new.schema(), columns).expect("columns");
    let places = (0..new.num_rows() as u64).rev().collect::<Vec<_>>();
    let new = take_record_batch(&new, &arrow_array::UInt64Array::from(places)).expect("rows");
    (old, new)
}

#[test]
fn sides_that_spill_differ_as_maps_do() {
    let work = Work::new();
    let (old, new) = sides(&work, 300_000);
    write_parquet(&work.path("in/new.parquet"), &new);
    let key = |rows: &RecordBatch, row: usize| {
        let id = rows.column(0).as_primitive::<Int64Type>().value(row);
        (id, rows.column(1).as_primitive::<Int64Type>().value(row))
    };
    let map = |rows: &RecordBatch| -> BTreeMap<(i64, i64), usize> {
        (0..rows.num_rows()).map(|row| (key(rows, row), row)).collect()
    };
    let (before, after) = (map(&old), map(&new));
    let inserted = after.keys().filter(|key| !before.contains_key(key)).count();
    let deleted = before.keys().filter(|key| !after.contains_key(key)).count();
    work.run(
        "diff in/old.parquet in/new.parquet --key id,lsn --op-column change -o out/d.parquet \
         --memory-limit 64MiB --threads 2 --temp-dir temp",
    )
    .succeeds();
    let found = read_parquet(&work.path("out/d.parquet"));
    let words = found.column(0).as_string::<i32>();
    let count = |word: &str| words.iter().flatten().filter(|found| *found == word).count();
    assert_eq!((count("insert"), count("delete")), (inserted, deleted));
    assert_eq!(found.num_rows(), inserted + deleted);
    let keys: Vec<(i64, i64)> = (0..found.num_rows())
        .map(|row| {
            let id = found.column(1).as_primitive::<Int64Type>().value(row);
            (id, found.column(2).as_primitive::<Int64Type>().value(row))
        })
        .collect();
    assert!(keys.is_sorted());
    // The file does not depend on the limit or the threads.
    work.run(
        "diff in/old.parquet in/new.parquet --key id,lsn --op-column change -o out/e.parquet --threads 1",
    )
    .succeeds();
    assert!(
        std::fs::read(work.path("out/d.parquet")).unwrap()
            == std::fs::read(work.path("out/e.parquet")).unwrap()
    );
}
