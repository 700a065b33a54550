//! The command line itself: mistakes, completions, plans, figures, pipes.

use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::common::{Ran, Work, log_rows, ran, read_parquet, write_log, write_parquet};

pub(crate) const VERBS: [&str; 10] = [
    "sort",
    "compact",
    "apply",
    "merge",
    "partition",
    "dedupe",
    "diff",
    "head",
    "check",
    "inspect",
];

fn text(ran: &Ran) -> &str {
    std::str::from_utf8(&ran.out).expect("UTF-8")
}

#[test]
fn mistakes_on_the_command_line_are_usage() {
    let work = Work::new();
    work.put("in/a.csv", "id\n1\n");
    for (line, part) in [
        ("", "Usage"),
        ("srot in/a.csv", "sort"),
        ("sort in/a.csv --by id", "--output"),
        ("sort in/a.csv -o out/o.csv", "--by"),
        ("sort --by id -o out/o.csv", "FILES"),
        ("sort in/a.csv --by id:up -o out/o.csv", "up"),
        ("sort in/a.csv --by id -o out/o.csv --memory-limit much", "much"),
        ("sort in/a.csv --by id -o out/o.csv --threads 0", "--threads"),
        ("compact in/a.csv -o out/o.csv", "--key"),
        ("sort - - --by id -o out/o.csv", "only once"),
    ] {
        work.run(line).says(2, &[part]);
    }
    work.holds_only(&[]);
}

#[test]
fn completions_and_the_man_page_name_every_verb() {
    let work = Work::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell", "man"] {
        let page = work.run(&format!("completions {shell}"));
        page.succeeds();
        for verb in VERBS {
            assert!(text(&page).contains(verb), "{shell}: {verb}");
        }
        assert!(page.err.is_empty(), "{}", page.err);
    }
    let checked = std::process::Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn();
    if let Ok(mut bash) = checked {
        let script = work.run("completions bash").out;
        bash.stdin.take().expect("piped").write_all(&script).expect("written");
        assert!(bash.wait().expect("ended").success());
    }
}

#[test]
fn a_plan_is_printed_and_nothing_done() {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), 10_000);
    for verb in [
        "sort in/a.parquet --by payload:desc,lsn",
        "compact in/a.parquet --key id --order-by lsn --op-column op",
        "merge in/a.parquet in/a.parquet --by id",
    ] {
        let line = format!("{verb} -o out/o.parquet --temp-dir temp --explain");
        let plan = work.run(&format!("{line} --memory-limit 256MiB --threads 2"));
        plan.succeeds();
        for word in ["order", "memory limit", "256 MiB", "floor", "threads", "out/o.parquet"] {
            assert!(text(&plan).contains(word), "no {word:?} in {}", text(&plan));
        }
        work.holds_only(&[]);
    }
}

#[test]
fn a_quiet_job_says_nothing() {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), 10_000);
    for verb in ["sort in/a.parquet --by lsn -o out/o.parquet", "check out/o.parquet --by lsn"] {
        let quiet = work.run(&format!("{verb} --quiet"));
        quiet.succeeds();
        assert_eq!((quiet.err.as_str(), text(&quiet)), ("", ""));
        let loud = work.run(verb);
        assert_eq!(loud.err.lines().count(), 1, "one line and, without a terminal, no progress");
        assert_eq!(text(&loud), "");
    }
    let shown = work.run("sort in/a.parquet --by lsn -o out/o.parquet --progress");
    shown.says(0, &["rows in"]);
    work.run("sort in/none.csv --by id -o out/o.csv -q").says(3, &["in/none.csv"]);
}

