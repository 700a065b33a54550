//! Runs jobs at many limits on inputs whose memory a plan based on footers and samples estimates
//! wrongly. The peak of the resident memory is below the limit, or the job ends with exit code 4.
//! All successful runs write the same output.
//!
//! `WINDROW_SWEEP=all` runs every combination, some ten minutes; `WINDROW_SWEEP=NAME` runs all
//! combinations of one shape. The default is a subset.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use crate::common::{Work, ran};
use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

/// Part of the message of a job stopped by the final check of the peak: the plan was wrong.
const LAST_RESORT: &str = "more uneven than the plan knew";

const LIMITS: [u64; 7] = [48, 64, 96, 128, 192, 256, 512];

/// Jobs and their outputs. `seq` ascends, `id` is mixed; CSV holds no lists.
const JOBS: [(&str, &str); 8] = [
    ("sort {} --by id -o out/o.parquet", "out/o.parquet"),
    ("sort {} --by id -o out/o.ndjson", "out/o.ndjson"),
    ("compact {} --key id --order-by seq -o out/o.parquet", "out/o.parquet"),
    ("merge {} {} --by seq -o out/o.parquet", "out/o.parquet"),
    ("partition {} --by id --into 4 -o out/parts", "out/parts"),
    ("sort {} --by seq:desc -o out/o.csv", "out/o.csv"),
    ("sort {} --by seq -o out/o.parquet", "out/o.parquet"),
    ("sort {} --by seq -o out/o.arrow", "out/o.arrow"),
];

struct Shape {
    name: &'static str,
    file: &'static str,
    write: fn(&Path),
}

/// A source of letters that compress badly.
struct Letters(u64);

impl Letters {
    fn take(&mut self, length: usize) -> String {
        let mut letter = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'a' + (self.0 >> 33) as u8 % 26
        };
        (0..length).map(|_| letter() as char).collect()
    }
}

fn ids(rows: usize) -> (ArrayRef, ArrayRef) {
    let rows = rows as i64;
    let mixed = (0..rows).map(move |row| row * 0x9E37_79B1 % rows);
    (Arc::new(Int64Array::from_iter_values(mixed)), Arc::new(Int64Array::from_iter_values(0..rows)))
}

/// Returns rows of `id`, `seq` and a column.
fn batch(column: ArrayRef) -> RecordBatch {
    let (id, seq) = ids(column.len());
    RecordBatch::try_from_iter([("id", id), ("seq", seq), ("v", column)]).expect("of one length")
}

fn texts(lengths: impl Iterator<Item = usize>) -> RecordBatch {
    let mut letters = Letters(1);
    batch(Arc::new(StringArray::from_iter_values(lengths.map(|length| letters.take(length)))))
}

fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_compression(Compression::SNAPPY)
}

fn write(path: &Path, batch: &RecordBatch, properties: WriterPropertiesBuilder) {
    let file = File::create(path).expect("created");
    let properties = Some(properties.build());
    let mut writer = ArrowWriter::try_new(file, batch.schema(), properties).expect("a writer");
    writer.write(batch).expect("written");
    writer.close().expect("closed");
}

fn burst(path: &Path) {
    let lengths = std::iter::repeat_n(100, 58_000).chain(std::iter::repeat_n(20_000, 2000));
    write(path, &texts(lengths), properties());
}

/// Writes values of log-normal lengths with a median of 200, ascending.
fn sorted_lengths(path: &Path) {
    let mut state = 7_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut lengths: Vec<usize> = (0..40_000)
        .map(|_| {
            let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            (200.0 * (1.5 * normal).exp()) as usize
        })
        .collect();
    lengths.sort_unstable();
    write(path, &texts(lengths.into_iter()), properties());
}

/// Writes a dictionary of values of `length` bytes, which compress to a fraction.
fn dictionary(path: &Path, values: usize, length: usize, compression: Compression) {
    let value = |row: usize| format!("{:0length$}", row * 7919 % values);
    let column = StringArray::from_iter_values((0..3 * values).map(value));
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_page_size_limit(1 << 30);
    write(path, &batch(Arc::new(column)), properties);
}

/// Returns the lengths of values, one of them 20 MB.
fn fat(rows: usize, at: usize) -> impl Iterator<Item = usize> {
    (0..rows).map(move |row| if row == at { 20_000_000 } else { 40 + row % 60 })
}

const FAT_ROWS: usize = 50_000;

fn fat_parquet(path: &Path, at: usize) {
    write(path, &texts(fat(FAT_ROWS, at)), properties());
}

