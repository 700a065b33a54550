//! No space: a full disk, a limit on files, a limit on temporary space, a memory limit below the
//! floor. Each has its exit code and a message with a remedy, and leaves no files behind.

use crate::common::{self, Work, write_log};

const ROWS: u64 = 120_000;
/// Small row groups make a small floor, and a limit near it makes a job spill.
const TIGHT: &str = "--temp-dir temp --memory-limit 64MiB --row-group-size 1MiB --threads 1";

fn work() -> Work {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), ROWS);
    work
}

/// Returns a directory with rows that exceed [`TIGHT`], and a sort of the rows.
fn spilling() -> (Work, String) {
    let work = Work::new();
    write_log(&work.path("in/a.parquet"), 4 * ROWS);
    (work, format!("sort in/a.parquet --by payload -o out/o.parquet {TIGHT}"))
}

#[test]
fn a_device_without_room() {
    let work = work();
    for format in ["parquet", "arrow", "arrow-stream", "csv", "ndjson"] {
        let sort = format!("sort in/a.parquet --by lsn --output-format {format}");
        work.run(&format!("{sort} -o /dev/full")).says(5, &["/dev/full", "No space left"]);
        work.holds_only(&[]);
    }
    // The last flush alone writes a handful of rows.
    work.put("in/few.csv", "id\n2\n1\n");
    for format in ["parquet", "arrow", "arrow-stream", "csv", "ndjson"] {
        let sort = format!("sort in/few.csv --by id --output-format {format}");
        work.run(&format!("{sort} -o /dev/full")).says(5, &["/dev/full", "No space left"]);
    }
}

#[test]
fn a_place_that_takes_no_files() {
    let work = work();
    for name in ["o.parquet", "o.csv"] {
        let sort = format!("sort in/a.parquet --by lsn -o /proc/{name}");
        work.run(&sort).says(5, &["/proc/"]);
    }
    work.run("partition in/a.parquet --by id --into 3 -o /proc/p").says(5, &["/proc/p"]);
    work.holds_only(&[]);
}

#[test]
fn an_output_larger_than_files_may_be() {
    let work = work();
    work.put("out/old.csv", "old");
    for (blocks, name) in [(8, "o.parquet"), (1000, "o.parquet"), (8, "o.arrow"), (4000, "old.csv")]
    {
        // Without a memory limit, the output is the only file written.
        let sort = format!("sort in/a.parquet --by lsn -o out/{name} --memory-limit unlimited");
        work.run_limited(&format!("-f {blocks}"), &sort).says(5, &[name, "too large"]);
        work.holds_only(&["old.csv"]);
    }
    assert_eq!(work.read("out/old.csv"), b"old");
}

#[test]
fn a_temporary_file_larger_than_files_may_be() {
    let (work, sort) = spilling();
    work.run_limited("-f 100", &sort).says(5, &["temporary space", "temp", "too large"]);
    work.holds_only(&[]);
}

/// Listing a directory takes a descriptor, and none is left.
#[test]
fn fewer_files_than_a_job_opens() {
    let work = Work::new();
    work.put("in/a.csv", "k,l,m,v\n1,1,1,1\n2,2,2,2\n3,3,3,3\n");
    let jobs = [
        "partition in/a.csv --by k --into 3 -o out/o",
        "partition in/a.csv --by k,l,m --hive -o out/o",
        "sort in/a.csv --by k --max-file-size 64KiB --output-format csv -o out/o",
        "sort in/a.csv --by k -o out/o.csv",
    ];
    for job in jobs {
        let done = (5..24).filter(|files| {
            let ran = work.run_limited(&format!("-n {files}"), job);
            if ran.code == Some(0) {
                std::fs::remove_dir_all(work.path("out")).expect("removed");
                std::fs::create_dir(work.path("out")).expect("made");
            }
            work.holds_only(&[]);
            ran.code == Some(0)
        });
        assert!((1..19).contains(&done.count()), "{job}");
    }
}

#[test]
fn more_temporary_space_than_allowed() {
    let (work, sort) = spilling();
    for size in ["64KiB", "1MiB"] {
        let ran = work.run(&format!("{sort} --max-temp-size {size}"));
        ran.says(5, &["temporary space", "temp", "limit"]);
        work.holds_only(&[]);
    }
    work.run(&format!("{sort} --max-temp-size 1GiB")).succeeds();
}

#[test]
fn temporary_directories_that_are_not_there() {
    let work = work();
    let sort = "sort in/a.parquet --by lsn -o out/o.parquet --temp-dir temp --temp-dir temp/none";
    work.run(sort).says(2, &["--temp-dir", "temp/none", "create it first"]);
    work.put("in/file", "");
    let sort = "sort in/a.parquet --by lsn -o out/o.parquet --temp-dir in/file";
    work.run(sort).says(2, &["--temp-dir", "in/file"]);
    work.holds_only(&[]);
}

#[test]
fn a_memory_limit_under_the_floor() {
    let work = work();
    for verb in ["sort in/a.parquet --by lsn", "compact in/a.parquet --key id"] {
        let ran = work.run(&format!("{verb} -o out/o.parquet --memory-limit 8MiB --temp-dir temp"));
        ran.says(4, &["8192 KiB", "floor", "MiB", "--memory-limit"]);
        work.holds_only(&[]);
    }
    // The floor named by the message is sufficient, however far below the limit was.
    for (limit, told) in [("1MiB", "1024 KiB"), ("20MiB", "20 MiB"), ("12345678", "12345678 B")] {
        let sort = "sort in/a.parquet --by lsn -o out/o.parquet --memory-limit";
        let ran = work.run(&format!("{sort} {limit}"));
        ran.says(4, &[&format!("a memory limit of {told} is below the floor of this job, ")]);
        let floor = ran.err.split("of this job, ").nth(1).and_then(|text| text.split(':').next());
        let floor = floor.expect("a floor").replace(' ', "");
        work.run(&format!("{sort} {floor}")).succeeds();
        std::fs::remove_file(work.path("out/o.parquet")).expect("written");
    }
    // At once: the tool reads nothing of an endless stream.
    let mut command =
        work.command("sort - --by a --input-format csv -o out/o.csv --memory-limit 8MiB");
    command.stdin(std::process::Stdio::piped());
    let mut child = command.spawn().expect("started");
    let mut rows = child.stdin.take().expect("piped");
    let header = std::io::Write::write_all(&mut rows, "a\n1\n2\n".repeat(200_000).as_bytes());
    drop(header);
    common::ran(child).says(4, &["floor"]);
    drop(rows);
    work.holds_only(&[]);
}
