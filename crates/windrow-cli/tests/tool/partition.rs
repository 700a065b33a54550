//! Partitions: every row is in one file, and rows with equal keys are in the same file, in input
//! order. The bytes do not depend on the threads or the limit. The directory is complete or absent.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Work, ran, read_parquet, wait_until, write_arrow, write_log};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, DurationSecondArray, Int8Array, Int64Array,
    RecordBatch, StringArray, TimestampSecondArray,
};

const ROWS: u64 = 60_000;

fn work(rows: u64) -> Work {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), rows);
    work
}

/// Returns the files under `directory` and their bytes, by their relative paths.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(root: &Path, directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let name = path.strip_prefix(root).expect("within").to_owned();
                found.insert(name, std::fs::read(&path).expect("read"));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(directory, directory, &mut found);
    found
}

fn ids(batch: &RecordBatch, column: &str) -> Vec<i64> {
    let column = batch.column_by_name(column).expect("a column");
    column.as_primitive::<Int64Type>().values().to_vec()
}

/// Returns the rows of every file of a log partitioned by `id`, as (id, lsn).
fn rows(work: &Work, directory: &str) -> Vec<Vec<(i64, i64)>> {
    let names = files(&work.path(directory)).into_keys();
    let rows = names.map(|name| {
        let batch = read_parquet(&work.path(directory).join(name));
        ids(&batch, "id").into_iter().zip(ids(&batch, "lsn")).collect()
    });
    rows.collect()
}

#[test]
fn every_row_is_in_the_file_of_its_key_in_the_order_it_had() {
    let work = work(ROWS);
    let input = read_parquet(&work.path("in/a.parquet"));
    let input: Vec<(i64, i64)> = ids(&input, "id").into_iter().zip(ids(&input, "lsn")).collect();
    let place: HashMap<i64, usize> =
        input.iter().enumerate().map(|(row, (_, lsn))| (*lsn, row)).collect();
    for partitions in [1, 3, 64, 2048, 5000] {
        let line = format!("partition in/a.parquet --by id --into {partitions} -o out/p");
        work.run_limited("-n 64", &format!("{line} --stats out/stats.json -q")).succeeds();
        let files = rows(&work, "out/p");
        assert_eq!(files.len(), partitions);
        let mut file_of = HashMap::new();
        for (number, rows) in files.iter().enumerate() {
            let places: Vec<usize> = rows.iter().map(|(_, lsn)| place[lsn]).collect();
            assert!(places.is_sorted(), "{partitions}: rows of file {number} changed places");
            for (id, _) in rows {
                assert_eq!(*file_of.entry(*id).or_insert(number), number, "{partitions}: {id}");
            }
        }
        let mut all: Vec<(i64, i64)> = files.concat();
        let mut expected = input.clone();
        all.sort_unstable();
        expected.sort_unstable();
        assert!(all == expected, "{partitions}");
        let stats: serde_json::Value =
            serde_json::from_slice(&work.read("out/stats.json")).expect("JSON");
        assert_eq!(stats["rows_out"], ROWS);
        assert_eq!(stats["partitions"]["files"], partitions);
        let occupied = files.iter().filter(|rows| !rows.is_empty()).count();
        assert_eq!(stats["partitions"]["occupied"], occupied);
        let most = files.iter().map(Vec::len).max();
        assert_eq!(stats["partitions"]["most_rows"], most.expect("files"));
        let bytes: usize = self::files(&work.path("out/p")).values().map(Vec::len).sum();
        assert_eq!(stats["bytes_out"], bytes);
        std::fs::remove_dir_all(work.path("out/p")).expect("removed");
        std::fs::remove_file(work.path("out/stats.json")).expect("removed");
        work.holds_only(&[]);
    }
}