fn fat_text(path: &Path, at: usize) {
    let mut letters = Letters(1);
    let mut file = BufWriter::new(File::create(path).expect("created"));
    let is_csv = path.extension().is_some_and(|extension| extension == "csv");
    if is_csv {
        writeln!(file, "id,seq,v").expect("written");
    }
    for (row, length) in fat(FAT_ROWS, at).enumerate() {
        let (id, text) = (row * 0x9E37_79B1 % FAT_ROWS, letters.take(length));
        let written = match is_csv {
            true => writeln!(file, "{id},{row},{text}"),
            false => writeln!(file, r#"{{"id":{id},"seq":{row},"v":"{text}"}}"#),
        };
        written.expect("written");
    }
    file.into_inner().expect("written");
}

fn wide(path: &Path) {
    let rows = 20_000;
    let (id, seq) = ids(rows);
    let mut letters = Letters(3);
    let columns = (0..100).map(|column| {
        let values: ArrayRef = match column % 4 {
            0 => Arc::new(StringArray::from_iter_values((0..rows).map(|_| letters.take(12)))),
            _ => Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|row| row * column))),
        };
        (format!("c{column}"), values)
    });
    let all = [("id".to_owned(), id), ("seq".to_owned(), seq)].into_iter().chain(columns);
    write(path, &RecordBatch::try_from_iter(all).expect("of one length"), properties());
}

/// Writes lists of a few numbers, and one of two million.
fn list(path: &Path) {
    let mut lists = ListBuilder::new(Int64Builder::new());
    for row in 0..50_000_i64 {
        let items = if row == 30_000 { 2_000_000 } else { row % 8 };
        (0..items).for_each(|item| lists.values().append_value(item * 0x9E37_79B1 + row));
        lists.append(true);
    }
    write(path, &batch(Arc::new(lists.finish())), properties());
}

/// Writes a row group of short rows, one of rows of 50 KB, and another one of short rows.
fn groups(path: &Path) {
    let short = || std::iter::repeat_n(60, 40_000);
    let all = texts(short().chain(std::iter::repeat_n(50_000, 400)).chain(short()));
    let file = File::create(path).expect("created");
    let properties = Some(properties().build());
    let mut writer = ArrowWriter::try_new(file, all.schema(), properties).expect("a writer");
    for (start, rows) in [(0, 40_000), (40_000, 400), (40_400, 40_000)] {
        writer.write(&all.slice(start, rows)).expect("written");
        writer.flush().expect("a row group");
    }
    writer.close().expect("closed");
}

fn one_page(path: &Path) {
    let properties = properties()
        .set_dictionary_enabled(false)
        .set_data_page_size_limit(1 << 30)
        .set_data_page_row_count_limit(1 << 30);
    write(path, &texts((0..60_000).map(|row| row % 600)), properties);
}

fn shapes() -> Vec<Shape> {
    let shape = |name, file, write| Shape { name, file, write };
    vec![
        shape("burst", "a.parquet", burst),
        shape("lengths", "a.parquet", sorted_lengths),
        shape("zdict", "a.parquet", |path| {
            let zstd = Compression::ZSTD(ZstdLevel::try_new(3).expect("a level"));
            dictionary(path, 40_000, 800, zstd);
        }),
        shape("dictionary", "a.parquet", |path| {
            dictionary(path, 30_000, 1000, Compression::UNCOMPRESSED);
        }),
        shape("fat-parquet-first", "a.parquet", |path| fat_parquet(path, 0)),
        shape("fat-parquet-middle", "a.parquet", |path| fat_parquet(path, FAT_ROWS / 2)),
        shape("fat-parquet-last", "a.parquet", |path| fat_parquet(path, FAT_ROWS - 1)),
        shape("fat-ndjson-first", "a.ndjson", |path| fat_text(path, 0)),
        shape("fat-ndjson-middle", "a.ndjson", |path| fat_text(path, FAT_ROWS / 2)),
        shape("fat-ndjson-last", "a.ndjson", |path| fat_text(path, FAT_ROWS - 1)),
        shape("fat-csv-first", "a.csv", |path| fat_text(path, 0)),
        shape("fat-csv-middle", "a.csv", |path| fat_text(path, FAT_ROWS / 2)),
        shape("fat-csv-last", "a.csv", |path| fat_text(path, FAT_ROWS - 1)),
        shape("wide", "a.parquet", wide),
        shape("list", "a.parquet", list),
        shape("groups", "a.parquet", groups),
        shape("page", "a.parquet", one_page),
    ]
}

/// Returns a hash of the output at `path`, a file or a directory, and removes the output.
fn taken(work: &Work, path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    if work.path(path).is_dir() {
        for name in work.names(path) {
            (&name, work.read(&format!("{path}/{name}"))).hash(&mut hasher);
        }
        std::fs::remove_dir_all(work.path(path)).expect("removed");
    } else {
        work.read(path).hash(&mut hasher);
        std::fs::remove_file(work.path(path)).expect("removed");
    }
    hasher.finish()
}