#[test]
fn figures_come_as_json() {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), 10_000);
    let verb = "compact in/a.parquet --key id --order-by lsn --op-column op -o out/o.parquet -q";
    let ran = work.run(&format!("{verb} --stats json --memory-limit 200MiB"));
    ran.succeeds();
    let told: serde_json::Value = serde_json::from_str(&ran.err).expect("JSON alone");
    work.run(&format!("{verb} --stats out/stats.json --memory-limit 200MiB")).succeeds();
    let written: serde_json::Value =
        serde_json::from_slice(&work.read("out/stats.json")).expect("JSON");
    let rows = read_parquet(&work.path("out/o.parquet")).num_rows();
    for stats in [told, written] {
        assert_eq!(stats["rows_in"], 10_000);
        assert_eq!(stats["rows_out"], rows);
        assert_eq!(stats["rows_dropped"], 10_000 - rows);
        assert_eq!(stats["memory_limit_bytes"], 200 << 20);
        assert_eq!(stats["bytes_out"], work.read("out/o.parquet").len());
        assert!(stats["peak_rss_bytes"].as_u64().expect("a number") > 1 << 20);
        let seconds = |name: &str| stats[name].as_f64().expect("a number");
        assert!(
            0.0 < seconds("planning_seconds") && seconds("planning_seconds") < seconds("seconds")
        );
        for phase in ["read", "settle", "write"] {
            assert!(stats["phase_seconds"][phase].is_f64(), "{phase}");
        }
    }
    let line = format!("{verb} --stats out/none/stats.json");
    work.run(&line).says(2, &["out/none/stats.json"]);
}

/// Runs `line` with `input` on standard input.
fn piped(work: &Work, line: &str, input: &[u8]) -> Ran {
    let mut child = work.command(line).stdin(Stdio::piped()).spawn().expect("started");
    let mut stdin = child.stdin.take().expect("piped");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A run that fails early does not read all input.
            let _fed = stdin.write_all(input);
        });
        ran(child)
    })
}

#[test]
fn every_format_passes_through_pipes() {
    let work = Work::new();
    write_parquet(&work.path("in/a.parquet"), &log_rows(0, 5000, 5000, 50));
    work.run("sort in/a.parquet --by lsn -o out/sorted.csv").succeeds();
    let expected = work.read("out/sorted.csv");
    for format in ["parquet", "arrow", "arrow-stream", "csv", "ndjson"] {
        let out = format!("sort in/a.parquet --by payload -o - --output-format {format}");
        let shuffled = work.run(&out);
        shuffled.succeeds();
        for named in ["", "--input-format FORMAT"] {
            let named = named.replace("FORMAT", format);
            let sort = format!("sort - --by lsn -o - --output-format csv -q {named}");
            let types =
                if matches!(format, "csv" | "ndjson") { "--schema ts:timestamp_us" } else { "" };
            let back = piped(&work, &format!("{sort} {types}"), &shuffled.out);
            back.succeeds();
            assert!(back.out == expected, "{format} {named}");
        }
    }
    work.run("inspect in/a.parquet").succeeds();
    work.holds_only(&["sorted.csv"]);
}

#[test]
fn a_reader_that_goes_away_ends_the_job_quietly() {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), 100_000);
    for format in ["parquet", "arrow", "arrow-stream", "csv", "ndjson"] {
        for threads in [1, 2] {
            let sort = format!("sort in/a.parquet --by lsn -o - --output-format {format}");
            let mut child =
                work.command(&format!("{sort} --threads {threads} -q")).spawn().expect("started");
            let mut head = [0; 10];
            child.stdout.take().expect("piped").read_exact(&mut head).expect("a head");
            let ended = ran(child);
            ended.says(141, &[]);
            assert_eq!(ended.err, "", "{format}");
        }
    }
    for line in [
        "completions bash",
        "completions man",
        "inspect in/a.parquet",
        "inspect in/a.parquet --json",
    ] {
        let mut child = work.command(line).spawn().expect("started");
        drop(child.stdout.take());
        let ended = ran(child);
        assert!(matches!(ended.code, Some(0 | 141)), "{line}: {ended:?}");
        assert_eq!(ended.err, "", "{line}");
    }
    work.holds_only(&[]);
}