#[test]
fn bytes_depend_on_neither_threads_nor_limit() {
    let work = work(300_000);
    for (name, line) in [
        ("hash", "--by id --into 300"),
        ("few", "--by id --into 3 --sort payload:desc,lsn"),
        ("ranges", "--by payload,id --range --into 20"),
        ("hive", "--by op --hive --sort lsn"),
    ] {
        let line =
            format!("partition in/a.parquet {line} --temp-dir temp --row-group-size 1MiB -q");
        let mut expected = None;
        for limit in ["64MiB", "96MiB", "unlimited"] {
            for threads in [1, 2] {
                let run = format!("{line} -o out/p --memory-limit {limit} --threads {threads}");
                let stats = work.run(&format!("{run} --stats json"));
                stats.succeeds();
                let told: serde_json::Value = serde_json::from_str(&stats.err).expect("JSON");
                if let Some(limit) = told["memory_limit_bytes"].as_u64() {
                    let peak = told["peak_rss_bytes"].as_u64().expect("a number");
                    assert!(peak <= limit, "{name} {limit} {threads}: {peak}");
                }
                let files = files(&work.path("out/p"));
                std::fs::remove_dir_all(work.path("out/p")).expect("removed");
                let expected = expected.get_or_insert_with(|| files.clone());
                assert!(*expected == files, "{name} {limit} {threads}");
                work.holds_only(&[]);
            }
        }
    }
}

#[test]
fn thousands_of_files_stay_within_the_limit() {
    let work = work(400_000);
    for line in ["--by id --into 2048", "--by op --into 4096", "--by id --range --into 2048"] {
        let run = work.run_limited(
            "-n 64",
            &format!(
                "partition in/a.parquet {line} -o out/p --temp-dir temp --memory-limit 64MiB \
                 --row-group-size 1MiB --stats json -q"
            ),
        );
        run.succeeds();
        let told: serde_json::Value = serde_json::from_str(&run.err).expect("JSON");
        let peak = told["peak_rss_bytes"].as_u64().expect("a number");
        assert!(peak <= 64 << 20, "{line}: {peak}");
        assert_eq!(told["rows_out"], 400_000);
        std::fs::remove_dir_all(work.path("out/p")).expect("removed");
        work.holds_only(&[]);
    }
}

#[test]
fn ranges_ascend_from_file_to_file() {
    let work = work(ROWS);
    let line = "partition in/a.parquet --by id -o out/p -q";
    work.run(&format!("{line} --range --into 8")).succeeds();
    let files = rows(&work, "out/p");
    assert_eq!(files.len(), 8);
    let bounds =
        |rows: &Vec<(i64, i64)>| (rows.iter().min().unwrap().0, rows.iter().max().unwrap().0);
    let bounds: Vec<(i64, i64)> = files.iter().map(bounds).collect();
    assert!(bounds.windows(2).all(|pair| pair[0].1 < pair[1].0), "{bounds:?}");
    let fair = ROWS as usize / 8;
    assert!(files.iter().all(|rows| rows.len() > fair / 2 && rows.len() < fair * 2));
    std::fs::remove_dir_all(work.path("out/p")).expect("removed");

    work.run(&format!("{line} --range-at 100 --range-at 100 --range-at 5000")).succeeds();
    let files = rows(&work, "out/p");
    assert_eq!(files.len(), 4);
    assert!(files[0].iter().all(|(id, _)| *id < 100) && !files[0].is_empty());
    assert!(files[1].is_empty());
    assert!(files[2].iter().all(|(id, _)| (100..5000).contains(id)) && !files[2].is_empty());
    assert!(files[3].iter().all(|(id, _)| *id >= 5000) && !files[3].is_empty());
}

