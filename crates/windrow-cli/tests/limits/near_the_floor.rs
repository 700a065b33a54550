//! At the floor named by its message, a job keeps the limit: VmHWM of the process is below.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use crate::common::{self, Work, ran, write_parquet};
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int16Array, Int64Array, ListArray, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};

/// Runs `line` on one thread, with `input` as its standard input.
fn run(work: &Work, line: &str, input: Option<&str>, mebibytes: u64) -> common::Ran {
    let line = format!(
        "{line} --threads 1 --temp-dir temp --memory-limit {mebibytes}MiB --stats out/stats.json -q"
    );
    let mut command = work.command(&line);
    if let Some(name) = input {
        command.stdin(File::open(work.path(name)).expect("there"));
    }
    ran(command.spawn().expect("started"))
}

/// Fails unless `line` succeeds at the floor named by its refusal; returns the floor in MiB.
#[track_caller]
fn holds_at_the_floor(work: &Work, line: &str, input: Option<&str>) -> u64 {
    let refused = run(work, line, input, 1);
    refused.says(4, &["floor of this job, "]);
    let named = refused.err.split("floor of this job, ").nth(1).expect("it is named");
    let floor: u64 = named.split(" MiB").next().expect("a size").parse().expect("a number");
    run(work, line, input, floor).succeeds();
    let stats: serde_json::Value =
        serde_json::from_slice(&work.read("out/stats.json")).expect("JSON");
    let peak = stats["peak_rss_bytes"].as_u64().expect("a number");
    println!("{line}: a floor of {floor} MiB, a peak of {} MiB", peak >> 20);
    assert!(peak <= floor << 20, "{line}: {peak} bytes of {floor} MiB");
    floor
}

/// Returns numbers in mixed order.
fn mixed(rows: i64) -> impl Iterator<Item = i64> {
    (0..rows).map(move |row| row * 0x9E37_79B1 % rows)
}

/// Returns rows of `columns` numbers and a key.
fn wide(rows: i64, columns: i64) -> RecordBatch {
    let column = |number: i64| {
        let values = mixed(rows).map(move |value| (value * (number + 7) % 100) as i16);
        (format!("c{number}"), Arc::new(Int16Array::from_iter_values(values)) as ArrayRef)
    };
    let key = Arc::new(Int64Array::from_iter_values(mixed(rows))) as ArrayRef;
    let all = (0..columns).map(column).chain([("k".to_owned(), key)]);
    RecordBatch::try_from_iter(all).expect("columns of one length")
}

