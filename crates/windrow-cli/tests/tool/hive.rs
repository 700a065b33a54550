//! Hive directories: values in names, read back unchanged.

use std::fs;

use crate::common::{Work, read_parquet, write_log};

const ROWS: &str = "id,country,day,v\n3,nl,2026-01-31,a\n1,de,2026-01-31,b\n2,nl,2026-02-01,c\n\
                    4,,2026-02-01,d\n5,a b/c,2026-02-01,e\n";

#[track_caller]
fn gives(work: &Work, line: &str, expected: &str) {
    work.run(&format!("{line} -o out/o.csv")).succeeds();
    assert_eq!(work.text("out/o.csv"), expected, "{line}");
}

#[test]
fn what_was_partitioned_is_read_back_whole() {
    let work = Work::new();
    work.put("in/a.csv", ROWS);
    let sorted = "id,country,day,v\n1,de,2026-01-31,b\n2,nl,2026-02-01,c\n3,nl,2026-01-31,a\n\
                  4,,2026-02-01,d\n5,a b/c,2026-02-01,e\n";
    for format in ["csv", "ndjson", "parquet", "arrow", "arrow-stream"] {
        let lake = format!("out/{format}");
        let write = format!("partition in/a.csv --by country,day --hive -o {lake}");
        work.run(&format!("{write} --output-format {format}")).succeeds();
        let line = format!("sort {lake} --by id --select id,country,day,v");
        gives(&work, &line, sorted);
        let line = format!("sort {lake}/** --by id --select id,country,day,v");
        let nl = format!("sort {lake} --by id --where country=nl --select id,day");
        gives(&work, &nl, "id,day\n2,2026-02-01\n3,2026-01-31\n");
        let line = line.replace("/** ", "/*/*/part-0.* ");
        gives(&work, &line, sorted);
        let head = format!("head {lake} --where day>2026-01-31 -n 99 --select v,day");
        let head = format!("{head} -o out/o.csv");
        work.run(&head).succeeds();
        assert_eq!(work.text("out/o.csv").lines().count(), 4);
        let keys = format!("compact {lake} --key country --order-by id --select country,id");
        gives(&work, &keys, "country,id\na b/c,5\nde,1\nnl,3\n,4\n");
        let types = format!("sort {lake} --by id --hive-types day:utf8,country:utf8 --select day");
        gives(&work, &types, "day\n2026-01-31\n2026-02-01\n2026-01-31\n2026-02-01\n2026-02-01\n");
        let lake_two = format!("partition {lake} --by day --hive -o out/two-{format}");
        work.run(&format!("{lake_two} --output-format csv")).succeeds();
        assert_eq!(work.names(&format!("out/two-{format}")), ["day=2026-01-31", "day=2026-02-01"]);
    }
}

#[test]
fn types_and_names_of_directories() {
    let work = Work::new();
    let put = |path: &str, text: &str| {
        let path = work.path(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    };
    put("in/n/k=2/a.csv", "v\nb\n");
    put("in/n/k=10/a.csv", "v\na\n");
    put("in/n/k=10/_SUCCESS", "");
    put("in/n/_temporary/k=3/a.csv", "v\nx\n");
    put("in/n/.hidden/a.csv", "v\nx\n");
    put("in/n/k=10/.a.csv.crc", "?");
    put("in/z/k=02/a.csv", "v\nb\n");
    put("in/z/k=10/a.csv", "v\na\n");
    put("in/own/k=1/a.csv", "k,v\n7,a\n");
    put("in/own/k=2/a.csv", "k,v\n8,b\n");
    put("in/mixed/a.csv", "v\na\n");
    put("in/mixed/k=1/a.csv", "v\nb\n");
    put("in/deep/x/y/k=1/z/a.csv", "v\nb\n");
    put("in/empty/k=1/a.csv", "v\n");
    put("in/empty/k=2/a.csv", "v\n3\n");
    put("in/empty/k=3/a.csv", "v\n4\n");
    for (line, expected) in [
        ("sort in/n --by k", "v,k\nb,2\na,10\n"),
        ("sort in/n/*/a.csv --by k", "v,k\nb,2\na,10\n"),
        ("sort in/n/k=2 in/n/k=10 --by v", "v\na\nb\n"),
        ("sort in/n/k=2/a.csv in/n/k=10/a.csv --by v", "v\na\nb\n"),
        ("sort in/n --by k --hive-types k:utf8", "v,k\na,10\nb,2\n"),
        ("sort in/n --by k:desc --hive-types k:decimal128(5,1)", "v,k\na,10.0\nb,2.0\n"),
        ("sort in/z --by k", "v,k\nb,02\na,10\n"),
        ("sort in/own --by k", "k,v\n7,a\n8,b\n"),
        ("sort in/deep --by k", "v,k\nb,1\n"),
        ("sort in/empty --by k:desc", "v,k\n4,3\n3,2\n"),
        ("sort in/n --by v --where k>=10", "v,k\na,10\n"),
        ("sort in/n --by v --where k=3", "v,k\n"),
        ("merge in/n --by k --select k", "k\n2\n10\n"),
        ("dedupe in/n in/n --key k --select k", "k\n2\n10\n"),
    ] {
        if line.starts_with("merge") {
            // Each file is sorted by itself.
            gives(&work, line, expected);
            continue;
        }
        gives(&work, line, expected);
    }
    for (line, code, part) in [
        ("sort in/n --by k --hive-types k:date32", 3, "k=10 is no Date32"),
        ("sort in/n --by k --hive-types nope:int64", 2, "nope"),
        ("sort in/n/k=2/a.csv --by v --hive-types k:int64", 2, "--hive-types"),
        ("sort in/mixed --by v", 3, "'k' is not in"),
        ("sort in/n/_temporary/.. --by nope", 2, "nope"),
    ] {
        work.run(&format!("{line} -o out/p.csv")).says(code, &[part]);
    }
    // An output among the inputs is refused, as elsewhere.
    work.run("sort in/n --by k -o in/n/k=2/a.csv").says(2, &["in/n/k=2/a.csv", "stands for it"]);
}

#[test]
fn a_log_in_directories_is_the_log() {
    let work = Work::new();
    write_log(&work.path("in/log.parquet"), 60_000);
    work.run("partition in/log.parquet --by op --hive --sort lsn -o out/lake").succeeds();
    work.run("sort in/log.parquet --by lsn --select id,lsn,payload,amount,ts,op -o out/a.parquet")
        .succeeds();
    work.run("sort out/lake --by lsn -o out/b.parquet --memory-limit 64MiB").succeeds();
    let (a, b) = ("out/a.parquet", "out/b.parquet");
    assert!(read_parquet(&work.path(a)).columns() == read_parquet(&work.path(b)).columns());
    work.run("merge out/lake --by lsn -o out/c.parquet").succeeds();
    assert!(work.read("out/c.parquet") == work.read(b));
    let line = "sort out/lake --by lsn --where op=D -o out/d.parquet --stats out/s.json";
    work.run(line).succeeds();
    let rows = read_parquet(&work.path("out/d.parquet")).num_rows();
    // Files of other operations are not read.
    assert!(work.text("out/s.json").contains(&format!("\"rows_in\":{rows},")));
}