#[test]
fn hive_directories_are_named_by_values() {
    let work = Work::new();
    work.put(
        "in/a.csv",
        "country,city,n\nnl,Den Haag,1\nde,Ulm,2\n,Ulm,3\nnl,a/b=c%,4\nnl,Den Haag,5\n\"\",Ulm,6\n",
    );
    let line = "partition in/a.csv --by country,city --hive -o out/p -q";
    work.run(&format!("{line} --output-format csv")).succeeds();
    let found = files(&work.path("out/p"));
    let names: Vec<&str> = found.keys().map(|path| path.to_str().expect("UTF-8")).collect();
    assert_eq!(
        names,
        [
            "country=/city=Ulm/part-0.csv",
            "country=__HIVE_DEFAULT_PARTITION__/city=Ulm/part-0.csv",
            "country=de/city=Ulm/part-0.csv",
            "country=nl/city=Den%20Haag/part-0.csv",
            "country=nl/city=a%2Fb%3Dc%25/part-0.csv",
        ]
    );
    let texts: Vec<&[u8]> = found.values().map(Vec::as_slice).collect();
    assert_eq!(texts, [b"n\n6\n" as &[u8], b"n\n3\n", b"n\n2\n", b"n\n1\n5\n", b"n\n4\n"]);
}

#[test]
fn every_format_goes_in_and_out() {
    let work = work(2_000);
    for (format, extension) in [
        ("parquet", "parquet"),
        ("arrow", "arrow"),
        ("arrow-stream", "arrows"),
        ("csv", "csv"),
        ("ndjson", "ndjson"),
    ] {
        let to = format!("--by id --into 5 --output-format {format} -q");
        work.run(&format!("partition in/a.parquet {to} -o out/{extension}")).succeeds();
        let last = format!("out/{extension}/part-00004.{extension}");
        assert!(work.path(&last).is_file(), "{last}");
        work.run(&format!("partition out/{extension} {to} -o out/again")).succeeds();
        let (first, again) =
            (files(&work.path(&format!("out/{extension}"))), files(&work.path("out/again")));
        assert!(first == again, "{format}: what is partitioned already stays as it is");
        std::fs::remove_dir_all(work.path("out/again")).expect("removed");
        let sort = format!("sort out/{extension} --by lsn -o out/all.csv -q");
        work.run(&sort).succeeds();
        let expected = "sort in/a.parquet --by lsn -o out/expected.csv -q";
        work.run(expected).succeeds();
        assert_eq!(work.read("out/all.csv"), work.read("out/expected.csv"), "{format}");
    }
}

#[test]
fn no_rows_make_empty_files() {
    let work = Work::new();
    work.put("in/a.csv", "id,n\n");
    let line = "partition in/a.csv --by id -q --output-format csv";
    work.run(&format!("{line} --into 3 -o out/p")).succeeds();
    work.run(&format!("{line} --range --into 3 -o out/r")).succeeds();
    work.run(&format!("{line} --hive -o out/h")).succeeds();
    for (name, count) in [("out/p", 3), ("out/r", 3), ("out/h", 0)] {
        let files = files(&work.path(name));
        assert_eq!(files.len(), count, "{name}");
        assert!(files.values().all(|text| text == b"id,n\n"), "{name}");
    }
}

#[test]
fn a_directory_that_holds_anything_is_left_alone() {
    let work = work(2_000);
    let line = "partition in/a.parquet --by id --into 3 -q";
    std::fs::create_dir(work.path("out/full")).expect("created");
    work.put("out/full/mine", "mine");
    work.put("out/file", "mine");
    work.run(&format!("{line} -o out/full")).says(2, &["out/full", "not empty"]);
    work.run(&format!("{line} -o out/file")).says(2, &["out/file", "not a directory"]);
    work.run(&format!("{line} -o out/none/p")).says(2, &["out/none", "create it first"]);
    work.run(&format!("{line} -o -")).says(2, &["standard output"]);
    assert_eq!(work.read("out/full/mine"), b"mine");
    work.holds_only(&["file", "full"]);
    std::fs::create_dir(work.path("out/empty")).expect("created");
    work.run(&format!("{line} -o out/empty/")).succeeds();
    assert_eq!(work.names("out/empty").len(), 3);
    work.run(&format!("{line} -o out/empty")).says(2, &["not empty"]);
}

