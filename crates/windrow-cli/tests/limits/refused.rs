//! A process that refuses a job stays within the limit of the job, and names a sufficient limit.
//! The process estimates large parts of its inputs before it reads them.

use std::fmt::Write as _;
use std::fs::File;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};

use crate::common::{Work, watched};

/// A table of `columns` numbers.
fn numbers(columns: usize, rows: i64) -> RecordBatch {
    let fields = (0..columns).map(|at| Field::new(format!("c{at}"), DataType::Int64, true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let values = Arc::new(Int64Array::from_iter_values((0..rows).rev())) as ArrayRef;
    let values = (0..columns).map(|_| Arc::clone(&values)).collect();
    RecordBatch::try_new(Arc::new(schema), values).expect("a table")
}

/// Returns rows of numbers; the last `long` rows have texts of `bytes` bytes.
fn texts(rows: i64, long: usize, bytes: usize) -> RecordBatch {
    let of = |row: i64| match usize::try_from(rows - row) {
        Ok(left) if left <= long => ["a", "b", "c", "d"][left % 4].repeat(bytes),
        _ => "s".to_owned(),
    };
    let columns: [(&str, ArrayRef); 2] = [
        ("c0", Arc::new(Int64Array::from_iter_values((0..rows).rev()))),
        ("t", Arc::new(StringArray::from_iter_values((0..rows).map(of)))),
    ];
    RecordBatch::try_from_iter(columns).expect("a table")
}

fn write(
    work: &Work,
    batch: &RecordBatch,
    set: impl Fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder,
) {
    let plain = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED);
    let file = File::create(work.path("in/a.parquet")).expect("created");
    let properties = Some(set(plain).build());
    let mut writer = ArrowWriter::try_new(file, batch.schema(), properties).expect("a writer");
    writer.write(batch).expect("written");
    writer.close().expect("closed");
}

/// Checks that the tool refuses `job` at `mebibytes` and succeeds with the limit named by the
/// refusal. Both runs stay within their limits.
#[track_caller]
fn refused(work: &Work, job: &str, mebibytes: u64) {
    let mut limit = mebibytes;
    // After a refusal before planning, the plan may name a higher limit.
    for run in 0..3 {
        let line = format!("{job} --memory-limit {limit}MiB --threads 1 --temp-dir temp -q");
        let (seen, ran) = watched(work, &line);
        println!("{job}: {limit} MiB, {} seen: {}", seen >> 20, ran.err);
        assert!(seen <= limit << 20, "{job}: {seen} seen of {limit} MiB: {}", ran.err);
        if ran.code == Some(0) {
            assert!(run > 0, "{job} is done in {limit} MiB");
            return;
        }
        ran.says(4, &["--memory-limit"]);
        let behind = ["floor of this job, ", "needs a memory limit of "];
        let named = behind.iter().find_map(|text| ran.err.split(text).nth(1)).expect("a limit");
        limit = named.split(" MiB").next().expect("a size").parse().expect("a number");
    }
    panic!("{job}: refused with the limit that it named");
}

#[test]
fn footers_of_many_row_groups() {
    let work = Work::released();
    write(&work, &numbers(30, 4000), |set| set.set_max_row_group_row_count(Some(2)));
    for output in ["o.parquet", "o.csv"] {
        refused(&work, &format!("sort in/a.parquet --by c0 -o out/{output}"), 40);
    }
}

#[test]
fn footers_of_many_columns() {
    let work = Work::released();
    write(&work, &numbers(20_000, 3), |set| set);
    refused(&work, "sort in/a.parquet --by c0 -o out/o.arrow", 40);
}

#[test]
fn footers_with_long_statistics() {
    let work = Work::released();
    let text = |row: i64| format!("{row:06}{}", "x".repeat(3000));
    let columns: [(&str, ArrayRef); 2] = [
        ("c0", Arc::new(Int64Array::from_iter_values((0..4000).rev()))),
        ("t", Arc::new(StringArray::from_iter_values((0..4000).map(text)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a table");
    write(&work, &batch, |set| {
        let set = set.set_max_row_group_row_count(Some(2)).set_dictionary_enabled(false);
        let set = set.set_statistics_truncate_length(None).set_column_index_truncate_length(None);
        set.set_statistics_enabled(EnabledStatistics::Page)
    });
    refused(&work, "sort in/a.parquet --by c0 -o out/o.csv", 32);
}

#[test]
fn a_dictionary_of_long_texts() {
    let work = Work::released();
    let dictionary = 1 << 30;
    write(&work, &texts(3, 3, 32 << 20), |set| set.set_dictionary_page_size_limit(dictionary));
    refused(&work, "sort in/a.parquet --by c0 -o out/o.csv", 64);
}

#[test]
fn pages_of_long_texts() {
    let work = Work::released();
    write(&work, &texts(20_000, 3, 32 << 20), |set| set.set_dictionary_enabled(false));
    refused(&work, "sort in/a.parquet --by c0 -o out/o.csv", 64);
}

/// One page has the short rows, and the long rows behind them. The job is done within its limit,
/// or refused before the rows are read.
#[test]
fn long_texts_next_to_each_other() {
    let work = Work::released();
    write(&work, &texts(20_000, 9, 12 << 20), |set| {
        let set = set.set_dictionary_enabled(false).set_compression(Compression::SNAPPY);
        set.set_data_page_size_limit(1 << 30).set_write_batch_size(1 << 20)
    });
    let job = "sort in/a.parquet --by c0 -o out/o.parquet";
    refused(&work, job, 96);
    let mut codes = Vec::new();
    for limit in [192, 256, 384, 512] {
        let line = format!("{job} --memory-limit {limit}MiB --threads 2 --temp-dir temp -q");
        let (seen, ran) = watched(&work, &line);
        assert!(seen <= limit << 20, "{seen} seen of {limit} MiB: {}", ran.err);
        assert!(!ran.err.contains("uneven"), "{}", ran.err);
        codes.push(ran.code);
    }
    assert!(codes.ends_with(&[Some(0)]), "{codes:?}");
}

/// A limit of the address space is a limit of memory: the tool refuses a job with a larger need,
/// and nothing aborts.
#[test]
fn address_space_that_is_limited() {
    let work = Work::released();
    write(&work, &numbers(30, 4000), |set| set.set_max_row_group_row_count(Some(8)));
    let job = "sort in/a.parquet --by c0 -o out/o.parquet --temp-dir temp --memory-limit 96MiB \
               --threads 2 -q";
    let free = work.run(job);
    free.succeeds();
    let mut codes = Vec::new();
    for kibibytes in (100_000..400_000).step_by(20_000) {
        for kind in ["-v", "-d"] {
            let ran = work.run_limited(&format!("{kind} {kibibytes}"), job);
            if ran.code != Some(0) {
                ran.says(4, &["the address space of the process is limited to", "ulimit"]);
            }
            codes.push(ran.code);
        }
    }
    assert!(codes.contains(&Some(4)) && codes.ends_with(&[Some(0); 4]), "{codes:?}");
}

/// The time of a job grows with its columns, not with their square.
#[test]
fn a_hundred_thousand_columns() {
    const COLUMNS: usize = 100_000;
    let work = Work::released();
    write(&work, &numbers(COLUMNS, 3), |set| set.set_dictionary_enabled(false));
    for format in ["arrow", "csv", "ndjson"] {
        let head = format!("head in/a.parquet --rows 3 -o in/a.{format}");
        work.run_limited("-t 60", &head).succeeds();
    }
    for format in ["parquet", "arrow", "csv", "ndjson"] {
        let input = format!("in/a.{format}");
        for job in [
            format!("inspect {input}"),
            format!("dedupe {input} -o out/o --output-format {format}"),
            format!("dedupe {input} --key c0 --keep last-known -o out/o --output-format {format}"),
            format!(
                "sort {input} {input} --by c0 --union-by-name -o out/o --output-format {format}"
            ),
            format!("diff {input} {input} --key c0,c1 -o out/o --output-format {format}"),
            format!("partition {input} --by c0 --into 2 -o out/p --output-format {format}"),
        ] {
            // Seconds of CPU.
            work.run_limited("-t 60", &job).succeeds();
            let _ = std::fs::remove_dir_all(work.path("out/p"));
        }
    }
}

#[test]
fn text_of_many_columns() {
    let work = Work::released();
    let names: Vec<String> = (0..30_000).map(|at| format!("c{at}")).collect();
    let mut csv = names.join(",");
    let mut json = String::new();
    for row in 0..3 {
        csv.push('\n');
        names.iter().for_each(|_| write!(csv, "{row},").expect("text"));
        csv.pop();
        let members: Vec<String> = names.iter().map(|name| format!("\"{name}\":{row}")).collect();
        writeln!(json, "{{{}}}", members.join(",")).expect("text");
    }
    work.put("in/a.csv", csv);
    work.put("in/a.ndjson", &json);
    work.put(
        "in/o.ndjson",
        json.replace('\n', "}\n").replace("{\"c0\"", "{\"c0\":1,\"o\":{\"c0\""),
    );
    for input in ["a.csv", "a.ndjson", "o.ndjson"] {
        refused(&work, &format!("sort in/{input} --by c0 -o out/o.arrow"), 32);
    }
}
