//! The limit is the peak of the resident memory. The output depends on neither the limit nor the
//! threads.

use std::collections::BTreeMap;

use crate::common::{Work, peak_of, read_parquet, write_log};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

const ROWS: u64 = 1_000_000;

/// The peak of a run that reads [`ROWS`] rows, as seen from outside and as reported.
#[track_caller]
fn peak(work: &Work, line: &str) -> (u64, u64) {
    let (peak, stats) = peak_of(work, line);
    assert_eq!(stats["rows_in"], ROWS);
    (peak, stats["peak_rss_bytes"].as_u64().expect("a number"))
}

/// Every combination of limit and threads keeps its limit and writes the same file, to `out/o`.
fn holds_in(work: &Work, verb: &str, limits: [u64; 2], threads: [u64; 2]) {
    peak(work, &format!("{verb} -o out/expected --memory-limit unlimited --threads 1"));
    let expected = work.read("out/expected");
    for mebibytes in limits {
        for threads in threads {
            let (seen, told) = peak(
                work,
                &format!("{verb} -o out/o --memory-limit {mebibytes}MiB --threads {threads}"),
            );
            let limit = mebibytes << 20;
            println!("{verb}: {mebibytes} MiB, {threads} threads: {seen} seen, {told} told");
            assert!(told <= limit && seen <= limit, "{mebibytes} MiB: {seen} seen, {told} told");
            assert!(told > 16 << 20 && seen > 16 << 20, "{seen} seen, {told} told: not measured");
            assert!(work.read("out/o") == expected, "{mebibytes} MiB, {threads} threads");
        }
    }
}

/// Runs `holds_in` on a log; returns the directory and the output.
fn holds(verb: &str) -> (Work, RecordBatch) {
    let work = Work::released();
    write_log(&work.path("in/a.parquet"), ROWS);
    let verb = format!("{verb} --row-group-size 4MiB --output-format parquet");
    holds_in(&work, &verb, [64, 96], [1, 2]);
    let rows = read_parquet(&work.path("out/expected"));
    (work, rows)
}

#[test]
fn sorting_keeps_the_limit() {
    let (work, sorted) = holds("sort in/a.parquet --by payload:desc,lsn");
    assert_eq!(sorted.num_rows() as u64, ROWS);
    work.run("check out/o --input-format parquet --by payload:desc,lsn --unique").succeeds();
    let mut lsns: Vec<i64> = sorted["lsn"].as_primitive::<Int64Type>().values().to_vec();
    lsns.sort_unstable();
    assert!(lsns.into_iter().eq(0..ROWS as i64), "every row once");
}

#[test]
fn compacting_keeps_the_limit() {
    let (work, live) = holds("compact in/a.parquet --key id --order-by lsn --op-column op");
    // The specification: the latest change of each key, in order, deletes left out.
    let log = read_parquet(&work.path("in/a.parquet"));
    let mut latest: BTreeMap<i64, (i64, bool)> = BTreeMap::new();
    let numbers = |column: &str| log[column].as_primitive::<Int64Type>().values().clone();
    for ((id, lsn), op) in
        numbers("id").iter().zip(&numbers("lsn")).zip(log["op"].as_string::<i32>())
    {
        let change = (*lsn, op == Some("D"));
        let entry = latest.entry(*id).or_insert(change);
        *entry = change.max(*entry);
    }
    let expected = latest.iter().filter(|(_, change)| !change.1);
    let ids = live["id"].as_primitive::<Int64Type>().values().iter();
    let lsns = live["lsn"].as_primitive::<Int64Type>().values().iter();
    assert!(expected.map(|(id, change)| (id, &change.0)).eq(ids.zip(lsns)));
}

#[test]
fn text_on_many_threads_keeps_the_limit() {
    let work = Work::released();
    let place = |row: u64| row * 0x9E37_79B1 % ROWS;
    let mut csv = String::from("id,note,amount\n");
    let mut json = String::new();
    for row in 0..ROWS {
        let (id, amount) = (place(row), row % 100_000);
        // Records over several lines, and lines of any length.
        let note = match row % 7 {
            0 => "\"of two\nlines, \"\"quoted\"\"\"".to_owned(),
            1 => "x".repeat((row % 400) as usize),
            _ => format!("row {row}"),
        };
        csv += &format!("{id},{note},{amount}.25\n");
        json += &match row % 7 {
            0 => format!("{{\n \"id\": {id},\n \"note\": {{\"text\": \"of\\nlines\"}}\n}}\n"),
            _ => format!(
                "{{\"id\":{id},\"note\":{{\"text\":\"row {row}\"}},\"amount\":{amount}.25}}\n"
            ),
        };
    }
    work.put("in/a.csv", csv);
    work.put("in/a.ndjson", json);
    holds_in(&work, "sort in/a.csv --by id --output-format csv", [44, 96], [2, 8]);
    holds_in(&work, "sort in/a.ndjson --by id --output-format ndjson", [44, 96], [2, 8]);
}