#[test]
fn a_directory_that_has_files_is_replaced_or_added_to() {
    let work = Work::new();
    for (name, rows) in [("a", "day,n\n1,1\n2,2\n"), ("b", "day,n\n2,3\n3,4\n")] {
        work.put(&format!("in/{name}.csv"), rows);
    }
    let line = |name, more: &str| {
        format!("partition in/{name}.csv --by day --hive -q --output-format csv -o out/p {more}")
    };
    let found = || -> Vec<(String, String)> {
        let texts = files(&work.path("out/p")).into_iter();
        let text = |(name, text): (PathBuf, _)| {
            let text = String::from_utf8(text).expect("text").replace('\n', " ");
            (name.display().to_string(), text)
        };
        texts.map(text).collect()
    };
    let of = |files: &[(&str, &str)]| -> Vec<(String, String)> {
        files.iter().map(|(name, n)| (name.to_string(), format!("n {n} "))).collect()
    };
    for first in
        ["", "--if-exists append", "--if-exists overwrite", "--if-exists replace_partitions"]
    {
        work.run(&line("a", first)).succeeds();
        assert_eq!(found(), of(&[("day=1/part-0.csv", "1"), ("day=2/part-0.csv", "2")]), "{first}");
        std::fs::remove_dir_all(work.path("out/p")).expect("removed");
    }
    work.run(&line("a", "")).succeeds();
    work.run(&line("b", "--if-exists append")).succeeds();
    let all = [
        ("day=1/part-0.csv", "1"),
        ("day=2/part-0-1.csv", "3"),
        ("day=2/part-0.csv", "2"),
        ("day=3/part-0.csv", "4"),
    ];
    assert_eq!(found(), of(&all));
    work.run(&line("b", "--if-exists replace_partitions")).succeeds();
    let replaced =
        [("day=1/part-0.csv", "1"), ("day=2/part-0.csv", "3"), ("day=3/part-0.csv", "4")];
    assert_eq!(found(), of(&replaced));
    work.run(&line("a", "--if-exists overwrite")).succeeds();
    assert_eq!(found(), of(&[("day=1/part-0.csv", "1"), ("day=2/part-0.csv", "2")]));
    work.holds_only(&["p"]);
    work.run(&line("a", "--if-exists error")).says(2, &["not empty", "--if-exists"]);
    work.run(&line("a", "--if-exists sometimes")).says(2, &["--if-exists"]);
    work.put("out/p/notes.txt", "mine");
    for mode in ["overwrite", "append", "replace_partitions"] {
        work.run(&line("a", &format!("--if-exists {mode}"))).says(2, &["notes.txt"]);
    }
    assert_eq!(work.read("out/p/notes.txt"), b"mine");
    let one = "sort in/a.csv --by n -q";
    work.run(&format!("{one} -o out/s.csv --if-exists append")).says(2, &["--max-file-size"]);
    let many =
        format!("{one} -o out/s --max-file-size 64KiB --output-format csv --if-exists append");
    work.run(&many).succeeds();
    work.run(&many).succeeds();
    assert_eq!(work.names("out/s"), ["part-00000-1.csv", "part-00000.csv"]);
    let hash = "partition in/a.csv --by n --into 2 -q -o out/h --if-exists replace_partitions";
    work.run(hash).says(2, &["needs --hive"]);
}

#[test]
fn a_file_that_cannot_be_opened_ends_all_who_wait_for_it() {
    let work = Work::new();
    // A path of more than 4,096 bytes with valid names, after a valid directory.
    let keys: Vec<String> = (0..20).map(|key| format!("k{key}")).collect();
    let mut text = keys.join(",") + ",n\n";
    let (short, long) = (["a"; 20].join(","), ["b".repeat(240).as_str(); 20].join(","));
    for row in 0..4000 {
        text += &format!("{},{row}\n", if row < 1000 { &short } else { &long });
    }
    work.put("in/a.csv", text);
    let line = format!("partition in/a.csv --by {} --hive --row-group-size 64KiB", keys.join(","));
    for threads in [1, 2, 8] {
        for limit in ["unlimited", "200MiB"] {
            let line = format!("{line} --threads {threads} --memory-limit {limit} -q -o out/p");
            work.run(&line).says(5, &["too long"]);
            work.holds_only(&[]);
        }
    }
}

