//! The limit is the peak of the resident memory for every kind of input, output and verb. The
//! output at a small limit equals the output without a limit.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Work, log_rows, peak_of, write_log, write_parquet};

const ROWS: u64 = 400_000;

/// Returns all bytes of a file, or of the files of a directory in the order of their names.
fn bytes_of(path: &Path) -> Vec<u8> {
    if path.is_file() {
        return fs::read(path).expect("read");
    }
    let mut paths: Vec<_> = fs::read_dir(path)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths.iter().flat_map(|path| fs::read(path).expect("read")).collect()
}

fn remove(path: &Path) {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.expect("removed");
}

/// Checks that `job` writes the same bytes to `out/o` at each limit, with one thread and with two,
/// as without a limit.
#[track_caller]
fn holds(work: &Work, job: &str, limits: &[u64]) -> Vec<u8> {
    let out = work.path("out/o");
    peak_of(work, &format!("{job} -o out/o --memory-limit unlimited --threads 2"));
    let expected = bytes_of(&out);
    assert!(!expected.is_empty(), "{job}");
    remove(&out);
    for (mebibytes, threads) in limits.iter().flat_map(|&limit| [(limit, 1), (limit, 2)]) {
        let line = format!("{job} -o out/o --memory-limit {mebibytes}MiB --threads {threads}");
        let (seen, stats) = peak_of(work, &line);
        let told = stats["peak_rss_bytes"].as_u64().expect("a number");
        let limit = mebibytes << 20;
        println!("{job}: {mebibytes} MiB, {threads} threads: {} seen", seen >> 10);
        assert!(seen <= limit && told <= limit, "{job}, {mebibytes} MiB: {seen} seen, {told} told");
        assert!(seen > 12 << 20, "{job}: {seen} seen: not measured");
        assert!(bytes_of(&out) == expected, "{job}, {mebibytes} MiB, {threads} threads");
        remove(&out);
    }
    expected
}

/// Returns a position for each row, in no order.
fn place(row: u64) -> u64 {
    row * 0x9E37_79B1 % ROWS
}

#[test]
fn text_that_is_carried() {
    let work = Work::released();
    let mut csv = String::from("id");
    (0..20).for_each(|column| write!(csv, ",c{column}").expect("text"));
    csv.push('\n');
    for row in 0..ROWS / 2 {
        write!(csv, "{}", place(row)).expect("text");
        for column in 0..20 {
            match (row + column) % 5 {
                0 => write!(csv, ",{row}.10").expect("text"),
                1 => csv.push(','),
                2 => write!(csv, ",\"a, {column}\"").expect("text"),
                _ => write!(csv, ",{column}").expect("text"),
            }
        }
        csv.push('\n');
    }
    work.put("in/a.csv", csv);
    holds(&work, "sort in/a.csv --by id --output-format csv", &[48, 64]);
    holds(&work, "dedupe in/a.csv --key c3 --output-format csv", &[48]);
}

#[test]
fn files_of_limited_size() {
    let work = Work::released();
    write_log(&work.path("in/a.parquet"), ROWS);
    for format in ["parquet", "arrow", "csv", "ndjson --compression gzip"] {
        let sort =
            format!("sort in/a.parquet --by id --max-file-size 2MiB --output-format {format}");
        holds(&work, &sort, &[64]);
    }
    let dedupe = "dedupe in/a.parquet --key id,op --max-file-size 1MiB --output-format csv";
    holds(&work, dedupe, &[64]);
}

#[test]
fn dedupe_and_diff() {
    let work = Work::released();
    write_log(&work.path("in/a.parquet"), ROWS);
    write_parquet(&work.path("in/b.parquet"), &log_rows(1000, ROWS - 2000, ROWS, ROWS / 7));
    for dedupe in [
        "--key id",
        "--key id --keep last",
        "--key id --keep none",
        "--key id --keep last-known",
        "",
    ] {
        let dedupe = format!("dedupe in/a.parquet in/a.parquet {dedupe} --output-format csv");
        holds_or_is_empty(&work, &dedupe);
    }
    holds(
        &work,
        "diff in/a.parquet in/b.parquet --key lsn --op-column change --output-format csv",
        &[64],
    );
    holds(
        &work,
        "diff in/a.parquet in/b.parquet --key id,lsn --op-column change --output-format parquet",
        &[64],
    );
}

/// Like `holds`, for an output that may have a header alone.
#[track_caller]
fn holds_or_is_empty(work: &Work, job: &str) {
    let rows = holds(work, job, &[64]);
    assert!(rows.starts_with(b"id,lsn,"), "{job}");
}

/// A transaction on a single line: no reader may hold it.
#[test]
fn one_transaction_of_wal2json() {
    let work = Work::released();
    let mut first = String::from("{\"xid\":1,\"change\":[");
    let mut pretty = String::from("{\n\t\"xid\": 1,\n\t\"change\": [\n");
    for row in 0..ROWS {
        let comma = if row == 0 { "" } else { "," };
        let (kind, id) = (if row % 9 == 0 { "delete" } else { "update" }, place(row) % 50_000);
        let key =
            format!("{{\"keynames\":[\"id\"],\"keytypes\":[\"integer\"],\"keyvalues\":[{id}]}}");
        let image = match kind {
            "delete" => format!("\"oldkeys\":{key}"),
            _ => format!(
                "\"columnnames\":[\"id\",\"v\"],\"columntypes\":[\"integer\",\"text\"],\
                 \"columnvalues\":[{id},\"value of the row {row}\"],\"oldkeys\":{key}"
            ),
        };
        let change =
            format!("{{\"kind\":\"{kind}\",\"schema\":\"public\",\"table\":\"t\",{image}}}");
        write!(first, "{comma}{change}").expect("text");
        writeln!(pretty, "\t\t{comma}{change}").expect("text");
    }
    first.push_str("]}\n");
    pretty.push_str("\t]\n}\n");
    assert!(first.len() > 72 << 20, "{}", first.len());
    work.put("in/a.json", &first);
    work.put("in/b.json", &pretty);
    drop((first, pretty));
    let compact = "--op-preset wal2json --key id --output-format csv";
    let one = holds(&work, &format!("compact in/a.json {compact}"), &[64]);
    let other = holds(&work, &format!("compact in/b.json {compact}"), &[64]);
    assert!(one == other);
    assert!(one.iter().filter(|byte| **byte == b'\n').count() > 40_000);
}

#[test]
fn compressed_text_and_arrays() {
    let work = Work::released();
    let mut array = String::from("[");
    for row in 0..ROWS {
        let comma = if row == 0 { "" } else { "," };
        write!(array, "{comma}{{\"id\":{},\"v\":\"row {row}\"}}", place(row)).expect("text");
    }
    array.push(']');
    work.put("in/a.json", array);
    holds(&work, "sort in/a.json --by id --output-format csv", &[48, 64]);
    for tool in ["gzip", "bzip2", "xz -1", "zstd -q --rm"] {
        let packed = Command::new("sh")
            .args(["-c", &format!("cp in/a.json in/b.json && {tool} in/b.json && ls in/b.json.*")])
            .current_dir(work.path("."))
            .output()
            .expect("a shell");
        // Some machines lack some of the compressors.
        let Some(name) = String::from_utf8_lossy(&packed.stdout).lines().next().map(str::to_owned)
        else {
            continue;
        };
        holds(&work, &format!("sort {name} --by id --output-format csv"), &[64]);
        fs::remove_file(work.path(&name)).expect("removed");
    }
}
