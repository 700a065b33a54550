//! The example programs. Of the change log, the totals written for each time equal sums over the log;
//! of cancellation, nothing is left, and the run within a limit spills.

use std::path::Path;
use std::process::Command;

use windrow::arrow_array::RecordBatch;
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::Int64Type;
use windrow_files::{Inputs, Job, Limits, ReadOptions, SortSpec, expand};

/// Country, count, sum, least and greatest amount, diff.
type Row = (String, [i64; 5]);

/// Returns an example, which cargo builds together with the tests, in the folder beside theirs.
fn example(name: &str) -> Command {
    let tests = std::env::current_exe().unwrap();
    Command::new(tests.parent().and_then(Path::parent).unwrap().join("examples").join(name))
}

fn printed(command: &mut Command) -> String {
    let ran = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

fn rows(file: &Path) -> Vec<Row> {
    let inputs = Inputs::open(&expand([file]).unwrap(), &ReadOptions::default()).unwrap();
    let job = Job::sort(inputs, &SortSpec::by(["country", "diff"])).unwrap();
    let batches: Vec<RecordBatch> =
        job.batches(&Limits::default()).unwrap().collect::<Result<_, _>>().unwrap();
    let row = |batch: &RecordBatch, row: usize| {
        let number = |at| batch.column(at).as_primitive::<Int64Type>().value(row);
        (batch.column(0).as_string::<i32>().value(row).to_owned(), [1, 2, 3, 4, 5].map(number))
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|at| row(batch, at))).collect()
}

#[test]
fn totals_at_each_time() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
    let out = tempfile::tempdir().unwrap();
    let files = [data.join("orders.csv"), data.join("people.csv"), out.path().to_owned()];
    printed(example("change_log").args(files));
    let at = |time: i64| rows(&out.path().join(format!("{time}.parquet")));
    let of = |country: &str, numbers| (country.to_owned(), numbers);
    assert_eq!(at(1), [of("DE", [2, 200, 80, 120, 1]), of("FR", [1, 5, 5, 5, 1])]);
    assert_eq!(at(2), [of("DE", [2, 200, 80, 120, -1]), of("DE", [2, 180, 80, 100, 1])]);
    assert_eq!(
        at(3),
        [
            of("DE", [2, 180, 80, 100, -1]),
            of("DE", [3, 480, 80, 300, 1]),
            of("FR", [1, 5, 5, 5, -1]),
        ]
    );
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 3);
}

#[test]
fn cancellation_within_a_limit() {
    let out = tempfile::tempdir().unwrap();
    let said = printed(example("cancellation").args(["2", "400000", "4"]).current_dir(out.path()));
    // Two runs, whose last figures are MiB spilled, and the path of the picture.
    let spilled = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[words.len() - 3].parse::<u64>().unwrap()
    };
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("without a limit") && spilled(lines[0]) == 0, "{said}");
    assert!(lines[1].starts_with("4 MiB, spilling") && spilled(lines[1]) > 0, "{said}");
    let picture = std::fs::read_to_string(out.path().join("target/cancellation.svg")).unwrap();
    assert_eq!(picture.matches("<polyline").count(), 2);
}