#[test]
fn mistakes_are_usage() {
    let work = work(2_000);
    for (line, part) in [
        ("--by id", "--into"),
        ("--into 3", "--by"),
        ("--by id --into 0", "--into"),
        ("--by id --into 99999999", "partitions"),
        ("--by id --into 3 --hive", "--hive"),
        ("--by id --range", "--into"),
        ("--by nix --into 3", "nix"),
        ("--by id --into 3 --sort nix", "nix"),
        ("--by id --range-at x", "no value of column"),
        ("--by id --range-at 1.5", "no value of column"),
        ("--by id --range-at 2 --range-at 1", "comes before"),
        ("--by id,op --range-at 2", "1 values"),
        ("--by op --hive --select op,id", "names of the directories"),
        ("--by id,lsn,op,payload,amount,ts --hive", "none is left"),
        ("--by id --into 3 --output-format csv --compression snappy", "compression"),
    ] {
        work.run(&format!("partition in/a.parquet {line} -o out/p")).says(2, &[part]);
    }
    work.run("partition in/none.csv --by id --into 3 -o out/p").says(3, &["in/none.csv"]);
    let line = "partition in/a.parquet --by id --into 3 -o out/p --memory-limit 8MiB";
    work.run(line).says(4, &["floor"]);
    work.holds_only(&[]);
}