/// Returns rows of a key and a text of `length` bytes on average.
fn texts(rows: i64, length: i64) -> RecordBatch {
    let text = |key: i64| format!("{key:06}{}", "v".repeat((key % (2 * length)) as usize));
    let columns: [(&str, ArrayRef); 2] = [
        ("k", Arc::new(Int64Array::from_iter_values(mixed(rows)))),
        ("s", Arc::new(StringArray::from_iter_values(mixed(rows).map(text)))),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn write_file(work: &Work, batch: &RecordBatch, rows_a_batch: usize) {
    let file = File::create(work.path("in/a.arrow")).expect("created");
    let mut writer = FileWriter::try_new(file, batch.schema_ref()).expect("a writer");
    for start in (0..batch.num_rows()).step_by(rows_a_batch) {
        let rows = rows_a_batch.min(batch.num_rows() - start);
        writer.write(&batch.slice(start, rows)).expect("written");
    }
    writer.finish().expect("finished");
}

fn write_stream(work: &Work, batch: &RecordBatch, times: usize, codec: Option<CompressionType>) {
    let file = File::create(work.path("in/a.arrows")).expect("created");
    let options = IpcWriteOptions::default().try_with_compression(codec).expect("a codec");
    let mut writer =
        StreamWriter::try_new_with_options(file, batch.schema_ref(), options).expect("a writer");
    for _ in 0..times {
        writer.write(batch).expect("written");
    }
    writer.finish().expect("finished");
}

#[test]
fn many_files_of_many_columns() {
    let work = Work::released();
    write_file(&work, &wide(2000, 400), 2000);
    let line = "partition in/a.arrow --by k --into 100 --output-format parquet -o out/parts";
    assert!(holds_at_the_floor(&work, line, None) < 80);
}

#[test]
fn many_row_groups_of_many_columns() {
    let work = Work::released();
    write_file(&work, &wide(20_000, 1000), 2000);
    let line = "sort in/a.arrow --by k -o out/o.parquet --row-group-size 64KiB";
    holds_at_the_floor(&work, line, None);
}

#[test]
fn large_record_batches_of_a_stream() {
    let work = Work::released();
    write_stream(&work, &texts(20_000, 1000), 4, None);
    let line = "sort --by k -o out/o.parquet --input-format arrow-stream";
    let passing = holds_at_the_floor(&work, &format!("{line} -"), Some("in/a.arrows"));
    let file = holds_at_the_floor(&work, &format!("{line} in/a.arrows"), None);
    assert!(passing.abs_diff(file) < 8, "{passing} and {file} MiB");
}

#[test]
fn a_compressed_stream_that_passes() {
    let work = Work::released();
    write_stream(&work, &texts(30_000, 1500), 2, Some(CompressionType::ZSTD));
    let line = "sort - --by k -o out/o.parquet --input-format arrow-stream";
    holds_at_the_floor(&work, line, Some("in/a.arrows"));
}

#[test]
fn thousands_of_texts() {
    let work = Work::released();
    let columns = 2000;
    let mut file = BufWriter::new(File::create(work.path("in/a.csv")).expect("created"));
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    writeln!(file, "{}", names.join(",")).expect("written");
    for row in mixed(4000) {
        for column in 0..columns {
            // Of one to seven digits.
            let text = (row + 1) * (column + 7) % 10_i64.pow((row + column) as u32 % 7 + 1);
            write!(file, "{}w{text}", if column == 0 { "" } else { "," }).expect("written");
        }
        writeln!(file).expect("written");
    }
    file.into_inner().expect("written");
    holds_at_the_floor(&work, "sort in/a.csv --by c0 -o out/o.arrow", None);
    // First as bytes that need no order, then all ordered.
    let line = format!("sort in/a.csv --by {} -o out/all.arrow", names.join(","));
    holds_at_the_floor(&work, &line, None);
}

/// Returns a text of a megabyte.
fn long_text(key: i64) -> String {
    let words = (0..60_000).map(|word| format!("{:016x}", (key + 1) * (word + 1) * 0x9E37_79B9));
    words.collect()
}

#[test]
fn rows_that_are_filled_with_megabytes_of_others() {
    let work = Work::released();
    let column = |rest: i64| {
        let texts = (0..24).map(|row| (row % 3 == rest).then(|| long_text(row)));
        Arc::new(texts.collect::<StringArray>()) as ArrayRef
    };
    let batch = RecordBatch::try_from_iter_with_nullable([
        (
            "k",
            Arc::new(Int64Array::from_iter_values((0..24).map(|row| row % 5))) as ArrayRef,
            false,
        ),
        ("s", column(0), true),
        ("t", column(1), true),
        ("u", column(2), true),
    ]);
    write_parquet(&work.path("in/a.parquet"), &batch.expect("columns of one length"));
    for output in ["o.arrow", "o.parquet", "o.csv"] {
        let line = format!("dedupe in/a.parquet --key k --keep last-known -o out/{output}");
        holds_at_the_floor(&work, &line, None);
    }
}

#[test]
fn merges_of_rows_of_a_megabyte() {
    let work = Work::released();
    let columns: [(&str, ArrayRef); 2] = [
        ("k", Arc::new(Int64Array::from_iter_values(0..20))),
        ("s", Arc::new(StringArray::from_iter_values((0..20).map(long_text)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    write_parquet(&work.path("in/a.parquet"), &batch);
    let line = "merge in/a.parquet in/a.parquet in/a.parquet --by k -o out/o.arrow";
    holds_at_the_floor(&work, line, None);
}

#[test]
fn messages_of_long_lists() {
    let work = Work::released();
    let list = |key: i64| Some((0..key % 50_000).map(Some).collect::<Vec<_>>());
    let lists =
        ListArray::from_iter_primitive::<Int64Type, _, _>(mixed(120).map(|k| list(k * 417)));
    let columns: [(&str, ArrayRef); 2] =
        [("k", Arc::new(Int64Array::from_iter_values(mixed(120)))), ("l", Arc::new(lists))];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    write_parquet(&work.path("in/a.parquet"), &batch);
    holds_at_the_floor(&work, "sort in/a.parquet --by k -o out/o.arrow", None);
}
