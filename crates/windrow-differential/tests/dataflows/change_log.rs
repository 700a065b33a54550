//! The worked example: the totals written for each time equal sums over the log.

use std::path::Path;
use std::process::Command;

use windrow::arrow_array::RecordBatch;
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::Int64Type;
use windrow_files::{Inputs, Job, Limits, ReadOptions, SortSpec, expand};

/// Country, count, sum, least and greatest amount, diff.
type Row = (String, [i64; 5]);

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
    // Cargo builds examples together with tests, in the folder beside the test's own.
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap().join("examples/change_log");
    let out = tempfile::tempdir().unwrap();
    let ran = Command::new(&built)
        .args([data.join("orders.csv"), data.join("people.csv"), out.path().to_owned()])
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
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