#[test]
fn messages_that_nobody_reads_do_not_fail_a_job() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    let sort = "sort in/a.csv --by id -o out/o.csv";
    // Requested figures are more than a message.
    let figures = format!("{sort} --stats json");
    for (line, code) in [(sort, 0), ("check out/o.csv --by id", 0), (&figures, 5)] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
        let child = work.command(line).stderr(full).spawn().expect("started");
        assert_eq!(ran(child).code, Some(code), "{line}");
    }
}

#[test]
fn threads_are_as_many_as_there_may_be() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n");
    let sort = "sort in/a.csv --by id -o out/o.csv --threads";
    for many in ["0", "x", "4097", "999999999999", "99999999999999999999999"] {
        work.run(&format!("{sort} {many}")).says(2, &["--threads"]);
    }
    work.run(&format!("{sort} 4096")).succeeds();
}

#[test]
fn inspect_tells_columns_apart_and_nulls_from_values() {
    let work = Work::new();
    let write = |rows: usize, columns: &[(&str, ArrayRef)]| {
        let fields = columns.iter().map(|(name, c)| Field::new(*name, c.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays = columns.iter().map(|(_, column)| Arc::clone(column)).collect();
        let batch = RecordBatch::try_new(schema, arrays).expect("a batch");
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows));
        let file = std::fs::File::create(work.path("in/a.parquet")).expect("created");
        let writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build()));
        let mut writer = writer.expect("a writer");
        writer.write(&batch).expect("written");
        writer.close().expect("closed");
    };
    let told = || {
        let ran = work.run("inspect in/a.parquet --json");
        ran.succeeds();
        let facts: serde_json::Value = serde_json::from_slice(&ran.out).expect("JSON");
        let columns = facts["parquet"]["columns"].as_array().expect("columns").clone();
        let told = columns.into_iter().map(|column| {
            let text = |part: &str| column[part].as_str().map(str::to_owned);
            (text("min"), text("max"), column["nulls"].as_u64())
        });
        told.collect::<Vec<_>>()
    };
    let range = |min: &str, max: &str, nulls| (Some(min.to_owned()), Some(max.to_owned()), nulls);
    let [low, high]: [ArrayRef; 2] =
        [0..10, 901..911].map(|values| Arc::new(Int64Array::from_iter_values(values)) as ArrayRef);
    write(10, &[("x", low), ("x", high)]);
    assert_eq!(told(), [range("0", "9", Some(0)), range("901", "910", Some(0))]);
    let nulls: ArrayRef =
        Arc::new(Int64Array::from(vec![Some(1), Some(2), None, None, None, None]));
    write(3, &[("a", nulls)]);
    assert_eq!(told(), [range("1", "2", Some(4))]);
    // A row group without rows, and without figures.
    let schema = parse_message_type("message rows { optional int64 a; }").expect("a schema");
    let file = std::fs::File::create(work.path("in/a.parquet")).expect("created");
    let mut writer =
        SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    group.next_column().expect("written").expect("a column").close().expect("closed");
    group.close().expect("closed");
    writer.close().expect("closed");
    assert_eq!(told(), [(None, None, Some(0))]);
}

#[test]
fn inspect_tells_what_a_sorted_file_is() {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), 10_000);
    work.run("sort in/a.parquet --by lsn:desc -o out/o.parquet").succeeds();
    let told = work.run("inspect out/o.parquet");
    told.succeeds();
    for part in ["lsn", "10000", "zstd", "desc"] {
        assert!(text(&told).to_lowercase().replace(',', "").contains(part), "no {part:?}");
    }
    let json = work.run("inspect out/o.parquet in/a.parquet --json");
    json.succeeds();
    assert_eq!(text(&json).lines().count(), 2);
    for line in text(&json).lines() {
        let facts: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(facts["rows"], 10_000);
    }
}