/// Counts the outcomes of runs.
#[derive(Debug, Default)]
struct Ends {
    done: usize,
    refused: usize,
    last_resort: usize,
    wrong: Vec<String>,
}

/// Runs a job; returns the hash of its output, or the limit named by its refusal, in MiB.
fn end(work: &Work, line: &str, output: &str, mebibytes: u64, ends: &mut Ends) -> Result<u64, u64> {
    let limited =
        format!("{line} --temp-dir temp --memory-limit {mebibytes}MiB --stats out/stats.json -q");
    let run = ran(work.command(&limited).spawn().expect("started"));
    match run.code {
        Some(0) => {
            let stats: serde_json::Value =
                serde_json::from_slice(&work.read("out/stats.json")).expect("JSON");
            let peak = stats["peak_rss_bytes"].as_u64().expect("a number");
            ends.done += 1;
            println!("{line}: {} of {mebibytes} MiB", peak >> 20);
            if peak > mebibytes << 20 {
                ends.wrong.push(format!("{line}: {} KiB of {mebibytes} MiB", peak >> 10));
            }
            Ok(taken(work, output))
        }
        Some(4) => {
            ends.refused += 1;
            let named = run
                .err
                .split("MiB")
                .filter_map(|text| text.trim_end().rsplit([' ', '`']).next()?.parse::<u64>().ok());
            let named = named.filter(|named| *named > mebibytes).max();
            println!("{line}: refused at {mebibytes} MiB: {}", run.err.trim());
            if run.err.contains(LAST_RESORT) {
                ends.last_resort += 1;
            }
            Err(named.unwrap_or(0))
        }
        code => {
            ends.wrong.push(format!("{line} at {mebibytes} MiB: {code:?}: {}", run.err));
            Err(0)
        }
    }
}

/// Runs jobs on a shape: all combinations, or a subset that covers every shape, job, limit and
/// number of threads.
fn sweep(ordinal: usize, shape: &Shape, whole: bool, ends: &mut Ends) {
    let Shape { name, file, write } = shape;
    println!("{name}:");
    let work = Work::released();
    let input = format!("in/{file}");
    write(&work.path(&input));
    let mut written: BTreeMap<usize, u64> = BTreeMap::new();
    let mut asked = None;
    for (place, &limit) in LIMITS.iter().enumerate() {
        for (job, (line, output)) in JOBS.iter().enumerate() {
            for threads in [1, 4] {
                let part = (job + ordinal) % JOBS.len() == place;
                if !whole && (!part || threads != [1, 4][(place + ordinal) % 2]) {
                    continue;
                }
                if *name == "list" && output.ends_with("csv") {
                    continue;
                }
                let line = format!("{} --threads {threads}", line.replace("{}", &input));
                match end(&work, &line, output, limit, ends) {
                    Ok(sum) => {
                        if *written.entry(job).or_insert(sum) != sum {
                            ends.wrong.push(format!("{line} at {limit} MiB: other bytes"));
                        }
                    }
                    Err(enough) => asked = asked.or(Some((line, output, enough))),
                }
            }
        }
    }
    // The limit named by a message is sufficient, once a long row after the sample is known.
    if let Some((line, output, mut enough)) = asked {
        let mut ask = || match end(&work, &line, output, enough, ends) {
            Ok(_) => true,
            Err(more) => {
                enough = more;
                false
            }
        };
        if !ask() && !ask() {
            ends.wrong.push(format!("{line}: refused at what it asked for"));
        }
    }
}

#[test]
fn the_limit_holds_or_the_job_is_refused() {
    let chosen = std::env::var("WINDROW_SWEEP").unwrap_or_default();
    let shapes = shapes();
    let every_other = |first: usize| {
        let mut ends = Ends::default();
        for (ordinal, shape) in shapes.iter().enumerate().skip(first).step_by(2) {
            let whole = chosen == "all" || chosen == shape.name;
            if chosen.is_empty() || whole {
                sweep(ordinal, shape, whole, &mut ends);
            }
        }
        ends
    };
    let all = std::thread::scope(|threads| {
        let other = threads.spawn(|| every_other(1));
        [every_other(0), other.join().expect("it ends")]
    });
    let count = |of: fn(&Ends) -> usize| all.iter().map(of).sum::<usize>();
    let (done, last_resort) = (count(|ends| ends.done), count(|ends| ends.last_resort));
    println!("{done} done, {} refused, {last_resort} in the end", count(|ends| ends.refused));
    let wrong: Vec<&String> = all.iter().flat_map(|ends| &ends.wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(last_resort, 0, "planning should have known");
    assert!(done > 0);
}