#[test]
fn a_plan_is_printed_and_nothing_done() {
    let work = work(2_000);
    let line = "partition in/a.parquet --by id --range --into 7 -o out/p --explain";
    let plan = work.run(line);
    plan.succeeds();
    let text = String::from_utf8(plan.out).expect("UTF-8");
    for part in ["partitions", "7 ranges of id, by a sample", "out/p as parquet", "memory limit"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    work.holds_only(&[]);
}

#[test]
fn files_that_cannot_grow_leave_nothing() {
    let work = work(ROWS);
    let line = "partition in/a.parquet --by id --into 3 -o out/p --memory-limit unlimited";
    work.run_limited("-f 8", line).says(5, &["too large"]);
    work.holds_only(&[]);
}

#[test]
fn a_kill_leaves_one_temporary_that_the_next_run_removes() {
    let work = work(300_000);
    let line = "partition in/a.parquet --by id --into 2000 -o out/p --temp-dir temp -q";
    let mut child = work.command(line).spawn().expect("started");
    wait_until("writing", || {
        let names = work.names("out");
        assert!(child.try_wait().expect("a state").is_none(), "over before it was seen to write");
        names.first().is_some_and(|name| work.names(&format!("out/{name}")).len() > 20)
    });
    child.kill().expect("killed");
    child.wait().expect("ended");
    let left = work.names("out");
    assert!(left.len() == 1 && left[0].starts_with(".p.windrow-"), "{left:?}");
    work.run(line).succeeds();
    work.holds_only(&["p"]);
    assert_eq!(work.names("out/p").len(), 2000);
}

#[test]
fn files_that_vanish_while_others_are_written_are_missed() {
    for (rows, way, deep) in
        [(300_000, "--into 2000", false), (40_000, "--hive", false), (40_000, "--hive", true)]
    {
        let work = work(rows);
        let line = format!("partition in/a.parquet --by id {way} -o out/p --temp-dir temp -q");
        let mut child = work.command(&line).spawn().expect("started");
        let mut temporary = String::new();
        wait_until("writing", || {
            assert!(
                child.try_wait().expect("a state").is_none(),
                "over before it was seen to write"
            );
            let names = work.names("out");
            temporary = names.first().map(|name| format!("out/{name}")).unwrap_or_default();
            !temporary.is_empty() && work.names(&temporary).len() > 20
        });
        let taken = match deep {
            true => format!("{temporary}/{}", work.names(&temporary)[0]),
            false => temporary,
        };
        std::fs::rename(work.path(&taken), work.path("in/away")).expect("moved");
        ran(child).says(5, &["out/", ".p.windrow-", "keep other programs away"]);
        work.holds_only(&[]);
    }
}

#[test]
fn ranges_of_dictionaries_of_any_values() {
    let work = Work::new();
    let values: [ArrayRef; 4] = [
        Arc::new(BooleanArray::from(vec![false, true])),
        Arc::new(DurationSecondArray::from(vec![1, 2])),
        Arc::new(StringArray::from(vec![Some("a"), None])),
        Arc::new(Int64Array::from(vec![7, 8])),
    ];
    for values in values {
        let keys = Int8Array::from(vec![Some(0), Some(1), None, Some(1)]);
        let column: ArrayRef = Arc::new(DictionaryArray::new(keys, values));
        let batch = RecordBatch::try_from_iter([("x", column)]).expect("a column");
        write_arrow(&work, "in/a.arrow", &batch);
        let line = "partition in/a.arrow --by x --range --into 4 -o out/p --output-format arrow -q";
        work.run(line).succeeds();
        work.run("sort out/p --by x -o out/all.arrow -q --stats in/all.json").succeeds();
        let stats: serde_json::Value =
            serde_json::from_slice(&work.read("in/all.json")).expect("JSON");
        assert_eq!(stats["rows_out"], 4);
        std::fs::remove_dir_all(work.path("out/p")).expect("removed");
    }
}

#[test]
fn a_request_to_stop_leaves_nothing() {
    let work = work(300_000);
    let line = "partition in/a.parquet --by id --into 2000 -o out/p --temp-dir temp -q";
    let mut child = work.command_that_signals_reach(line).spawn().expect("started");
    wait_until("writing", || {
        assert!(child.try_wait().expect("a state").is_none(), "over before it was seen to write");
        !work.names("out").is_empty()
    });
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-s", "INT", &pid]).status();
    assert!(sent.expect("kill").success());
    ran(child).says(130, &["interrupted"]);
    work.holds_only(&[]);
}

#[test]
fn streams_are_partitioned_but_not_sampled() {
    let work = Work::new();
    work.put("in/a.csv", "id\n2\n1\n3\n");
    let run = |line: &str| {
        let input = std::fs::File::open(work.path("in/a.csv")).expect("there");
        let line = format!("partition - --input-format csv --by id -o out/p -q {line}");
        ran(work.command(&line).stdin(input).spawn().expect("started"))
    };
    run("--range --into 2").says(2, &["stdin", "--range-at"]);
    work.holds_only(&[]);
    run("--range-at 2 --output-format csv").succeeds();
    assert_eq!(work.read("out/p/part-00000.csv"), b"id\n1\n");
    assert_eq!(work.read("out/p/part-00001.csv"), b"id\n2\n3\n");
}

#[test]
fn instants_whose_offset_has_seconds() {
    let work = Work::new();
    let instants = TimestampSecondArray::from_iter_values(-3_645_237_220..-3_645_237_196);
    let instants: ArrayRef = Arc::new(instants.with_timezone("Asia/Kolkata"));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..24));
    let batch = RecordBatch::try_from_iter([("t", instants), ("n", numbers)]).expect("a batch");
    write_arrow(&work, "in/a.arrow", &batch);
    work.run("partition in/a.arrow --by t --hive --output-format csv -o out/p").succeeds();
    let names = work.names("out/p");
    assert_eq!(names.len(), 24);
    assert!(names.iter().all(|name| name.ends_with('Z')), "{names:?}");
    // Text would show another instant.
    for output in ["o.csv", "o.ndjson"] {
        work.run(&format!("sort in/a.arrow --by n -o out/{output}")).says(3, &["\"t\"", "offset"]);
    }
}
